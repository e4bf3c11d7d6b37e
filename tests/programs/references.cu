// References of textures, which nvcc has refused since CUDA 12; the last read is of a texel that
// nobody has written.
#include <cstdio>

texture<float, 1, cudaReadModeElementType> samples;
static texture<uchar4, 2, cudaReadModeNormalizedFloat> picture;
surface<void, cudaSurfaceType2D> target;

__global__ void look(float* out) {
    const int i = threadIdx.x;
    out[i] = tex1Dfetch(samples, i) + tex2D(picture, i + 0.75f, 0.5f).y;
    surf2Dwrite(make_float2(i, out[i]), target, i * sizeof(float2), 1);
}
__global__ void look_behind(float* out) {
    out[threadIdx.x] = tex1Dfetch(samples, threadIdx.x + 1);
}

int main() {
    const int n = 8;
    float host[n], *memory, *out;
    unsigned char texels[n * 4];
    for (int i = 0; i < n; ++i) host[i] = (float)i;
    for (int i = 0; i < n * 4; ++i) texels[i] = (unsigned char)(i * 8);
    cudaMalloc(&memory, 2 * sizeof host);
    cudaMalloc(&out, sizeof host);
    cudaMemcpy(memory, host, sizeof host, cudaMemcpyHostToDevice);
    size_t offset = 1;
    cudaBindTexture(&offset, samples, memory, 2 * sizeof host);

    cudaArray *array, *pairs;
    const cudaChannelFormatDesc colors = cudaCreateChannelDesc<uchar4>();
    const cudaChannelFormatDesc two = cudaCreateChannelDesc<float2>();
    cudaMallocArray(&array, &colors, n, 1);
    cudaMallocArray(&pairs, &two, n, 2, cudaArraySurfaceLoadStore);
    cudaMemcpyToArray(array, 0, 0, texels, sizeof texels, cudaMemcpyHostToDevice);
    picture.filterMode = cudaFilterModeLinear;
    picture.addressMode[0] = cudaAddressModeClamp;
    cudaBindTextureToArray(picture, array, colors);
    cudaBindSurfaceToArray(target, pairs);

    look<<<1, n>>>(out);
    float2 written[n];
    cudaMemcpy2DFromArray(written, sizeof written, pairs, 0, 1, sizeof written, 1,
                          cudaMemcpyDeviceToHost);
    for (const float2& pair : written) std::printf("%g %g\n", pair.x, pair.y);
    look_behind<<<1, n>>>(out);
    std::printf("offset %zu, %s\n", offset, cudaGetErrorName(cudaDeviceSynchronize()));

    cudaUnbindTexture(samples);
    cudaUnbindTexture(picture);
    cudaFreeArray(array);
    cudaFreeArray(pairs);
    cudaFree(memory);
    cudaFree(out);
    return 0;
}
