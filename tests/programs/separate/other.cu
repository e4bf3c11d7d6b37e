#include "both.h"

static __device__ int table = 30;
__device__ int of_other_file = 1000;

static __device__ int value(int i) {
    return i * table;
}

__device__ int in_other_file(int i) {
    return 100 * (i + 1);
}

static __global__ void work(int* out, bool fails) {
    out[threadIdx.x + (fails ? 2 : 0)] = twice(value(threadIdx.x));
}

int other(int* out, bool fails) {
    work<<<1, 4>>>(out, fails);
    cudaDeviceSynchronize();
    return out[3] + count_calls();
}
