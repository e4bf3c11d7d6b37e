// The two kernels of a scan over blocks: each block scans its items and reports its sum; the host
// has the sums scanned in the same way and added back, level by level.
//
// A thread holds four neighbouring items, one 16-byte load; the block scans the threads' sums.
#pragma once
#include "common/block/block_scan.cuh"

static_assert(ITEMS_PER_BLOCK == 4 * SCAN_THREADS, "a thread scans four items");

// Four items from `first` on. The array's last group may be incomplete: zeros take the place of
// missing items.
__device__ inline uint4 load_four(const unsigned* data, unsigned first, unsigned n) {
    if (first + 3 < n) return *reinterpret_cast<const uint4*>(data + first);
    uint4 items = make_uint4(0, 0, 0, 0);
    if (first < n) items.x = data[first];
    if (first + 1 < n) items.y = data[first + 1];
    if (first + 2 < n) items.z = data[first + 2];
    return items;
}

__device__ inline void store_four(unsigned* data, unsigned first, unsigned n, uint4 items) {
    if (first + 3 < n) {
        *reinterpret_cast<uint4*>(data + first) = items;
        return;
    }
    if (first < n) data[first] = items.x;
    if (first + 1 < n) data[first + 1] = items.y;
    if (first + 2 < n) data[first + 2] = items.z;
}

// Replaces every ITEMS_PER_BLOCK items by their exclusive scan, and writes their sum to block_sums.
extern "C" __global__ void __launch_bounds__(SCAN_THREADS) scan_blocks(unsigned* data,
                                                                       unsigned* block_sums,
                                                                       unsigned n) {
    const unsigned first = blockIdx.x * ITEMS_PER_BLOCK + 4 * threadIdx.x;
    const uint4 items = load_four(data, first, n);

    unsigned block_sum;
    const unsigned before =
        exclusive_scan_block<SCAN_THREADS>(items.x + items.y + items.z + items.w, block_sum);
    const unsigned second = before + items.x, third = second + items.y;
    store_four(data, first, n, make_uint4(before, second, third, third + items.z));
    if (threadIdx.x == 0) block_sums[blockIdx.x] = block_sum;
}

// data[i] += block_sums[i / ITEMS_PER_BLOCK]
extern "C" __global__ void __launch_bounds__(SCAN_THREADS) add_block_sums(
    unsigned* data, const unsigned* block_sums, unsigned n) {
    const unsigned first = blockIdx.x * ITEMS_PER_BLOCK + 4 * threadIdx.x;
    const unsigned before = block_sums[blockIdx.x];
    uint4 items = load_four(data, first, n);
    items.x += before;
    items.y += before;
    items.z += before;
    items.w += before;
    store_four(data, first, n, items);
}
