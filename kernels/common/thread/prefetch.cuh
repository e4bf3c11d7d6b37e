// Prefetches into the L2 cache what another block will soon read.
//
// Where blocks wait for each other, a block cannot take its next tile early: blocks that need its
// result would wait for both. A prefetch takes no tile. It keeps the memory busy while blocks wait,
// and later loads find their tile in the cache. It is a hint: other devices ignore it.
#pragma once
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
// The memory must exist; addresses are rounded down to 16 bytes, and bytes is a multiple of 16.
__device__ inline void prefetch_to_l2(const void* from, unsigned bytes) {
    const unsigned long long address = reinterpret_cast<unsigned long long>(from) & ~15ull;
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(address), "r"(bytes));
}
#else
__device__ inline void prefetch_to_l2(const void*, unsigned) {}
#endif
