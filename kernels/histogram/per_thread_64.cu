// /// cudalab
// summary  = "64 classes: byte counters placed so that 16 banks never conflict"
// order    = 4
// ladder   = "64 classes"
// adds     = "the bits of the thread number permuted: 16 banks, no conflict"
// dispatch = "partials"
// applies  = { dtype = ["uint8"], classes = ["64"] }
// defines  = { THREADS_PER_BLOCK = 64, WORDS_PER_THREAD = 63, MERGE_THREADS = 256 }
// ///
//
// The counters of a class lie together, 64 * class + slot(t), and the bits of the thread number
// are permuted: slot(t) = t >> 4 | (t & 15) << 2. Four threads 16 apart share a word, so the word
// of thread t is 16 * class + (t & 15), and of 16 banks it lies in bank t & 15: the 16 threads of a
// half-warp each have their own bank for any data. In the order of t four neighbours would share a
// word and meet in its bank.
// Limits: that was the rule of 16 banks and half-warps. With 32 banks the bank is
// 16 * (class & 1) + (t & 15), and threads t and t + 16 of a warp meet in it whenever their classes
// differ by an even number: up to 2-way.
//
// Macros from outside: T (element type), NUM_BINS (classes), THREADS_PER_BLOCK, WORDS_PER_THREAD,
// MERGE_THREADS.
#include "histogram/parts/byte_counters.cuh"

static_assert(THREADS_PER_BLOCK == 64, "each of 64 threads has a slot of its own");

struct Layout {
    static __device__ unsigned index(unsigned bin, unsigned t) {
        const unsigned slot = t >> 4 | (t & 15) << 2;
        return 64 * bin + slot;
    }
};

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) count_partials(const T* data,
                                                                               unsigned n,
                                                                               unsigned* partials) {
    __shared__ unsigned counters[COUNTER_WORDS];
    count_words<Layout>(counters, data, n);

    const unsigned bin = threadIdx.x;
    if (bin >= NUM_BINS) return;
    // A class has 16 words, so all classes begin in one of two banks. Each pair of classes begins
    // one word further: the bank is 16 * (bin & 1) + (k + bin / 2 & 15), another for each lane.
    unsigned sum = 0;
    for (unsigned k = 0; k < 16; ++k)
        sum += sum_of_bytes(counters[16 * bin + ((k + bin / 2) & 15)]);
    partials[bin * gridDim.x + blockIdx.x] = sum;
}

// Source: Podlozhnyuk, Histogram Calculation in CUDA. NVIDIA, 2007.
