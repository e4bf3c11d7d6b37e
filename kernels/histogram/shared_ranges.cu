// /// cudalab
// summary  = "Many classes: each block counts the range of classes that its shared memory holds"
// order    = 9
// ladder   = "many classes"
// adds     = "a table per range of classes: several passes over the data"
// dispatch = "one_pass"
// applies  = { classes = ["many"] }
// default  = ["cuda"]
//
// [defines]
// THREADS_PER_BLOCK = 512
// ITEMS_PER_THREAD  = 64
// MAX_BLOCKS        = "MULTIPROCESSORS"  # per range: with six, half as many again as fit at once
// RANGE_BINS        = 12288  # counters in 48 KB
// LOADS             = 4      # 16-byte loads in flight together
// ///
//
// A table that does not fit into shared memory is cut into ranges of RANGE_BINS classes; row y of
// the grid counts range y and skips all other elements. The rows read the same data at about the
// same time, so that all but one find them in the L2 cache, and additions stay on the
// multiprocessor: they do not suffer when much of the data falls into one class, as those to
// global memory do.
// Limits: each range is a pass over the data; beyond a few ranges sorting is cheaper.
//
// Macros from outside: T (element type), NUM_BINS (classes), THREADS_PER_BLOCK, RANGE_BINS, LOADS.
#include "histogram/parts/clear_counts.cuh"

constexpr unsigned BATCH = THREADS_PER_BLOCK * LOADS;  // vectors that a block takes at once

static_assert(sizeof(T) == 4, "bytes have no more than 256 classes");
static_assert(RANGE_BINS * 4 <= 48 * 1024, "a range fits into static shared memory");

// One row of the grid reports invalid classes; the others see the same elements.
__device__ inline void count_item(T value, unsigned i, unsigned* table, unsigned range_start,
                                  FirstBad* first_bad) {
    unsigned bin = value;
    if (range_start == 0) find_class(value, i, first_bad, bin);
    const unsigned in_range = bin - range_start;  // modulo 2^32: huge below the range
    if (in_range < RANGE_BINS && bin < NUM_BINS) atomicAdd(&table[in_range], 1u);
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) count(const T* data, unsigned n,
                                                                      unsigned* counts,
                                                                      FirstBad* first_bad) {
    __shared__ unsigned table[RANGE_BINS];
    const unsigned range_start = blockIdx.y * RANGE_BINS;

    for (unsigned i = threadIdx.x; i < RANGE_BINS; i += THREADS_PER_BLOCK) table[i] = 0;
    __syncthreads();  // the table is clear before anyone counts

    const uint4* vectors = reinterpret_cast<const uint4*>(data);
    const unsigned num_vectors = n / ITEMS_PER_VECTOR;
    for (unsigned batch = blockIdx.x * BATCH; batch < num_vectors; batch += gridDim.x * BATCH) {
        // All loads first, so that all are in flight together.
        uint4 loaded[LOADS];
#pragma unroll
        for (unsigned k = 0; k < LOADS; ++k) {
            const unsigned v = batch + k * THREADS_PER_BLOCK + threadIdx.x;
            loaded[k] = v < num_vectors ? vectors[v] : make_uint4(0, 0, 0, 0);
        }
#pragma unroll
        for (unsigned k = 0; k < LOADS; ++k) {
            const unsigned v = batch + k * THREADS_PER_BLOCK + threadIdx.x;
            if (v < num_vectors) {
                const unsigned i = v * ITEMS_PER_VECTOR;
                count_item(loaded[k].x, i, table, range_start, first_bad);
                count_item(loaded[k].y, i + 1, table, range_start, first_bad);
                count_item(loaded[k].z, i + 2, table, range_start, first_bad);
                count_item(loaded[k].w, i + 3, table, range_start, first_bad);
            }
        }
    }
    // What is left after the last whole vector.
    const unsigned i = num_vectors * ITEMS_PER_VECTOR + threadIdx.x;
    if (blockIdx.x == 0 && i < n) count_item(data[i], i, table, range_start, first_bad);
    __syncthreads();  // all have counted

    for (unsigned i = threadIdx.x; i < RANGE_BINS && range_start + i < NUM_BINS;
         i += THREADS_PER_BLOCK)
        if (table[i] != 0) atomicAdd(&counts[range_start + i], table[i]);  // other blocks add too
}
