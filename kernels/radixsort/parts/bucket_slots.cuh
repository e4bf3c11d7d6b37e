// Buckets in slots: each slot has room for as many keys as a block can sort, so that keys can go to
// their bucket without having been counted.
//
// Keys for which a slot has no room are left out. All keys of such a bucket have to be equal: the
// bucket is filled with their value instead of being sorted. If they are not equal, the last launch
// sorts by sweeps.
#pragma once
#include "radixsort/parts/sort_bucket.cuh"
#include "radixsort/parts/split_tile.cuh"
#include "radixsort/parts/sweep_all_passes.cuh"

constexpr unsigned MAX_SLOTS = GROUPS;
constexpr unsigned RESIDENT_SLOTS = resident_blocks(BLOCKS_PER_SM, BUCKET_THREADS, BUCKET_BYTES);

// The state that the launches share. All of it is zero between sorts.
struct Slots {
    unsigned failed;            // 1 if slots cannot sort the keys
    unsigned items[MAX_SLOTS];  // the number of keys in each bucket, with those left out
    // A key of each bucket that was left out, or zero. Its top bit, in which all keys of a bucket
    // agree, is set.
    unsigned beyond[MAX_SLOTS];

    __device__ void require(bool fits) {
        if (!fits) *(volatile unsigned*)&failed = 1;
    }
    // Whether a key that is left out equals all others of its bucket that are left out. The first
    // of them is kept.
    __device__ bool is_equal(unsigned bucket, Bits key) {
        const unsigned kept = atomicCAS(&beyond[bucket], 0u, key | 1u << (BITS - 1));
        return kept == 0 || kept == (key | 1u << (BITS - 1));
    }
    // One block calls it.
    __device__ void clear() {
        for (unsigned i = threadIdx.x; i < MAX_SLOTS; i += THREADS_PER_BLOCK)
            items[i] = beyond[i] = 0;
    }
};

__constant__ unsigned slots_bytes = sizeof(Slots);  // for the host

// Fills the buckets that are too large for their slots. All blocks fill each of them together; each
// block checks the keys in its own slot.
__device__ inline void fill_large_buckets(const Bits* slots, T* out, Slots* state) {
    unsigned start = 0;
    for (unsigned bucket = 0; bucket < gridDim.x; ++bucket) {
        const unsigned items = state->items[bucket];
        if (items > BUCKET_ITEMS) {
            const Bits* const slot = slots + bucket * BUCKET_ITEMS;
            const Bits key = slot[0];
            if (bucket == blockIdx.x) {
                bool equal = state->is_equal(bucket, key);
                for (unsigned i = threadIdx.x; i < BUCKET_ITEMS; i += BUCKET_THREADS)
                    equal &= slot[i] == key;
                state->require(equal);
            }
            const unsigned stride = gridDim.x * BUCKET_THREADS;
            for (unsigned i = blockIdx.x * BUCKET_THREADS + threadIdx.x; i < items; i += stride)
                out[start + i] = from_ordered_bits<T>(key);
        }
        start += items;
    }
}

// Splits the keys by their top bits, and writes those of each bucket to its slot.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, BLOCKS_PER_SM) split_into_slots(
    const T* in, Bits* slots, Slots* state, unsigned n, int top_bits) {
    __shared__ __align__(16) Bins memory;
    const TopBits bucket_of{top_bits};
    Bits bits[SHORT_KEYS_PER_THREAD];
    load_tile(in, n, bits);
    const auto reserve = [&](unsigned bucket, unsigned count) {  // shared by all blocks
        return bucket * BUCKET_ITEMS + atomicAdd(&state->items[bucket], count);
    };
    const auto put = [&](const Bits* staged, unsigned i, unsigned place) {
        const unsigned bucket = bucket_of(staged[i]), item = place - bucket * BUCKET_ITEMS;
        if (item < BUCKET_ITEMS)
            slots[place] = staged[i];
        else if (i > 0 && item > BUCKET_ITEMS && bucket_of(staged[i - 1]) == bucket)
            state->require(staged[i] == staged[i - 1]);
        else  // the tile's first key that its slot has no room for: the next ones equal it
            state->require(state->is_equal(bucket, staged[i]));
    };
    split_tile(bits, n, bucket_of, bucket_of.buckets(), reserve, put, memory);
}

// A block for each bucket: it finds out how many keys come before the bucket, and sorts it.
extern "C" __global__ void __launch_bounds__(BUCKET_THREADS, RESIDENT_SLOTS) sort_slots(
    const Bits* slots, T* out, Slots* state, int top_bits, int bin_bits) {
    __shared__ unsigned before;
    unsigned mine = 0;
    bool is_large = false;  // some bucket is
    for (unsigned bucket = threadIdx.x; bucket < gridDim.x; bucket += BUCKET_THREADS) {
        const unsigned items = state->items[bucket];
        if (bucket < blockIdx.x) mine += items;
        is_large |= items > BUCKET_ITEMS;
    }
    if (threadIdx.x == 0) before = 0;
    // Other blocks may write the word meanwhile: all threads agree on what they have read.
    if (__syncthreads_or(load(&state->failed) != 0)) return;
    if (mine > 0) atomicAdd(&before, mine);
    is_large = __syncthreads_or(is_large);  // also: the sum is ready
    const unsigned items = state->items[blockIdx.x];
    if (items > 0 && items <= BUCKET_ITEMS)
        sort_bucket<true>(slots + blockIdx.x * BUCKET_ITEMS, out + before, items, 0,
                          BITS - top_bits, bin_bits, [&] { state->require(false); });
    if (is_large) fill_large_buckets(slots, out, state);
}

// The safe path. It also clears what the launches share, for the next sort.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, BLOCKS_PER_SM) sweep_all_short(
    Slots* state, const T* in, T* spare, T* out, Progress* progress, Word* statuses, unsigned n) {
    const bool failed = load(&state->failed) != 0;
    if (blockIdx.x == 0) state->clear();
    if (!failed) return;
    if (sweep_all_passes<SHORT_KEYS_PER_THREAD>(in, spare, out, progress, statuses, n))
        state->failed = 0;
}
