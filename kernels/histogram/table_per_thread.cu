// /// cudalab
// summary  = "Each thread counts a run of consecutive elements in tables of its own"
// order    = 9
// dispatch = "runs"
// default  = ["cpu"]
//
// [defines]
// THREADS_PER_BLOCK = 1      # a thread needs no other
// MAX_RUNS          = 128
// MIN_RUN_ITEMS     = 65536  # below that a run is not worth a thread
// TABLES_PER_RUN    = 4
// MERGE_THREADS     = 64
// ///
//
// The sequential histogram in parallel: a thread goes through a run of consecutive elements, 16
// bytes a load, and counts in global memory that no other thread touches; merge_tables adds the
// tables up. No atomics, no barrier, no shared memory, any number of classes.
// Neighbouring elements go to TABLES_PER_RUN tables in turn: equal neighbours would each have to
// wait for the addition before.
//
// On a CPU a thread is a core's loop and the tables stay in its caches. On a GPU it is slow for the
// same reasons: at most MAX_RUNS threads, each lane of a warp at another place of the data and of
// the tables, every addition a round trip to memory.
#include "common/histogram_classes.cuh"

static_assert(ITEMS_PER_VECTOR % TABLES_PER_RUN == 0, "item k goes to table k % TABLES_PER_RUN");

// Run r has the elements from r * run_items on (run_items: a multiple of 16) and the tables from
// r * TABLES_PER_RUN on; tables[table * NUM_BINS + bin].
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) count_runs(const T* data,
                                                                           unsigned n,
                                                                           unsigned run_items,
                                                                           unsigned* tables,
                                                                           FirstBad* first_bad) {
    const unsigned run = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    const unsigned start = run * run_items;
    if (start >= n) return;
    const unsigned end = n - start < run_items ? n : start + run_items;

    unsigned* mine = tables + (size_t)run * TABLES_PER_RUN * NUM_BINS;
    for (unsigned i = 0; i < TABLES_PER_RUN * NUM_BINS; ++i) mine[i] = 0;
    first_bad[run] = NO_BAD_ELEMENT;

    unsigned i = start, bin;
    for (; end - i >= ITEMS_PER_VECTOR; i += ITEMS_PER_VECTOR) {
        const uint4 loaded = *reinterpret_cast<const uint4*>(data + i);
        const unsigned words[4] = {loaded.x, loaded.y, loaded.z, loaded.w};
#pragma unroll
        for (unsigned k = 0; k < ITEMS_PER_VECTOR; ++k) {
            const T item = item_of(words[k / ITEMS_PER_WORD], k % ITEMS_PER_WORD);
            if (find_class(item, i + k, first_bad + run, bin))
                ++mine[k % TABLES_PER_RUN * NUM_BINS + bin];
        }
    }
    for (; i < end; ++i)
        if (find_class(data[i], i, first_bad + run, bin)) ++mine[bin];
}

// A thread a class: neighbours read neighbouring counters of each table.
extern "C" __global__ void __launch_bounds__(MERGE_THREADS) merge_tables(const unsigned* tables,
                                                                         unsigned* counts,
                                                                         unsigned num_tables) {
    const unsigned bin = blockIdx.x * MERGE_THREADS + threadIdx.x;
    if (bin >= NUM_BINS) return;
    unsigned sum = 0;
    for (unsigned table = 0; table < num_tables; ++table)
        sum += tables[(size_t)table * NUM_BINS + bin];
    counts[bin] = sum;
}
