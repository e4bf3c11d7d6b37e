// Two files that are compiled apart: each has its own static function, variable and kernel of the
// same name, and both have the functions of a header. The second one has device code for the first.

#include <cstdio>

#include "both.h"

static __device__ int table = 3;

static __device__ int value(int i) {
    return i + table;
}

__device__ int in_other_file(int i);
extern __device__ int of_other_file;
int other(int* out, bool fails);

static __global__ void work(int* out) {
    __shared__ int s[4];
    s[threadIdx.x] = value(threadIdx.x);
    __syncthreads();
    out[threadIdx.x] = twice(s[3 - threadIdx.x]) + in_other_file(threadIdx.x) + of_other_file;
}

int main(int argc, char**) {
    int* out;
    cudaMallocManaged(&out, 4 * sizeof(int));
    work<<<1, 4>>>(out);
    cudaDeviceSynchronize();
    int first = out[0], calls = count_calls();
    int second = other(out, argc > 1);
    printf("%d %d %d\n", first, second, calls + count_calls());
    cudaFree(out);
}
