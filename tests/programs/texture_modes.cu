// Reads textures in all modes at coordinates from stdin, each texture as its texels' own type or as
// floats; tests/cli/test_textures.py computes what it writes, in the order of main's loops.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

const int COORDINATES = 400;
enum Shape { LINE, PLANE, VOLUME, PLANES };
const cudaExtent EXTENTS[] = {{13, 0, 0}, {13, 6, 0}, {13, 6, 3}, {13, 6, 3}};
struct Place {
    float x, y, z;
    int layer;
};

template <class R, Shape shape>
__global__ void read(cudaTextureObject_t texture, const Place* places, R* results) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const Place at = places[i];
    if (shape == LINE) results[i] = tex1D<R>(texture, at.x);
    if (shape == PLANE) results[i] = tex2D<R>(texture, at.x, at.y);
    if (shape == VOLUME) results[i] = tex3D<R>(texture, at.x, at.y, at.z);
    if (shape == PLANES) results[i] = tex2DLayered<R>(texture, at.x, at.y, at.layer);
}

void check(cudaError_t error) {
    if (error == cudaSuccess) return;
    std::printf("%s\n", cudaGetErrorName(error));
    std::exit(1);
}

template <class T>
T* to_device(const void* data, size_t count) {
    T* memory;
    check(cudaMalloc(&memory, count * sizeof(T)));
    if (data) check(cudaMemcpy(memory, data, count * sizeof(T), cudaMemcpyHostToDevice));
    return memory;
}

template <class T, class R, Shape shape>
void run(const unsigned char* texels, const Place* places, R* results, bool integers) {
    const cudaExtent extent = EXTENTS[shape];
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<T>();
    cudaArray_t array;
    check(cudaMalloc3DArray(&array, &format, extent, shape == PLANES ? cudaArrayLayered : 0));
    cudaMemcpy3DParms copy = {};
    copy.extent = make_cudaExtent(extent.width, extent.height ? extent.height : 1,
                                  extent.depth ? extent.depth : 1);
    copy.srcPtr = make_cudaPitchedPtr((void*)texels, extent.width * sizeof(T), extent.width,
                                      copy.extent.height);
    copy.dstArray = array;
    copy.kind = cudaMemcpyHostToDevice;
    check(cudaMemcpy3D(&copy));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    const int modes[][3] = {{0, 0, 0}, {1, 1, 1}, {2, 2, 2}, {3, 3, 3}, {0, 3, 2}, {2, 1, 0}};
    for (const auto& mode : modes)
        for (int normalized = 0; normalized < 2; ++normalized)
            for (int linear = 0; linear < (integers ? 1 : 2); ++linear) {
                cudaTextureDesc desc = {};
                for (int i = 0; i < 3; ++i) desc.addressMode[i] = (cudaTextureAddressMode)mode[i];
                desc.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
                desc.normalizedCoords = normalized;
                if (!integers && format.f != cudaChannelFormatKindFloat)
                    desc.readMode = cudaReadModeNormalizedFloat;
                const float border[] = {0.25f, -0.5f, 2, 0.7f};
                for (int i = 0; i < 4; ++i) desc.borderColor[i] = border[i];
                cudaTextureObject_t texture;
                check(cudaCreateTextureObject(&texture, &resource, &desc, nullptr));
                read<R, shape><<<COORDINATES / 100, 100>>>(texture, places, results);
                static R host[COORDINATES];
                check(cudaMemcpy(host, results, sizeof host, cudaMemcpyDeviceToHost));
                std::fwrite(host, sizeof host, 1, stdout);
                check(cudaDestroyTextureObject(texture));
            }
    check(cudaFreeArray(array));
}

template <class T, class R>
void run_all(const std::vector<unsigned char>& texels, const Place* places, bool integers) {
    R* results = to_device<R>(nullptr, COORDINATES);
    run<T, R, LINE>(texels.data(), places, results, integers);
    run<T, R, PLANE>(texels.data(), places, results, integers);
    run<T, R, VOLUME>(texels.data(), places, results, integers);
    run<T, R, PLANES>(texels.data(), places, results, integers);
    check(cudaFree(results));
}

int main() {
    std::vector<Place> host(COORDINATES);
    std::vector<unsigned char> texels(13 * 6 * 3 * 16);
    if (std::fread(host.data(), sizeof(Place), COORDINATES, stdin) != COORDINATES ||
        std::fread(texels.data(), 1, texels.size(), stdin) != texels.size())
        return 1;
    const Place* places = to_device<Place>(host.data(), COORDINATES);
    run_all<float, float>(texels, places, false);
    run_all<float4, float4>(texels, places, false);
    run_all<uchar4, float4>(texels, places, false);
    run_all<short, float>(texels, places, false);
    run_all<unsigned char, unsigned char>(texels, places, true);
    run_all<int2, int2>(texels, places, true);
    check(cudaFree((void*)places));
    return 0;
}
