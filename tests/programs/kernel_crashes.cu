// Kernels that crash, each in a run of its own: the argument says which one.
#include <cassert>
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

__global__ void far_away(int *data) {
    if (threadIdx.x == 5) data[-(1ll << 36)] = 1;
}
__global__ void null(int *data) {
    int *p = data + blockIdx.x;
    if (threadIdx.x == 3) p = nullptr;
    *p = 1;
}
__global__ void asserts(int *data) {
    data[threadIdx.x] = 1;
    assert(threadIdx.x < 40);
}
__global__ void traps(int *) {
    if (threadIdx.x == 1) __trap();
}
__device__ int depth(int n) {
    volatile int local[1000];
    local[n % 1000] = n;
    return n ? depth(n - 1) + local[n % 1000] : 0;
}
__global__ void overflows(int *data) {
    data[0] = depth(data[0] + 100000);
}
__global__ void diverges(int *data) {
    if (threadIdx.x < 32) __syncthreads();
    else {
        data[threadIdx.x] = 0;
        __syncthreads_count(1);
    }
}
__constant__ int table[4];
__global__ void writes_constant() {
    const_cast<int *>(table)[threadIdx.x] = 1;
}
__device__ __noinline__ void fill(int *first, int n) {
    for (int i = 0; i < n; ++i) first[i] = 0x41414141;
}
__global__ void overruns(int *data) {
    int local[4];
    fill(local, data[0] + 100);
    data[1] = local[data[0]];
}
__global__ void prints(const char *text) {
    printf("%s\n", text - (1ll << 36));
}

int main(int, char *argv[]) {
    int *d;
    cudaMalloc(&d, 64 * sizeof(int));
    cudaMemset(d, 0, 64 * sizeof(int));
    switch (argv[1][0]) {
        case 'f':
            far_away<<<1, 64>>>(d);
            break;
        case 'n':
            null<<<2, 64>>>(d);
            break;
        case 'a':
            asserts<<<1, 64>>>(d);
            break;
        case 't':
            traps<<<1, 64>>>(d);
            break;
        case 'o':
            overflows<<<1, 1>>>(d);
            break;
        case 'd':
            diverges<<<1, 64>>>(d);
            break;
        case 'u':
            cudaFree(d);
            null<<<1, 1>>>(d);
            break;
        case 'c':
            writes_constant<<<1, 4>>>();
            break;
        case 's':
            overruns<<<1, 32>>>(d);
            break;
        case 'p':
            prints<<<1, 32>>>((const char *)d);
            break;
        case 'w':
            return *(volatile int *)(size_t)(argv[1][1] == '!');
        case 'h':
            assert(argv[1][1] == '!');
            break;
        case 'l':
            null<<<1, 2000>>>(d);
            return 0;
    }
    printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    printf("%s\n", cudaGetErrorName(cudaGetLastError()));
    printf("%s\n", cudaGetErrorName(cudaMalloc(&d, 4)));
    return 0;
}
