// Host code that reads a variable of the device by its name.
#include <cstdio>

#include <cuda_runtime.h>

__device__ int total;

__global__ void count() {
    atomicAdd(&total, 1);
}

int main() {
    count<<<2, 32>>>();
    cudaDeviceSynchronize();
    printf("%d\n", total);
    return 0;
}
