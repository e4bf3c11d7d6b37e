// Kernels that break a rule, each in one way.

extern "C" __global__ void divergent_barrier(int* out) {
    if (threadIdx.x < 40) {
        __syncthreads();
    } else {
        __syncthreads();
    }
    out[threadIdx.x] = 1;
}

extern "C" __global__ void warp_against_block(int* out) {
    if (threadIdx.x < 10) {
        __syncwarp();
    } else {
        __syncthreads();
    }
    out[threadIdx.x] = 1;
}

extern "C" __global__ void lane_missing(int* out) {
    if (threadIdx.x != 5) out[threadIdx.x] = __shfl_sync(0xffffffffu, (int)threadIdx.x, 0);
    __syncthreads();
}

extern "C" __global__ void not_in_mask(int* out) {
    out[threadIdx.x] = __ballot_sync(0x0000ffffu, 1);
}

extern "C" __global__ void different_operations(int* out) {
    if (threadIdx.x % 2) {
        out[threadIdx.x] = __ballot_sync(0xffffffffu, 1);
    } else {
        out[threadIdx.x] = __shfl_sync(0xffffffffu, 1, 0);
    }
}

extern "C" __global__ void wild_store(int* out) {
    __syncthreads();
    if (threadIdx.x == 7) *(volatile int*)8 = out[0];
}

__device__ int depth(volatile int* out, int n) {
    volatile int local[64];
    local[n % 64] = n;
    return n == 0 ? out[0] : depth(out, n - 1) + local[n % 64];
}
extern "C" __global__ void deep_recursion(int* out) {
    __syncthreads();
    if (threadIdx.x == 3) out[0] = depth(out, 1 << 20);
}

extern "C" __global__ void division(int* out, int zero) { out[threadIdx.x] = 7 / zero; }

extern "C" __global__ void endless(volatile int* out) {
    while (out[0] == 0) {
    }
}

#include <assert.h>
extern "C" __global__ void failing_assertion(int* out) {
    __shared__ int sums[64];
    sums[threadIdx.x] = out[threadIdx.x] + (int)threadIdx.x;
    __syncthreads();
    assert(sums[0] >= sums[threadIdx.x] && "sums ( fall )");
    out[threadIdx.x] = 1;
}
