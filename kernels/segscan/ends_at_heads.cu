// /// cudalab
// summary  = "A look-back ends where a segment begins: most tiles wait for one other"
// order    = 3
// adds     = "tiles in which a segment begins are where a look-back ends"
// dispatch = "one_pass"
// default  = ["cuda", "cpu"]
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_THREAD = 20, STATUS_BYTES = 8 }
// ///
//
// Nothing of what comes before the beginning of a segment reaches beyond it. So a tile in which one
// begins knows at once what the next tile needs: the sum since its last beginning. It says so with
// a mark that this is all, and whoever looks back stops there. Only tiles that lie within a segment
// say first what they have, and look back themselves before they can say that it is all.
//
// A warp looks at 32 earlier tiles at a time, a lane at each. A tile says a number of 4 bytes, so
// its status is one word of 8: the mark, the number of the run, and the sum, written whole. Sums of
// integers are the same in any order, so a fixed one, as that of common/device/look_back.cuh, is
// not needed.
//
// Limits: if all items are one segment, it is the scan of an array, and looks back as far.
//
// Items of a thread, measured on an H200 with 2^25 items: 4, 8, 12, 16 and 20 take 198, 157, 146,
// 149 and 138 µs; CUB's InclusiveSumByKey took 144 µs in the same minute.
//
// Macros from outside: THREADS_PER_BLOCK, ITEMS_PER_THREAD.
#include "segscan/parts/segmented_sum.cuh"
#define T Pair
#define OP SegmentedSum
#include "common/device/look_back.cuh"
#include "segscan/parts/segment_tile.cuh"

// A tile's status: the number of the run, whether the sum is all that later tiles need, the sum.
__device__ inline Word status_of(unsigned run, bool all, unsigned sum) {
    return (Word)run << 33 | (Word)all << 32 | sum;
}

// The sum since the last beginning of a segment before `tile`. One whole warp calls it.
__device__ inline unsigned sum_before(const Word* statuses, unsigned tile, unsigned run) {
    const unsigned lane = threadIdx.x % 32;
    unsigned sum = 0;
    while (true) {  // this lane's tile is tile - 1 - lane
        const bool exists = lane < tile;
        const Word status =
            exists ? load_relaxed(statuses + tile - 1 - lane) : status_of(run, true, 0);
        const unsigned known = __ballot_sync(FULL_WARP, status >> 33 == run);
        const unsigned ends = __ballot_sync(FULL_WARP, status >> 33 == run && status >> 32 & 1);
        const unsigned needed = ends ? ends ^ (ends - 1) : FULL_WARP;  // to the nearest end
        if ((known & needed) != needed) {
            __nanosleep(32);  // leave the memory to the blocks that are waited for
            continue;
        }
        const unsigned value = needed >> lane & 1 ? (unsigned)status : 0;
        sum += __shfl_sync(FULL_WARP, inclusive_sum_warp(value), 31);
        if (ends) return sum;
        tile -= 32;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) scan_segments(
    const int* keys, const int* items, int* out, Word* words, Word* ticket, unsigned n) {
    __shared__ unsigned block_prefix;
    const Taken taken = take_tile(words, ticket);
    const unsigned tile = taken.tile, run = taken.statuses.run;

    const unsigned start = tile * TILE_ITEMS;
    T pairs[ITEMS_PER_THREAD], before[ROWS];
    load_pairs(keys, items, start, n, pairs);
    const T tile_sum = scan_tile(pairs, before);
    const bool begins = tile_sum >> 32;
    if (threadIdx.x / 32 == 0) {
        Word* const own = words + tile;
        if (threadIdx.x == 0) store_relaxed(own, status_of(run, begins, (unsigned)tile_sum));
        const unsigned prefix = sum_before(words, tile, run);
        if (threadIdx.x == 0) {
            if (!begins) store_relaxed(own, status_of(run, true, prefix + (unsigned)tile_sum));
            block_prefix = prefix;
        }
    }
    __syncthreads();  // all threads can read the prefix
    store_sums(out, start, n, pairs, before, block_prefix);
}

// Source: Merrill and Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back.
// NVIDIA NVR-2016-002, 2016.
