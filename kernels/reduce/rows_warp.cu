// /// cudalab
// summary  = "A warp for each segment of a row, 16-byte loads and shuffles"
// order    = 14
// ladder   = "rows"
// adds     = "a warp per row, shuffles and 16-byte loads: no tile"
// dispatch = "rows"
// applies  = { along = ["rows"] }
// default  = ["cuda"]
//
// [defines]
// THREADS_PER_BLOCK = 256
// ITEMS_PER_SEGMENT = 4096
// MAX_LANES         = 32
// LOADS_PER_THREAD  = 4      # 16-byte loads in flight
// ///
//
// The lanes of a warp read along the row, side by side, and combine their values by shuffles: no
// shared memory, no barrier, no transposition. A row longer than ITEMS_PER_SEGMENT is cut into
// segments, one warp each, whose results are reduced in the same way by further launches, so that
// few long rows keep the device as busy as many short ones. Rows of fewer than 32 items get a power
// of two of lanes, several rows per warp.
//
// Limits: if the length of a row is not a multiple of 16 bytes, rows are read a word at a time.
//
// Macros from outside: T (element type), OP_* (one of them: the operation), THREADS_PER_BLOCK,
// ITEMS_PER_SEGMENT, LOADS_PER_THREAD.
#include "reduce/parts/reduce_block.cuh"
#include "reduce/parts/reduce_vectors.cuh"

static_assert(THREADS_PER_BLOCK % 32 == 0, "whole warps");
static_assert(ITEMS_PER_SEGMENT % 4 == 0, "segments start with a whole vector");

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) reduce_rows(
    const T* x, const T* y, T* out, unsigned rows, unsigned cols, unsigned lanes, int level,
    unsigned count) {
    const unsigned segments = (cols + ITEMS_PER_SEGMENT - 1) / ITEMS_PER_SEGMENT;
    const unsigned lane = threadIdx.x % lanes;
    const unsigned s = blockIdx.x * (THREADS_PER_BLOCK / lanes) + threadIdx.x / lanes;
    const unsigned row = s / segments, segment = s % segments;

    T value = identity();
    if (row < rows) {
        const unsigned begin = segment * ITEMS_PER_SEGMENT;
        const unsigned items = min(cols - begin, (unsigned)ITEMS_PER_SEGMENT);
        const size_t start = (size_t)row * cols + begin;
        if (lanes == 32 && cols % VECTOR_ITEMS == 0) {
            value = reduce_strided<LOADS_PER_THREAD>(x + start, y + start, items, lane, 32, level);
        } else {
            for (unsigned i = lane; i < items; i += lanes)
                value = combine(value, load(x, y, start + i, level));
        }
    }
    // Threads beyond the last row come here, too: a shuffle needs the whole warp.
    value = reduce_lanes(value, lanes);
    if (row < rows && lane == 0) out[s] = finish(value, count);
}
