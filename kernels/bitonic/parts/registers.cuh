// Keys in registers: a step whose comparators join keys of one thread needs no other thread.
//
// In a block of 4096 keys a thread has 16. A key's index has 12 bits: four neighbouring ones, from
// `shift` on, say which register of its thread the key is in, the other eight which thread. The
// steps of strides 8 << shift, ..., 1 << shift then stay within a thread, and between two such
// places the keys change hands in shared memory.
#pragma once
#include "bitonic/parts/bitonic_network.cuh"

constexpr unsigned REGISTER_BITS = 4, KEYS = 1 << REGISTER_BITS;  // of a thread

// The smaller key to `low`.
template <class Bits>
__device__ inline void compare_exchange(Bits& low, Bits& high) {
    const Bits smaller = low < high ? low : high;
    high = low < high ? high : low;
    low = smaller;
}

// The half-cleaners of strides `stride`, ..., 2, 1, counted in registers.
template <unsigned count, class Bits>
__device__ inline void clean_registers(Bits (&keys)[count], unsigned stride = count / 2) {
#pragma unroll
    for (unsigned s = count / 2; s > 0; s /= 2) {
        if (s > stride) continue;
#pragma unroll
        for (unsigned t = 0; t < count / 2; ++t) {
            const Comparator c = half_cleaner(t, s);
            compare_exchange(keys[c.low], keys[c.high]);
        }
    }
}

// The index of register r of thread t.
template <unsigned shift>
__device__ inline unsigned index_of(unsigned t, unsigned r) {
    const unsigned below = t & ((1u << shift) - 1);
    return ((t - below) << REGISTER_BITS) | r << shift | below;
}

// Where a key lies in shared memory. The lanes of a warp are told apart by the bits 0 to 4 of the
// index, or 0 to 3 and 8, or 4 to 8: in each case they use 32 different banks.
__device__ inline unsigned swizzled(unsigned index) {
    return index ^ (index >> 5 & 7) ^ (index >> 8 & 1) * 24;
}

// Where register r of this thread lies. The bits of r and of t are different ones, so each part can
// be swizzled by itself, and that of r is a constant.
template <unsigned shift>
__device__ inline unsigned place_of(unsigned r) {
    return swizzled(index_of<shift>(threadIdx.x, 0)) ^ swizzled(r << shift);
}

// Hand over keys from one place of the register's bits to another. A thread stores where it has
// read before, so one barrier is enough; among the lower eight bits the keys of a warp stay there.
template <unsigned from, unsigned to, class Bits>
__device__ inline void exchange(Bits (&keys)[KEYS], Bits* staged) {
#pragma unroll
    for (unsigned r = 0; r < KEYS; ++r) staged[place_of<from>(r)] = keys[r];
    if (from == 8 || to == 8)
        __syncthreads();  // all keys of the block are there
    else
        __syncwarp();  // those of the warp are
#pragma unroll
    for (unsigned r = 0; r < KEYS; ++r) keys[r] = staged[place_of<to>(r)];
}
