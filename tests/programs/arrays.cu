// Arrays, textures, surfaces and copies of boxes: what the API says, right and wrong, call by call.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#define SAY(call) std::printf("%-64s %s\n", #call, cudaGetErrorName(call))

static cudaChannelFormatDesc chars = {8, 0, 0, 0, cudaChannelFormatKindUnsigned};
static cudaChannelFormatDesc floats = {32, 0, 0, 0, cudaChannelFormatKindFloat};
static cudaChannelFormatDesc ints = {32, 0, 0, 0, cudaChannelFormatKindSigned};

static void show(cudaArray_t array) {
    cudaChannelFormatDesc d = {};
    cudaExtent e = {};
    unsigned flags = 99;
    std::printf("    info %s", cudaGetErrorName(cudaArrayGetInfo(&d, &e, &flags, array)));
    std::printf(" %d %d %d %d kind %d, %zu x %zu x %zu, flags %u\n", d.x, d.y, d.z, d.w, d.f,
                e.width, e.height, e.depth, flags);
}

static const char* malloc_array(cudaChannelFormatDesc d, size_t w, size_t h, unsigned flags = 0) {
    cudaArray_t a = nullptr;
    cudaError_t e = cudaMallocArray(&a, &d, w, h, flags);
    if (!e) show(a), cudaFreeArray(a);
    return cudaGetErrorName(e);
}
static const char* malloc_3d(cudaChannelFormatDesc d, size_t w, size_t h, size_t z,
                             unsigned flags = 0) {
    cudaArray_t a = nullptr;
    cudaError_t e = cudaMalloc3DArray(&a, &d, make_cudaExtent(w, h, z), flags);
    if (!e) show(a), cudaFreeArray(a);
    return cudaGetErrorName(e);
}
#define NAME(call) std::printf("%-64s %s\n", #call, call)

static const char* create(cudaResourceDesc r, cudaTextureDesc t) {
    cudaTextureObject_t o = 77;
    cudaError_t e = cudaCreateTextureObject(&o, &r, &t, nullptr);
    if (!e) cudaDestroyTextureObject(o);
    return cudaGetErrorName(e);
}
static cudaResourceDesc of_array(cudaArray_t a) {
    cudaResourceDesc r = {};
    r.resType = cudaResourceTypeArray;
    r.res.array.array = a;
    return r;
}
static cudaResourceDesc of_linear(void* p, cudaChannelFormatDesc d, size_t bytes) {
    cudaResourceDesc r = {};
    r.resType = cudaResourceTypeLinear;
    r.res.linear.devPtr = p;
    r.res.linear.desc = d;
    r.res.linear.sizeInBytes = bytes;
    return r;
}
static cudaResourceDesc of_pitch(void* p, cudaChannelFormatDesc d, size_t w, size_t h,
                                 size_t pitch) {
    cudaResourceDesc r = {};
    r.resType = cudaResourceTypePitch2D;
    r.res.pitch2D.devPtr = p;
    r.res.pitch2D.desc = d;
    r.res.pitch2D.width = w;
    r.res.pitch2D.height = h;
    r.res.pitch2D.pitchInBytes = pitch;
    return r;
}
static cudaTextureDesc texture(cudaTextureFilterMode f, cudaTextureReadMode m, int normalized,
                               cudaTextureAddressMode a = cudaAddressModeClamp) {
    cudaTextureDesc t = {};
    t.addressMode[0] = t.addressMode[1] = t.addressMode[2] = a;
    t.filterMode = f;
    t.readMode = m;
    t.normalizedCoords = normalized;
    return t;
}
const cudaTextureFilterMode POINT = cudaFilterModePoint, LINEAR = cudaFilterModeLinear;
const cudaTextureReadMode ELEMENT = cudaReadModeElementType, NORM = cudaReadModeNormalizedFloat;

__global__ void read_floats(cudaTextureObject_t t, float* out, float from, float step) {
    out[threadIdx.x] = tex1D<float>(t, from + step * threadIdx.x);
}
__global__ void fetch_ints(cudaTextureObject_t t, int* out, int from) {
    out[threadIdx.x] = tex1Dfetch<int>(t, from + (int)threadIdx.x);
}
__global__ void fetch_any(cudaTextureObject_t t, float* out) {
    out[0] = tex1Dfetch<float>(t, 3);
    out[1] = tex1D<float>(t, 3.5f);
    out[2] = tex2D<float>(t, 3.5f, 0.5f);
}
__global__ void fetch_array(cudaTextureObject_t t, float* out) {
    out[0] = tex1Dfetch<float>(t, 3);
    out[1] = tex2D<float>(t, 3.5f, 0.5f);
    out[2] = tex3D<float>(t, 3.5f, 0.5f, 0.5f);
}
__global__ void fetch_other(cudaTextureObject_t t, int* out) {
    uchar4 c = tex2D<uchar4>(t, 0.5f, 0.5f);
    out[0] = c.x, out[1] = c.y, out[2] = c.z, out[3] = c.w;
    int4 i = tex2D<int4>(t, 0.5f, 0.5f);
    out[4] = i.x, out[5] = i.y, out[6] = i.z, out[7] = i.w;
    char4 s = tex2D<char4>(t, 0.5f, 0.5f);
    out[8] = s.x, out[9] = s.y, out[10] = s.z, out[11] = s.w;
    float4 f = tex2D<float4>(t, 0.5f, 0.5f);
    out[12] = __float_as_int(f.x), out[13] = __float_as_int(f.y), out[14] = __float_as_int(f.z),
    out[15] = __float_as_int(f.w);
    short2 h = tex2D<short2>(t, 0.5f, 0.5f);
    out[16] = h.x, out[17] = h.y;
}
__global__ void write_1d(cudaSurfaceObject_t s, int x, int value, int mode) {
    if (mode == 0) surf1Dwrite(value, s, x * 4, cudaBoundaryModeZero);
    if (mode == 1) surf1Dwrite(value, s, x * 4, cudaBoundaryModeClamp);
    if (mode == 2) surf1Dwrite(value, s, x * 4, cudaBoundaryModeTrap);
    if (mode == 3) surf1Dwrite(value, s, x);
}
__global__ void read_1d(cudaSurfaceObject_t s, int* out, int from) {
    out[threadIdx.x] = surf1Dread<int>(s, (from + (int)threadIdx.x) * 4, cudaBoundaryModeZero);
    out[threadIdx.x + 32] =
        surf1Dread<int>(s, (from + (int)threadIdx.x) * 4, cudaBoundaryModeClamp);
}
__global__ void read_2d(cudaSurfaceObject_t s, int* out) {
    int x = (int)threadIdx.x % 8 - 2, y = (int)threadIdx.x / 8 - 2;
    out[threadIdx.x] = surf2Dread<int>(s, x * 4, y, cudaBoundaryModeZero);
    out[threadIdx.x + 64] = surf2Dread<int>(s, x * 4, y, cudaBoundaryModeClamp);
}
__global__ void write_2d(cudaSurfaceObject_t s, int mode) {
    int x = (int)threadIdx.x % 8 - 2, y = (int)threadIdx.x / 8 - 2;
    if (mode == 0) surf2Dwrite((int)threadIdx.x + 100, s, x * 4, y, cudaBoundaryModeZero);
    if (mode == 1) surf2Dwrite((unsigned char)(threadIdx.x + 100), s, x, y, cudaBoundaryModeZero);
    if (mode == 2 && threadIdx.x == 9) surf2Dwrite(make_int2(-5, -6), s, 4, 1);
    if (mode == 3 && threadIdx.x == 9) surf2Dwrite(77, s, 5, 1, cudaBoundaryModeZero);
    if (mode == 4 && (x == -2 || x == 5) && y == 1)
        surf2Dwrite((int)threadIdx.x + 100, s, x * 4, y, cudaBoundaryModeClamp);
}
__global__ void layers(cudaSurfaceObject_t s, int* out) {
    int i = threadIdx.x;
    surf2DLayeredwrite(1000 + i, s, i % 4 * 4, i / 4 % 2, i / 8, cudaBoundaryModeZero);
    __syncwarp();
    out[i] = surf2DLayeredread<int>(s, i % 4 * 4, i / 4 % 2, i / 8, cudaBoundaryModeZero);
    out[i + 32] = surf2DLayeredread<int>(s, i % 4 * 4, i / 4 % 2, i / 8, cudaBoundaryModeClamp);
}
__global__ void volume(cudaSurfaceObject_t s, int* out) {
    int i = threadIdx.x;
    surf3Dwrite(2000 + i, s, i % 4 * 4, i / 4 % 2, i / 8, cudaBoundaryModeZero);
    __syncwarp();
    out[i] = surf3Dread<int>(s, i % 4 * 4, i / 4 % 2, i / 8 - 1, cudaBoundaryModeZero);
    out[i + 32] = surf3Dread<int>(s, i % 4 * 4, i / 4 % 2, i / 8 - 1, cudaBoundaryModeClamp);
}

static int* out;
static const int* numbers_of() {
    static int numbers[16];
    for (int i = 0; i < 16; ++i) numbers[i] = i + 1;
    return numbers;
}
static void print(int n, const char* title) {
    static int host[256];
    cudaError_t e = cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
    std::printf("%s: %s", title, cudaGetErrorName(e));
    for (int i = 0; i < n; ++i) std::printf(" %d", host[i]);
    std::printf("\n");
    cudaMemset(out, 0x55, 1024);
}
static void print_floats(int n, const char* title) {
    static float host[256];
    cudaError_t e = cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
    std::printf("%s: %s", title, cudaGetErrorName(e));
    for (int i = 0; i < n; ++i) std::printf(" %g", host[i]);
    std::printf("\n");
    cudaMemset(out, 0x55, 1024);
}
static void print_array(cudaArray_t a, int w, int h, const char* title) {
    static int host[256];
    std::memset(host, 0, sizeof host);
    cudaError_t e = cudaMemcpy2DFromArray(host, w * 4, a, 0, 0, w * 4, h, cudaMemcpyDeviceToHost);
    std::printf("%s: %s", title, cudaGetErrorName(e));
    for (int i = 0; i < w * h; ++i) std::printf(" %d", host[i]);
    std::printf("\n");
}

int main() {
    cudaMalloc(&out, 1024);
    cudaMemset(out, 0x55, 1024);
    NAME(malloc_array(floats, 16, 0));
    NAME(malloc_array(floats, 16, 8));
    NAME(malloc_array(floats, 0, 8));
    NAME(malloc_array(floats, 0, 0));
    NAME(malloc_array({8, 8, 8, 0, cudaChannelFormatKindUnsigned}, 16, 8));
    NAME(malloc_array({8, 16, 0, 0, cudaChannelFormatKindUnsigned}, 16, 8));
    NAME(malloc_array({8, 0, 8, 0, cudaChannelFormatKindUnsigned}, 16, 8));
    NAME(malloc_array({0, 0, 0, 0, cudaChannelFormatKindUnsigned}, 16, 8));
    NAME(malloc_array({64, 0, 0, 0, cudaChannelFormatKindUnsigned}, 16, 8));
    NAME(malloc_array({24, 0, 0, 0, cudaChannelFormatKindUnsigned}, 16, 8));
    NAME(malloc_array({8, 0, 0, 0, cudaChannelFormatKindFloat}, 16, 8));
    NAME(malloc_array({16, 16, 0, 0, cudaChannelFormatKindFloat}, 16, 8));
    NAME(malloc_array({8, 0, 0, 0, cudaChannelFormatKindNone}, 16, 8));
    NAME(malloc_array(floats, 131072, 0));
    NAME(malloc_array(floats, 131073, 0));
    NAME(malloc_array(floats, 131072, 65537));
    NAME(malloc_array(floats, 131073, 2));
    NAME(malloc_array(floats, 2, 65536));
    NAME(malloc_array(floats, 16, 8, cudaArraySurfaceLoadStore));
    NAME(malloc_array(floats, 16, 8, cudaArrayTextureGather));
    NAME(malloc_array(floats, 16, 0, cudaArrayTextureGather));
    NAME(malloc_array(floats, 16, 8, cudaArrayLayered));
    NAME(malloc_array(floats, 16, 8, cudaArrayCubemap));
    NAME(malloc_array(floats, 16, 8, 0x100));
    NAME(malloc_3d(floats, 16, 0, 0));
    NAME(malloc_3d(floats, 16, 8, 0));
    NAME(malloc_3d(floats, 16, 8, 4));
    NAME(malloc_3d(floats, 16, 0, 4));
    NAME(malloc_3d(floats, 16, 0, 4, cudaArrayLayered));
    NAME(malloc_3d(floats, 16, 8, 4, cudaArrayLayered));
    NAME(malloc_3d(floats, 16, 8, 0, cudaArrayLayered));
    NAME(malloc_3d(floats, 16, 16, 6, cudaArrayCubemap));
    NAME(malloc_3d(floats, 16, 16, 5, cudaArrayCubemap));
    NAME(malloc_3d(floats, 16, 8, 6, cudaArrayCubemap));
    NAME(malloc_3d(floats, 16, 16, 12, cudaArrayCubemap));
    NAME(malloc_3d(floats, 16, 16, 12, cudaArrayCubemap | cudaArrayLayered));
    NAME(malloc_3d(floats, 16, 16, 13, cudaArrayCubemap | cudaArrayLayered));
    NAME(malloc_3d(floats, 16385, 2, 2));
    NAME(malloc_3d(floats, 16384, 2, 2));
    NAME(malloc_3d(floats, 4, 2, 2049, cudaArrayLayered));
    NAME(malloc_3d(floats, 4, 2, 2048, cudaArrayLayered));
    NAME(malloc_3d(floats, 4, 2, 16385));
    SAY(cudaFreeArray(nullptr));
    SAY(cudaMallocArray(nullptr, &floats, 4, 4));

    cudaArray_t a, b, line, surface, bytes, cube;
    SAY(cudaMallocArray(&a, &floats, 8, 4));
    SAY(cudaMallocArray(&b, &ints, 4, 4, cudaArraySurfaceLoadStore));
    SAY(cudaMallocArray(&line, &floats, 8));
    SAY(cudaMallocArray(&surface, &ints, 8, 0, cudaArraySurfaceLoadStore));
    SAY(cudaMallocArray(&bytes, &chars, 8, 4, cudaArraySurfaceLoadStore));
    cudaChannelFormatDesc d;
    SAY(cudaGetChannelDesc(&d, a));
    std::printf("%d %d %d %d %d\n", d.x, d.y, d.z, d.w, d.f);

    // Textures
    float* linear;
    size_t pitch;
    cudaMalloc(&linear, 4096);
    cudaMallocPitch(&linear, &pitch, 100, 10);
    std::printf("pitch %zu\n", pitch);
    NAME(create(of_array(a), texture(POINT, ELEMENT, 0)));
    NAME(create(of_array(a), texture(LINEAR, ELEMENT, 0)));
    NAME(create(of_array(a), texture(LINEAR, NORM, 1)));
    NAME(create(of_array(b), texture(POINT, NORM, 0)));
    NAME(create(of_array(b), texture(LINEAR, NORM, 0)));
    NAME(create(of_array(b), texture(LINEAR, ELEMENT, 0)));
    NAME(create(of_array(bytes), texture(POINT, NORM, 0)));
    NAME(create(of_array(bytes), texture(LINEAR, NORM, 0)));
    NAME(create(of_array(bytes), texture(LINEAR, ELEMENT, 0)));
    NAME(create(of_array(a), texture(POINT, ELEMENT, 0, cudaAddressModeWrap)));
    NAME(create(of_array(a), texture(POINT, ELEMENT, 0, cudaAddressModeMirror)));
    NAME(create(of_array(a), texture((cudaTextureFilterMode)5, ELEMENT, 0)));
    NAME(create(of_array(a), texture(POINT, (cudaTextureReadMode)5, 0)));
    NAME(create(of_array(a), texture(POINT, ELEMENT, 0, (cudaTextureAddressMode)9)));
    NAME(create(of_array(nullptr), texture(POINT, ELEMENT, 0)));
    NAME(create(of_linear(linear, floats, 4096), texture(POINT, ELEMENT, 0)));
    NAME(create(of_linear(linear, floats, 4096), texture(LINEAR, ELEMENT, 0)));
    NAME(create(of_linear(linear, floats, 4096), texture(POINT, ELEMENT, 1)));
    NAME(create(of_linear(linear, floats, 4096), texture(POINT, NORM, 0)));
    NAME(create(of_linear(linear, ints, 4096), texture(POINT, NORM, 0)));
    NAME(create(of_linear(linear, chars, 4096), texture(POINT, NORM, 0)));
    NAME(create(of_linear(linear, chars, 4096), texture(LINEAR, NORM, 0)));
    NAME(
        create(of_linear(linear, floats, 4096), texture(POINT, ELEMENT, 0, cudaAddressModeBorder)));
    NAME(create(of_linear(linear, floats, 0), texture(POINT, ELEMENT, 0)));
    NAME(create(of_linear(linear, floats, 4095), texture(POINT, ELEMENT, 0)));
    NAME(create(of_linear(linear, {8, 8, 8, 0, cudaChannelFormatKindUnsigned}, 4096),
                texture(POINT, ELEMENT, 0)));
    NAME(create(of_linear(linear + 1, floats, 4000), texture(POINT, ELEMENT, 0)));
    NAME(create(of_linear(linear + 4, floats, 4000), texture(POINT, ELEMENT, 0)));
    NAME(create(of_linear(linear + 128, floats, 3000), texture(POINT, ELEMENT, 0)));
    NAME(create(of_linear(nullptr, floats, 4000), texture(POINT, ELEMENT, 0)));
    NAME(create(of_linear(linear, floats, (size_t)1 << 40), texture(POINT, ELEMENT, 0)));
    NAME(create(of_pitch(linear, floats, 25, 10, pitch), texture(POINT, ELEMENT, 0)));
    NAME(create(of_pitch(linear, floats, 25, 10, pitch), texture(LINEAR, ELEMENT, 0)));
    NAME(create(of_pitch(linear, floats, 25, 10, pitch),
                texture(LINEAR, ELEMENT, 1, cudaAddressModeWrap)));
    NAME(create(of_pitch(linear, chars, 25, 10, pitch),
                texture(LINEAR, NORM, 1, cudaAddressModeBorder)));
    NAME(create(of_pitch(linear, floats, 25, 10, 100), texture(POINT, ELEMENT, 0)));
    NAME(create(of_pitch(linear, floats, 25, 10, 96), texture(POINT, ELEMENT, 0)));
    NAME(create(of_pitch(linear, floats, 24, 10, 96), texture(POINT, ELEMENT, 0)));
    NAME(create(of_pitch(linear, floats, 8, 10, 48), texture(POINT, ELEMENT, 0)));
    NAME(create(of_pitch(linear + 8, floats, 8, 4, pitch), texture(POINT, ELEMENT, 0)));
    NAME(create(of_pitch(linear + 128, floats, 8, 4, pitch), texture(POINT, ELEMENT, 0)));
    NAME(create(of_pitch(linear, floats, 0, 4, pitch), texture(POINT, ELEMENT, 0)));
    NAME(create(of_pitch(linear, floats, 4, 0, pitch), texture(POINT, ELEMENT, 0)));
    NAME(create(of_pitch(linear, floats, 4, 100000, pitch), texture(POINT, ELEMENT, 0)));
    {
        cudaResourceDesc r = of_array(a);
        r.resType = (cudaResourceType)9;
        NAME(create(r, texture(POINT, ELEMENT, 0)));
        r = of_array(a);
        r.flags = 1;
        NAME(create(r, texture(POINT, ELEMENT, 0)));
        cudaTextureObject_t t = 0;
        cudaTextureDesc td = texture(LINEAR, ELEMENT, 1, cudaAddressModeMirror);
        td.borderColor[2] = 3;
        td.maxAnisotropy = 40;
        td.addressMode[1] = cudaAddressModeBorder;
        r = of_array(a);
        SAY(cudaCreateTextureObject(&t, &r, &td, nullptr));
        SAY(cudaCreateTextureObject(nullptr, &r, &td, nullptr));
        SAY(cudaCreateTextureObject(&t, nullptr, &td, nullptr));
        SAY(cudaCreateTextureObject(&t, &r, nullptr, nullptr));
        cudaResourceDesc got = {};
        cudaTextureDesc gott = {};
        cudaResourceViewDesc gotv = {};
        SAY(cudaGetTextureObjectResourceDesc(&got, t));
        std::printf("%d %d\n", got.resType, got.res.array.array == a);
        SAY(cudaGetTextureObjectTextureDesc(&gott, t));
        std::printf("%d %d %d, %d %d %d %d, %u %d %g %g %g %d %d\n", gott.addressMode[0],
                    gott.addressMode[1], gott.addressMode[2], gott.filterMode, gott.readMode,
                    gott.sRGB, gott.normalizedCoords, gott.maxAnisotropy, gott.mipmapFilterMode,
                    gott.mipmapLevelBias, gott.minMipmapLevelClamp, gott.maxMipmapLevelClamp,
                    gott.disableTrilinearOptimization, gott.seamlessCubemap);
        SAY(cudaDestroyTextureObject(t));
        SAY(cudaDestroyTextureObject(0));
        SAY(cudaGetTextureObjectResourceDesc(&got, 0));
        cudaResourceViewDesc v = {};
        v.format = cudaResViewFormatUnsignedChar4;
        v.width = 8;
        v.height = 4;
        v.format = cudaResViewFormatFloat1;
        SAY(cudaCreateTextureObject(&t, &r, &td, &v));
        SAY(cudaGetTextureObjectResourceViewDesc(&gotv, t));
        std::printf("%d %zu %zu %zu\n", gotv.format, gotv.width, gotv.height, gotv.depth);
        v.width = 9;
        SAY(cudaCreateTextureObject(&t, &r, &td, &v));
        v.width = 4;
        SAY(cudaCreateTextureObject(&t, &r, &td, &v));
        cudaSurfaceObject_t s = 0;
        SAY(cudaCreateSurfaceObject(&s, &r));
        cudaResourceDesc rb = of_array(b), rl = of_linear(linear, floats, 4000);
        SAY(cudaCreateSurfaceObject(&s, &rb));
        SAY(cudaCreateSurfaceObject(&s, &rl));
        SAY(cudaCreateSurfaceObject(nullptr, &rb));
        SAY(cudaGetSurfaceObjectResourceDesc(&got, s));
        std::printf("%d %d\n", got.resType, got.res.array.array == b);
        SAY(cudaDestroySurfaceObject(s));
        SAY(cudaDestroySurfaceObject(0));
    }
    // Copies
    static float host[4096], back[4096];
    for (int i = 0; i < 4096; ++i) host[i] = (float)i;
    SAY(cudaMemcpyToArray(a, 0, 0, host, 128, cudaMemcpyHostToDevice));
    SAY(cudaMemcpyToArray(a, 0, 0, host, 132, cudaMemcpyHostToDevice));
    SAY(cudaMemcpyToArray(a, 4, 1, host, 60, cudaMemcpyHostToDevice));
    SAY(cudaMemcpyToArray(a, 3, 1, host, 8, cudaMemcpyHostToDevice));
    SAY(cudaMemcpyToArray(a, 32, 1, host, 8, cudaMemcpyHostToDevice));
    SAY(cudaMemcpyToArray(a, 0, 4, host, 8, cudaMemcpyHostToDevice));
    SAY(cudaMemcpyToArray(a, 0, 0, host, 7, cudaMemcpyHostToDevice));
    SAY(cudaMemcpyToArray(a, 0, 0, host, 0, cudaMemcpyHostToDevice));
    SAY(cudaMemcpyToArray(nullptr, 0, 0, host, 4, cudaMemcpyHostToDevice));
    SAY(cudaMemcpyToArray(a, 0, 0, host, 8, cudaMemcpyDeviceToHost));
    SAY(cudaMemcpyToArray(a, 0, 0, host, 8, cudaMemcpyHostToHost));
    SAY(cudaMemcpyToArray(a, 0, 0, host, 8, cudaMemcpyDefault));
    SAY(cudaMemcpyFromArray(back, a, 0, 0, 128, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 32; ++i) std::printf(" %g", back[i]);
    std::printf("\n");
    SAY(cudaMemcpyFromArray(back, a, 8, 1, 40, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 10; ++i) std::printf(" %g", back[i]);
    std::printf("\n");
    SAY(cudaMemcpyFromArray(linear, a, 8, 1, 40, cudaMemcpyDeviceToDevice));
    SAY(cudaMemcpyFromArray(back, a, 8, 1, 40, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy2DToArray(a, 0, 0, host, 32, 32, 4, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy2DToArray(a, 0, 0, host, 32, 32, 5, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy2DToArray(a, 4, 0, host, 32, 32, 4, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy2DToArray(a, 0, 1, host, 32, 32, 4, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy2DToArray(a, 0, 0, host, 16, 32, 4, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy2DToArray(a, 2, 0, host, 32, 8, 4, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy2DToArray(a, 4, 1, host, 12, 8, 2, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy2DToArray(line, 0, 0, host, 32, 32, 1, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy2DToArray(line, 0, 0, host, 32, 32, 2, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy2DToArray(line, 0, 0, host, 32, 32, 0, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy2DFromArray(back, 32, a, 0, 0, 32, 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 32; ++i) std::printf(" %g", back[i]);
    std::printf("\n");
    SAY(cudaMemcpyArrayToArray(line, 0, 0, a, 8, 1, 16, cudaMemcpyDeviceToDevice));
    SAY(cudaMemcpyArrayToArray(line, 0, 0, a, 8, 1, 16));
    SAY(cudaMemcpyArrayToArray(b, 0, 0, a, 8, 1, 16));
    SAY(cudaMemcpyArrayToArray(bytes, 0, 0, a, 8, 1, 16));
    SAY(cudaMemcpy2DArrayToArray(b, 4, 0, a, 8, 1, 8, 2));
    SAY(cudaMemcpy2DArrayToArray(b, 4, 0, a, 8, 1, 16, 2));
    SAY(cudaMemcpyFromArray(back, line, 0, 0, 32, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 4; ++i) std::printf(" %g", back[i]);
    std::printf("\n");
    SAY(cudaMemcpy2DToArrayAsync(a, 0, 0, host, 32, 32, 4, cudaMemcpyHostToDevice, 0));
    SAY(cudaMemcpy2DFromArrayAsync(back, 32, a, 0, 0, 32, 4, cudaMemcpyDeviceToHost, 0));
    SAY(cudaMemcpyToArrayAsync(a, 0, 0, host, 32, cudaMemcpyHostToDevice, 0));
    SAY(cudaMemcpyFromArrayAsync(back, a, 0, 0, 32, cudaMemcpyDeviceToHost, 0));
    // Boxes
    {
        cudaPitchedPtr box;
        SAY(cudaMalloc3D(&box, make_cudaExtent(40, 5, 3)));
        std::printf("pitch %zu, %zu x %zu\n", box.pitch, box.xsize, box.ysize);
        SAY(cudaMemset3D(box, 7, make_cudaExtent(40, 5, 3)));
        SAY(cudaMemset3D(box, 9, make_cudaExtent(4, 2, 2)));
        SAY(cudaMemset3D(box, 9, make_cudaExtent(600, 2, 2)));
        SAY(cudaMemset3D(box, 9, make_cudaExtent(40, 6, 1)));
        SAY(cudaMemset3D(box, 9, make_cudaExtent(40, 5, 4)));
        SAY(cudaMemset3D(box, 9, make_cudaExtent(0, 5, 4)));
        SAY(cudaMemset3DAsync(box, 9, make_cudaExtent(4, 2, 2)));
        cudaArray_t three;
        SAY(cudaMalloc3DArray(&three, &floats, make_cudaExtent(10, 5, 3)));
        cudaMemcpy3DParms p = {};
        p.srcPtr = make_cudaPitchedPtr(host, 40, 10, 5);
        p.dstPtr = box;
        p.extent = make_cudaExtent(40, 5, 3);
        p.kind = cudaMemcpyHostToDevice;
        SAY(cudaMemcpy3D(&p));
        p.extent.depth = 4;
        SAY(cudaMemcpy3D(&p));
        p.extent.depth = 3;
        p.extent.width = 44;
        SAY(cudaMemcpy3D(&p));
        p.extent.width = 40;
        p.extent.height = 6;
        SAY(cudaMemcpy3D(&p));
        p.extent.height = 0;
        SAY(cudaMemcpy3D(&p));
        p.extent = make_cudaExtent(8, 2, 2);
        p.srcPos = make_cudaPos(4, 1, 1);
        p.dstPos = make_cudaPos(8, 3, 1);
        SAY(cudaMemcpy3D(&p));
        p.dstPos = make_cudaPos(8, 4, 1);
        SAY(cudaMemcpy3D(&p));
        cudaMemcpy3DParms q = {};
        q.srcPtr = box;
        q.dstArray = three;
        q.extent = make_cudaExtent(10, 5, 3);
        q.kind = cudaMemcpyDeviceToDevice;
        SAY(cudaMemcpy3D(&q));
        q.extent.width = 11;
        SAY(cudaMemcpy3D(&q));
        q.extent = make_cudaExtent(4, 2, 2);
        q.srcPos = make_cudaPos(2, 1, 0);
        q.dstPos = make_cudaPos(3, 1, 1);
        SAY(cudaMemcpy3D(&q));
        SAY(cudaMemcpy3DAsync(&q, 0));
        q.dstPtr = box;
        SAY(cudaMemcpy3D(&q));
        q.dstPtr = cudaPitchedPtr();
        q.kind = cudaMemcpyHostToDevice;
        SAY(cudaMemcpy3D(&q));
        q = {};
        q.kind = cudaMemcpyHostToDevice;
        q.extent = make_cudaExtent(1, 1, 1);
        SAY(cudaMemcpy3D(&q));
        SAY(cudaMemcpy3D(nullptr));
        cudaMemcpy3DParms r = {};
        r.srcArray = three;
        r.dstPtr = make_cudaPitchedPtr(back, 40, 10, 5);
        r.extent = make_cudaExtent(10, 5, 3);
        r.kind = cudaMemcpyDeviceToHost;
        SAY(cudaMemcpy3D(&r));
        for (int i = 0; i < 150; ++i) std::printf(" %g", back[i]);
        std::printf("\n");
        r.kind = cudaMemcpyDefault;
        SAY(cudaMemcpy3D(&r));
        cudaMemcpy3DParms u = {};
        u.srcArray = three;
        u.dstArray = line;
        u.extent = make_cudaExtent(4, 1, 1);
        u.kind = cudaMemcpyDeviceToDevice;
        SAY(cudaMemcpy3D(&u));
        SAY(cudaFreeArray(three));
        SAY(cudaFree(box.ptr));
    }
    // Reads
    for (int i = 0; i < 8; ++i) host[i] = (float)i + 10;
    cudaMemcpy(linear, host, 32, cudaMemcpyHostToDevice);
    cudaMemcpyToArray(line, 0, 0, host, 32, cudaMemcpyHostToDevice);
    cudaMemcpy2DToArray(a, 0, 0, host, 32, 32, 4, cudaMemcpyHostToDevice);
    {
        cudaTextureObject_t t;
        cudaResourceDesc r = of_linear(linear, ints, 32);
        cudaTextureDesc td = texture(POINT, ELEMENT, 0);
        int numbers[8] = {1, 2, 3, 4, 5, 6, 7, 8};
        cudaMemcpy(linear, numbers, 32, cudaMemcpyHostToDevice);
        SAY(cudaCreateTextureObject(&t, &r, &td, nullptr));
        fetch_ints<<<1, 16>>>(t, out, -4);
        print(16, "a fetch outside");
        fetch_ints<<<1, 2>>>(t, out, 0x7ffffffe);
        print(2, "a fetch far outside");
        r = of_linear(linear, floats, 30);
        SAY(cudaCreateTextureObject(&t, &r, &td, nullptr));
        fetch_ints<<<1, 9>>>(t, out, 0);
        print(9, "a fetch of the part of an element");
        r = of_linear(linear + 1, ints, 28);
        if (!cudaCreateTextureObject(&t, &r, &td, nullptr)) {
            fetch_ints<<<1, 9>>>(t, out, -1);
            print(9, "a fetch of linear memory off its alignment");
        }
        cudaMemcpy(linear, host, 32, cudaMemcpyHostToDevice);
        r = of_linear(linear, floats, 32);
        SAY(cudaCreateTextureObject(&t, &r, &td, nullptr));
        fetch_any<<<1, 1>>>(t, (float*)out);
        print_floats(3, "1Dfetch, 1D, 2D of linear memory");
        r = of_array(a);
        SAY(cudaCreateTextureObject(&t, &r, &td, nullptr));
        fetch_array<<<1, 1>>>(t, (float*)out);
        print_floats(3, "1Dfetch, 2D, 3D of a 2-D array");
        r = of_array(line);
        SAY(cudaCreateTextureObject(&t, &r, &td, nullptr));
        fetch_any<<<1, 1>>>(t, (float*)out);
        print_floats(3, "1Dfetch, 1D, 2D of a 1-D array");
        unsigned char some[4] = {1, 200, 3, 255};
        cudaMemcpy2DToArray(bytes, 0, 0, some, 4, 4, 1, cudaMemcpyHostToDevice);
        r = of_array(bytes);
        SAY(cudaCreateTextureObject(&t, &r, &td, nullptr));
        fetch_other<<<1, 1>>>(t, out);
        print(18, "one unsigned char read as other types");
        cudaArray_t four;
        cudaChannelFormatDesc quads = {8, 8, 8, 8, cudaChannelFormatKindUnsigned};
        cudaMallocArray(&four, &quads, 2, 2);
        cudaMemcpy2DToArray(four, 0, 0, some, 4, 4, 1, cudaMemcpyHostToDevice);
        r = of_array(four);
        SAY(cudaCreateTextureObject(&t, &r, &td, nullptr));
        fetch_other<<<1, 1>>>(t, out);
        print(18, "four unsigned chars read as other types");
        td.readMode = NORM;
        SAY(cudaCreateTextureObject(&t, &r, &td, nullptr));
        fetch_other<<<1, 1>>>(t, out);
        print(18, "four normalised chars read as other types");
        quads.f = cudaChannelFormatKindSigned;
        cudaMallocArray(&four, &quads, 2, 2);
        cudaMemcpy2DToArray(four, 0, 0, some, 4, 4, 1, cudaMemcpyHostToDevice);
        r = of_array(four);
        td.readMode = ELEMENT;
        SAY(cudaCreateTextureObject(&t, &r, &td, nullptr));
        fetch_other<<<1, 1>>>(t, out);
        print(18, "four signed chars read as other types");
        cudaArray_t half;
        cudaChannelFormatDesc halves = {16, 0, 0, 0, cudaChannelFormatKindFloat};
        unsigned short h = 0x3e00;
        cudaMallocArray(&half, &halves, 2, 2);
        cudaMemcpy2DToArray(half, 0, 0, &h, 2, 2, 1, cudaMemcpyHostToDevice);
        r = of_array(half);
        SAY(cudaCreateTextureObject(&t, &r, &td, nullptr));
        fetch_other<<<1, 1>>>(t, out);
        print(18, "a half read as other types");
    }
    cudaGetLastError();
    // Surfaces
    {
        cudaSurfaceObject_t s;
        cudaResourceDesc r = of_array(surface);
        int zeros[64] = {};
        cudaMemcpyToArray(surface, 0, 0, zeros, 32, cudaMemcpyHostToDevice);
        SAY(cudaCreateSurfaceObject(&s, &r));
        write_1d<<<1, 1>>>(s, 2, 12, 0);
        write_1d<<<1, 1>>>(s, -1, 13, 0);
        write_1d<<<1, 1>>>(s, 8, 14, 0);
        print_array(surface, 8, 1, "zero");
        write_1d<<<1, 1>>>(s, -1, 15, 1);
        write_1d<<<1, 1>>>(s, 100, 16, 1);
        write_1d<<<1, 1>>>(s, 3, 17, 1);
        print_array(surface, 8, 1, "clamp");
        read_1d<<<1, 16>>>(s, out, -4);
        print(48, "reads");
        r = of_array(b);
        cudaMemcpy2DToArray(b, 0, 0, numbers_of(), 16, 16, 4, cudaMemcpyHostToDevice);
        SAY(cudaCreateSurfaceObject(&s, &r));
        read_2d<<<1, 64>>>(s, out);
        print(128, "reads 2d");
        write_2d<<<1, 64>>>(s, 0);
        print_array(b, 4, 4, "zero 2d");
        write_2d<<<1, 64>>>(s, 1);
        print_array(b, 4, 4, "chars into ints");
        write_2d<<<1, 64>>>(s, 4);
        print_array(b, 4, 4, "clamp 2d");
        cudaArray_t l;
        SAY(cudaMalloc3DArray(&l, &ints, make_cudaExtent(4, 2, 3),
                              cudaArraySurfaceLoadStore | cudaArrayLayered));
        r = of_array(l);
        SAY(cudaCreateSurfaceObject(&s, &r));
        layers<<<1, 32>>>(s, out);
        print(64, "layers");
        SAY(cudaMalloc3DArray(&l, &ints, make_cudaExtent(4, 2, 3), cudaArraySurfaceLoadStore));
        r = of_array(l);
        SAY(cudaCreateSurfaceObject(&s, &r));
        volume<<<1, 32>>>(s, out);
        print(64, "volume");
        SAY(cudaMallocArray(&cube, &ints, 2, 2));
        SAY(cudaFreeArray(cube));
        r = of_array(surface);
        SAY(cudaCreateSurfaceObject(&s, &r));
        write_1d<<<1, 1>>>(s, 7, 18, 2);
        print_array(surface, 8, 1, "trap, inside");
        write_1d<<<1, 1>>>(s, 8, 18, 2);
        std::printf("trap, outside: %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    }
    return 0;
}
