// The scatter of a pass over digits of RADIX_BITS bits: a block brings a chunk of keys into digit
// order in shared memory, by the votes of its warps, and writes the runs of equal digits.
#pragma once
#include "common/block/block_scan.cuh"
#include "common/thread/radix_keys.cuh"

constexpr unsigned RADIX = 1u << RADIX_BITS;
constexpr unsigned WARPS = THREADS_PER_BLOCK / 32;
// A chunk is so many rows of 32 keys for each warp: the same number of bytes for any type of key.
#if PAIRS
constexpr unsigned CHUNK_ROWS = PAIRS_PER_THREAD;
#else
constexpr unsigned CHUNK_ROWS = KEYS_PER_THREAD * 4 / sizeof(T);
#endif
constexpr unsigned CHUNK_ITEMS = CHUNK_ROWS * THREADS_PER_BLOCK;

static_assert(THREADS_PER_BLOCK % 32 == 0 && THREADS_PER_BLOCK >= RADIX, "a thread for each digit");

using Bits = OrderedBits<T>;

// The lanes of this warp whose keys have the same digit of WIDTH bits, this lane among them. Bits
// are tested in place, by masks that are the same for all lanes. __match_any_sync would say the
// same in one call, but takes a step for each different digit in the warp.
template <int WIDTH>
__device__ inline unsigned same_digit_lanes(Bits bits, int shift) {
    unsigned lanes = FULL_WARP;
#pragma unroll
    for (int bit = 0; bit < WIDTH; ++bit) {
        const bool one = (bits & Bits(1) << (shift + bit)) != 0;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
        // The same in four instructions: the compiler selects between `ones` and its complement.
        asm volatile(
            "{\n"
            "  .reg .pred one;\n"
            "  .reg .b32 ones;\n"
            "  setp.ne.u32 one, %1, 0;\n"
            "  vote.sync.ballot.b32 ones, one, 0xffffffff;\n"
            "  @!one not.b32 ones, ones;\n"
            "  and.b32 %0, %0, ones;\n"
            "}"
            : "+r"(lanes)
            : "r"((unsigned)one));
#else
        const unsigned ones = __ballot_sync(FULL_WARP, one);
        lanes &= one ? ones : ~ones;
#endif
    }
    return lanes;
}

// Forces `value` into a register from here on. Left alone, the compiler packs late and keeps both
// halves.
__device__ inline void pin(unsigned& value) {
    asm volatile("" : "+r"(value));
}

// The same for an address: left alone, the compiler works it out again for each access.
template <class U>
__device__ inline void pin(U*& address) {
    asm volatile("" : "+l"(address));
}

// Ranks a warp's rows of 32 keys, row after row, among the keys with the same digit: the ranks of
// rows 2r and 2r + 1 are the halves of ranks[r]. counters[digit] becomes the number of the warp's
// keys with that digit.
template <int WIDTH, unsigned ROWS>
__device__ inline void rank_rows(const Bits (&bits)[ROWS], int shift, unsigned* counters,
                                 unsigned (&ranks)[(ROWS + 1) / 2]) {
    const unsigned lane = threadIdx.x % 32, lanes_below = (1u << lane) - 1;
    for (unsigned digit = lane; digit < 1u << WIDTH; digit += 32) counters[digit] = 0;
    __syncwarp();  // all counters are zero before any lane counts
    // The counter says how many came in earlier rows; of this row, the lanes below come before this
    // one. The lowest of the lanes advances the counter for all of them.
#pragma unroll
    for (unsigned row = 0; row < ROWS; ++row) {
        unsigned& counter = counters[digit_at(bits[row], shift, WIDTH)];
        const unsigned lanes = same_digit_lanes<WIDTH>(bits[row], shift);
        const unsigned first = counter, below = __popc(lanes & lanes_below);
        __syncwarp();  // all lanes have read before the lowest writes
        if (below == 0) counter = first + __popc(lanes);
        __syncwarp();  // it has written before the next row reads
        ranks[row / 2] = row % 2 ? ranks[row / 2] | (first + below) << 16 : first + below;
        pin(ranks[row / 2]);
    }
}

// Brings the `chunk_items` keys from `start` on, at most ROWS for each thread, to their places in
// `out`, by digits of WIDTH bits; equal digits keep their order. `places` says where: thread d
// calls places.publish(d, count) when the keys with digit d are counted, and later places.first(d,
// count), which returns the place in `out` of the first of them. hidden_shift is equal to `shift`,
// but in shared memory, so that the compiler does not know it.
template <unsigned ROWS, int WIDTH = RADIX_BITS, class Places>
__device__ inline void scatter_chunk(const T* in, T* out, unsigned n, unsigned start,
                                     unsigned chunk_items, int shift, const int& hidden_shift,
                                     Places& places) {
    constexpr unsigned CHUNK_ITEMS = ROWS * THREADS_PER_BLOCK, DIGITS = 1u << WIDTH;
    extern __shared__ unsigned long long chunk_memory[];  // CHUNK_ITEMS keys, and their values
    Bits* const staged = reinterpret_cast<Bits*>(chunk_memory);
    [[maybe_unused]] T* const staged_values = reinterpret_cast<T*>(staged + CHUNK_ITEMS);
    __shared__ unsigned counters[WARPS][DIGITS];  // counts of a warp, then its places in `staged`
    __shared__ unsigned output_shift[DIGITS];     // from a place in `staged` to the place in `out`
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;

    // A warp takes ROWS * 32 neighbouring keys; they lie in memory in the order of warp, row and
    // lane. Places past the end count as the greatest digit and stay behind all keys.
    const unsigned first_place = warp * ROWS * 32 + lane;
    const T* first_key = in + start + first_place;
    Bits bits[ROWS];
#pragma unroll
    for (unsigned row = 0; row < ROWS; ++row) {
        const bool inside = first_place + row * 32 < chunk_items;
        bits[row] = inside ? ordered_bits(first_key[row * 32]) : ~Bits(0);
    }

    [[maybe_unused]] T values[PAIRS ? ROWS : 1];  // they arrive while the keys are ranked
    if constexpr (PAIRS) {
#pragma unroll
        for (unsigned row = 0; row < ROWS; ++row)
            if (first_place + row * 32 < chunk_items) values[row] = first_key[n + row * 32];
    }

    unsigned ranks[(ROWS + 1) / 2];
    rank_rows<WIDTH>(bits, shift, counters[warp], ranks);
    __syncthreads();  // all warps have counted, and have written out the chunk before

    // Thread d scans digit d: over the digits before it, then over the warps. A counter becomes the
    // place in `staged` of the warp's first key with that digit.
    unsigned count = 0, total;
    if (threadIdx.x < DIGITS) {
#pragma unroll
        for (unsigned w = 0; w < WARPS; ++w) count += counters[w][threadIdx.x];
        places.publish(threadIdx.x, count);
    }
    const unsigned place = exclusive_scan_block<THREADS_PER_BLOCK>(count, total);
    if (threadIdx.x < DIGITS) {
        unsigned warp_place = place;
#pragma unroll
        for (unsigned w = 0; w < WARPS; ++w) {
            const unsigned warp_count = counters[w][threadIdx.x];
            counters[w][threadIdx.x] = warp_place;
            warp_place += warp_count;
        }
    }
    __syncthreads();  // the places are ready

    // The digits are extracted again, with a shift that the compiler cannot know. Otherwise it
    // would keep the digits from the ranking until here, in as many registers as the keys.
    const int same_shift = hidden_shift;
#pragma unroll
    for (unsigned row = 0; row < ROWS; ++row) {
        const unsigned rank = ranks[row / 2] >> row % 2 * 16 & 0xffff;
        const unsigned place = counters[warp][digit_at(bits[row], same_shift, WIDTH)] + rank;
        staged[place] = bits[row];
        if constexpr (PAIRS) staged_values[place] = values[row];
    }
    if (threadIdx.x < DIGITS)
        output_shift[threadIdx.x] = places.first(threadIdx.x, count) - place;  // modulo 2^32
    __syncthreads();  // the chunk is in digit order, and the places in `out` are known

    // Neighbours in `staged` are neighbours in `out`, except where the digit changes.
    const auto write = [&](unsigned place) {
        const Bits key = staged[place];
        const unsigned digit = digit_at(key, shift, WIDTH);
        const unsigned out_place = output_shift[digit] + place;
        out[out_place] = from_ordered_bits<T>(key);
        if constexpr (PAIRS) out[n + out_place] = staged_values[place];
    };
    if (chunk_items >= CHUNK_ITEMS) {
#pragma unroll
        for (unsigned row = 0; row < ROWS; ++row) write(row * THREADS_PER_BLOCK + threadIdx.x);
    } else {
#pragma unroll 1
        for (unsigned i = threadIdx.x; i < chunk_items; i += THREADS_PER_BLOCK) write(i);
    }
}
