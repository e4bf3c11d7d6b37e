// /// cudalab
// summary  = "Rows of items scanned by warp shuffles: one barrier per block"
// order    = 4
// adds     = "shuffles instead of the tree: one barrier per block"
// dispatch = "recursive"
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_THREAD = 4 }
// ///
//
// Lanes of a warp hand each other their sums in registers: five shuffles scan 32 of them, without
// shared memory, barriers or bank conflicts. A thread has four neighbouring items, one 16-byte load
// (two loads where items have 8 bytes), and the warps' totals meet in shared memory: one barrier
// instead of the tree's twenty. The additions are those of Hillis and Steele again, n log n over
// the 32 lanes of a warp, but only one item in four takes part.
//
// The block sums are scanned in the same way, level by level, and added back.
// Limits: adding back reads and writes everything a second time: two reads and two writes of global
// memory per item.
//
// Macros from outside: T (element type), OP (operator), INCLUSIVE (0 or 1), THREADS_PER_BLOCK,
// ITEMS_PER_THREAD.
#include "common/block/scan_tile.cuh"

constexpr unsigned ITEMS_PER_BLOCK = TILE_ITEMS;

#include "common/device/add_block_sums.cuh"

// Writes each block's scan to `out` (which may be `in`), and its sum to block_sums.
template <bool inclusive>
__device__ inline void scan_block(const T* in, T* out, T* block_sums, unsigned n) {
    const unsigned block_start = blockIdx.x * ITEMS_PER_BLOCK, left = n - block_start;
    T items[ITEMS_PER_THREAD], before[ROWS];
    load_tile(in + block_start, left, items);
    const T sum = scan_tile(items, before);
    store_tile<inclusive>(out + block_start, left, items, before, Op::identity());
    if (threadIdx.x == 0) block_sums[blockIdx.x] = sum;
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) scan_blocks(const T* in, T* out,
                                                                            T* block_sums,
                                                                            unsigned n) {
    scan_block<INCLUSIVE>(in, out, block_sums, n);
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) scan_block_sums(T* sums,
                                                                                T* sums_above,
                                                                                unsigned n) {
    scan_block<false>(sums, sums, sums_above, n);
}

// Source: Sengupta, Harris and Garland, Efficient Parallel Scan Algorithms for GPUs. NVIDIA
// NVR-2008-003, 2008.
