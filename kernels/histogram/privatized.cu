// /// cudalab
// summary  = "A copy of the block's table for each lane: no conflict under any skew"
// order    = 7
// adds     = "a table for each lane"
// dispatch = "one_pass"
// applies  = { classes = ["256", "64", "few"] }
//
// [defines]
// THREADS_PER_BLOCK = 256
// ITEMS_PER_THREAD  = 64    # at least; more where MAX_BLOCKS bounds the grid
// MAX_BLOCKS        = "5 * MULTIPROCESSORS"  # 48 registers per thread
// LOADS             = 4     # 16-byte loads in flight together
// ///
//
// As `shared_vectorized`, but a block has a table for each lane, interleaved: the counter of class
// b for lane l is word b * 32 + l, in bank l. Lanes of one warp never meet in a counter and never
// in a bank, for any data; only the block's warps share counters, hence atomics, whose result is
// not used. The grid is just large enough to fill the device and strides over the data, so that the
// cost of clearing and summing the tables is spread over many elements.
//
// Limits: 32 copies of 383 counters fill 48 KB. With more classes lanes share a copy, down to one
// for all at 12 286 classes, and conflicts depend on the data again.
//
// Macros from outside: T (element type), NUM_BINS (classes), THREADS_PER_BLOCK, LOADS.
#include "histogram/parts/private_tables.cuh"

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) count(const T* data, unsigned n,
                                                                      unsigned* counts,
                                                                      FirstBad* first_bad) {
    __shared__ unsigned tables[NUM_BINS * COPIES];
    unsigned* copy = tables + threadIdx.x % COPIES;

    clear_tables(tables);
    __syncthreads();  // the tables are clear before anyone counts

    constexpr unsigned BATCH = THREADS_PER_BLOCK * LOADS;  // vectors that a block takes at once
    const unsigned num_vectors = n / ITEMS_PER_VECTOR;
    for (unsigned batch = blockIdx.x * BATCH; batch < num_vectors; batch += gridDim.x * BATCH)
        count_batch<LOADS>(data, batch, num_vectors, copy, first_bad);
    count_tail(data, n, copy, first_bad);
    __syncthreads();  // all have counted
    add_tables(tables, counts);
}

// Source: Gómez-Luna, González-Linares, Benavides and Guil, An Optimized Approach to Histogram
// Computation on GPU. Machine Vision and Applications, doi:10.1007/s00138-012-0443-3.
