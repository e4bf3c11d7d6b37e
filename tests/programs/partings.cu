// Threads of a block that wait at different barriers. CUDA leaves this undefined; on an H200 a
// barrier opens when all threads that have not ended wait at one, whichever it is.
#include <cuda_runtime.h>

#include <cstdio>

#define EITHER(condition) if (condition) __syncthreads(); else __syncthreads()  // two barriers
__global__ void in_macro(int* out) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    EITHER(threadIdx.x < 16);
    out[threadIdx.x] = s[63 - threadIdx.x];
    EITHER(threadIdx.x < 64);
}
__global__ void warps(int* out) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    if (threadIdx.x < 32) {
        __syncthreads();
    } else {
        __syncthreads();
    }
    out[threadIdx.x] = s[63 - threadIdx.x];
}
__global__ void every_second_lane(int* out) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    if (threadIdx.x & 1) {
        __syncthreads();
        out[threadIdx.x] = s[63 - threadIdx.x];
    } else {
        __syncthreads();
        out[threadIdx.x] = s[63 - threadIdx.x] + 100;
    }
}
__global__ void once_more(int* out) {  // the first warp; the second has ended when it waits again
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    if (threadIdx.x < 32) __syncthreads();
    __syncthreads();
    out[threadIdx.x] = s[63 - threadIdx.x];
}
__device__ void wait_in_function() {
    __syncthreads();
}
__global__ void some_have_left(int* out) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    if (threadIdx.x % 4 == 0) return;
    if (threadIdx.x & 1)
        wait_in_function();
    else
        __syncthreads();
    out[threadIdx.x] = s[63 - threadIdx.x];
}
__global__ void votes(int* out) {  // of the same kind
    int n;
    if (threadIdx.x < 32)
        n = __syncthreads_count(threadIdx.x & 1);
    else
        n = __syncthreads_count(1);
    out[threadIdx.x] = n;
}

void show(const char* name, void (*kernel)(int*)) {
    int *d, h[64];
    cudaMalloc(&d, sizeof h);
    cudaMemset(d, 0xff, sizeof h);
    kernel<<<1, 64>>>(d);
    cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
    printf("%s %s:", name, cudaGetErrorName(cudaGetLastError()));
    for (int each : h) printf(" %d", each);
    printf("\n");
    cudaFree(d);
}

int main() {
    show("in_macro", in_macro);
    show("warps", warps);
    show("every_second_lane", every_second_lane);
    show("once_more", once_more);
    show("some_have_left", some_have_left);
    show("votes", votes);
}
