// Buckets in slots: each slot has room for as many keys as a block can sort, so that keys can go to
// their bucket without having been counted.
//
// Keys for which a slot has no room are only counted. Their bucket has room for many keys, but not
// for many values: if it has up to 8 different ones, each is written as often as it was counted,
// instead of being sorted. Otherwise the last launch sorts by sweeps.
#pragma once
#include "radixsort/parts/sort_bucket.cuh"
#include "radixsort/parts/split_tile.cuh"
#include "radixsort/parts/sweep_all_passes.cuh"
#include "radixsort/parts/tally.cuh"

constexpr unsigned MAX_SLOTS = GROUPS;
constexpr unsigned RESIDENT_SLOTS = resident_blocks(BLOCKS_PER_SM, BUCKET_THREADS, BUCKET_BYTES);

constexpr unsigned MAX_VALUES = 8;     // of a bucket that its slot has no room for
constexpr unsigned TILE_VALUES = 256;  // of the keys of a tile that slots have no room for

// Where a value goes that is counted instead of sorted.
struct Run {
    unsigned start, end;
    Bits value;
};

// The state that the launches share. All of it but the runs is zero between sorts.
struct Slots {
    unsigned failed;                      // 1 if slots cannot sort the keys
    unsigned items[MAX_SLOTS];            // the number of keys in each bucket, with those beyond
    Tally<MAX_VALUES> beyond[MAX_SLOTS];  // the keys of each bucket that its slot has no room for
    unsigned num_runs;                    // of the sort under way, or of the last one
    Run runs[MAX_SLOTS * MAX_VALUES];

    __device__ void require(bool fits) {
        if (!fits) *(volatile unsigned*)&failed = 1;
    }
    // One block calls it.
    __device__ void clear() {
        for (unsigned i = threadIdx.x; i < MAX_SLOTS; i += THREADS_PER_BLOCK) {
            if (items[i] > BUCKET_ITEMS) beyond[i] = {};
            items[i] = 0;
        }
    }
};

__constant__ unsigned slots_bytes = sizeof(Slots);  // for the host

// Splits the keys by their top bits, and writes those of each bucket to its slot.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, BLOCKS_PER_SM) split_into_slots(
    const T* in, Bits* slots, Slots* state, unsigned n, int top_bits) {
    __shared__ __align__(16) Bins memory;
    __shared__ Tally<TILE_VALUES> beyond[2];  // by the top bit
    const TopBits bucket_of{top_bits};
    Bits bits[SHORT_KEYS_PER_THREAD];
    load_tile(in, n, bits);
    if (blockIdx.x == 0 && threadIdx.x == 0) state->num_runs = 0;
    for (unsigned i = threadIdx.x; i < 2 * TILE_VALUES; i += THREADS_PER_BLOCK) {
        Tally<TILE_VALUES>& tally = beyond[i / TILE_VALUES];
        tally.kept[i % TILE_VALUES] = tally.counts[i % TILE_VALUES] = 0;
    }
    const auto reserve = [&](unsigned bucket, unsigned count) {  // shared by all blocks
        return bucket * BUCKET_ITEMS + atomicAdd(&state->items[bucket], count);
    };
    bool counted = true;
    const auto put = [&](const Bits* staged, unsigned i, unsigned place) {
        const Bits key = staged[i];
        if (place - bucket_of(key) * BUCKET_ITEMS < BUCKET_ITEMS)
            slots[place] = key;
        else
            counted = counted && beyond[key / TOP_BIT].add(key, 1u);
    };
    split_tile(bits, n, bucket_of, bucket_of.buckets(), reserve, put, memory);
    const bool fits = __syncthreads_and(counted);
    state->require(fits);
    if (!fits) return;
    for (unsigned i = threadIdx.x; i < 2 * TILE_VALUES; i += THREADS_PER_BLOCK) {
        const Tally<TILE_VALUES>& tally = beyond[i / TILE_VALUES];
        const unsigned count = tally.counts[i % TILE_VALUES];
        if (count == 0) continue;
        const Bits key = tally.kept[i % TILE_VALUES] - (i < TILE_VALUES ? TOP_BIT : 0);
        state->require(state->beyond[bucket_of(key)].add(key, count));  // shared by all blocks
    }
}

// Counts the values of a bucket that is too large for its slot, and says where each of them goes.
// The bucket begins at `start`. The whole block calls it.
__device__ inline void count_values(const Bits* slot, Slots* state, unsigned bucket,
                                    unsigned start) {
    __shared__ Tally<MAX_VALUES> values;
    if (threadIdx.x < MAX_VALUES) {
        values.kept[threadIdx.x] = state->beyond[bucket].kept[threadIdx.x];
        values.counts[threadIdx.x] = state->beyond[bucket].counts[threadIdx.x];
    }
    __syncthreads();  // those beyond the slot are known
    bool counted = true;
    for (unsigned i = threadIdx.x; i < BUCKET_ITEMS; i += BUCKET_THREADS)
        counted = counted && values.add(slot[i], 1u);
    const bool fits = __syncthreads_and(counted);
    state->require(fits);
    if (!fits) return;
    const unsigned kept = threadIdx.x < MAX_VALUES ? values.kept[threadIdx.x] : 0;
    if (kept == 0) return;
    for (unsigned i = 0; i < MAX_VALUES; ++i)
        if (values.kept[i] < kept) start += values.counts[i];
    const Bits key = slot[0] < TOP_BIT ? kept - TOP_BIT : kept;
    state->runs[atomicAdd(&state->num_runs, 1u)] = {start, start + values.counts[threadIdx.x], key};
}

// Writes the values that were counted. As many blocks take part in each run.
__device__ inline void fill_runs(T* out, const Slots* state) {
    const unsigned runs = state->num_runs;
    if (runs == 0) return;
    const unsigned sharers = max(gridDim.x / runs, 1u);
    for (unsigned share = blockIdx.x; share < runs * sharers; share += gridDim.x) {
        const Run run = state->runs[share % runs];
        const unsigned first = run.start + share / runs * THREADS_PER_BLOCK;
        for (unsigned i = first + threadIdx.x; i < run.end; i += sharers * THREADS_PER_BLOCK)
            out[i] = from_ordered_bits<T>(run.value);
    }
}

// A block for each bucket: it finds out how many keys come before the bucket, and sorts it.
extern "C" __global__ void __launch_bounds__(BUCKET_THREADS, RESIDENT_SLOTS) sort_slots(
    const Bits* slots, T* out, Slots* state, int top_bits, int bin_bits) {
    __shared__ unsigned before;
    unsigned mine = 0;
    for (unsigned bucket = threadIdx.x; bucket < blockIdx.x; bucket += BUCKET_THREADS)
        mine += state->items[bucket];
    if (threadIdx.x == 0) before = 0;
    // Other blocks may write the word meanwhile: all threads agree on what they have read.
    if (__syncthreads_or(load(&state->failed) != 0)) return;
    if (mine > 0) atomicAdd(&before, mine);
    __syncthreads();  // the sum is ready
    const unsigned items = state->items[blockIdx.x];
    const Bits* const slot = slots + blockIdx.x * BUCKET_ITEMS;
    if (items > BUCKET_ITEMS)
        count_values(slot, state, blockIdx.x, before);
    else if (items > 0)
        sort_bucket<true>(slot, out + before, items, 0, BITS - top_bits, bin_bits,
                          [&] { state->require(false); });
}

// Writes what was counted, or sorts by sweeps. It also clears what the launches share, for the next
// sort.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, BLOCKS_PER_SM) finish_slots(
    Slots* state, const T* in, T* spare, T* out, Progress* progress, Word* statuses, unsigned n) {
    const bool failed = load(&state->failed) != 0;
    if (blockIdx.x == 0) state->clear();
    if (!failed) {
        fill_runs(out, state);
        return;
    }
    if (sweep_all_passes<SHORT_KEYS_PER_THREAD>(in, spare, out, progress, statuses, n))
        state->failed = 0;
}
