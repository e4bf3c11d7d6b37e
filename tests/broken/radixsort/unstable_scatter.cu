// /// cudalab
// summary  = "Keys of a digit take their places in the order in which threads arrive"
// order    = 100
// dispatch = "digits"
//
// [defines]
// THREADS_PER_BLOCK = 256
// TILE_ITEMS        = 256
// RADIX_BITS        = 4
// SCAN_THREADS      = 256
// ITEMS_PER_BLOCK   = 1024
// ///
//
// /// expect
// kind = ["order_dependent", "wrong_answer"]
// ///
#include "common/thread/radix_keys.cuh"
#include "radixsort/parts/scan_blocks.cuh"

constexpr unsigned RADIX = 1u << RADIX_BITS;

extern "C" __global__ void count_digits(const T* keys, unsigned* counts, unsigned n, int shift) {
    __shared__ unsigned table[RADIX];
    const unsigned tid = threadIdx.x, i = blockIdx.x * TILE_ITEMS + tid;
    if (tid < RADIX) table[tid] = 0;
    __syncthreads();
    if (i < n) atomicAdd(&table[digit_at(ordered_bits(keys[i]), shift, RADIX_BITS)], 1u);
    __syncthreads();
    if (tid < RADIX) counts[tid * gridDim.x + blockIdx.x] = table[tid];
}

extern "C" __global__ void scatter(const T* in, T* out, const unsigned* offsets, unsigned n,
                                   int shift) {
    __shared__ unsigned next[RADIX];
    const unsigned tid = threadIdx.x, i = blockIdx.x * TILE_ITEMS + tid;
    if (tid < RADIX) next[tid] = offsets[tid * gridDim.x + blockIdx.x];
    __syncthreads();
    if (i < n) {
        const unsigned digit = digit_at(ordered_bits(in[i]), shift, RADIX_BITS);
        const unsigned place = atomicAdd(&next[digit], 1u);  // first come, first served
        out[place] = in[i];
        if constexpr (PAIRS) out[n + place] = in[n + i];
    }
}
