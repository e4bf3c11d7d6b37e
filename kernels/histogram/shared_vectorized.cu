// /// cudalab
// summary  = "A table per block and 16-byte loads, several in flight"
// order    = 6.5
// adds     = "16-byte loads, several in flight"
// dispatch = "one_pass"
// applies  = { classes = ["256", "64", "few"] }
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_THREAD = 64, LOADS = 4, MAX_COPIES = 1 }
// ///
//
// As `shared_atomic`, with one change: a load fetches 16 bytes, that is 16 elements if they are
// bytes, and a thread starts LOADS of them before it counts what the first one brings. So there are
// fewer loads, and the waits for them overlap.
//
// Limits: the threads of a block still meet in the counters of its one table.
//
// Macros from outside: T (element type), NUM_BINS (classes), THREADS_PER_BLOCK, LOADS, MAX_COPIES.
#include "histogram/parts/private_tables.cuh"

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) count(const T* data, unsigned n,
                                                                      unsigned* counts,
                                                                      FirstBad* first_bad) {
    __shared__ unsigned table[NUM_BINS];

    clear_tables(table);
    __syncthreads();  // the table is clear before anyone counts

    constexpr unsigned BATCH = THREADS_PER_BLOCK * LOADS;  // vectors that a block takes at once
    const unsigned num_vectors = n / ITEMS_PER_VECTOR;
    for (unsigned batch = blockIdx.x * BATCH; batch < num_vectors; batch += gridDim.x * BATCH)
        count_batch<LOADS>(data, batch, num_vectors, table, first_bad);
    count_tail(data, n, table, first_bad);
    __syncthreads();  // all have counted
    add_tables(table, counts);
}

// Source: Luitjens, Increase Performance with Vectorized Memory Access. NVIDIA Developer Blog,
// 2013.
