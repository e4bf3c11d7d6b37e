// Values that many keys have: counted instead of moved.
//
// A bucket is a range of keys, so a value that a third of the keys have makes a bucket too large
// for any block, with whatever lies around it. Such values are few: a sample finds them. One read
// counts their keys and sets all others aside; the others are sorted alone; then each value is
// written back between them as often as it was counted. This is the idea of DovetailSort (X. Dong
// et al., 2024).
//
// A value has the slot of a table that its hash says. Of two that share a slot one stays with the
// other keys: a lookup is one read.
#include "radixsort/parts/load_tile.cuh"
#include "radixsort/parts/scan_shared.cuh"
#include "radixsort/parts/sweep_all_passes.cuh"

constexpr int SLOT_BITS = 10;
constexpr unsigned SLOTS = 1u << SLOT_BITS;
constexpr unsigned SAMPLES = 4;       // of each thread
constexpr unsigned LEAST_ALIKE = 16;  // keys of a heavy value, of those that one block samples

// The answer from `start` on: a value up to `end`, then other keys, `skipped` places further on
// than they are among themselves.
struct __align__(16) Segment {
    unsigned start, end, value, skipped;
};

// All words are zero before the first launch.
struct HeavyValues {
    Segment segments[SLOTS + 2];  // the first without a value, one for each value, and the end
    unsigned keys[SLOTS];         // a slot's value; a key of another slot where it has none
    unsigned counts[SLOTS];       // zero between sorts
    unsigned num_segments;        // without the end
    unsigned others;              // set aside so far; zero between launches, like the next
    unsigned blocks_done;
    unsigned num_others;  // all that were set aside
};

__device__ inline unsigned slot_of(unsigned key) {
    return (key ^ key >> 15) * 2654435761u >> (32 - SLOT_BITS);
}

// Finds values that many of this block's sampled keys have; gives the part of the keys that have
// one. The whole block calls it.
__device__ inline float find_heavy_values(const unsigned (&sample)[SAMPLES], HeavyValues* heavy) {
    __shared__ unsigned claims[SLOTS], keys[SLOTS], counts[SLOTS];
    __shared__ unsigned covered;
    const auto number = [&](unsigned s) { return s * COUNT_THREADS + threadIdx.x; };
    for (unsigned slot = threadIdx.x; slot < SLOTS; slot += COUNT_THREADS)
        claims[slot] = counts[slot] = 0;
    if (threadIdx.x == 0) covered = 0;
    __syncthreads();  // all is zero
    // A slot goes to a key that meets most of its like in its warp, and to none that meets none.
#pragma unroll
    for (unsigned s = 0; s < SAMPLES; ++s) {
        const unsigned alike = __popc(__match_any_sync(FULL_WARP, sample[s]));
        if (alike > 1)
            atomicMax(&claims[slot_of(sample[s])], alike * (COUNT_THREADS * SAMPLES) + number(s));
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
        const bool is_heavy = counts[slot] >= LEAST_ALIKE;
        if (is_heavy) atomicAdd(&covered, counts[slot]);
        heavy->keys[slot] = is_heavy ? keys[slot] : slot == slot_of(0);
    }
    __syncthreads();  // the sum is there
    return (float)covered / (COUNT_THREADS * SAMPLES);
}

// Counts the keys that have a heavy value, and brings the others to `others`, in any order; says
// how many these are, to the host and to the next launch. A block a tile, which fits into the
// dynamic shared memory.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, BLOCKS_PER_SM) set_others_aside(
    const T* in, T* others, HeavyValues* heavy, unsigned* num_others, unsigned n) {
    constexpr unsigned TILE_ITEMS = KEYS_PER_THREAD * THREADS_PER_BLOCK;
    constexpr unsigned WARPS = THREADS_PER_BLOCK / 32;
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
    __syncthreads();  // the table is there

    unsigned other_rows = 0, mine = 0;  // a bit for each row; the warp's keys
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
    if (threadIdx.x == 0) first_other = atomicAdd(&heavy->others, total);  // shared by all blocks
#pragma unroll
    for (unsigned row = 0; row < KEYS_PER_THREAD; ++row) {
        const bool is_other = other_rows >> row & 1;
        const unsigned all = __ballot_sync(FULL_WARP, is_other);
        if (is_other)
            staged[place + __popc(all & ((1u << lane) - 1))] = from_ordered_bits<T>(bits[row]);
        place += __popc(all);
    }
    __syncthreads();  // the others stand together
#pragma unroll 4
    for (unsigned i = threadIdx.x; i < total; i += THREADS_PER_BLOCK)
        others[first_other + i] = staged[i];
    for (unsigned slot = threadIdx.x; slot < SLOTS; slot += THREADS_PER_BLOCK)
        if (counts[slot] > 0) atomicAdd(&heavy->counts[slot], counts[slot]);  // blocks meet here
    when_written([&] {
        if (atomicInc(&heavy->blocks_done, gridDim.x - 1) < gridDim.x - 1) return;  // wraps to 0
        // The last block: all have added.
        *num_others = heavy->num_others = atomicExch(&heavy->others, 0u);
    });
}

// Where each value goes between the others, which are sorted. One block.
extern "C" __global__ void __launch_bounds__(COUNT_THREADS) place_heavy_values(const T* others,
                                                                               HeavyValues* heavy,
                                                                               unsigned num_others,
                                                                               unsigned n) {
    __shared__ unsigned keys[SLOTS], counts[SLOTS];   // of the values there are, in any order
    __shared__ __align__(16) unsigned before[SLOTS];  // counts in order, then their sums
    __shared__ unsigned found;
    if (threadIdx.x == 0) found = 0;
    for (unsigned i = threadIdx.x; i < SLOTS; i += COUNT_THREADS) before[i] = 0;
    __syncthreads();  // nobody adds before all is zero
    for (unsigned slot = threadIdx.x; slot < SLOTS; slot += COUNT_THREADS) {
        const unsigned count = heavy->counts[slot];
        if (count == 0) continue;
        const unsigned at = atomicAdd(&found, 1u);
        keys[at] = heavy->keys[slot];
        counts[at] = count;
        heavy->counts[slot] = 0;
    }
    __syncthreads();  // all values are there
    Segment* const segments = heavy->segments;
    for (unsigned at = threadIdx.x; at < found; at += COUNT_THREADS) {
        unsigned rank = 0;
        for (unsigned i = 0; i < found; ++i) rank += keys[i] < keys[at];
        before[rank] = counts[at];
        segments[1 + rank].value = keys[at];
    }
    __syncthreads();  // they are in order
    exclusive_scan_shared<COUNT_THREADS>(before, SLOTS);
    for (unsigned rank = threadIdx.x; rank < found; rank += COUNT_THREADS) {
        Segment& segment = segments[1 + rank];
        unsigned first = 0, last = num_others;  // the place among the others
        while (first < last) {
            const unsigned middle = first + (last - first) / 2;
            if (ordered_bits(others[middle]) < segment.value)
                first = middle + 1;
            else
                last = middle;
        }
        segment.skipped = rank + 1 < found ? before[rank + 1] : n - num_others;
        segment.start = first + before[rank];
        segment.end = first + segment.skipped;
    }
    if (threadIdx.x == 0) {
        segments[0] = {0, 0, 0, 0};
        segments[1 + found].start = n;
        heavy->num_segments = 1 + found;
    }
}

// Writes values and others to their places: a block a tile.
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
