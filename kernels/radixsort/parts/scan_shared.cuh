// Scans of counters in shared memory, in place, by a whole block. It takes one strip after the
// other, four words per thread: 16-byte accesses without bank conflicts.
#pragma once
#include "common/block/block_scan.cuh"

// values[i] = the sum of those before it. n is a multiple of 4; the array is aligned to 16 bytes.
template <unsigned THREADS>
__device__ inline void exclusive_scan_shared(unsigned* values, unsigned n) {
    uint4* const fours = reinterpret_cast<uint4*>(values);
    unsigned before_strip = 0;
    for (unsigned strip = 0; strip < n / 4; strip += THREADS) {
        const unsigned i = strip + threadIdx.x;
        const uint4 four = i < n / 4 ? fours[i] : make_uint4(0, 0, 0, 0);
        unsigned total;
        const unsigned first =
            before_strip + exclusive_scan_block<THREADS>(four.x + four.y + four.z + four.w, total);
        const unsigned second = first + four.x, third = second + four.y;
        if (i < n / 4) fours[i] = make_uint4(first, second, third, third + four.z);
        before_strip += total;
        __syncthreads();  // all threads can read the strip; the scan may use its own words again
    }
}

// The same for counters of 16 bits, two to a word, the even one in the low half. n is the number of
// words; sums stay below 2^16.
template <unsigned THREADS>
__device__ inline void exclusive_scan_shared_halves(unsigned* words, unsigned n) {
    uint4* const fours = reinterpret_cast<uint4*>(words);
    const auto both = [](unsigned word) { return (word & 0xffff) + (word >> 16); };
    // Both halves of the result: the sum before the word, and the same plus the word's low half.
    const auto place = [&](unsigned& word, unsigned& before) {
        const unsigned count = word;
        word = before * 0x10001u + (count << 16);
        before += both(count);
    };
    unsigned before_strip = 0;
    for (unsigned strip = 0; strip < n / 4; strip += THREADS) {
        const unsigned i = strip + threadIdx.x;
        uint4 four = i < n / 4 ? fours[i] : make_uint4(0, 0, 0, 0);
        unsigned total;
        unsigned before = before_strip + exclusive_scan_block<THREADS>(
                                             both(four.x + four.y + four.z + four.w), total);
        place(four.x, before);
        place(four.y, before);
        place(four.z, before);
        place(four.w, before);
        if (i < n / 4) fours[i] = four;
        before_strip += total;
        __syncthreads();  // all threads can read the strip; the scan may use its own words again
    }
}
