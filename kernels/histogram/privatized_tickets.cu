// /// cudalab
// summary  = "The same, but blocks draw batches by ticket: faster multiprocessors get more"
// order    = 8
// adds     = "blocks take batches by ticket instead of striding"
// dispatch = "tickets"
// applies  = { classes = ["256", "64", "few"] }
// default  = ["cuda"]
//
// [defines]
// THREADS_PER_BLOCK = 512
// ITEMS_PER_THREAD  = 64    # at least; more where MAX_BLOCKS bounds the grid
// MAX_BLOCKS        = "2 * MULTIPROCESSORS"
// LOADS             = 4     # 16-byte loads in flight together
// LONG_LOADS        = 8     # those of count_long
// LONG_BATCHES      = 16    # of each block, from which count_long is launched
// ///
//
// Multiprocessors are not equally far from the memory, and with equal shares all would wait for the
// last one to finish. Here a block takes the next free batch, by a ticket counter in global memory.
// Thread 0 draws the ticket of the next batch while the current one is counted, so nobody waits for
// it. The last ticket that can be drawn resets the counter to zero, so that the next launch finds
// it unchanged.
//
// Blocks are fewer and larger than those of privatized: fewer tables must be cleared and added to
// the counts, during which nothing is loaded.
//
// A long array takes count_long, which has twice as many loads in flight; a shorter one would have
// too few of its batches to share out.
// Limits: the memory. Additions alone would take two thirds of the time (measured for bytes).
//
// Macros from outside: T (element type), NUM_BINS (classes), THREADS_PER_BLOCK, LOADS,
// LONG_LOADS.
#include "histogram/parts/private_tables.cuh"

// A block's part of the counts, in batches of NUM_LOADS vectors per thread.
template <unsigned NUM_LOADS>
__device__ inline void count_by_ticket(const T* data, unsigned n, unsigned* counts,
                                       FirstBad* first_bad, unsigned* ticket) {
    constexpr unsigned BATCH = THREADS_PER_BLOCK * NUM_LOADS;  // vectors that a block takes at once
    __shared__ unsigned tables[NUM_BINS * COPIES];
    __shared__ unsigned drawn[2];
    unsigned* copy = tables + threadIdx.x % COPIES;
    const unsigned num_vectors = n / ITEMS_PER_VECTOR;
    const unsigned batches = (num_vectors + BATCH - 1) / BATCH;
    // Each block draws until its ticket is beyond the last batch: one ticket more per block.
    const unsigned last_number = batches + gridDim.x - 1;

    if (threadIdx.x == 0) drawn[0] = atomicInc(ticket, last_number);
    clear_tables(tables);
    __syncthreads();  // the tables are clear and the first ticket is known

    // Two places hold tickets in turn: the next is written while this one may still be read.
    for (unsigned turn = 0; drawn[turn] < batches; turn ^= 1) {
        unsigned next = 0;
        if (threadIdx.x == 0) next = atomicInc(ticket, last_number);
        count_batch<NUM_LOADS>(data, drawn[turn] * BATCH, num_vectors, copy, first_bad);
        if (threadIdx.x == 0) drawn[turn ^ 1] = next;
        __syncthreads();  // the next ticket is known
    }
    count_tail(data, n, copy, first_bad);
    __syncthreads();  // all have counted
    add_tables(tables, counts);
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) count(const T* data, unsigned n,
                                                                      unsigned* counts,
                                                                      FirstBad* first_bad,
                                                                      unsigned* ticket) {
    count_by_ticket<LOADS>(data, n, counts, first_bad, ticket);
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, 2) count_long(
    const T* data, unsigned n, unsigned* counts, FirstBad* first_bad, unsigned* ticket) {
    count_by_ticket<LONG_LOADS>(data, n, counts, first_bad, ticket);
}
