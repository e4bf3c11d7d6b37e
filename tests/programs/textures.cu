// Reads of textures, bit by bit: every kind of texture, texel, coordinate and mode, with a checksum
// of the results of each: those of wrapped, clamped, mirrored and bordered coordinates in a row.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

const int READS = 3000;
enum Shape { LINE, PLANE, VOLUME, LINES, PLANES, CUBE, PITCHED };
const char* shape_names[] = {"line", "plane", "volume", "lines", "planes", "cube", "pitched"};

__host__ __device__ uint32_t mix(uint32_t x) {
    x = (x ^ x >> 16) * 0x85ebca6b;
    x = (x ^ x >> 13) * 0xc2b2ae35;
    return x ^ x >> 16;
}

// Inside and outside, on the grid of 1/256 texels and off it, at the edges, and special values.
// (Multiplications and divisions are by powers of 2, and exact.)
__device__ float coordinate(uint32_t seed, int size, bool normalized) {
    const uint32_t r = mix(seed), s = mix(r + 1);
    const float span = normalized ? 1.0f : 1 << (32 - __clz(size));
    const int n = (int)(s % 1024);
    switch (r % 8) {
        case 0:
            return ((int)(s >> 8) - (1 << 22)) * (span / (1 << 22));  // from -1 to 3 spans
        case 1:
            return n * (span / 512);
        case 2:
            return ((int)(s % 131072) - 16384) * (span / 65536);
        case 3:
            return normalized ? (float)n / size : (float)(n % (size + 1));
        case 4:
            return __uint_as_float((r & 0x80000000) | (s & 0x7fffff) | (96 + s % 41) << 23);
        case 5: {
            const uint32_t special[] = {0,          0x80000000, 0x7f800000, 0xff800000, 0x7fc00000,
                                        0x80000001, 0x00800000, 0x80800000, 0x7f7fffff, 0xff7fffff,
                                        0x4b800001, 0x3effffff, 0x3f7fffff, 0xbf800001, 0x3f800000};
            return __uint_as_float(special[s % 15]);
        }
        default:
            return (s >> 8) * (span / (1 << 24));
    }
}

__global__ void read(cudaTextureObject_t texture, Shape shape, int3 size, bool normalized,
                     float4* results) {
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= READS) return;
    const float x = coordinate(i * 4, size.x, normalized);
    const float y = coordinate(i * 4 + 1, size.y, normalized);
    const float z = coordinate(i * 4 + 2, size.z, normalized);
    const int layer = (int)(mix(i) % 8) - 2;
    switch (shape) {
        case LINE:
            results[i] = tex1D<float4>(texture, x);
            break;
        case PITCHED:
        case PLANE:
            results[i] = tex2D<float4>(texture, x, y);
            break;
        case VOLUME:
            results[i] = tex3D<float4>(texture, x, y, z);
            break;
        case LINES:
            results[i] = tex1DLayered<float4>(texture, x, layer);
            break;
        case PLANES:
            results[i] = tex2DLayered<float4>(texture, x, y, layer);
            break;
        case CUBE:
            results[i] = texCubemap<float4>(texture, x, y, z);
            break;
    }
}
__global__ void gather(cudaTextureObject_t texture, int3 size, bool normalized, float4* results) {
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= READS) return;
    const float x = coordinate(i * 4, size.x, normalized);
    const float y = coordinate(i * 4 + 1, size.y, normalized);
    results[i] = tex2Dgather<float4>(texture, x, y, 0);
}
__global__ void read_level(cudaTextureObject_t texture, int3 size, float4* results) {
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= READS) return;
    const float x = coordinate(i * 4, size.x, true), y = coordinate(i * 4 + 1, size.y, true);
    results[i] = tex2DLod<float4>(texture, x, y, coordinate(i * 4 + 2, 4, false));
}

struct Format {
    const char* name;
    cudaChannelFormatKind kind;
    int bits, channels;
};
const Format float4s = {"float4", cudaChannelFormatKindFloat, 32, 4};

float4* results;
int3 size;

void check(cudaError_t error, int line) {
    if (error == cudaSuccess) return;
    std::printf("line %d: %s\n", line, cudaGetErrorName(error));
    std::exit(1);
}
#define CHECK(call) check(call, __LINE__)

// Floats of `magnitudes` exponents; all bits of integers.
std::vector<unsigned char> texels(const Format& format, size_t count, uint32_t seed,
                                  int magnitudes) {
    const size_t bytes = format.bits / 8;
    std::vector<unsigned char> data(count * format.channels * bytes);
    for (size_t i = 0; i < data.size() / bytes; ++i) {
        const uint32_t r = mix((uint32_t)i + seed);
        uint32_t value = r;
        if (format.kind == cudaChannelFormatKindFloat)
            value = bytes == 4 ? (r & 0x80000000) | (r & 0x7fffff) | (120 + (r >> 24) % magnitudes) << 23
                               : (r & 0x8000) | (r & 0x3ff) | (9 + (r >> 24) % magnitudes) << 10;
        for (size_t b = 0; b < bytes; ++b) data[i * bytes + b] = (unsigned char)(value >> 8 * b);
    }
    return data;
}

cudaChannelFormatDesc channels(const Format& f) {
    return cudaCreateChannelDesc(f.bits, f.channels > 1 ? f.bits : 0, f.channels > 2 ? f.bits : 0,
                                 f.channels > 2 ? f.bits : 0, f.kind);
}

cudaTextureDesc modes(const Format& format, int address, bool linear, bool normalized) {
    cudaTextureDesc desc = {};
    for (auto& mode : desc.addressMode) mode = (cudaTextureAddressMode)address;
    desc.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
    desc.readMode = format.kind == cudaChannelFormatKindFloat ? cudaReadModeElementType
                                                              : cudaReadModeNormalizedFloat;
    desc.normalizedCoords = normalized;
    const float border[] = {0.25f, -0.5f, 2, 0.7f};
    for (int i = 0; i < 4; ++i) desc.borderColor[i] = border[i];
    return desc;
}

uint32_t checksum() {
    static uint32_t host[READS * 4];
    CHECK(cudaMemcpy(host, results, sizeof host, cudaMemcpyDeviceToHost));
    uint32_t sum = 2166136261;
    for (uint32_t word : host) sum = (sum ^ word) * 16777619;
    return sum;
}

// A texture of each kind; `resource` owns it.
cudaResourceDesc make(Shape shape, const Format& format) {
    const auto data = texels(format, (size_t)size.x * size.y * size.z, 1, shape == VOLUME ? 2 : 8);
    const size_t row = (size_t)size.x * format.channels * format.bits / 8;
    const cudaChannelFormatDesc desc = channels(format);
    cudaResourceDesc resource = {};
    if (shape == PITCHED) {
        auto& pitched = resource.res.pitch2D;
        resource.resType = cudaResourceTypePitch2D;
        pitched.desc = desc;
        pitched.width = size.x;
        pitched.height = size.y;
        CHECK(cudaMallocPitch(&pitched.devPtr, &pitched.pitchInBytes, row, size.y));
        CHECK(cudaMemcpy2D(pitched.devPtr, pitched.pitchInBytes, data.data(), row, row, size.y,
                           cudaMemcpyHostToDevice));
        return resource;
    }
    const bool layered = shape == LINES || shape == PLANES;
    const bool flat = shape == LINE || shape == LINES;
    const cudaExtent extent =
        make_cudaExtent(size.x, flat ? 0 : size.y, shape == LINE || shape == PLANE ? 0 : size.z);
    cudaArray_t array;
    CHECK(cudaMalloc3DArray(&array, &desc, extent,
                            layered          ? cudaArrayLayered
                            : shape == CUBE  ? cudaArrayCubemap
                            : shape == PLANE ? cudaArrayTextureGather
                                             : cudaArrayDefault));
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr((void*)data.data(), row, size.x, size.y);
    copy.dstArray = array;
    copy.extent = make_cudaExtent(size.x, size.y, size.z);
    copy.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&copy));
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    return resource;
}
void remove(const cudaResourceDesc& resource) {
    if (resource.resType == cudaResourceTypePitch2D)
        CHECK(cudaFree(resource.res.pitch2D.devPtr));
    else
        CHECK(cudaFreeArray(resource.res.array.array));
}

void run(Shape shape, const Format& format, int3 extent) {
    size = extent;
    const cudaResourceDesc resource = make(shape, format);
    const bool gathers = shape == PLANE && format.channels == 4 && format.bits == 32;
    for (int normalized = shape == CUBE; normalized < 2; ++normalized)
        for (int linear = 0; linear < 2; ++linear) {
            std::printf("%s of %s, %d x %d x %d%s%s:", shape_names[shape], format.name, size.x,
                        size.y, size.z, linear ? ", linear" : "", normalized ? ", normalized" : "");
            uint32_t gathered[4];
            for (int address = 0; address < 4; ++address) {
                if (shape == CUBE && address != cudaAddressModeClamp) continue;
                const cudaTextureDesc desc = modes(format, address, linear, normalized);
                cudaTextureObject_t texture;
                CHECK(cudaCreateTextureObject(&texture, &resource, &desc, nullptr));
                read<<<(READS + 127) / 128, 128>>>(texture, shape, size, normalized, results);
                std::printf(" %08x", checksum());
                if (gathers) {
                    gather<<<(READS + 127) / 128, 128>>>(texture, size, normalized, results);
                    gathered[address] = checksum();
                }
                CHECK(cudaDestroyTextureObject(texture));
            }
            std::printf("\n");
            if (gathers)
                std::printf("    gathered: %08x %08x %08x %08x\n", gathered[0], gathered[1],
                            gathered[2], gathered[3]);
        }
    remove(resource);
}

void run_levels() {
    const cudaChannelFormatDesc desc = channels(float4s);
    cudaMipmappedArray_t levels;
    CHECK(cudaMallocMipmappedArray(&levels, &desc, make_cudaExtent(32, 16, 0), 5));
    for (int i = 0; i < 5; ++i) {
        const int width = 32 >> i, height = 16 >> i;
        const auto data = texels(float4s, (size_t)width * height, i, 2);
        cudaArray_t level;
        CHECK(cudaGetMipmappedArrayLevel(&level, levels, i));
        CHECK(cudaMemcpy2DToArray(level, 0, 0, data.data(), width * 16, width * 16, height,
                                  cudaMemcpyHostToDevice));
    }
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeMipmappedArray;
    resource.res.mipmap.mipmap = levels;
    size = make_int3(32, 16, 1);
    for (int between = 0; between < 2; ++between)
        for (int linear = 0; linear < 2; ++linear) {
            cudaTextureDesc modes_of_levels = modes(float4s, cudaAddressModeWrap, linear, true);
            modes_of_levels.mipmapFilterMode = (cudaTextureFilterMode)between;
            modes_of_levels.maxMipmapLevelClamp = 4;
            cudaTextureObject_t texture;
            CHECK(cudaCreateTextureObject(&texture, &resource, &modes_of_levels, nullptr));
            read_level<<<(READS + 127) / 128, 128>>>(texture, size, results);
            std::printf("levels%s%s: %08x\n", linear ? ", linear" : "",
                        between ? ", linear between levels" : "", checksum());
            CHECK(cudaDestroyTextureObject(texture));
        }
    CHECK(cudaFreeMipmappedArray(levels));
}

int main() {
    CHECK(cudaMalloc(&results, READS * sizeof *results));
    const cudaChannelFormatKind of_float = cudaChannelFormatKindFloat,
                                of_unsigned = cudaChannelFormatKindUnsigned,
                                of_signed = cudaChannelFormatKindSigned;
    for (int width : {1, 2, 7, 64, 100, 1000, 8192, 16384, 65535})
        run(LINE, float4s, make_int3(width, 1, 1));
    run(PLANE, float4s, make_int3(32, 32, 1));
    run(PLANE, float4s, make_int3(21, 50, 1));
    run(VOLUME, float4s, make_int3(16, 9, 5));
    run(LINES, float4s, make_int3(20, 1, 5));
    run(PLANES, float4s, make_int3(13, 8, 4));
    run(CUBE, float4s, make_int3(16, 16, 6));
    run(PITCHED, float4s, make_int3(50, 37, 1));
    const Format formats[] = {
        {"float", of_float, 32, 1}, {"float2", of_float, 32, 2},     {"half4", of_float, 16, 4},
        {"half", of_float, 16, 1},  {"uchar4", of_unsigned, 8, 4},   {"uchar", of_unsigned, 8, 1},
        {"char4", of_signed, 8, 4}, {"ushort4", of_unsigned, 16, 4}, {"short2", of_signed, 16, 2}};
    for (const Format& format : formats) {
        run(PLANE, format, make_int3(30, 17, 1));
        run(VOLUME, format, make_int3(8, 6, 4));
    }
    run_levels();
    CHECK(cudaFree(results));
    return 0;
}
