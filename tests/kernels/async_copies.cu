// Asynchronous copies: what is there before and after a thread has waited for them.
#include <cuda_runtime.h>

#include "cuda_pipeline.h"

extern "C" __global__ void before_and_after(const int* in, int* before, int* after, int n) {
    __shared__ int values[4 * 64];
    const int t = threadIdx.x, i = blockIdx.x * 64 + t;
    for (int k = 0; k < 4; ++k) values[4 * t + k] = -1;
    const int inside = i < n ? 4 : 0;
    __pipeline_memcpy_async(&values[4 * t], &in[i < n ? 4 * i : 0], 16, 16 - 4 * inside);
    __pipeline_commit();
    before[i] = values[4 * t];
    __pipeline_wait_prior(0);
    after[i] = values[4 * t] + values[4 * t + 3];
    __pipeline_memcpy_async(&values[4 * t], in, 4);  // nobody waits for this one
}

// Three groups in flight; the thread waits for the two first.
extern "C" __global__ void groups(const int* in, int* out) {
    __shared__ int values[3][32];
    const int t = threadIdx.x;
    for (int group = 0; group < 3; ++group) {
        __pipeline_memcpy_async(&values[group][t], &in[32 * group + t], 4);
        __pipeline_commit();
    }
    __pipeline_wait_prior(1);
    __syncthreads();
    out[t] = values[0][31 - t] + 1000 * values[1][31 - t];
    __pipeline_wait_prior(0);
    __syncthreads();
    out[t] += 1000000 * values[2][31 - t];
}
