// One byte counter for each thread and class: no two threads share a counter, so nothing is atomic.
// The variant decides where the counters lie: Layout::index(bin, t) is the byte of thread t's
// counter for class `bin`.
#pragma once
#include "histogram/parts/histogram_classes.cuh"
#include "histogram/parts/merge_partials.cuh"

constexpr unsigned COUNTER_WORDS = NUM_BINS * THREADS_PER_BLOCK / 4;

// A byte counter holds 255 at most. 63 words are 252 bytes of data: they fit even if all of them
// fall into one class. (255 is a limit in bytes; taken as words it would overflow fourfold.)
static_assert(4 * WORDS_PER_THREAD <= 255, "a byte counter would overflow");
static_assert(sizeof(T) == 1 && NUM_BINS == 64, "64 classes of bytes: class = byte >> 2");
static_assert(THREADS_PER_BLOCK >= NUM_BINS, "a thread sums a class");

// Count the block's WORDS_PER_THREAD * THREADS_PER_BLOCK words of data. The whole block calls it;
// barriers before the first count and after the last are included.
template <class Layout>
__device__ inline void count_words(unsigned* counters, const T* data, unsigned n) {
    unsigned char* bytes = reinterpret_cast<unsigned char*>(counters);
    const unsigned* words = reinterpret_cast<const unsigned*>(data);
    const unsigned t = threadIdx.x;

    for (unsigned i = t; i < COUNTER_WORDS; i += THREADS_PER_BLOCK) counters[i] = 0;
    __syncthreads();  // a thread's counters were cleared by others

    // Neighbouring threads take neighbouring words. Only the array's last word may be incomplete.
    const unsigned first_word = blockIdx.x * THREADS_PER_BLOCK * WORDS_PER_THREAD + t;
    for (unsigned k = 0; k < WORDS_PER_THREAD; ++k) {
        const unsigned w = first_word + k * THREADS_PER_BLOCK;
        if (w < n / 4) {
            const unsigned word = words[w];
            for (unsigned j = 0; j < 4; ++j) ++bytes[Layout::index(item_of(word, j) >> 2, t)];
        } else if (w == n / 4) {
            for (unsigned i = 4 * w; i < n; ++i) ++bytes[Layout::index(data[i] >> 2, t)];
        }
    }
    __syncthreads();  // a class is summed over all threads
}

// The four bytes of a word, added up.
__device__ inline unsigned sum_of_bytes(unsigned word) {
    const unsigned pairs = (word & 0x00ff00ff) + (word >> 8 & 0x00ff00ff);
    return (pairs + (pairs >> 16)) & 0xffff;
}
