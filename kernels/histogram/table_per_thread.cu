// /// cudalab
// summary  = "Each thread counts a run of consecutive elements in a table of its own"
// order    = 10
// ladder   = "a core's loop"
// adds     = "a table and a run of elements for each thread"
// dispatch = "runs"
// default  = ["cpu"]
//
// [defines]
// THREADS_PER_BLOCK = 1      # threads do not cooperate
// MAX_RUNS          = 128
// MIN_RUN_ITEMS     = 65536  # below that a run is not worth a thread
// MERGE_THREADS     = 64
// ///
//
// The sequential histogram in parallel: a thread goes through a run of consecutive elements, 16
// bytes per load, and counts in global memory that no other thread touches; merge_tables adds up
// the tables. No atomics, no barrier, no shared memory, any number of classes.
//
// On a CPU a thread is a loop on one core, and its table stays in the core's caches. On a GPU the
// same design is slow: there are at most MAX_RUNS threads, one per warp, and every addition is a
// round trip to memory.
//
// Macros from outside: T (element type), NUM_BINS (classes), THREADS_PER_BLOCK, MERGE_THREADS.
#include "histogram/parts/histogram_classes.cuh"

// Run r has the elements from r * run_items on (run_items: a multiple of 16, so that loads are
// aligned) and its counts in tables[r * NUM_BINS + bin].
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) count_runs(
    const T* data, unsigned n, unsigned run_items, unsigned* tables, FirstBad* first_bad) {
    const unsigned run = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    const unsigned start = run * run_items;
    if (start >= n) return;
    const unsigned end = n - start < run_items ? n : start + run_items;

    unsigned* table = tables + (size_t)run * NUM_BINS;
    for (unsigned i = 0; i < NUM_BINS; ++i) table[i] = 0;
    first_bad[run] = NO_BAD_ELEMENT;

    unsigned i = start, bin;
    for (; end - i >= ITEMS_PER_VECTOR; i += ITEMS_PER_VECTOR) {
        const uint4 loaded = *reinterpret_cast<const uint4*>(data + i);
        const unsigned words[4] = {loaded.x, loaded.y, loaded.z, loaded.w};
#pragma unroll
        for (unsigned k = 0; k < ITEMS_PER_VECTOR; ++k) {
            const T item = item_of(words[k / ITEMS_PER_WORD], k % ITEMS_PER_WORD);
            if (find_class(item, i + k, first_bad + run, bin)) ++table[bin];
        }
    }
    for (; i < end; ++i)
        if (find_class(data[i], i, first_bad + run, bin)) ++table[bin];
}

// One thread per class: neighbours read neighbouring counters of each table.
extern "C" __global__ void __launch_bounds__(MERGE_THREADS) merge_tables(const unsigned* tables,
                                                                         unsigned* counts,
                                                                         unsigned num_runs) {
    const unsigned bin = blockIdx.x * MERGE_THREADS + threadIdx.x;
    if (bin >= NUM_BINS) return;
    unsigned sum = 0;
    for (unsigned run = 0; run < num_runs; ++run) sum += tables[(size_t)run * NUM_BINS + bin];
    counts[bin] = sum;
}
