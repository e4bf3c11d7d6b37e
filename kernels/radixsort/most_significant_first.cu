// /// cudalab
// summary  = "Spread-out keys: split by their top bits, then sort each bucket in shared memory"
// order    = 6
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
// BUCKET_KEYS_PER_THREAD = 18     # what a block can sort
// BUCKETS_PER_SM         = 3
// MOST_BIN_BITS          = 13     # of a bucket
// COUNT_THREADS          = 1024
// COUNT_BLOCKS           = 132    # one for each multiprocessor
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
// each by the bits that follow. Up to 2^21 keys one split does.
//
// In a bucket a counting sort by the bits below the split leaves bins of about one key, in which a
// key counts those that are smaller. Where few different keys make large buckets and full bins,
// they are sorted already when all their keys are equal.
//
// Other large buckets and full bins do not fit this. The device finds that out while it counts or
// sorts, and leaves a word for the launch that comes last: it sorts by sweeps, from the input as it
// was, or returns at once. The host does not wait for that word.
// Limits: an array with full bins is sorted twice, and one of more than 2^28 keys by sweeps.
#include "common/scan_shared.cuh"
#include "common/sweep_all_passes.cuh"

constexpr unsigned GROUP_BITS = 8, GROUPS = 1u << GROUP_BITS;  // of the first of two splits
constexpr unsigned MOST_SPLIT_BINS = 1024;                     // of a tile
constexpr unsigned BUCKET_ITEMS = BUCKET_KEYS_PER_THREAD * THREADS_PER_BLOCK;
constexpr unsigned FULL_BIN = 24;  // keys that compare with each other
constexpr unsigned LOADS = 4;      // 16-byte loads under way
constexpr unsigned COPY_ROWS = 16;
constexpr int BITS = 8 * sizeof(Bits);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr unsigned RESIDENT_BUCKETS = 2;  // a multiprocessor of 7.5 runs 1024 threads at most
#else
constexpr unsigned RESIDENT_BUCKETS = BUCKETS_PER_SM;
#endif

// What the launches tell each other. All words are zero before the first of them.
struct Buckets {
    unsigned* fit;            // 1 while this path can sort the keys
    unsigned* blocks_done;    // counting; zero between launches
    unsigned* mixed;          // 1 when a large bucket has different keys; zero between launches
    unsigned* largest;        // the keys of the largest bucket
    unsigned* group_next;     // where the next key of a group goes
    unsigned *counts, *next;  // of each bucket; counts are zero between launches
    unsigned* starts;         // of each bucket, and the end

    __device__ Buckets(unsigned* words, int top_bits)
        : fit(words),
          blocks_done(words + 1),
          mixed(words + 2),
          largest(words + 3),
          group_next(words + 4),
          counts(group_next + GROUPS),
          next(counts + (1u << top_bits)),
          starts(next + (1u << top_bits)) {}
};

__device__ inline unsigned bucket_of(Bits bits, int top_bits) {
    return bits >> (BITS - top_bits);
}

// Whether those of the keys that share the last one's bucket are equal to it.
__device__ inline bool alike_in_bucket(const Vector (&loaded)[LOADS], int top_bits) {
    const Bits last = ordered_bits(loaded[LOADS - 1].items[VECTOR_ITEMS - 1]);
    bool alike = true;
#pragma unroll
    for (unsigned load = 0; load < LOADS; ++load)
#pragma unroll
        for (unsigned k = 0; k < VECTOR_ITEMS; ++k) {
            const Bits key = ordered_bits(loaded[load].items[k]);
            alike &= key == last || bucket_of(key, top_bits) != bucket_of(last, top_bits);
        }
    return alike;
}

// Counts the keys of each bucket; the last block to finish says where buckets begin and whether
// all of them fit.
extern "C" __global__ void __launch_bounds__(COUNT_THREADS) count_buckets(const T* keys,
                                                                          unsigned* words,
                                                                          unsigned n,
                                                                          int top_bits) {
    extern __shared__ unsigned long long bucket_memory[];
    unsigned* const counters = reinterpret_cast<unsigned*>(bucket_memory);  // 2^top_bits
    __shared__ bool is_last;
    __shared__ unsigned largest;
    const Buckets buckets(words, top_bits);
    const unsigned num_buckets = 1u << top_bits;
    for (unsigned b = threadIdx.x; b < num_buckets; b += COUNT_THREADS) counters[b] = 0;
    if (threadIdx.x == 0) largest = 0;
    __syncthreads();  // nobody counts before all is zero

    const auto count = [&](T key) {  // shared by the threads of the block; gives the count before
        return atomicAdd(&counters[bucket_of(ordered_bits(key), top_bits)], 1u);
    };
    const Vector* const vector = reinterpret_cast<const Vector*>(keys);
    const unsigned vectors = n / VECTOR_ITEMS, stride = gridDim.x * COUNT_THREADS;
    unsigned v = blockIdx.x * COUNT_THREADS + threadIdx.x;
    const unsigned rest = vectors * VECTOR_ITEMS + v;
    bool alike = true;  // the keys of each large bucket, as far as this thread has seen them
    for (; alike && v + (LOADS - 1) * stride < vectors; v += LOADS * stride) {
        Vector loaded[LOADS];
        unsigned before;
#pragma unroll
        for (unsigned load = 0; load < LOADS; ++load) loaded[load] = vector[v + load * stride];
#pragma unroll
        for (unsigned load = 0; load < LOADS; ++load)
#pragma unroll
            for (unsigned k = 0; k < VECTOR_ITEMS; ++k) before = count(loaded[load].items[k]);
        // Who finds two different keys in a bucket that is too large need count no further.
        if (before >= BUCKET_ITEMS) alike = alike_in_bucket(loaded, top_bits);
    }
    if (!alike) *(volatile unsigned*)buckets.mixed = 1;
    for (; alike && v < vectors; v += stride)
        for (unsigned k = 0; k < VECTOR_ITEMS; ++k) count(vector[v].items[k]);
    if (rest < n) count(keys[rest]);
    __syncthreads();  // all have counted

    for (unsigned b = threadIdx.x; b < num_buckets; b += COUNT_THREADS)
        if (counters[b] > 0) atomicAdd(&buckets.counts[b], counters[b]);  // blocks meet here
    when_written([&] {
        is_last = atomicInc(buckets.blocks_done, gridDim.x - 1) == gridDim.x - 1;  // wraps to 0
        __threadfence();  // the counts are read after the last block has said that it is done
    });
    __syncthreads();  // is_last is known
    if (!is_last) return;

    unsigned most = 0;
    for (unsigned b = threadIdx.x; b < num_buckets; b += COUNT_THREADS) {
        counters[b] = __ldcg(&buckets.counts[b]);  // from L2, where the blocks have added
        most = max(most, counters[b]);
        buckets.counts[b] = 0;
    }
    atomicMax(&largest, most);
    __syncthreads();  // all counts are there
    exclusive_scan_shared<COUNT_THREADS>(counters, num_buckets);
    for (unsigned b = threadIdx.x; b < num_buckets; b += COUNT_THREADS)
        buckets.starts[b] = buckets.next[b] = counters[b];
    if (top_bits > (int)GROUP_BITS && threadIdx.x < GROUPS)
        buckets.group_next[threadIdx.x] = counters[threadIdx.x << (top_bits - GROUP_BITS)];
    if (threadIdx.x == 0) {
        buckets.starts[num_buckets] = n;
        *buckets.largest = largest;
        // Keys that share all their top bits would be split in vain.
        *buckets.fit = load(buckets.mixed) == 0 && (largest <= BUCKET_ITEMS || largest < n);
        *buckets.mixed = 0;
    }
}

// A tile's keys in registers, in rows of THREADS_PER_BLOCK neighbours.
template <unsigned ROWS, class Key>
__device__ inline void load_tile(const Key* in, unsigned n, Bits (&bits)[ROWS]) {
    constexpr unsigned TILE_ITEMS = ROWS * THREADS_PER_BLOCK;
    const unsigned start = blockIdx.x * TILE_ITEMS, left = n - start;
    if (threadIdx.x == 0 && TILES_AHEAD > 0 && left > (TILES_AHEAD + 1) * TILE_ITEMS)
        prefetch_to_l2(in + start + TILES_AHEAD * TILE_ITEMS, TILE_ITEMS * sizeof(Key));
    const Key* const first = in + start + threadIdx.x;
    const auto load_row = [&](unsigned row) {
        bits[row] = ordered_bits(first[row * THREADS_PER_BLOCK]);
    };
    if (left >= TILE_ITEMS) {  // no conditions: the loads overlap
#pragma unroll
        for (unsigned row = 0; row < ROWS; ++row) load_row(row);
    } else {
#pragma unroll
        for (unsigned row = 0; row < ROWS; ++row)
            if (row * THREADS_PER_BLOCK + threadIdx.x < left) load_row(row);
    }
}

// Moves the tile's keys to their bins, from bin `first_bin` on: next[bin] says where in `out` the
// next key of a bin goes. Keys are in bit order in `out`, no longer of type T.
template <unsigned ROWS>
__device__ inline void split_tile(const Bits (&bits)[ROWS], Bits* out, unsigned n, int shift,
                                  unsigned first_bin, unsigned bins, unsigned* next) {
    constexpr unsigned TILE_ITEMS = ROWS * THREADS_PER_BLOCK;
    extern __shared__ unsigned long long chunk_memory[];  // a tile
    Bits* const staged = reinterpret_cast<Bits*>(chunk_memory);
    __shared__ __align__(16) unsigned places[MOST_SPLIT_BINS];  // counts, then places in `staged`
    __shared__ unsigned output_shift[MOST_SPLIT_BINS];          // from there to the place in `out`
    const unsigned left = n - blockIdx.x * TILE_ITEMS;
    const auto bin_of = [&](Bits key) { return (key >> shift) - first_bin; };

    for (unsigned b = threadIdx.x; b < bins; b += THREADS_PER_BLOCK) places[b] = 0;
    __syncthreads();  // nobody counts before all is zero
#pragma unroll
    for (unsigned row = 0; row < ROWS; ++row)
        if (row * THREADS_PER_BLOCK + threadIdx.x < left) atomicAdd(&places[bin_of(bits[row])], 1u);
    __syncthreads();  // all have counted
    for (unsigned b = threadIdx.x; b < bins; b += THREADS_PER_BLOCK)
        output_shift[b] = places[b] > 0 ? atomicAdd(&next[first_bin + b], places[b]) : 0;
    __syncthreads();  // the counts have been read
    exclusive_scan_shared<THREADS_PER_BLOCK>(places, bins);
    for (unsigned b = threadIdx.x; b < bins; b += THREADS_PER_BLOCK)
        output_shift[b] -= places[b];  // modulo 2^32
    __syncthreads();                   // the places have been read

    // Lanes that share a bin queue for its counter. In keys that are sorted already whole warps do:
    // their lanes take one atomic together.
    const auto share = [](unsigned bin) {
        return __all_sync(FULL_WARP, bin == __shfl_sync(FULL_WARP, bin, 0));
    };
    if (left >= TILE_ITEMS && share(bin_of(bits[0]))) {
        const unsigned lane = threadIdx.x % 32;
#pragma unroll
        for (unsigned row = 0; row < ROWS; ++row) {
            const unsigned bin = bin_of(bits[row]);
            unsigned place = 0;
            if (share(bin)) {
                if (lane == 0) place = atomicAdd(&places[bin], 32u);
                place = __shfl_sync(FULL_WARP, place, 0) + lane;
            } else {
                place = atomicAdd(&places[bin], 1u);
            }
            staged[place] = bits[row];
        }
    } else {
#pragma unroll
        for (unsigned row = 0; row < ROWS; ++row)
            if (row * THREADS_PER_BLOCK + threadIdx.x < left)
                staged[atomicAdd(&places[bin_of(bits[row])], 1u)] = bits[row];
    }
    __syncthreads();  // the tile is in the order of its bins

    // Neighbours in `staged` are neighbours in `out`, except where the bin changes. A whole tile
    // needs no conditions, so that the loads of its rows overlap.
    const auto write = [&](unsigned place) {
        const Bits key = staged[place];
        out[output_shift[bin_of(key)] + place] = key;
    };
    if (left >= TILE_ITEMS) {
#pragma unroll 8
        for (unsigned row = 0; row < ROWS; ++row) write(row * THREADS_PER_BLOCK + threadIdx.x);
    } else {
#pragma unroll 1
        for (unsigned i = threadIdx.x; i < left; i += THREADS_PER_BLOCK) write(i);
    }
}

// One split of a short array, by all of the top bits.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, BLOCKS_PER_SM) split_into_buckets(
    const T* in, Bits* out, unsigned* words, unsigned n, int top_bits) {
    const Buckets buckets(words, top_bits);
    if (!*buckets.fit) return;
    Bits bits[SHORT_KEYS_PER_THREAD];
    load_tile(in, n, bits);
    split_tile(bits, out, n, BITS - top_bits, 0, 1u << top_bits, buckets.next);
}

// The first of two splits, into groups of buckets.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, BLOCKS_PER_SM) split_into_groups(
    const T* in, Bits* out, unsigned* words, unsigned n, int top_bits) {
    const Buckets buckets(words, top_bits);
    if (!*buckets.fit) return;
    Bits bits[KEYS_PER_THREAD];
    load_tile(in, n, bits);
    split_tile(bits, out, n, BITS - GROUP_BITS, 0, GROUPS, buckets.group_next);
}

// The second: keys come in groups, and the bins of a tile are the buckets of the groups in it.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, BLOCKS_PER_SM) split_groups(
    const Bits* in, Bits* out, unsigned* words, unsigned n, int top_bits) {
    constexpr unsigned TILE_ITEMS = KEYS_PER_THREAD * THREADS_PER_BLOCK;
    const Buckets buckets(words, top_bits);
    if (!*buckets.fit) return;
    Bits bits[KEYS_PER_THREAD];
    load_tile(in, n, bits);
    const unsigned start = blockIdx.x * TILE_ITEMS, left = n - start;
    const unsigned first_group = bucket_of(in[start], GROUP_BITS);
    const unsigned last_group = bucket_of(in[start + min(left, TILE_ITEMS) - 1], GROUP_BITS);
    const unsigned first_bin = first_group << (top_bits - GROUP_BITS);
    const unsigned bins = (last_group + 1 - first_group) << (top_bits - GROUP_BITS);
    if (bins <= MOST_SPLIT_BINS) {
        split_tile(bits, out, n, BITS - top_bits, first_bin, bins, buckets.next);
        return;
    }
    // Many small groups: key by key.
    for (unsigned row = 0; row < KEYS_PER_THREAD; ++row)
        if (row * THREADS_PER_BLOCK + threadIdx.x < left)
            out[atomicAdd(&buckets.next[bucket_of(bits[row], top_bits)], 1u)] = bits[row];
}

// Copies the keys of large buckets, which have to be equal: block `block` of `blocks`.
__device__ inline void copy_large_buckets(const Bits* in, T* out, const Buckets& buckets,
                                          int top_bits, unsigned block, unsigned blocks) {
    if (*buckets.largest <= BUCKET_ITEMS) return;
    const unsigned n = buckets.starts[1u << top_bits];
    const unsigned tile_items = COPY_ROWS * THREADS_PER_BLOCK;
    for (unsigned tile = block; tile < (n + tile_items - 1) / tile_items; tile += blocks) {
        const unsigned first = tile * tile_items + threadIdx.x;
        Bits bits[COPY_ROWS];
#pragma unroll
        for (unsigned row = 0; row < COPY_ROWS; ++row) {
            const unsigned i = first + row * THREADS_PER_BLOCK;
            bits[row] = i < n ? in[i] : 0;
        }
#pragma unroll
        for (unsigned row = 0; row < COPY_ROWS; ++row) {
            const unsigned i = first + row * THREADS_PER_BLOCK;
            const unsigned* const start = buckets.starts + bucket_of(bits[row], top_bits);
            if (i >= n || start[1] - start[0] <= BUCKET_ITEMS) continue;
            if (bits[row] != in[start[0]]) *(volatile unsigned*)buckets.fit = 0;
            out[i] = from_ordered_bits<T>(bits[row]);
        }
    }
}

// Copies the keys if they are equal. The whole block calls it. Not inline: the caller has no
// register to spare.
__device__ __noinline__ bool copy_if_alike(const Bits* in, T* out, unsigned items) {
    bool alike = true;
    for (unsigned i = threadIdx.x; i < items; i += THREADS_PER_BLOCK) alike &= in[i] == in[0];
    if (!__syncthreads_and(alike)) return false;
    for (unsigned i = threadIdx.x; i < items; i += THREADS_PER_BLOCK)
        out[i] = from_ordered_bits<T>(in[0]);
    return true;
}

// A block a bucket, in 2^bin_bits bins by the bits below the top bits. Bins are counted in 16 bits,
// two to a word. The blocks beyond those of buckets take care of the large ones.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, RESIDENT_BUCKETS) sort_buckets(
    const Bits* in, T* out, unsigned* words, int top_bits, int bin_bits) {
    extern __shared__ unsigned long long bucket_memory[];  // BUCKET_ITEMS keys, 2^bin_bits bins
    Bits* const staged = reinterpret_cast<Bits*>(bucket_memory);
    unsigned* const bins = staged + BUCKET_ITEMS;
    const Buckets buckets(words, top_bits);
    const unsigned num_buckets = 1u << top_bits;
    // Other blocks may write the word: all threads agree on what they have read.
    if (!__syncthreads_and(load(buckets.fit) != 0)) return;
    if (blockIdx.x >= num_buckets) {
        copy_large_buckets(in, out, buckets, top_bits, blockIdx.x - num_buckets,
                           gridDim.x - num_buckets);
        return;
    }
    const unsigned start = buckets.starts[blockIdx.x];
    const unsigned items = buckets.starts[blockIdx.x + 1] - start;
    if (threadIdx.x == 0 && TILES_AHEAD > 0 && blockIdx.x + TILES_AHEAD < num_buckets) {
        const unsigned* ahead = buckets.starts + blockIdx.x + TILES_AHEAD;
        const unsigned from = ahead[0] / 4 * 4, to = ahead[1] / 4 * 4;  // of 16 bytes
        if (from < to) prefetch_to_l2(in + from, (to - from) * sizeof(Bits));
    }
    if (items == 0 || items > BUCKET_ITEMS) return;

    const int shift = BITS - top_bits - bin_bits;
    const unsigned bin_words = 1u << (bin_bits - 1), last_bin = (1u << bin_bits) - 1;
    const auto bin_of = [&](Bits key) { return key >> shift & last_bin; };
    const auto count_in = [&](unsigned bin) {  // the count before
        const unsigned both = atomicAdd(&bins[bin / 2], bin % 2 ? 0x10000u : 1u);
        return bin % 2 ? both >> 16 : both & 0xffff;
    };
    Bits bits[BUCKET_KEYS_PER_THREAD];
#pragma unroll
    for (unsigned row = 0; row < BUCKET_KEYS_PER_THREAD; ++row) {
        const unsigned i = row * THREADS_PER_BLOCK + threadIdx.x;
        bits[row] = i < items ? in[start + i] : 0;
    }
    for (unsigned i = threadIdx.x; i < bin_words; i += THREADS_PER_BLOCK) bins[i] = 0;
    // Nobody counts before all is zero. Equal keys would queue for one counter.
    if (__syncthreads_and(threadIdx.x >= items || bits[0] == in[start]) &&
        copy_if_alike(in + start, out + start, items))
        return;
#pragma unroll
    for (unsigned row = 0; row < BUCKET_KEYS_PER_THREAD; ++row)
        if (row * THREADS_PER_BLOCK + threadIdx.x < items) count_in(bin_of(bits[row]));
    __syncthreads();  // all have counted

    exclusive_scan_shared_halves<THREADS_PER_BLOCK>(bins, bin_words);
#pragma unroll
    for (unsigned row = 0; row < BUCKET_KEYS_PER_THREAD; ++row)
        if (row * THREADS_PER_BLOCK + threadIdx.x < items)
            staged[count_in(bin_of(bits[row]))] = bits[row];
    __syncthreads();  // the keys are in their bins, and a bin's counter is its end

    const unsigned short* const ends = reinterpret_cast<const unsigned short*>(bins);
#pragma unroll 2
    for (unsigned i = threadIdx.x; i < items; i += THREADS_PER_BLOCK) {
        const Bits key = staged[i];
        const unsigned bin = bin_of(key), end = ends[bin], first = bin > 0 ? ends[bin - 1] : 0;
        unsigned place = i;
        if (end - first > FULL_BIN) {  // in order if all are equal
            if (i > first && staged[i - 1] != key) *(volatile unsigned*)buckets.fit = 0;
        } else if (end - first > 1) {
            place = first;
            for (unsigned other = first; other < end; ++other)
                place += staged[other] < key || (staged[other] == key && other < i);
        }
        out[start + place] = from_ordered_bits<T>(key);
    }
}

// The safe path, for keys that did not fit.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, BLOCKS_PER_SM) sweep_all(
    const unsigned* words, const T* in, T* spare, T* out, Progress* progress, Word* statuses,
    unsigned n) {
    if (*words) return;
    sweep_all_passes<CHUNK_ROWS>(in, spare, out, progress, statuses, n);
}
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, BLOCKS_PER_SM) sweep_all_short(
    const unsigned* words, const T* in, T* spare, T* out, Progress* progress, Word* statuses,
    unsigned n) {
    if (*words) return;
    sweep_all_passes<SHORT_KEYS_PER_THREAD>(in, spare, out, progress, statuses, n);
}
