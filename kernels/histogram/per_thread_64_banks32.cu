// /// cudalab
// summary  = "64 classes: byte counters placed so that 32 banks never conflict"
// order    = 5
// ladder   = "64 classes"
// adds     = "the permutation for 32 banks"
// dispatch = "partials"
// applies  = { dtype = ["uint8"], classes = ["64"] }
// defines  = { THREADS_PER_BLOCK = 128, WORDS_PER_THREAD = 63, MERGE_THREADS = 256 }
// ///
//
// The same idea for a warp of 32 threads and 32 banks: 128 threads, counters at
// 128 * class + slot(t), slot(t) = t >> 5 | (t & 31) << 2. Four threads 32 apart share a word, and
// the word of thread t is 32 * class + (t & 31): it lies in bank t & 31, so the threads of a warp
// each have their own bank for any data.
// Limits: 8 KB of counters for 128 threads bound the number of warps that hide a counter's
// read-add-write; 256 classes would need four times as much.
//
// Macros from outside: T (element type), NUM_BINS (classes), THREADS_PER_BLOCK, WORDS_PER_THREAD,
// MERGE_THREADS.
#include "histogram/parts/byte_counters.cuh"

static_assert(THREADS_PER_BLOCK == 128, "each of 128 threads has a slot of its own");

struct Layout {
    static __device__ unsigned index(unsigned bin, unsigned t) {
        const unsigned slot = t >> 5 | (t & 31) << 2;
        return 128 * bin + slot;
    }
};

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) count_partials(const T* data,
                                                                               unsigned n,
                                                                               unsigned* partials) {
    __shared__ unsigned counters[COUNTER_WORDS];
    count_words<Layout>(counters, data, n);

    const unsigned bin = threadIdx.x;
    if (bin >= NUM_BINS) return;
    // All classes begin in bank 0: each begins reading one word further than the one before it.
    unsigned sum = 0;
    for (unsigned k = 0; k < 32; ++k) sum += sum_of_bytes(counters[32 * bin + ((k + bin) & 31)]);
    partials[bin * gridDim.x + blockIdx.x] = sum;
}

// Source: Podlozhnyuk, Histogram Calculation in CUDA. NVIDIA, 2007.
