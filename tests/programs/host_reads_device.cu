// Host code that reads what a device pointer points to.
#include <cstdio>

#include <cuda_runtime.h>

__global__ void set(int *out) {
    out[threadIdx.x] = 1;
}

int main() {
    int *d;
    cudaMalloc(&d, 100 * sizeof(int));
    set<<<1, 100>>>(d);
    cudaDeviceSynchronize();
    int sum = 0;
    for (int i = 10; i < 100; ++i) sum += d[i];
    printf("%d\n", sum);
    return 0;
}
