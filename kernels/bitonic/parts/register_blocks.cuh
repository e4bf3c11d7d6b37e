// sort_blocks and merge_blocks with the keys of a block in registers.
//
// Macros from outside: T (element type), THREADS_PER_BLOCK, ITEMS_PER_BLOCK.
#pragma once
#include "bitonic/parts/registers.cuh"

static_assert(THREADS_PER_BLOCK == 256 && ITEMS_PER_BLOCK == THREADS_PER_BLOCK * KEYS,
              "an index of 12 bits: three times four for registers");

using Bits = OrderedBits<T>;
constexpr Bits GREATEST = ~Bits(0);  // stands beyond the end of the array, and is not stored

// Registers are told apart by the upper bits: neighbours read and write neighbours.
__device__ inline void load_block(Bits (&keys)[KEYS], const T* array, unsigned n) {
#pragma unroll
    for (unsigned r = 0; r < KEYS; ++r) {
        const unsigned i = blockIdx.x * ITEMS_PER_BLOCK + index_of<8>(threadIdx.x, r);
        keys[r] = i < n ? ordered_bits(array[i]) : GREATEST;
    }
}
__device__ inline void store_block(const Bits (&keys)[KEYS], T* array, unsigned n) {
#pragma unroll
    for (unsigned r = 0; r < KEYS; ++r) {
        const unsigned i = blockIdx.x * ITEMS_PER_BLOCK + index_of<8>(threadIdx.x, r);
        if (i < n) array[i] = from_ordered_bits<T>(keys[r]);
    }
}

// Complement the keys of groups of `size` that go down: then they go up. Those do whose index has
// this bit; the last group, the block, goes up.
template <unsigned shift>
__device__ inline void turn(Bits (&keys)[KEYS], unsigned size) {
#pragma unroll
    for (unsigned r = 0; r < KEYS; ++r)
        if (index_of<shift>(threadIdx.x, r) & size) keys[r] = ~keys[r];
}

// The steps of a merge of groups of `size` that join registers told apart by these bits.
template <unsigned shift>
__device__ inline void clean_groups(Bits (&keys)[KEYS], unsigned size) {
    turn<shift>(keys, size);
    clean_registers(keys, size >> (shift + 1));
    turn<shift>(keys, size);
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, 3) sort_blocks(T* array,
                                                                               unsigned n) {
    __shared__ Bits staged[ITEMS_PER_BLOCK];
    Bits keys[KEYS];

    load_block(keys, array, n);  // in any order, for they are not sorted yet
#pragma unroll
    for (unsigned size = 2; size <= KEYS; size *= 2) clean_groups<0>(keys, size);
#pragma unroll
    for (unsigned size = 2 * KEYS; size <= KEYS * KEYS; size *= 2) {
        exchange<0, 4>(keys, staged);
        clean_groups<4>(keys, size);
        exchange<4, 0>(keys, staged);
        clean_groups<0>(keys, size);
    }
#pragma unroll
    for (unsigned size = 2 * KEYS * KEYS; size <= ITEMS_PER_BLOCK; size *= 2) {
        exchange<0, 8>(keys, staged);
        clean_groups<8>(keys, size);
        exchange<8, 4>(keys, staged);
        clean_groups<4>(keys, size);
        exchange<4, 0>(keys, staged);
        clean_groups<0>(keys, size);
    }
    exchange<0, 8>(keys, staged);
    store_block(keys, array, n);
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, 3) merge_blocks(T* array,
                                                                                unsigned n) {
    __shared__ Bits staged[ITEMS_PER_BLOCK];
    Bits keys[KEYS];

    load_block(keys, array, n);
    clean_registers(keys);
    exchange<8, 4>(keys, staged);
    clean_registers(keys);
    exchange<4, 0>(keys, staged);
    clean_registers(keys);
    exchange<0, 8>(keys, staged);
    store_block(keys, array, n);
}
