// /// cudalab
// summary  = "Buckets cut by a sample, of similar sizes even if keys share their top bits"
// order    = 8
// adds     = "a sample of the keys cuts the buckets"
// dispatch = "most_significant_first_sampled"
// applies  = { dtype = ["uint32", "int32", "float32"], layout = ["keys"] }
// requires = ["shared_96kb"]
//
// [defines]
// THREADS_PER_BLOCK      = 512
// BLOCKS_PER_SM          = 2      # leaves a thread 64 registers
// KEYS_PER_THREAD        = 32     # in registers: a tile
// BUCKET_THREADS         = 512
// BUCKET_KEYS_PER_THREAD = 18     # the maximum that a block can sort
// BUCKETS_PER_SM         = 3
// MAX_BIN_BITS           = 13     # of a bucket
// COUNT_THREADS          = 1024
// COUNT_BLOCKS           = "MULTIPROCESSORS"
// SAMPLE_BLOCKS          = 32
// MIN_SAMPLED            = 33554432  # keys: fewer are not worth a sample
// COPY_BLOCKS            = "3 * MULTIPROCESSORS"
// MAX_BLOCKS             = "2 * MULTIPROCESSORS"  # of the safe path
// RADIX_BITS             = 8
// TILES_AHEAD            = 100    # of the tile or bucket that is prefetched
// ///
//
// `most_significant_first` is fast only if the top bits of the keys are random. In many arrays they
// are not: nearly all floats between 0 and 1 have one of four exponents, and the top bits of
// integers below a million are zero. One more launch finds this out beforehand. It reads 131,072
// keys from all over the array, which takes 15 microseconds, and cuts the range of the keys into
// buckets with about the same number of keys each: narrow buckets where keys crowd together, wide
// ones elsewhere (parts/bucket_cells.cuh). Little else changes: a table instead of a shift says
// which bucket a key belongs to, and a block sorts its bucket by the bits in which the keys of that
// bucket differ.
//
// A sample may mislead, but never into a wrong answer. A bucket is a range of keys whatever the
// sample was like, and the count that follows finds out whether each bucket fits into a block. If
// one does not, the last launch sorts by sweeps. It also does so if the sample shows that no cells
// are narrow enough for even buckets, or that keys differ in at most two of their bytes: two sweeps
// are faster than any split.
//
// Limits: a value that many keys share makes a bucket too large for a block, together with the keys
// around it. A short array is split into far more buckets than it needs. Uniform keys need no
// sample, and for them this rung is slower than the one before: 128e6 keys take 1.52 ms on an H200,
// and 1.48 ms with `most_significant_first`.
//
// Macros from outside: T (element type), PAIRS (1: a value follows each key), THREADS_PER_BLOCK,
// BLOCKS_PER_SM, KEYS_PER_THREAD, BUCKET_THREADS, BUCKET_KEYS_PER_THREAD, BUCKETS_PER_SM,
// MAX_BIN_BITS, COUNT_THREADS, RADIX_BITS, TILES_AHEAD.
#include "radixsort/parts/split_by_cells.cuh"

extern "C" __global__ void __launch_bounds__(COUNT_THREADS, 1) sample_keys(const T* keys,
                                                                           Cells* cells, unsigned n,
                                                                           int top_bits,
                                                                           int bucket_bits) {
    decide_by_sample(keys, cells, n, top_bits, bucket_bits,
                     [](const auto& sample, int repeats, bool quick) { return BY_TOP_BITS; });
}

extern "C" __global__ void __launch_bounds__(COUNT_THREADS) count_buckets(
    const T* keys, Buckets* buckets, const Cells* cells, unsigned n, int top_bits, int sampled) {
    const unsigned plan = plan_of(cells, sampled);
    if (plan != BY_TOP_BITS && plan != BY_CELLS) buckets->fit = 0;
    with_plan(cells, sampled, top_bits,
              [&](const auto& bucket_of) { count_keys_of_buckets(keys, buckets, n, bucket_of); });
}
