// /// cudalab
// summary  = "64 classes: a byte counter per thread and class, a thread's counters side by side"
// order    = 3
// ladder   = "64 classes"
// adds     = "byte counters per thread: no atomics"
// dispatch = "partials"
// applies  = { dtype = ["uint8"], classes = ["64"] }
// defines  = { THREADS_PER_BLOCK = 64, WORDS_PER_THREAD = 63, MERGE_THREADS = 256 }
// ///
//
// No atomics: every thread counts in 64 byte counters of its own, over at most 63 words of data,
// so that none overflows. The block then sums each class over its threads, and merge_partials
// each class over the blocks.
//
// A thread's 64 counters lie together: 64 * t + class, that is word 16 * t + class / 4, in bank
// 16 * (t % 2) + class / 4. The data decide the bank: if all are equal, the 32 threads of a warp
// meet in two banks and are served one after another, 16 deep.
// Limits: these conflicts; and a block has only 64 threads for 4 KB of counters, each of which
// waits for its own last write.
//
// Macros from outside: T (element type), NUM_BINS (classes), THREADS_PER_BLOCK, WORDS_PER_THREAD,
// MERGE_THREADS.
#include "histogram/parts/byte_counters.cuh"

struct Layout {
    static __device__ unsigned index(unsigned bin, unsigned t) { return 64 * t + bin; }
};

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) count_partials(const T* data,
                                                                               unsigned n,
                                                                               unsigned* partials) {
    __shared__ unsigned counters[COUNTER_WORDS];
    count_words<Layout>(counters, data, n);

    const unsigned bin = threadIdx.x;
    if (bin >= NUM_BINS) return;
    // A warp sums 32 neighbouring classes: for each thread t it reads eight neighbouring words.
    const unsigned char* bytes = reinterpret_cast<const unsigned char*>(counters);
    unsigned sum = 0;
    for (unsigned t = 0; t < THREADS_PER_BLOCK; ++t) sum += bytes[Layout::index(bin, t)];
    partials[bin * gridDim.x + blockIdx.x] = sum;
}

// Source: Podlozhnyuk, Histogram Calculation in CUDA. NVIDIA, 2007.
