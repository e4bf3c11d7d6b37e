// The room that a thread and a block have: local memory, recursion, and shared memory whose dynamic
// part begins where the static part ends.
#include <cuda_runtime.h>

#include <cstdio>
#include <initializer_list>

__global__ void large_arrays(int* out, int step) {
    int local[100000];
    for (int i = 0; i < 100000; i += step) local[i] = i * threadIdx.x;
    __syncthreads();
    int sum = 0;
    for (int i = 0; i < 100000; i += 7 * step) sum ^= local[i];
    out[threadIdx.x] = sum;
}

__device__ __noinline__ int depth(int n, const int* zero) {
    volatile int local[32];
    local[n & 31] = n;
    return n ? depth(n - 1, zero) + local[n & 31] + *zero : 0;
}
__global__ void recurse(int* out, const int* zero) {
    out[threadIdx.x] = depth(300 + threadIdx.x, zero);
}

__global__ void run_over(int* out) {
    __shared__ int fixed[1024];  // 31 words more are used, which are those of `rest`
    extern __shared__ int rest[];
    const int i = threadIdx.x;
    rest[i] = -1;
    __syncthreads();
    fixed[i + i / 32] = i;
    __syncthreads();
    out[i] = fixed[1023 - i + (1023 - i) / 32];
    if (i == 5) out[5] += rest[1000] + 1;
}

int main() {
    int *d, *zero, h[1024];
    cudaMalloc(&d, sizeof h);
    cudaMalloc(&zero, sizeof *zero);
    cudaMemset(zero, 0, sizeof *zero);

    size_t bytes;
    cudaDeviceGetLimit(&bytes, cudaLimitStackSize);
    printf("stack: %zu bytes", bytes);
    for (size_t each : {(size_t)1, (size_t)100000, (size_t)600000}) {
        const cudaError_t error = cudaDeviceSetLimit(cudaLimitStackSize, each);
        cudaDeviceGetLimit(&bytes, cudaLimitStackSize);
        printf(", %zu: %s %zu", each, cudaGetErrorName(error), bytes);
    }
    cudaGetLastError();
    printf("\n");

    large_arrays<<<1, 64>>>(d, 3);
    cudaMemcpy(h, d, 64 * sizeof *h, cudaMemcpyDeviceToHost);
    printf("large arrays: %d %d %d %s\n", h[0], h[1], h[63], cudaGetErrorName(cudaGetLastError()));
    recurse<<<1, 64>>>(d, zero);
    cudaMemcpy(h, d, 64 * sizeof *h, cudaMemcpyDeviceToHost);
    printf("recursion: %d %d %s\n", h[0], h[63], cudaGetErrorName(cudaGetLastError()));

    run_over<<<1, 1024, 1024 * sizeof(int)>>>(d);
    cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
    bool right = true;
    for (int i = 0; i < 1024; ++i) right &= h[i] == 1023 - i;
    printf("over the end: %s, %s\n", right ? "right" : "wrong",
           cudaGetErrorName(cudaGetLastError()));
    return 0;
}
