// /// cudalab
// summary  = "Sum every chunk, scan the sums, then scan every chunk starting from its prefix"
// order    = 5
// adds     = "chunks are summed first: items are written once"
// dispatch = "chunks"
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_THREAD = 16, MAX_CHUNKS = 2048 }
// ///
//
// A chunk is a run of whole tiles, one chunk per block; there are at most MAX_CHUNKS, so their sums
// fit into one block, and three launches are enough for any n. reduce_chunks reads the items and
// keeps only the sums; scan_sums scans these; scan_chunks reads the items again, and writes each
// once: two reads and one write per item, where adding block sums back costs two of each.
//
// reduce_chunks needs no order within a tile, so a thread combines its items freely.
// Limits: the second read goes to global memory once the items outgrow the L2 cache.
//
// Macros from outside: T (element type), OP (operator), INCLUSIVE (0 or 1), THREADS_PER_BLOCK,
// ITEMS_PER_THREAD, MAX_CHUNKS.
#include "common/block/scan_tile.cuh"

static_assert(MAX_CHUNKS <= TILE_ITEMS, "one block scans the sums of all chunks");

// chunk_sums[chunk] = sum of its tiles_per_chunk tiles
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) reduce_chunks(
    const T* in, T* chunk_sums, unsigned n, unsigned tiles_per_chunk) {
    __shared__ T warp_sums[WARPS];
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned first_tile = blockIdx.x * tiles_per_chunk;

    T sum = Op::identity();
    for (unsigned k = 0; k < tiles_per_chunk; ++k) {
        const unsigned start = (first_tile + k) * TILE_ITEMS;
        if (start >= n) break;
        T items[ITEMS_PER_THREAD];
        load_tile(in + start, n - start, items);
#pragma unroll
        for (unsigned row = 0; row < ROWS; ++row) sum = Op()(sum, sum_of_row(items, row));
    }
    sum = inclusive_scan_warp(sum, Op());
    if (lane == 31) warp_sums[warp] = sum;
    __syncthreads();  // all warps' sums are ready
    if (warp == 0) {
        sum = inclusive_scan_warp(lane < WARPS ? warp_sums[lane] : Op::identity(), Op());
        if (lane == 31) chunk_sums[blockIdx.x] = sum;
    }
}

// One block replaces the chunks' sums by their exclusive scan.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) scan_sums(T* chunk_sums,
                                                                          unsigned num_chunks) {
    T items[ITEMS_PER_THREAD], before[ROWS];
    load_tile(chunk_sums, num_chunks, items);
    scan_tile(items, before);
    store_tile<false>(chunk_sums, num_chunks, items, before, Op::identity());
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) scan_chunks(
    const T* in, const T* chunk_sums, T* out, unsigned n, unsigned tiles_per_chunk) {
    const unsigned first_tile = blockIdx.x * tiles_per_chunk;

    T prefix = chunk_sums[blockIdx.x];
    for (unsigned k = 0; k < tiles_per_chunk; ++k) {
        const unsigned start = (first_tile + k) * TILE_ITEMS;
        if (start >= n) break;
        T items[ITEMS_PER_THREAD], before[ROWS];
        load_tile(in + start, n - start, items);
        __syncthreads();  // all warps have read the totals of the tile before
        const T sum = scan_tile(items, before);
        store_tile<INCLUSIVE>(out + start, n - start, items, before, prefix);
        prefix = Op()(prefix, sum);
    }
}

// Source: Merrill and Grimshaw, Parallel Scan for Stream Architectures. University of Virginia
// CS2009-14, 2009.
