// Code from before Volta: the lanes of a warp pass values through volatile shared memory, without
// __syncwarp. A GPU gives the right sums.
#include <cuda_runtime.h>

#include <cstdio>

template <class T>
__device__ void reduce_warp(volatile T* s, int t) {
    s[t] += s[t + 32];
    s[t] += s[t + 16];
    s[t] += s[t + 8];
    s[t] += s[t + 4];
    s[t] += s[t + 2];
    s[t] += s[t + 1];
}
__global__ void reduce_block(int* out) {
    __shared__ int s[128];
    const int t = threadIdx.x;
    s[t] = t + 1;
    __syncthreads();
    if (t < 64) s[t] += s[t + 64];
    __syncthreads();
    if (t < 32) reduce_warp(s, t);
    if (t == 0) out[0] = s[0];
}

__global__ void scan(int* out) {
    __shared__ volatile int s[64];
    const int t = threadIdx.x;
    s[t] = 0;
    volatile int* p = s + 32;
    p[t] = t + 1;
    for (int d = 1; d < 32; d *= 2) p[t] += p[t - d];
    out[t] = p[t];
}

__global__ void under_conditions(int* out) {
    __shared__ volatile int s[32];
    const int t = threadIdx.x;
    s[t] = t + 1;
    if (t < 16) s[t] += s[t + 16];
    if (t < 8) s[t] += s[t + 8];
    if (t < 4) s[t] += s[t + 4];
    if (t < 2) s[t] += s[t + 2];
    if (t < 1) s[t] += s[t + 1];
    out[t] = s[0];
}

__global__ void in_registers(int* out) {
    __shared__ volatile float s[64];
    const int t = threadIdx.x;
    float sum = t + 1;
    s[t] = sum;
    s[t + 32] = 0;
    for (int d = 16; d > 0; d >>= 1) s[t] = sum = sum + s[t + d];
    out[t] = s[0];
}

__global__ void exchange(int* out) {
    __shared__ volatile int s[32];
    s[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = s[31 - threadIdx.x];
}

void show(const char* name, void (*kernel)(int*), int threads) {
    int *d, h[32];
    cudaMalloc(&d, sizeof h);
    cudaMemset(d, 0, sizeof h);
    kernel<<<1, threads>>>(d);
    cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
    printf("%s:", name);
    for (int each : h) printf(" %d", each);
    printf("\n");
    cudaFree(d);
}
int main() {
    show("reduce_block", reduce_block, 128);
    show("scan", scan, 32);
    show("under_conditions", under_conditions, 32);
    show("in_registers", in_registers, 32);
    show("exchange", exchange, 32);
    return 0;
}
