// /// cudalab
// summary  = "Buckets cut by a sample, of similar sizes even if keys share their top bits"
// order    = 8
// adds     = "a sample of the keys cuts the buckets"
// dispatch = "sampled_buckets"
// applies  = { dtype = ["uint32", "int32", "float32"], layout = ["keys"] }
// requires = ["shared_96kb"]
//
// [defines]
// THREADS_PER_BLOCK      = 512
// BLOCKS_PER_SM          = 2      # leaves a thread 64 registers
// KEYS_PER_THREAD        = 32     # in registers: a tile
// CHUNK_KEYS_PER_THREAD  = 8      # of a large bucket, at once
// BUCKET_THREADS         = 512
// BUCKET_KEYS_PER_THREAD = 18     # the maximum that a block can sort in shared memory
// BUCKETS_PER_SM         = 3
// MAX_BIN_BITS           = 13     # of a bucket
// COUNT_THREADS          = 1024
// COUNT_BLOCKS           = "MULTIPROCESSORS"
// SAMPLE_BLOCKS          = 32
// RADIX_BITS             = 8
// TILES_AHEAD            = 100    # of the tile that is prefetched
// ///
//
// `most_significant_first` is fast only if the top bits of the keys are random. In many arrays they
// are not: nearly all floats between 0 and 1 have one of four exponents, and the top bits of
// integers below a million are zero. So one more launch looks at 131,072 keys from all over the
// array. It counts them in 4,096 cells, one for each value of the top 12 bits. A cell with few of
// the keys becomes one bucket, a cell with many becomes 2, 4, 8, ... buckets of equal width, so
// that each has about as many keys as half fill a block's shared memory. A table of the cells
// instead of a shift then says which bucket a key belongs to, and a block sorts its bucket by the
// bits below those of the bucket. All else is as before: a count, two splits, a block for each
// bucket.
//
// A sample may mislead, but never into a wrong answer: a bucket is a range of keys whatever the
// sample was like. If it has turned out too large for shared memory, or if many of its keys are in
// one bin, one block sorts it digit by digit between the two arrays, as `digit_8bit` does with all
// keys. That takes the place of the sweeps over everything in the rung before: no block waits for
// another, so neither tickets nor statuses are needed.
//
// Limits: one block works on a bucket, however large it is, while other multiprocessors may be
// idle. A value that many keys share makes such a bucket, together with the keys around it; so do
// keys that crowd within a cell, such as integers below a thousand. A short array is split into far
// more buckets than it needs. Uniform keys need no sample, and with one this rung is slower than
// the one before: 2^24 of them take 0.370 ms on an H200, and 0.237 ms with
// `most_significant_first`.
//
// Macros from outside: T (element type), PAIRS (0), THREADS_PER_BLOCK, BLOCKS_PER_SM,
// KEYS_PER_THREAD, CHUNK_KEYS_PER_THREAD, BUCKET_THREADS, BUCKET_KEYS_PER_THREAD, BUCKETS_PER_SM,
// MAX_BIN_BITS, COUNT_THREADS, RADIX_BITS, TILES_AHEAD.
#include "radixsort/parts/sort_bucket.cuh"
#include "radixsort/parts/split_tile.cuh"

constexpr int CELL_BITS = 12;
constexpr unsigned CELLS = 1u << CELL_BITS;
constexpr int BITS_BELOW_CELL = BITS - CELL_BITS;
constexpr unsigned MAX_BUCKETS = 1u << 15;
constexpr unsigned SAMPLES = 4;  // sampled keys per thread
constexpr unsigned TILE_ITEMS = KEYS_PER_THREAD * THREADS_PER_BLOCK;
constexpr unsigned RESIDENT_BUCKETS = resident_blocks(BUCKETS_PER_SM, BUCKET_THREADS, BUCKET_BYTES);

static_assert(COUNT_THREADS >= GROUPS, "a thread for each group");

// The state that the launches share. All of it is zero before the first of them.
struct Sampled {
    unsigned cell_counts[CELLS];       // of sampled keys; zero between sorts
    unsigned cells[CELLS];             // low half: the cell's first bucket; high half: the base-2
                                       // logarithm of the number of its buckets
    unsigned counts[MAX_BUCKETS];      // of each bucket's keys; zero between sorts
    unsigned starts[MAX_BUCKETS + 1];  // where each bucket begins, and where the last one ends
    unsigned next[MAX_BUCKETS];        // where the next key of a bucket goes
    unsigned group_next[GROUPS];       // where the next key of a group of buckets goes
    unsigned left[MAX_BUCKETS];        // 1 if a bucket is not sorted in shared memory
};

__constant__ unsigned sampled_bytes = sizeof(Sampled);  // for the host

// Clears the state before the first launch.
extern "C" __global__ void clear_words(unsigned long long* words, unsigned n) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) words[i] = 0;
}

// Which bucket a key belongs to: its cell's bucket, or one of them.
struct CellBuckets {
    const unsigned* cells;
    __device__ int split_bits(Bits key) const {
        return (int)(__ldg(cells + (key >> BITS_BELOW_CELL)) >> 16);
    }
    __device__ unsigned operator()(Bits key) const {
        const unsigned cell = __ldg(cells + (key >> BITS_BELOW_CELL));
        const unsigned in_cell = key & ((1u << BITS_BELOW_CELL) - 1);
        return (cell & 0xffff) + (in_cell >> (BITS_BELOW_CELL - (int)(cell >> 16)));
    }
};

// Counts the keys of a sample in their cells.
extern "C" __global__ void __launch_bounds__(COUNT_THREADS) sample_keys(const T* keys,
                                                                        Sampled* state,
                                                                        unsigned n) {
    __shared__ unsigned counters[CELLS];
    const unsigned samples = SAMPLES * gridDim.x * COUNT_THREADS, step = max(n / samples, 1u);
    for (unsigned c = threadIdx.x; c < CELLS; c += COUNT_THREADS) counters[c] = 0;
    __syncthreads();  // no thread counts before all counters are zero
#pragma unroll
    for (unsigned s = 0; s < SAMPLES; ++s) {
        // Spread over the array, but unevenly, since it may be periodic.
        const unsigned i = (s * gridDim.x + blockIdx.x) * COUNT_THREADS + threadIdx.x;
        if (i >= n) continue;
        const T key = keys[i * step + __umulhi((i + 1) * 2654435761u, step)];
        atomicAdd(&counters[ordered_bits(key) >> BITS_BELOW_CELL], 1u);
    }
    __syncthreads();  // all have counted
    for (unsigned c = threadIdx.x; c < CELLS; c += COUNT_THREADS)
        if (counters[c] > 0) atomicAdd(&state->cell_counts[c], counters[c]);  // blocks share it
}

// Cuts cells into at most 2^bucket_bits buckets, more than there are cells. One block does it.
extern "C" __global__ void __launch_bounds__(COUNT_THREADS) cut_cells(Sampled* state, unsigned n,
                                                                      unsigned samples,
                                                                      int bucket_bits) {
    __shared__ __align__(16) unsigned first_buckets[CELLS];
    __shared__ unsigned total;  // of buckets
    constexpr unsigned CELLS_PER_THREAD = CELLS / COUNT_THREADS;
    int split_bits[CELLS_PER_THREAD];
    // How many sampled keys half fill a bucket. If that makes too many buckets, they get fuller.
    float room = 0.5f * BUCKET_ITEMS * (float)min(samples, n) / (float)max(n, 1u);
    for (;; room *= 1.1f) {
        if (threadIdx.x == 0) total = 0;
        __syncthreads();  // no thread adds before the total is zero
        unsigned mine = 0;
#pragma unroll
        for (unsigned i = 0; i < CELLS_PER_THREAD; ++i) {
            const unsigned cell = i * COUNT_THREADS + threadIdx.x;
            const float sampled = (float)state->cell_counts[cell];
            int bits = 0;  // as many halvings as it takes
            while (bits < bucket_bits && sampled > room * (float)(1u << bits)) ++bits;
            split_bits[i] = bits;
            first_buckets[cell] = 1u << bits;
            mine += 1u << bits;
        }
        atomicAdd(&total, mine);
        __syncthreads();  // the total and the numbers of buckets are ready
        if (total <= 1u << bucket_bits) break;
        __syncthreads();  // all have read the total
    }
    exclusive_scan_shared<COUNT_THREADS>(first_buckets, CELLS);
#pragma unroll
    for (unsigned i = 0; i < CELLS_PER_THREAD; ++i) {
        const unsigned cell = i * COUNT_THREADS + threadIdx.x;
        state->cells[cell] = first_buckets[cell] | (unsigned)split_bits[i] << 16;
        state->cell_counts[cell] = 0;
    }
}

// Counts the keys of each bucket, in a word of dynamic shared memory for each.
extern "C" __global__ void __launch_bounds__(COUNT_THREADS) count_buckets(const T* keys,
                                                                          Sampled* state,
                                                                          unsigned n,
                                                                          int bucket_bits) {
    extern __shared__ unsigned long long counter_memory[];
    unsigned* const counters = reinterpret_cast<unsigned*>(counter_memory);
    const CellBuckets bucket_of{state->cells};
    for (unsigned b = threadIdx.x; b < 1u << bucket_bits; b += COUNT_THREADS) counters[b] = 0;
    __syncthreads();  // no thread counts before all counters are zero
#pragma unroll 8
    for (unsigned i = blockIdx.x * COUNT_THREADS + threadIdx.x; i < n;
         i += gridDim.x * COUNT_THREADS)
        atomicAdd(&counters[bucket_of(ordered_bits(keys[i]))], 1u);
    __syncthreads();  // all have counted
    for (unsigned b = threadIdx.x; b < 1u << bucket_bits; b += COUNT_THREADS)
        if (counters[b] > 0) atomicAdd(&state->counts[b], counters[b]);  // shared by all blocks
}

// Works out where buckets begin. One block does it, with the same dynamic shared memory.
extern "C" __global__ void __launch_bounds__(COUNT_THREADS) place_buckets(Sampled* state,
                                                                          unsigned n,
                                                                          int bucket_bits) {
    extern __shared__ unsigned long long counter_memory[];
    unsigned* const starts = reinterpret_cast<unsigned*>(counter_memory);
    const unsigned buckets = 1u << bucket_bits;
    for (unsigned b = threadIdx.x; b < buckets; b += COUNT_THREADS) {
        starts[b] = state->counts[b];
        state->counts[b] = state->left[b] = 0;
    }
    __syncthreads();  // all counts are ready
    exclusive_scan_shared<COUNT_THREADS>(starts, buckets);
    for (unsigned b = threadIdx.x; b < buckets; b += COUNT_THREADS)
        state->starts[b] = state->next[b] = starts[b];
    if (threadIdx.x < GROUPS)
        state->group_next[threadIdx.x] = starts[threadIdx.x << (bucket_bits - (int)GROUP_BITS)];
    if (threadIdx.x == 0) state->starts[buckets] = n;
}

// Writes keys to `out` as they were.
__device__ inline auto put_keys_into(T* out) {
    return [=](const Bits* staged, unsigned i, unsigned place) {
        out[place] = from_ordered_bits<T>(staged[i]);
    };
}

// The first split: into groups of neighbouring buckets.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, RESIDENT_SPLITS<KEYS_PER_THREAD>)
split_into_groups(const T* in, T* out, Sampled* state, unsigned n, int bucket_bits) {
    __shared__ __align__(16) Bins memory;
    const CellBuckets bucket_of{state->cells};
    const int low_bits = bucket_bits - (int)GROUP_BITS;
    Bits bits[KEYS_PER_THREAD];
    load_tile(in, n, bits);
    const auto group_of = [&](Bits key) { return bucket_of(key) >> low_bits; };
    const auto reserve = [&](unsigned group, unsigned count) {
        return atomicAdd(&state->group_next[group], count);  // shared by all blocks
    };
    split_tile(bits, n, group_of, GROUPS, reserve, put_keys_into(out), memory);
}

// The second split: the bins of a tile are the buckets of the groups that its keys belong to.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, RESIDENT_SPLITS<KEYS_PER_THREAD>)
split_groups(const T* in, T* out, Sampled* state, unsigned n, int bucket_bits) {
    __shared__ __align__(16) Bins memory;
    const CellBuckets bucket_of{state->cells};
    const int low_bits = bucket_bits - (int)GROUP_BITS;
    Bits bits[KEYS_PER_THREAD];
    load_tile(in, n, bits);
    const unsigned start = blockIdx.x * TILE_ITEMS, left = n - start;
    const unsigned first_group = bucket_of(ordered_bits(in[start])) >> low_bits;
    const T last_key = in[start + min(left, TILE_ITEMS) - 1];
    const unsigned last_group = bucket_of(ordered_bits(last_key)) >> low_bits;
    const unsigned first_bucket = first_group << low_bits;
    const unsigned bins = (last_group + 1 - first_group) << low_bits;
    if (bins <= MAX_SPLIT_BINS) {
        const auto bin_of = [&](Bits key) { return bucket_of(key) - first_bucket; };
        const auto reserve = [&](unsigned bin, unsigned count) {
            return atomicAdd(&state->next[first_bucket + bin], count);  // shared by all blocks
        };
        split_tile(bits, n, bin_of, bins, reserve, put_keys_into(out), memory);
        return;
    }
    // Many small groups: key by key.
    for (unsigned row = 0; row < KEYS_PER_THREAD; ++row)
        if (row * THREADS_PER_BLOCK + threadIdx.x < left)
            out[atomicAdd(&state->next[bucket_of(bits[row])], 1u)] =
                from_ordered_bits<T>(bits[row]);
}

// A block for each bucket, which says so if it leaves the bucket to the last launch.
extern "C" __global__ void __launch_bounds__(BUCKET_THREADS, RESIDENT_BUCKETS) sort_buckets(
    const T* in, T* out, Sampled* state, int bin_bits) {
    const unsigned bucket = blockIdx.x;
    const unsigned start = state->starts[bucket], items = state->starts[bucket + 1] - start;
    if (items > 0 && items <= BUCKET_ITEMS) {
        const int split_bits = CellBuckets{state->cells}.split_bits(ordered_bits(in[start]));
        sort_bucket<false>(in + start, out + start, items, 0, BITS_BELOW_CELL - split_bits,
                           bin_bits, [&] { atomicExch(&state->left[bucket], 1u); });
    } else if (items > 0 && threadIdx.x == 0) {
        state->left[bucket] = 1;
    }
}

// Thread d knows where the next key with digit d goes: a single block needs no look-back.
struct NextPlaces {
    unsigned next;
    __device__ void publish(unsigned, unsigned) {}
    __device__ unsigned first(unsigned, unsigned count) {
        next += count;
        return next - count;
    }
};

// Sorts a bucket of any size, which is in `spare`, to `out`, digit by digit. The whole block calls
// it. A digit that all keys share moves nothing, so it gets no pass.
__device__ inline void sort_large_bucket(T* spare, T* out, unsigned items) {
    constexpr unsigned CHUNK = CHUNK_KEYS_PER_THREAD * THREADS_PER_BLOCK;
    __shared__ unsigned counters[RADIX];
    __shared__ int hidden_shift;
    T *source = spare, *target = out;
    for (int shift = 0; shift < BITS; shift += RADIX_BITS) {
        if (threadIdx.x < RADIX) counters[threadIdx.x] = 0;
        if (threadIdx.x == 0) hidden_shift = shift;
        __syncthreads();  // no thread counts before all counters are zero
        for (unsigned i = threadIdx.x; i < items; i += THREADS_PER_BLOCK)
            atomicAdd(&counters[digit_at(ordered_bits(source[i]), shift, RADIX_BITS)], 1u);
        __syncthreads();  // all have counted
        const unsigned count = threadIdx.x < RADIX ? counters[threadIdx.x] : 0;
        if (__syncthreads_or(count == items)) continue;  // also: all have read their counts
        unsigned total;
        NextPlaces places{exclusive_scan_block<THREADS_PER_BLOCK>(count, total)};
        for (unsigned start = 0; start < items; start += CHUNK)
            scatter_chunk<CHUNK_KEYS_PER_THREAD>(
                source, target, 0, start, min(items - start, CHUNK), shift, hidden_shift, places);
        __syncthreads();  // all keys are written before the next pass reads them
        T* const written = target;
        target = source;
        source = written;
    }
    if (source == out) return;
    for (unsigned i = threadIdx.x; i < items; i += THREADS_PER_BLOCK) out[i] = spare[i];
}

// Sorts the buckets that are left, a block for each at a time.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) sort_left_buckets(
    T* spare, T* out, const Sampled* state, int bucket_bits) {
    for (unsigned bucket = blockIdx.x; bucket < 1u << bucket_bits; bucket += gridDim.x) {
        if (!state->left[bucket]) continue;
        const unsigned start = state->starts[bucket];
        sort_large_bucket(spare + start, out + start, state->starts[bucket + 1] - start);
        __syncthreads();  // all are done with shared memory before the next bucket
    }
}

// Source: Frazer and McKellar, Samplesort: A Sampling Approach to Minimal Storage Tree Sorting.
// Journal of the ACM, 1970; Leischner, Osipov and Sanders, GPU Sample Sort. IPDPS, 2010.
