// /// cudalab
// summary  = "Sixteen keys per thread in registers: four steps between exchanges"
// order    = 4
// adds     = "keys in registers: four steps of the network without another thread"
// dispatch = "blocks"
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_BLOCK = 4096 }
// ///
//
// A thread has 16 keys in registers. Four bits of a key's index in the block tell them apart, so
// four steps in a row join keys of one thread: 32 comparisons, and no barrier, no shared memory.
// Then the keys change hands in shared memory, so that the next four bits of the index tell a
// thread's keys apart (bitonic/parts/registers.cuh). The twelve steps that end a merge of 4096 keys
// take two exchanges, where `shared` has a barrier and four accesses per thread for each step.
//
// The block's own network is that of `alternating`, whose steps all are half-cleaners: a mirrored
// step would join keys of different threads. A thread that sorts down complements its keys, sorts
// up, and complements them again. Beyond the end of the array a block has keys greater than all
// others, and does not store them.
//
// Limits: each wide step is a launch of its own, over global memory: 55 of them for 2^22 keys.
//
// Macros from outside: T (element type), THREADS_PER_BLOCK, ITEMS_PER_BLOCK.
#include "bitonic/parts/register_blocks.cuh"

// The wide steps, over global memory: partners belong to different blocks.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) begin_merge(T* keys, unsigned n,
                                                                            unsigned size) {
    const unsigned t = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    compare_exchange(keys, n, mirrored(t, size));
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) clean_halves(T* keys, unsigned n,
                                                                             unsigned stride) {
    const unsigned t = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    compare_exchange(keys, n, half_cleaner(t, stride));
}

// Source: Batcher, Sorting Networks and Their Applications. AFIPS Spring Joint Computer Conference,
// 1968. Peters, Schulz-Hildebrandt and Luttenberger, Fast In-Place Sorting with CUDA Based on
// Bitonic Sort. PPAM 2009.
