// A whole sort in one launch: a count of all digits, then a sweep for each, in which every key is
// read and written once.
//
// The blocks stay and draw tickets: first for shares of the keys to count, then for the tiles of
// one sweep after the other. A block waits only for work with lower tickets: for the counts, for
// the tiles of the sweep before, and for the tiles before its own. Running blocks hold all of these
// tickets, so at least one block always makes progress, however many run at once.
//
// A digit that all keys share would move nothing, so it gets no sweep: keys that differ in one byte
// take one sweep.
#pragma once
#include "common/thread/prefetch.cuh"
#include "radixsort/parts/look_back_digits.cuh"

constexpr unsigned SHARES_PER_BLOCK = 8;  // to count: few, yet about as many for each block
constexpr unsigned COUNT_LOADS = 4;
constexpr unsigned COUNT_COPIES = 32 / sizeof(T);  // 32 KB of counters, for any type

// Zero before the first launch; from then on only the kernel writes it.
struct Progress {
    Word ticket;  // the launch's number in the high half, the next ticket in the low half
    Word placed;  // the number of the launch whose digits are placed, and a bit for each pass
    unsigned shares_counted;          // in this launch
    unsigned tiles_done[PASSES];      // of each sweep
    unsigned counts[PASSES * RADIX];  // zero between launches
    unsigned starts[PASSES * RADIX];  // where a digit begins in the output of its pass
};

__constant__ unsigned progress_bytes = sizeof(Progress);  // for the host

// The launch's number, from 0, and the next ticket. The whole block calls it.
__device__ inline Word take_ticket(Progress* progress) {
    __shared__ Word ticket;
    __syncthreads();  // all have read the one before
    if (threadIdx.x == 0) ticket = atomicAdd(&progress->ticket, 1ull);
    __syncthreads();  // all threads can read the ticket
    return ticket;
}

// Waits until ready(); what was written before is visible then. The whole block calls it.
template <class Ready>
__device__ inline void wait_until(Ready ready) {
    if (threadIdx.x == 0) {
        while (!ready()) __nanosleep(64);
        __threadfence();  // nothing below is read earlier
    }
    __syncthreads();  // it is ready for all
}

// Calls publish() in one thread, when everything that the block has written is visible.
template <class Publish>
__device__ inline void when_written(Publish publish) {
    __syncthreads();  // all threads have written
    if (threadIdx.x == 0) {
        __threadfence();  // all of it is visible before whatever publish() writes
        publish();
    }
}

// Finds out where each digit begins and which passes move anything. One block calls it when
// everything is counted.
__device__ inline void place_all_digits(Progress* progress, unsigned n, unsigned launch) {
    unsigned passes = 0;
    for (unsigned pass = 0; pass < PASSES; ++pass) {
        const unsigned i = pass * RADIX + threadIdx.x;
        unsigned count = 0, total;
        if (threadIdx.x < RADIX) {
            count = __ldcg(&progress->counts[i]);  // from L2, where the blocks have added
            progress->counts[i] = 0;
        }
        const unsigned start = exclusive_scan_block<THREADS_PER_BLOCK>(count, total);
        if (threadIdx.x < RADIX) progress->starts[i] = start;
        // Also the barrier between two scans.
        if (!__syncthreads_or(count == n)) passes |= 1u << pass;
    }
    if (passes == 0) passes = 1;  // equal keys: one sweep copies them
    when_written([&] { store(&progress->placed, (Word)launch << 32 | passes); });
}

// Sweeps over tile `tile`; `run` numbers the sweeps of all launches. Not inline: the caller's
// variables would take registers from the keys.
template <unsigned ROWS>
__device__ __noinline__ void sweep_tile(const T* source, T* target, const unsigned* starts,
                                        Word* statuses, unsigned n, unsigned tile, unsigned run,
                                        unsigned pass) {
    constexpr unsigned TILE_ITEMS = ROWS * THREADS_PER_BLOCK;
    __shared__ int hidden_shift;
    const int shift = (int)(pass * RADIX_BITS);
    const unsigned start = tile * TILE_ITEMS;
    if (threadIdx.x == 0) {
        hidden_shift = shift;
        if (TILES_AHEAD > 0 && n - start > (TILES_AHEAD + 1) * TILE_ITEMS) {
            const T* ahead = source + start + TILES_AHEAD * TILE_ITEMS;
            prefetch_to_l2(ahead, TILE_ITEMS * sizeof(T));
            if (PAIRS) prefetch_to_l2(ahead + n, TILE_ITEMS * sizeof(T));
        }
    }
    LookBack<1> places{statuses, tile, run,
                       threadIdx.x < RADIX ? starts[pass * RADIX + threadIdx.x] : 0};
    scatter_chunk<ROWS>(source, target, n, start, min(n - start, TILE_ITEMS), shift, hidden_shift,
                        places);
}

// Counts the digits of this block's shares of the keys, which are whole tiles; the block that
// counts the last share places the digits. Returns the block's first ticket beyond the shares.
__device__ inline unsigned count_shares(const T* in, Progress* progress, unsigned n,
                                        unsigned share_items, unsigned shares, unsigned& launch) {
    extern __shared__ unsigned long long chunk_memory[];
    unsigned* const counters = reinterpret_cast<unsigned*>(chunk_memory);
    __shared__ bool is_last;

    clear_counters<COUNT_COPIES>(counters);
    Word ticket = take_ticket(progress);
    launch = (unsigned)(ticket >> 32) + 1;
    unsigned counted = 0;
    for (; (unsigned)ticket < shares; ticket = take_ticket(progress), ++counted) {
        const unsigned start = (unsigned)ticket * share_items;
        count_keys<COUNT_COPIES, COUNT_LOADS>(in + start, min(n - start, share_items), threadIdx.x,
                                              THREADS_PER_BLOCK, counters);
    }
    if (counted > 0) {
        add_counters<COUNT_COPIES>(counters, progress->counts);  // taking a ticket was a barrier
        when_written([&] {
            const unsigned before = atomicAdd(&progress->shares_counted, counted);
            is_last = before + counted == shares;
            if (is_last) {
                progress->shares_counted = 0;
                __threadfence();  // the counts are read after the last of them was announced
            }
        });
        __syncthreads();  // is_last is known
        if (is_last) place_all_digits(progress, n, launch);
    }
    return (unsigned)ticket;
}

// Sorts `in` to `out`; ROWS keys for each thread are a tile. Takes dynamic shared memory for a
// tile, and at least 32 KB. Returns true in one thread of the grid, when all blocks have done their
// part.
template <unsigned ROWS>
__device__ inline bool sweep_all_passes(const T* in, T* spare, T* out, Progress* progress,
                                        Word* statuses, unsigned n) {
    constexpr unsigned TILE_ITEMS = ROWS * THREADS_PER_BLOCK;
    const unsigned tiles = (n + TILE_ITEMS - 1) / TILE_ITEMS;
    const unsigned share_tiles = max(tiles / (SHARES_PER_BLOCK * gridDim.x), 1u);
    const unsigned shares = (tiles + share_tiles - 1) / share_tiles;

    unsigned launch;
    unsigned ticket = count_shares(in, progress, n, share_tiles * TILE_ITEMS, shares, launch);
    wait_until([&] { return load(&progress->placed) >> 32 == launch; });
    const unsigned passes = (unsigned)load(&progress->placed);
    const unsigned sweeps = __popc(passes), end = shares + sweeps * tiles;

    unsigned begun = 0, tiles_swept = 0;  // this block's current sweep; its tiles of that
    while (ticket < end) {
        const unsigned sweep = (ticket - shares) / tiles, tile = (ticket - shares) % tiles;
        if (sweep > begun) {
            wait_until([&] { return load(&progress->tiles_done[sweep - 1]) == tiles; });
            begun = sweep;
        }
        unsigned left = passes;
        for (unsigned s = 0; s < sweep; ++s) left &= left - 1;  // drops the lowest pass
        const unsigned pass = __ffs((int)left) - 1;
        // The sweeps alternate between two arrays, so that the last one writes `out`.
        const bool to_out = (sweeps - sweep) % 2 == 1;
        const T* const source = sweep == 0 ? in : to_out ? spare : out;
        sweep_tile<ROWS>(source, to_out ? out : spare, progress->starts, statuses, n, tile,
                         (launch - 1) * PASSES + sweep + 1, pass);
        ++tiles_swept;

        // Tiles are announced together when the block leaves a sweep: one fence for all of them.
        ticket = (unsigned)take_ticket(progress);
        const unsigned sweep_end = shares + (sweep + 1) * tiles;
        if (ticket >= sweep_end && sweep_end < end) {
            when_written([&] { atomicAdd(&progress->tiles_done[sweep], tiles_swept); });
            tiles_swept = 0;
        }
    }

    // A launch draws `end` tickets for work and one more for each block, which then leaves. The
    // block that draws the very last one leaves everything as the next launch needs it.
    const bool is_last = threadIdx.x == 0 && ticket == end + gridDim.x - 1;
    if (is_last) {
        for (unsigned sweep = 0; sweep < PASSES; ++sweep) progress->tiles_done[sweep] = 0;
        store(&progress->ticket, (Word)launch << 32);
    }
    return is_last;
}
