// A kernel that is given a pointer to host memory.
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

__global__ void add(const float *a, float *b) {
    b[threadIdx.x] += a[threadIdx.x];
}

int main() {
    float *a = (float *)calloc(32, sizeof(float)), *b;
    cudaMalloc(&b, 32 * sizeof(float));
    add<<<1, 32>>>(a, b);
    cudaError_t error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    printf("%s\n", cudaGetErrorName(cudaFree(b)));  // the error is for good
    free(a);
    return 3;
}
