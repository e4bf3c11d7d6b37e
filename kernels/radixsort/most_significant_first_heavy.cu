// /// cudalab
// summary  = "Values that many keys share are counted, not moved; short arrays go to slots"
// order    = 9
// adds     = "values that many keys share are counted; short arrays go to slots"
// dispatch = "most_significant_first_heavy"
// default  = ["cuda"]
// applies  = { dtype = ["uint32", "int32", "float32"], layout = ["keys"] }
// requires = ["shared_96kb"]
//
// [defines]
// THREADS_PER_BLOCK      = 512
// BLOCKS_PER_SM          = 2      # leaves a thread 64 registers
// KEYS_PER_THREAD        = 32     # in registers: a tile of a long array
// SHORT_KEYS_PER_THREAD  = 8      # of a short one
// BUCKET_THREADS         = 512
// BUCKET_KEYS_PER_THREAD = 18     # the maximum that a block can sort
// BUCKETS_PER_SM         = 3
// MAX_BIN_BITS           = 13     # of a bucket
// COUNT_THREADS          = 1024
// COUNT_BLOCKS           = "MULTIPROCESSORS"
// DIGIT_COUNT_BLOCKS     = "3 * MULTIPROCESSORS"
// SAMPLE_BLOCKS          = 32
// MIN_SAMPLED            = 33554432  # keys: fewer are not worth a sample
// COPY_BLOCKS            = "3 * MULTIPROCESSORS"
// MAX_BLOCKS             = "2 * MULTIPROCESSORS"  # of the safe path
// RADIX_BITS             = 8
// TILES_AHEAD            = 100    # of the tile or bucket that is prefetched
// ///
//
// A bucket is a range of keys. So a value that a third of the keys share makes a bucket too large
// for any block, together with the keys around it, and `sampled_buckets` has one block sort them.
// But there can only be a few such heavy values, and the sample finds them. One read counts their
// keys and sets all others aside; sweeps sort only the others; then each heavy value is written
// between them as many times as it was counted. This is the idea of DovetailSort (X. Dong et al.,
// 2024).
//
// A key's hash is its slot in a table that has room for one value per slot, so that a lookup is one
// read. If two heavy values have the same slot, one of them is treated like the other keys.
//
// The device knows how many keys are set aside, and the host needs the number to launch their
// sweeps. The host also reads what the sample and the count have decided. If no buckets are to be
// made, it can then launch the sweeps of `onesweep`, which are faster than a single launch for long
// arrays. The device never waits for the host: behind every decision comes a launch that is needed
// in most cases and returns at once in the others.
//
// An array of up to 2^21 keys is sorted as in `bucket_slots`, a longer one that is too short for a
// sample as in `most_significant_first`.
//
// The default for keys, it is built of more than the rungs before it, since one variant has to be
// fast for arrays of any length and for any keys: the slots of `bucket_slots`, the launches of
// `onesweep`, and those of `most_significant_first` with its safe path, if a bucket does not fit.
// Its sample, too, finds out more than in `sampled_buckets`: the range of the keys, so that cells
// are narrower; neighbouring cells with few keys, which become one bucket; keys that crowd within a
// cell, and keys that differ in at most two bytes, for which sweeps are faster than any split
// (parts/bucket_cells.cuh).
//
// Limits: if the sample misses a crowd of keys, a block finds it when the keys are in their
// buckets, and everything is sorted again. More than 2^28 keys, or more than 2^27 if a block cannot
// have 128 KB of shared memory to count in, are sorted by sweeps.
//
// Macros from outside: T (element type), PAIRS (1: a value follows each key), THREADS_PER_BLOCK,
// BLOCKS_PER_SM, KEYS_PER_THREAD, SHORT_KEYS_PER_THREAD, BUCKET_THREADS, BUCKET_KEYS_PER_THREAD,
// BUCKETS_PER_SM, MAX_BIN_BITS, COUNT_THREADS, RADIX_BITS, TILES_AHEAD.
#include "radixsort/parts/bucket_slots.cuh"
#include "radixsort/parts/split_by_cells.cuh"
#include "radixsort/parts/sweep_digit.cuh"

// Further plans. BY_LATE_SWEEPS: buckets have been counted in vain, and digits still have to be.
enum HeavyPlan : unsigned { BY_HEAVY_VALUES = BY_SWEEPS + 1, BY_LATE_SWEEPS };

// The launches read the plan in `cells`, the host reads it in `message`.
struct Sample {
    Cells cells;
    unsigned* message;
};

// For the host.
__constant__ unsigned sample_bytes = sizeof(Sample);
__constant__ unsigned by_few_sweeps = BY_FEW_SWEEPS;
__constant__ unsigned by_sweeps = BY_SWEEPS;
__constant__ unsigned by_heavy_values = BY_HEAVY_VALUES;
__constant__ unsigned by_late_sweeps = BY_LATE_SWEEPS;

constexpr int SLOT_BITS = 10;
constexpr unsigned SLOTS = 1u << SLOT_BITS;
// A heavy value has at least so many of the 4,096 keys that one block samples.
constexpr unsigned MIN_EQUAL = 16;
// It pays to count heavy values if more than this part of the keys have one: MIN_HEAVY if the other
// choice is sweeps over all digits, MIN_HEAVY_OF_QUICK if it is two sweeps at most.
constexpr float MIN_HEAVY = 1.0f / 3, MIN_HEAVY_OF_QUICK = 7.0f / 8;

// The answer from `start` on: a heavy value up to `end`, then other keys. `skipped` keys with heavy
// values come before those, so each lies that many places further on than among the other keys
// alone.
struct __align__(16) Segment {
    unsigned start, end, value, skipped;
};

// All of it is zero before the first launch.
struct HeavyValues {
    Segment segments[SLOTS + 2];  // one without a value, one for each value, and the end
    unsigned keys[SLOTS];         // a slot's value; if it has none, a key of another slot
    unsigned counts[SLOTS];       // zero between sorts
    unsigned num_segments;        // without the end
    unsigned next_other;          // where the next key set aside goes; zero between launches
    unsigned blocks_done;         // zero between launches
    unsigned num_others;          // keys that were set aside
};

__constant__ unsigned heavy_bytes = sizeof(HeavyValues);  // for the host

__device__ inline unsigned slot_of(unsigned key) {
    return (key ^ key >> 15) * 2654435761u >> (32 - SLOT_BITS);
}

// Writes to heavy->keys the values that many of this block's sampled keys share; returns the part
// of these keys that have one of the values. The whole block calls it.
__device__ inline float find_heavy_values(const unsigned (&sample)[SAMPLES], HeavyValues* heavy) {
    __shared__ unsigned claims[SLOTS], keys[SLOTS], counts[SLOTS];
    __shared__ unsigned covered;
    const auto number = [&](unsigned s) { return s * COUNT_THREADS + threadIdx.x; };
    for (unsigned slot = threadIdx.x; slot < SLOTS; slot += COUNT_THREADS)
        claims[slot] = counts[slot] = 0;
    if (threadIdx.x == 0) covered = 0;
    __syncthreads();  // all is zero
    // A slot goes to the key with the most equal ones in its warp; a key without an equal gets
    // none.
#pragma unroll
    for (unsigned s = 0; s < SAMPLES; ++s) {
        const unsigned equal = __popc(__match_any_sync(FULL_WARP, sample[s]));
        if (equal > 1)
            atomicMax(&claims[slot_of(sample[s])], equal * (COUNT_THREADS * SAMPLES) + number(s));
    }
    __syncthreads();  // all have claimed
#pragma unroll
    for (unsigned s = 0; s < SAMPLES; ++s) {
        const unsigned slot = slot_of(sample[s]), claim = claims[slot];
        if (claim > 0 && claim % (COUNT_THREADS * SAMPLES) == number(s)) keys[slot] = sample[s];
    }
    __syncthreads();  // each claimed slot has its value
#pragma unroll
    for (unsigned s = 0; s < SAMPLES; ++s) {
        const unsigned slot = slot_of(sample[s]);
        if (claims[slot] > 0 && keys[slot] == sample[s]) atomicAdd(&counts[slot], 1u);
    }
    __syncthreads();  // all have counted
    for (unsigned slot = threadIdx.x; slot < SLOTS; slot += COUNT_THREADS) {
        const bool is_heavy = counts[slot] >= MIN_EQUAL;
        if (is_heavy) atomicAdd(&covered, counts[slot]);
        heavy->keys[slot] = is_heavy ? keys[slot] : slot == slot_of(0);
    }
    __syncthreads();  // the sum is ready
    return (float)covered / (COUNT_THREADS * SAMPLES);
}

extern "C" __global__ void __launch_bounds__(COUNT_THREADS, 1) sample_keys(
    const T* keys, Sample* sample, HeavyValues* heavy, unsigned* message, unsigned n, int top_bits,
    int bucket_bits) {
    const auto instead = [&](const auto& own, int repeats, bool quick) -> unsigned {
        // If heavy values of 0.4 % each make up a third of the keys, one in eight of those keys has
        // an equal in its warp.
        const float part = repeats > (int)COUNT_THREADS / 64 ? find_heavy_values(own, heavy) : 0;
        return part > (quick ? MIN_HEAVY_OF_QUICK : MIN_HEAVY) ? BY_HEAVY_VALUES : BY_TOP_BITS;
    };
    if (decide_by_sample(keys, &sample->cells, n, top_bits, bucket_bits, instead)) {
        sample->message = message;
        *message = sample->cells.plan;
    }
}

// Counts the keys of each bucket; or the digits, if the sample has decided on sweeps.
extern "C" __global__ void __launch_bounds__(COUNT_THREADS) count_buckets(
    const T* keys, Buckets* buckets, const Sample* sample, unsigned* digit_counts, unsigned n,
    int top_bits, int sampled) {
    const Cells* const cells = &sample->cells;
    const unsigned plan = plan_of(cells, sampled);
    if (plan > BY_CELLS) buckets->fit = 0;
    if (plan == BY_SWEEPS) count_all_keys<COUNT_THREADS, COPIES, LOADS>(keys, digit_counts, n);
    with_plan(cells, sampled, top_bits, [&](const auto& bucket_of) {
        const bool knows = count_keys_of_buckets(keys, buckets, n, bucket_of);
        if (knows && sampled) *sample->message = buckets->fit ? plan : BY_LATE_SWEEPS;
    });
}

// Counts the keys that have a heavy value, and copies all other keys to `others`, in any order.
// Tells the host and the next launch how many of them there are. A block for each tile, which fits
// into the dynamic shared memory.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, RESIDENT_SPLITS<KEYS_PER_THREAD>)
set_others_aside(const T* in, T* others, HeavyValues* heavy, unsigned* message, unsigned n) {
    constexpr unsigned TILE_ITEMS = KEYS_PER_THREAD * THREADS_PER_BLOCK;
    extern __shared__ unsigned long long aside_memory[];  // a tile
    T* const staged = reinterpret_cast<T*>(aside_memory);
    __shared__ unsigned keys[SLOTS], counts[SLOTS];
    __shared__ unsigned warp_others[WARPS];
    __shared__ unsigned first_other;  // of this tile, in `others`
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const unsigned left = n - blockIdx.x * TILE_ITEMS;
    Bits bits[KEYS_PER_THREAD];
    load_tile(in, n, bits);
    for (unsigned slot = threadIdx.x; slot < SLOTS; slot += THREADS_PER_BLOCK) {
        keys[slot] = heavy->keys[slot];
        counts[slot] = 0;
    }
    __syncthreads();  // the table is ready

    unsigned other_rows = 0, mine = 0;  // a bit for each row; the number in this warp
    const auto look_up = [&](unsigned row, bool exists) {
        const unsigned slot = slot_of(bits[row]);
        const bool is_other = exists && keys[slot] != bits[row];
        if (exists && !is_other) atomicAdd(&counts[slot], 1u);  // shared by the block's threads
        other_rows |= (unsigned)is_other << row;
        mine += __popc(__ballot_sync(FULL_WARP, is_other));
    };
    if (left >= TILE_ITEMS) {
#pragma unroll
        for (unsigned row = 0; row < KEYS_PER_THREAD; ++row) look_up(row, true);
    } else {
#pragma unroll
        for (unsigned row = 0; row < KEYS_PER_THREAD; ++row)
            look_up(row, row * THREADS_PER_BLOCK + threadIdx.x < left);
    }
    if (lane == 0) warp_others[warp] = mine;
    __syncthreads();  // all warps have counted
    unsigned place = 0, total = 0;
    for (unsigned w = 0; w < WARPS; ++w) {
        if (w == warp) place = total;
        total += warp_others[w];
    }
    if (threadIdx.x == 0)
        first_other = atomicAdd(&heavy->next_other, total);  // shared by all blocks
#pragma unroll
    for (unsigned row = 0; row < KEYS_PER_THREAD; ++row) {
        const bool is_other = other_rows >> row & 1;
        const unsigned all = __ballot_sync(FULL_WARP, is_other);
        if (is_other)
            staged[place + __popc(all & ((1u << lane) - 1))] = from_ordered_bits<T>(bits[row]);
        place += __popc(all);
    }
    __syncthreads();  // the others lie side by side
#pragma unroll 4
    for (unsigned i = threadIdx.x; i < total; i += THREADS_PER_BLOCK)
        others[first_other + i] = staged[i];
    for (unsigned slot = threadIdx.x; slot < SLOTS; slot += THREADS_PER_BLOCK)
        if (counts[slot] > 0) atomicAdd(&heavy->counts[slot], counts[slot]);  // blocks share it
    when_written([&] {
        if (atomicInc(&heavy->blocks_done, gridDim.x - 1) < gridDim.x - 1) return;  // wraps to 0
        // This is the last block: all have added their counts.
        *message = heavy->num_others = atomicExch(&heavy->next_other, 0u);
    });
}

// Counts the digits of the keys that were set aside, before the host knows how many there are.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) count_digits_of_others(
    const T* others, const HeavyValues* heavy, unsigned* counts) {
    count_all_keys<THREADS_PER_BLOCK, COPIES, 2>(others, counts, heavy->num_others);
}

// Finds the place of each heavy value among the others, which are sorted. One block does it.
extern "C" __global__ void __launch_bounds__(COUNT_THREADS) place_heavy_values(const T* others,
                                                                               HeavyValues* heavy,
                                                                               unsigned num_others,
                                                                               unsigned n) {
    __shared__ unsigned keys[SLOTS], counts[SLOTS];   // of the values that occur, in any order
    __shared__ __align__(16) unsigned before[SLOTS];  // counts in order, then their sums
    __shared__ unsigned num_values;
    if (threadIdx.x == 0) num_values = 0;
    for (unsigned i = threadIdx.x; i < SLOTS; i += COUNT_THREADS) before[i] = 0;
    __syncthreads();  // no thread adds before all is zero
    for (unsigned slot = threadIdx.x; slot < SLOTS; slot += COUNT_THREADS) {
        const unsigned count = heavy->counts[slot];
        if (count == 0) continue;
        const unsigned at = atomicAdd(&num_values, 1u);
        keys[at] = heavy->keys[slot];
        counts[at] = count;
        heavy->counts[slot] = 0;
    }
    __syncthreads();  // all values are listed
    Segment* const segments = heavy->segments;
    for (unsigned at = threadIdx.x; at < num_values; at += COUNT_THREADS) {
        unsigned rank = 0;
        for (unsigned i = 0; i < num_values; ++i) rank += keys[i] < keys[at];
        before[rank] = counts[at];
        segments[1 + rank].value = keys[at];
    }
    __syncthreads();  // they are in order
    exclusive_scan_shared<COUNT_THREADS>(before, SLOTS);
    for (unsigned rank = threadIdx.x; rank < num_values; rank += COUNT_THREADS) {
        Segment& segment = segments[1 + rank];
        unsigned first = 0, last = num_others;  // the place among the others
        while (first < last) {
            const unsigned middle = first + (last - first) / 2;
            if (ordered_bits(others[middle]) < segment.value)
                first = middle + 1;
            else
                last = middle;
        }
        segment.skipped = rank + 1 < num_values ? before[rank + 1] : n - num_others;
        segment.start = first + before[rank];
        segment.end = first + segment.skipped;
    }
    if (threadIdx.x == 0) {
        segments[0] = {0, 0, 0, 0};
        segments[1 + num_values].start = n;
        heavy->num_segments = 1 + num_values;
    }
}

// Writes the heavy values and the other keys to their places. A block for each tile.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) merge_heavy_values(
    const T* others, T* out, const HeavyValues* heavy, unsigned n) {
    constexpr unsigned TILE_ITEMS = KEYS_PER_THREAD * THREADS_PER_BLOCK;
    const unsigned start = blockIdx.x * TILE_ITEMS, end = min(n - start, TILE_ITEMS) + start;
    const Segment* const segments = heavy->segments;
    unsigned first = 0, last = heavy->num_segments;  // the segment in which the tile begins
    while (last - first > 1) {
        const unsigned middle = (first + last) / 2;
        (segments[middle].start <= start ? first : last) = middle;
    }
    Segment segment = segments[first];
    unsigned next = segments[first + 1].start;
    const bool is_whole = end - start == TILE_ITEMS && next >= end;
    if (is_whole && segment.end >= end) {
        const T value = from_ordered_bits<T>(segment.value);
#pragma unroll 8
        for (unsigned row = 0; row < KEYS_PER_THREAD; ++row)
            out[start + row * THREADS_PER_BLOCK + threadIdx.x] = value;
    } else if (is_whole && segment.end <= start) {
        const T* const source = others + (start - segment.skipped);
#pragma unroll 16
        for (unsigned row = 0; row < KEYS_PER_THREAD; ++row) {
            const unsigned i = row * THREADS_PER_BLOCK + threadIdx.x;
            out[start + i] = source[i];
        }
    } else {
        for (unsigned i = start + threadIdx.x; i < end; i += THREADS_PER_BLOCK) {
            while (i >= next) {
                segment = segments[++first];
                next = segments[first + 1].start;
            }
            out[i] =
                i < segment.end ? from_ordered_bits<T>(segment.value) : others[i - segment.skipped];
        }
    }
}

// Source: Dong, Dhulipala, Gu and Sun, Parallel Integer Sort: Theory and Practice. PPoPP, 2024.
