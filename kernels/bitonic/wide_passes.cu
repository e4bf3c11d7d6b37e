// /// cudalab
// summary  = "Up to four wide steps in a launch, on sixteen keys in a thread's registers"
// order    = 5
// adds     = "four wide steps between reading and writing all keys"
// dispatch = "passes"
// default  = ["cuda"]
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_BLOCK = 4096 }
// ///
//
// Blocks sort and end merges as in `registers`. The wide steps, whose partners belong to different
// blocks, do the same over global memory: a thread reads the 16 keys that four steps in a row join
// with each other, does the steps and writes the keys.
//
// Half-cleaners of strides 8 s, 4 s, 2 s and s join the keys at i, i + s, ..., i + 15 s. A merge
// begins with a mirrored step, which joins key k with size - 1 - k: eight keys of the lower half,
// size / 16 apart, with eight of the upper half that are as far apart. The steps behind it stay
// within either eight, so that they fit into the same pass. For 2^22 keys the 55 wide steps take 18
// passes.
//
// Limits: a pass moves 8 bytes per key for two comparisons of it. A sort that moves keys to their
// place, as radixsort does, needs a few passes instead of log2(n) merges.
//
// Macros from outside: T (element type), THREADS_PER_BLOCK, ITEMS_PER_BLOCK.
#include "bitonic/parts/register_blocks.cuh"

// A thread's keys in a pass: `stride` apart from `lower` on; those of the upper half from `upper`.
template <unsigned count>
__device__ inline void load_apart(Bits (&keys)[count], const T* array, unsigned n, unsigned lower,
                                  unsigned upper, unsigned stride) {
#pragma unroll
    for (unsigned r = 0; r < count; ++r) {
        const unsigned i = (r < count / 2 ? lower : upper) + r * stride;
        keys[r] = i < n ? ordered_bits(array[i]) : GREATEST;
    }
}
template <unsigned count>
__device__ inline void store_apart(const Bits (&keys)[count], T* array, unsigned n, unsigned lower,
                                   unsigned upper, unsigned stride) {
#pragma unroll
    for (unsigned r = 0; r < count; ++r) {
        const unsigned i = (r < count / 2 ? lower : upper) + r * stride;
        if (i < n) array[i] = from_ordered_bits<T>(keys[r]);
    }
}

// The mirrored step of groups of `size`, and the half-cleaners behind it: `steps` in all.
template <unsigned steps>
__device__ inline void begin_merge(T* array, unsigned n, unsigned size) {
    const unsigned t = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    const unsigned stride = size >> steps, along = t & (stride - 1);
    const unsigned group = (t - along) << steps;
    Bits keys[1 << steps];
    load_apart(keys, array, n, group + along, group + stride - 1 - along, stride);
#pragma unroll
    for (unsigned r = 0; r < 1 << (steps - 1); ++r)
        compare_exchange(keys[r], keys[(1 << steps) - 1 - r]);
    clean_registers(keys, (1 << steps) / 4);
    store_apart(keys, array, n, group + along, group + stride - 1 - along, stride);
}

// The half-cleaners of strides stride << steps - 1, ..., 2 * stride, stride.
template <unsigned steps>
__device__ inline void clean_halves(T* array, unsigned n, unsigned stride) {
    const unsigned t = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    const unsigned along = t & (stride - 1), first = ((t - along) << steps) + along;
    Bits keys[1 << steps];
    load_apart(keys, array, n, first, first, stride);
    clean_registers(keys);
    store_apart(keys, array, n, first, first, stride);
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, 3) begin_merges(T* array,
                                                                                unsigned n,
                                                                                unsigned size,
                                                                                unsigned steps) {
    switch (steps) {
        case 1:
            begin_merge<1>(array, n, size);
            break;
        case 2:
            begin_merge<2>(array, n, size);
            break;
        case 3:
            begin_merge<3>(array, n, size);
            break;
        default:
            begin_merge<4>(array, n, size);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, 3) clean_strides(T* array,
                                                                                 unsigned n,
                                                                                 unsigned stride,
                                                                                 unsigned steps) {
    switch (steps) {
        case 1:
            clean_halves<1>(array, n, stride);
            break;
        case 2:
            clean_halves<2>(array, n, stride);
            break;
        case 3:
            clean_halves<3>(array, n, stride);
            break;
        default:
            clean_halves<4>(array, n, stride);
    }
}

// Source: Batcher, Sorting Networks and Their Applications. AFIPS Spring Joint Computer Conference,
// 1968. Peters, Schulz-Hildebrandt and Luttenberger, Fast In-Place Sorting with CUDA Based on
// Bitonic Sort. PPAM 2009.
