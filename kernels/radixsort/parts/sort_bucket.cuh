// A block sorts a bucket in its shared memory.
//
// A counting sort by the highest bits in which the keys of the bucket may differ leaves bins of
// about one key each. Within a bin each key counts the smaller keys: their number is its place. In
// a bin that is full because a few values are frequent, that would take too long: its keys have to
// be equal. Keys that have one of few values need not be moved: their numbers say all.
#pragma once
#include "radixsort/parts/resident_blocks.cuh"
#include "radixsort/parts/scan_shared.cuh"
#include "radixsort/parts/top_bits.cuh"

constexpr int MAX_RUN_BITS = 8;    // keys that differ in so few bits need not be moved
constexpr unsigned FULL_BIN = 24;  // more keys than this are not compared with each other
// Behind a bucket's keys: the greatest word, a counter for each lane without a key, two words more,
// and where the first bin begins. Behind these: bins, and some words for scans.
constexpr unsigned WORDS_BEFORE = 36;
constexpr unsigned BINS_AT = BUCKET_ITEMS + WORDS_BEFORE;
constexpr unsigned BUCKET_BYTES = BINS_AT * sizeof(Bits) + (sizeof(short) << MAX_BIN_BITS) + 256;
static_assert(BUCKET_ITEMS % 4 == 0, "bins are aligned to 16 bytes");

// Writes the keys that have been counted: 2^width bins, which begin where `starts` says, have one
// value each, the first one `lowest`; a warp writes a run of it. Not inline: the caller has no
// register to spare.
__device__ __noinline__ void write_runs(T* out, const unsigned short* starts, unsigned items,
                                        Bits lowest, int width) {
    for (unsigned bin = threadIdx.x / 32; bin < 1u << width; bin += BUCKET_THREADS / 32) {
        const unsigned end = bin + 1 < 1u << width ? starts[bin + 1] : items;
        for (unsigned i = starts[bin] + threadIdx.x % 32; i < end; i += 32)
            out[i] = from_ordered_bits<T>(lowest + bin);
    }
}

// Sorts `items` keys whose differences from `lowest` have the same bits from bit `width` on. Bins
// are counted in 16 bits, two to a word. Calls give_up() if a full bin has different keys. SMALL: a
// bucket may have few keys, so rows without any are skipped. The whole block calls it.
template <bool SMALL, class Key, class GiveUp>
__device__ inline void sort_bucket(const Key* in, T* out, unsigned items, unsigned lowest,
                                   int width, int bin_bits, const GiveUp& give_up) {
    extern __shared__ unsigned long long bucket_memory[];  // BUCKET_ITEMS keys, 2^bin_bits bins
    __shared__ unsigned hidden_scale;
    Bits* const staged = reinterpret_cast<Bits*>(bucket_memory);
    unsigned* const bins = staged + BINS_AT;
    const unsigned short* const starts = reinterpret_cast<const unsigned short*>(bins);
    const unsigned bin_words = 1u << (bin_bits - 1);
    // The highest of the bits in which keys may differ: a multiplication that also subtracts, and a
    // shift. The highest bin_bits of them are a bin.
    const unsigned scale = 1u << (BITS - max(width, bin_bits));
    const auto highest = [&](int num_bits, Bits key, unsigned scale) {
        return (key * scale - lowest * scale) >> (BITS - num_bits);
    };
    // Returns the count before. Without a branch: a lane that has no key counts for itself.
    const unsigned own_counter = BUCKET_ITEMS + 1 + threadIdx.x % 32;
    const auto count = [&](Bits key, bool inside, unsigned scale) {
        const unsigned twice_bin = highest(bin_bits + 1, key, scale);
        const bool is_high = twice_bin & 2;
        const unsigned both = atomicAdd(&staged[inside ? BINS_AT + twice_bin / 4 : own_counter],
                                        is_high ? 0x10000u : 1u);  // a bin is shared by the block
        return is_high ? both >> 16 : both & 0xffff;
    };
    const auto is_past = [&](unsigned row) { return SMALL && row * BUCKET_THREADS >= items; };
    const auto is_inside = [&](unsigned row) { return row * BUCKET_THREADS + threadIdx.x < items; };
    const Key* own = in + threadIdx.x;
    pin(own);
    Bits bits[BUCKET_KEYS_PER_THREAD];
#pragma unroll
    for (unsigned row = 0; row < BUCKET_KEYS_PER_THREAD && !is_past(row); ++row) {
        bits[row] = is_inside(row) ? ordered_bits(own[row * BUCKET_THREADS]) : ~0u;
    }
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < bin_words / 4; i += BUCKET_THREADS)
        reinterpret_cast<uint4*>(bins)[i] = make_uint4(0, 0, 0, 0);
    if (threadIdx.x < 32) staged[own_counter] = 0;
    if (threadIdx.x == 0) {
        bins[-1] = 0;         // where the first bin begins
        staged[items] = ~0u;  // greater than all keys before
        hidden_scale = scale;
    }
    // No thread counts before all counters are zero. Equal keys would queue for one counter.
    if (__syncthreads_and(threadIdx.x >= items || bits[0] == ordered_bits(in[0])) &&
        copy_if_equal(in, out, items))
        return;
#pragma unroll
    for (unsigned row = 0; row < BUCKET_KEYS_PER_THREAD && !is_past(row); ++row) {
        count(bits[row], is_inside(row), scale);
    }
    __syncthreads();  // all have counted

    exclusive_scan_shared_halves<BUCKET_THREADS>(bins, bin_words);
    if (width <= min(MAX_RUN_BITS, bin_bits)) {
        const Bits key = ordered_bits(in[0]);
        const unsigned bin = highest(bin_bits, key, scale), first = bin >> width << width;
        write_runs(out, starts + first, items, key - bin + first, width);
        return;
    }
    // If the compiler knew that the scale is the same, it would keep all bins from the first count.
    const unsigned same_scale = hidden_scale;
#pragma unroll
    for (unsigned row = 0; row < BUCKET_KEYS_PER_THREAD && !is_past(row); ++row) {
        const unsigned place = count(bits[row], is_inside(row), same_scale);
        staged[is_inside(row) ? place : row * BUCKET_THREADS + threadIdx.x] = bits[row];
    }
    __syncthreads();  // the keys are in their bins, and a bin's start has become its end

    pin(out);
    if (width <= bin_bits) {  // a bin has room for one value only
        for (unsigned i = threadIdx.x; i < items; i += BUCKET_THREADS)
            out[i] = from_ordered_bits<T>(staged[i]);
        return;
    }
    // Of equal keys the one that is first in the bin comes first. A key behind the bin's end is
    // greater, so keys are compared two at a time.
#pragma unroll 2
    for (unsigned i = threadIdx.x; i < items; i += BUCKET_THREADS) {
        const Bits key = staged[i];
        const int bin = (int)highest(bin_bits, key, scale);
        const unsigned end = starts[bin], first = starts[bin - 1];
        unsigned place = i;
        if (end - first > FULL_BIN) {  // in order, if all are equal
            if (i > first && staged[i - 1] != key) give_up();
        } else {
            unsigned long long borrows = 0;  // each key before it subtracts one from the high half
            const auto compare = [&](unsigned other) {
                borrows = ((borrows & ~0ull << 32) | staged[other]) - key - (other < i);
            };
            unsigned other = first;
#pragma unroll 1  // a bin has two or three keys, rarely more
            do {
                compare(other);
                compare(other + 1);
                other += 2;
            } while (other < end);
            place = first - (unsigned)(borrows >> 32);
        }
        out[place] = from_ordered_bits<T>(key);
    }
}
