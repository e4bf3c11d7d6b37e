// /// cudalab
// summary  = "Splits by the top bits, or as a sample tells; buckets sorted in shared memory"
// order    = 6
// adds     = "splits by the top bits, buckets sorted in shared memory"
// dispatch = "most_significant_first"
// default  = ["cuda"]
// applies  = { dtype = ["uint32", "int32", "float32"], layout = ["keys"] }
// requires = ["shared_96kb"]
//
// [defines]
// THREADS_PER_BLOCK      = 512
// BLOCKS_PER_SM          = 2      # leaves a thread 64 registers
// KEYS_PER_THREAD        = 32     # in registers: a tile of a long array
// SHORT_KEYS_PER_THREAD  = 8      # of an array that one split divides
// BUCKET_THREADS         = 512
// BUCKET_KEYS_PER_THREAD = 18     # what a block can sort
// BUCKETS_PER_SM         = 3
// MOST_BIN_BITS          = 13     # of a bucket
// COUNT_THREADS          = 1024
// COUNT_BLOCKS           = 132    # one for each multiprocessor
// DIGIT_COUNT_BLOCKS     = 396    # three
// SAMPLE_BLOCKS          = 32
// LEAST_SAMPLED          = 33554432  # keys
// COPY_BLOCKS            = 396    # three
// MOST_BLOCKS            = 264    # of the safe path
// RADIX_BITS             = 8
// TILES_AHEAD            = 100    # of the tile or bucket that is prefetched
// ///
//
// The rungs below move every key once for each digit, and keep equal digits in order for the
// digits that follow. Begin at the top instead and no order need be kept: a split by the top bits
// puts keys into buckets, in any order within one. When a bucket fits into a block's shared memory,
// the block does the rest there. Keys of 4 bytes are counted, split twice and sorted: 28 bytes of
// traffic a key, where four sweeps and a count take 36. Ranks come from atomics in shared memory,
// and a tile reserves its part of a bucket by one more: no votes, no look back.
//
// A first split of 2^14 buckets at once would write runs of one or two keys. The first is by the
// top 8 bits; the second reads the 256 groups in order, so that a tile meets few of them and splits
// each by the bits that follow. Up to 2^21 keys one split does, and nothing is counted before it:
// each bucket has a slot in which it fits.
//
// Many arrays have few top bits: floats between 0 and 1, integers below a million. Of a long array
// a sample tells so, and which ranges of keys have about as many in them; these are its buckets
// then, for 15 microseconds of every array. Where it tells that the keys differ in two of their
// bytes only, two sweeps are quicker than any split.
//
// In a bucket a counting sort by the first bits in which its keys differ leaves bins of about one
// key, in which a key counts those that are smaller. Where few different keys make large buckets
// and full bins, they are sorted already when all their keys are equal.
//
// Where a few values have a third of the keys or more, the sample finds these: they are counted,
// all other keys set aside and sorted by sweeps, and both merged.
//
// Other large buckets and full bins do not fit any of this. Of a sampled array the host reads what
// the sample and the count have found while the launch behind them runs, and launches the sweeps of
// `onesweep` where there are to be no buckets. What else does not fit is found out on the device,
// which leaves a word for the launch that comes last: it sorts by sweeps, from the input as it was,
// or returns at once.
//
// Limits: an array with full bins is sorted twice, and one of more than 2^28 keys by sweeps, or of
// 2^27 where a block has no 128 KB of shared memory to count in.
//
// Macros from outside: T (element type), PAIRS (1: a value follows each key), THREADS_PER_BLOCK,
// BLOCKS_PER_SM, KEYS_PER_THREAD, SHORT_KEYS_PER_THREAD, BUCKET_THREADS, BUCKET_KEYS_PER_THREAD,
// BUCKETS_PER_SM, COUNT_THREADS, RADIX_BITS, TILES_AHEAD.
#include "radixsort/parts/bucket_cells.cuh"
#include "radixsort/parts/bucket_slots.cuh"
#include "radixsort/parts/split_tile.cuh"
#include "radixsort/parts/sweep_digit.cuh"

constexpr unsigned FULL_BIN = 24;  // keys that compare with each other

extern "C" __global__ void __launch_bounds__(COUNT_THREADS) count_buckets(
    const T* keys, unsigned* words, const Cells* cells, unsigned* digit_counts, unsigned n,
    int top_bits, int sampled) {
    const Buckets buckets(words);
    const unsigned plan = plan_of(cells, sampled);
    if (plan != BY_TOP_BITS && plan != BY_CELLS) *buckets.fit = 0;
    if (plan == BY_SWEEPS) count_all_keys<COUNT_THREADS, COPIES, LOADS>(keys, digit_counts, n);
    with_plan(cells, sampled, top_bits, [&](const auto& bucket_of) {
        const bool says = count_keys_of_buckets(keys, buckets, n, bucket_of);
        if (says && sampled) *cells->told = *buckets.fit ? plan : BY_LATE_SWEEPS;
    });
}

// Counts the digits of the keys without a heavy value, before the host knows how many there are.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) count_digits_of_others(
    const T* others, const HeavyValues* heavy, unsigned* counts) {
    count_all_keys<THREADS_PER_BLOCK, COPIES, 2>(others, counts, heavy->num_others);
}

// Keys go to `out` in bit order, no longer of type T.
__device__ inline auto put_into(Bits* out) {
    return [=](const Bits* staged, unsigned i, unsigned place) { out[place] = staged[i]; };
}

// The first of two splits, into groups of buckets.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, BLOCKS_PER_SM) split_into_groups(
    const T* in, Bits* out, unsigned* words, const Cells* cells, unsigned n, int top_bits,
    int sampled) {
    __shared__ __align__(16) Bins memory;
    const Buckets buckets(words);
    if (!*buckets.fit) return;
    with_plan(cells, sampled, top_bits, [&](const auto& bucket_of) {
        const int low_bits = bucket_of.low_bits();
        Bits bits[KEYS_PER_THREAD];
        load_tile(in, n, bits);
        const auto group_of = [&](Bits key) { return bucket_of(key) >> low_bits; };
        const auto reserve = [&](unsigned group, unsigned count) {
            return atomicAdd(&buckets.group_next[group], count);  // shared by all blocks
        };
        split_tile(bits, n, group_of, GROUPS, reserve, put_into(out), memory);
    });
}

// The second: keys come in groups, and the bins of a tile are the buckets of the groups in it.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, BLOCKS_PER_SM) split_groups(
    const Bits* in, Bits* out, unsigned* words, const Cells* cells, unsigned n, int top_bits,
    int sampled) {
    constexpr unsigned TILE_ITEMS = KEYS_PER_THREAD * THREADS_PER_BLOCK;
    __shared__ __align__(16) Bins memory;
    const Buckets buckets(words);
    if (!*buckets.fit) return;
    with_plan(cells, sampled, top_bits, [&](const auto& bucket_of) {
        const int low_bits = bucket_of.low_bits();
        Bits bits[KEYS_PER_THREAD];
        load_tile(in, n, bits);
        const unsigned start = blockIdx.x * TILE_ITEMS, left = n - start;
        const unsigned first_group = bucket_of(in[start]) >> low_bits;
        const unsigned last_group = bucket_of(in[start + min(left, TILE_ITEMS) - 1]) >> low_bits;
        const unsigned first_bin = first_group << low_bits;
        const unsigned bins = (last_group + 1 - first_group) << low_bits;
        if (bins <= MOST_SPLIT_BINS) {
            const auto bin_of = [&](Bits key) { return bucket_of(key) - first_bin; };
            const auto reserve = [&](unsigned bin, unsigned count) {
                return atomicAdd(&buckets.next[first_bin + bin], count);  // shared by all blocks
            };
            split_tile(bits, n, bin_of, bins, reserve, put_into(out), memory);
            return;
        }
        // Many small groups: key by key.
        for (unsigned row = 0; row < KEYS_PER_THREAD; ++row)
            if (row * THREADS_PER_BLOCK + threadIdx.x < left)
                out[atomicAdd(&buckets.next[bucket_of(bits[row])], 1u)] = bits[row];
    });
}

// Sorts a bucket, in 2^bin_bits bins by the highest of the bits in which its keys differ. Bins are
// counted in 16 bits, two to a word. From bit `width` on the keys of the bucket have all bits in
// common, when they are counted from `lowest`. Calls give_up() where a full bin is not sorted.
// SMALL: a bucket may have few keys; code for rows that it does not have is not even fetched then.
template <bool SMALL, class GiveUp>
__device__ inline void sort_bucket(const Bits* in, T* out, unsigned items, unsigned lowest,
                                   int width, int bin_bits, const GiveUp& give_up) {
    extern __shared__ unsigned long long bucket_memory[];  // BUCKET_ITEMS keys, 2^bin_bits bins
    Bits* const staged = reinterpret_cast<Bits*>(bucket_memory);
    unsigned* const bins = staged + BUCKET_ITEMS;
    const unsigned bin_words = 1u << (bin_bits - 1);
    // (key - lowest) << (BITS - width), as one instruction; no further than bins have bits.
    const unsigned scale = 1u << (BITS - max(width, bin_bits)), offset = lowest * scale;
    const auto bin_of = [&](Bits key) { return (key * scale - offset) >> (BITS - bin_bits); };
    const auto count_in = [&](unsigned bin) {  // the count before
        const unsigned both = atomicAdd(&bins[bin / 2], bin % 2 ? 0x10000u : 1u);
        return bin % 2 ? both >> 16 : both & 0xffff;
    };
    const auto is_past = [&](unsigned row) { return SMALL && row * BUCKET_THREADS >= items; };
    Bits bits[BUCKET_KEYS_PER_THREAD];
#pragma unroll
    for (unsigned row = 0; row < BUCKET_KEYS_PER_THREAD; ++row) {
        if (is_past(row)) break;
        const unsigned i = row * BUCKET_THREADS + threadIdx.x;
        bits[row] = i < items ? in[i] : 0;
    }
    for (unsigned i = threadIdx.x; i < bin_words; i += BUCKET_THREADS) bins[i] = 0;
    // Nobody counts before all is zero. Equal keys would queue for one counter.
    if (__syncthreads_and(threadIdx.x >= items || bits[0] == in[0]) &&
        copy_if_alike(in, out, items))
        return;
#pragma unroll
    for (unsigned row = 0; row < BUCKET_KEYS_PER_THREAD; ++row) {
        if (is_past(row)) break;
        if (row * BUCKET_THREADS + threadIdx.x < items) count_in(bin_of(bits[row]));
    }
    __syncthreads();  // all have counted

    exclusive_scan_shared_halves<BUCKET_THREADS>(bins, bin_words);
#pragma unroll
    for (unsigned row = 0; row < BUCKET_KEYS_PER_THREAD; ++row) {
        if (is_past(row)) break;
        if (row * BUCKET_THREADS + threadIdx.x < items)
            staged[count_in(bin_of(bits[row]))] = bits[row];
    }
    __syncthreads();  // the keys are in their bins, and a bin's counter is its end

    if (width <= bin_bits) {  // a bin's keys are equal
        for (unsigned i = threadIdx.x; i < items; i += BUCKET_THREADS)
            out[i] = from_ordered_bits<T>(staged[i]);
        return;
    }
    const unsigned short* const ends = reinterpret_cast<const unsigned short*>(bins);
#pragma unroll 2
    for (unsigned i = threadIdx.x; i < items; i += BUCKET_THREADS) {
        const Bits key = staged[i];
        const unsigned bin = bin_of(key), end = ends[bin], first = bin > 0 ? ends[bin - 1] : 0;
        unsigned place = i;
        if (end - first > FULL_BIN) {  // in order if all are equal
            if (i > first && staged[i - 1] != key) give_up();
        } else if (end - first > 1) {
            place = first;
#pragma unroll 1  // a bin has two or three
            for (unsigned other = first; other < end; ++other)
                place += staged[other] < key || (staged[other] == key && other < i);
        }
        out[place] = from_ordered_bits<T>(key);
    }
}

// A block a bucket, or several where cells have made more of them. The blocks beyond those of
// buckets take care of the large ones.
extern "C" __global__ void __launch_bounds__(BUCKET_THREADS, RESIDENT_BUCKETS) sort_buckets(
    const Bits* in, T* out, unsigned* words, const Cells* cells, int top_bits, int bin_bits,
    int sampled) {
    const Buckets buckets(words);
    const unsigned blocks = 1u << top_bits;  // of buckets
    // Other blocks may write the word: all threads agree on what they have read.
    if (!__syncthreads_and(load(buckets.fit) != 0)) return;
    if (blockIdx.x >= blocks) {
        with_plan(cells, sampled, top_bits, [&](const auto& bucket_of) {
            copy_large_buckets(in, out, buckets, bucket_of, blockIdx.x - blocks,
                               gridDim.x - blocks);
        });
        return;
    }
    unsigned bucket = blockIdx.x;
    do {
        const bool by_cells = plan_of(cells, sampled) == BY_CELLS;
        const unsigned start = buckets.starts[bucket], items = buckets.starts[bucket + 1] - start;
        if (threadIdx.x == 0 && TILES_AHEAD > 0 && blockIdx.x + TILES_AHEAD < blocks) {
            const unsigned* ahead = buckets.starts + bucket + TILES_AHEAD;
            const unsigned from = ahead[0] / 4 * 4, to = ahead[1] / 4 * 4;  // of 16 bytes
            if (from < to && to - from <= BUCKET_ITEMS)
                prefetch_to_l2(in + from, (to - from) * sizeof(Bits));
        }
        if (items > 0 && items <= BUCKET_ITEMS) {
            unsigned lowest = 0;
            int width = BITS - top_bits;
            if (by_cells) {
                const CellBuckets bucket_of(*cells);
                const bool others = bucket_of.takes_others(bucket);
                lowest = others ? 0 : bucket_of.lowest;
                width = others ? BITS : bucket_of.width_bits(in[start]);
            }
            sort_bucket<false>(in + start, out + start, items, lowest, width, bin_bits,
                               [&] { *(volatile unsigned*)buckets.fit = 0; });
            __syncthreads();  // all have written, before the next bucket comes to shared memory
        }
        bucket += blocks;
        // Read anew: there is no register to spare.
    } while (plan_of(cells, sampled) == BY_CELLS && bucket < 1u << load(&cells->bucket_bits));
}

// A short array: one split, by all of the top bits, into slots.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, BLOCKS_PER_SM) split_into_slots(
    const T* in, Bits* slots, unsigned* words, unsigned n, int top_bits) {
    __shared__ __align__(16) Bins memory;
    const Slots state(words);
    const TopBits bucket_of{top_bits};
    Bits bits[SHORT_KEYS_PER_THREAD];
    load_tile(in, n, bits);
    const auto reserve = [&](unsigned bucket, unsigned count) {  // of all blocks
        return bucket * BUCKET_ITEMS + atomicAdd(&state.items[bucket], count);
    };
    const auto put = [&](const Bits* staged, unsigned i, unsigned place) {
        const unsigned bucket = bucket_of(staged[i]), item = place - bucket * BUCKET_ITEMS;
        if (item < BUCKET_ITEMS)
            slots[place] = staged[i];
        else if (i > 0 && item > BUCKET_ITEMS && bucket_of(staged[i - 1]) == bucket)
            state.require(staged[i] == staged[i - 1]);
        else  // the first of the tile's that have no room: it speaks for them
            state.require(state.is_alike(bucket, staged[i]));
    };
    split_tile(bits, n, bucket_of, bucket_of.buckets(), reserve, put, memory);
}

// A block a bucket, which finds out how many keys are before its own.
extern "C" __global__ void __launch_bounds__(BUCKET_THREADS, BLOCKS_PER_SM) sort_slots(
    const Bits* slots, T* out, unsigned* words, int top_bits, int bin_bits) {
    __shared__ unsigned before;
    const Slots state(words);
    unsigned mine = 0;
    bool is_large = false;  // any bucket
    for (unsigned bucket = threadIdx.x; bucket < gridDim.x; bucket += BUCKET_THREADS) {
        const unsigned items = state.items[bucket];
        if (bucket < blockIdx.x) mine += items;
        is_large |= items > BUCKET_ITEMS;
    }
    if (threadIdx.x == 0) before = 0;
    // Other blocks may write the word: all threads agree on what they have read.
    if (__syncthreads_or(load(state.failed) != 0)) return;
    if (mine > 0) atomicAdd(&before, mine);
    is_large = __syncthreads_or(is_large);  // also: the sum is there
    const unsigned items = state.items[blockIdx.x];
    if (items > 0 && items <= BUCKET_ITEMS)
        sort_bucket<true>(slots + blockIdx.x * BUCKET_ITEMS, out + before, items, 0,
                          BITS - top_bits, bin_bits, [&] { state.require(false); });
    if (is_large) fill_large_buckets(slots, out, state);
}

// The safe path of a short array; it also leaves the words to the next sort.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, BLOCKS_PER_SM) sweep_all_short(
    unsigned* words, const T* in, T* spare, T* out, Progress* progress, Word* statuses,
    unsigned n) {
    const Slots state(words);
    const bool failed = load(state.failed) != 0;
    if (blockIdx.x == 0) state.clear();
    if (!failed) return;
    if (sweep_all_passes<SHORT_KEYS_PER_THREAD>(in, spare, out, progress, statuses, n))
        *state.failed = 0;
}
