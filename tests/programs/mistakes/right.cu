#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define BLOCK 256
#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__constant__ float factors[16];
__device__ int counter;

float on_host(float x) { return x * 2; }
__device__ float twice(float x) { return x * 2; }

__global__ void scale(const float* in, float* out, int n) {
    __shared__ float tile[BLOCK];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = i < n ? in[i] : 0;
    __syncthreads();
    if (i < n) out[i] = twice(tile[threadIdx.x]) * factors[i % 16];
}

template <typename T>
__global__ void fill(T* values, T value, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] = value;
}

int main(int argc, char** argv) {
    const int n = 1000;
    size_t bytes = n * sizeof(float);
    std::vector<float> h(n, 1.0f);
    float *d_in, *d_out;
    CHECK(cudaMalloc(&d_in, bytes));
    CHECK(cudaMalloc(&d_out, bytes));
    float f[16];
    for (int i = 0; i < 16; i++) f[i] = 1;
    CHECK(cudaMemcpyToSymbol(factors, f, sizeof f));
    CHECK(cudaMemcpy(d_in, h.data(), bytes, cudaMemcpyHostToDevice));
    dim3 block(BLOCK);
    dim3 grid((n + BLOCK - 1) / BLOCK);
    scale<<<grid, block>>>(d_in, d_out, n);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(h.data(), d_out, bytes, cudaMemcpyDeviceToHost));
    fill<float><<<grid, block>>>(d_out, 3.0f, n);
    cudaEvent_t start, stop;
    cudaEventCreate(&start);
    cudaEventCreate(&stop);
    cudaEventRecord(start);
    cudaEventRecord(stop);
    cudaEventSynchronize(stop);
    float ms = 0;
    cudaEventElapsedTime(&ms, start, stop);
    printf("%g\n", h[0]);
    CHECK(cudaFree(d_in));
    CHECK(cudaFree(d_out));
    return 0;
}
