// /// cudalab
// summary  = "Pairs: stable splits by the top bits, then buckets sorted with each pair's place"
// order    = 10
// ladder   = "pairs"
// adds     = "stable splits by the top bits, buckets sorted with their values"
// dispatch = "most_significant_first_stable"
// default  = ["cuda"]
// applies  = { dtype = ["uint32", "int32", "float32"], layout = ["pairs"] }
// requires = ["shared_96kb"]
//
// [defines]
// THREADS_PER_BLOCK      = 512
// BLOCKS_PER_SM          = 2      # leaves a thread 64 registers
// PAIRS_PER_THREAD       = 16     # in registers: a tile
// BUCKET_THREADS         = 512
// BUCKET_KEYS_PER_THREAD = 9      # the maximum that a block can sort
// BUCKETS_PER_SM         = 4
// MAX_BIN_BITS           = 12     # of a bucket
// COUNT_THREADS          = 1024
// COUNT_BLOCKS           = "MULTIPROCESSORS"
// COPY_BLOCKS            = "4 * MULTIPROCESSORS"
// MAX_BLOCKS             = "2 * MULTIPROCESSORS"  # of the safe path
// RADIX_BITS             = 8
// TILES_AHEAD            = 100    # of the tile or bucket that is prefetched
// ///
//
// `most_significant_first` changes the order of equal keys, and of their values with them. Here
// both splits are sweeps, as in `onesweep`: votes rank a tile's keys, and a tile looks back for its
// places. The first sweep is by the top 8 bits. The second is by 8 bits too, the lowest of those
// that make a bucket. It treats each segment by itself, that is, all pairs that share the bits
// above: a segment's tiles look back no further than its start. A pair is moved three times instead
// of four: 52 bytes of traffic instead of 68.
//
// Pairs arrive in their bucket in the order of the input, and all keys of a bucket share their top
// bits. A pair's place in the bucket takes no more bits than those: the rest of the key and the
// place make a word of 32 bits. All words are different, so atomics and comparisons may handle them
// in any order, and equal keys still end up as they were. The word also says where the pair's value
// lies, which waits in shared memory meanwhile. A bucket whose bins are too full for this is sorted
// by sweeps within shared memory, six bits at a time.
//
// The default for pairs, it is built of more than the rungs before it: besides the buckets and the
// safe path of `most_significant_first` it has the look-back of `onesweep`, without which splits
// are not stable, and copies that are on their way while keys are ranked.
//
// Limits: if a bucket is too large for a block and its keys are not equal, everything is sorted by
// sweeps. The places in a bucket take 13 bits, so short arrays are split into far more buckets than
// they need.
//
// Macros from outside: T (element type), PAIRS (1: a value follows each key), THREADS_PER_BLOCK,
// BLOCKS_PER_SM, PAIRS_PER_THREAD, BUCKET_THREADS, BUCKET_KEYS_PER_THREAD, BUCKETS_PER_SM,
// MAX_BIN_BITS, COUNT_THREADS, RADIX_BITS, TILES_AHEAD.
#include "common/thread/async_copy.cuh"
#include "radixsort/parts/buckets.cuh"
#include "radixsort/parts/take_tile.cuh"

constexpr unsigned FULL_BIN = 32;  // more words than this are not compared with each other
constexpr unsigned BUCKET_WARPS = BUCKET_THREADS / 32;
constexpr int STEP_BITS = 6;  // of a sweep within a bucket
constexpr unsigned STEP_RADIX = 1u << STEP_BITS;
// Words of a bucket and four more, values, then bins and their end or the counters of sweep_words,
// and some words for scans.
constexpr unsigned BIN_BYTES = (sizeof(short) << MAX_BIN_BITS) + 16;
constexpr unsigned STEP_BYTES = BUCKET_WARPS * STEP_RADIX * sizeof(unsigned);
constexpr unsigned BUCKET_BYTES =
    (BUCKET_ITEMS * 2 + 4) * sizeof(T) + (BIN_BYTES > STEP_BYTES ? BIN_BYTES : STEP_BYTES) + 256;
constexpr unsigned RESIDENT_BUCKETS = resident_blocks(BUCKETS_PER_SM, BUCKET_THREADS, BUCKET_BYTES);

static_assert(sizeof(T) == 4 && PAIRS, "pairs of 4-byte keys and values");

extern "C" __global__ void __launch_bounds__(COUNT_THREADS) count_buckets(const T* keys,
                                                                          Buckets* buckets,
                                                                          unsigned n,
                                                                          int top_bits) {
    count_keys_of_buckets(keys, buckets, n, TopBits{top_bits});
}

// Sweeps over 2^segment_bits segments by RADIX_BITS bits; the keys of a segment share the
// segment_bits bits above these. A segment's tiles begin at its first key. The first tile of
// segment s has the number of whole tiles before that key, plus s, so that the segments before it
// have enough numbers.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, RESIDENT_SWEEPS) split(
    const T* in, T* out, Buckets* buckets, Word* statuses, Word* ticket, unsigned n, int top_bits,
    int segment_bits) {
    __shared__ int hidden_shift;
    __shared__ unsigned segment, start, end;  // of the tile
    if (!buckets->fit) return;
    const int shift = BITS - RADIX_BITS - segment_bits;
    const int low_bits = top_bits - segment_bits;  // by which the buckets of a segment differ
    const unsigned s = threadIdx.x;
    const bool is_segment = s < 1u << segment_bits;
    const unsigned from = is_segment ? buckets->starts[s << low_bits] : 0;
    const unsigned to = is_segment ? buckets->starts[(s + 1) << low_bits] : 0;
    if (threadIdx.x == 0) hidden_shift = shift;
    const Word taken = take_tile(ticket);
    const unsigned tile = (unsigned)taken;
    if (is_segment && tile >= from / CHUNK_ITEMS + s && tile < to / CHUNK_ITEMS + s + 1) {
        segment = s;
        start = from;
        end = to;
    }
    __syncthreads();  // all threads can read the segment

    const unsigned first_tile = start / CHUNK_ITEMS + segment;
    const unsigned tile_start = start + (tile - first_tile) * CHUNK_ITEMS;
    if (tile_start >= end) return;  // the last tile of a segment may be empty
    if (threadIdx.x == 0 && TILES_AHEAD > 0 && n - tile_start > (TILES_AHEAD + 1) * CHUNK_ITEMS) {
        const T* const ahead = in + tile_start + TILES_AHEAD * CHUNK_ITEMS;
        prefetch_to_l2(ahead, CHUNK_ITEMS * sizeof(T));
        prefetch_to_l2(ahead + n, CHUNK_ITEMS * sizeof(T));
    }
    // The safe path's sweeps use the same statuses, with lower numbers.
    const unsigned run = 1u << 30 | (unsigned)(taken >> 32);
    const unsigned bucket = (segment << low_bits) + (threadIdx.x << (low_bits - RADIX_BITS));
    LookBack<1> places{statuses, tile, run, threadIdx.x < RADIX ? buckets->starts[bucket] : 0,
                       first_tile};
    scatter_chunk<CHUNK_ROWS>(in, out, n, tile_start, min(end - tile_start, CHUNK_ITEMS), shift,
                              hidden_shift, places);
}

// Sorts the block's words by the bits from `low` on; words that agree in these keep their order.
// The whole block calls it.
__device__ inline void sweep_words(unsigned* staged, unsigned* counters, unsigned items, int low) {
    const unsigned warp = threadIdx.x / 32;
    const unsigned first = warp * BUCKET_KEYS_PER_THREAD * 32 + threadIdx.x % 32;
    unsigned* const warp_counters = counters + warp * STEP_RADIX;
    // The last digit reaches up to the highest bit, and may repeat bits of the one before.
    for (int shift = low; shift < BITS; shift += STEP_BITS) {
        shift = min(shift, BITS - STEP_BITS);
        Bits words[BUCKET_KEYS_PER_THREAD];
        unsigned ranks[(BUCKET_KEYS_PER_THREAD + 1) / 2];
#pragma unroll
        for (unsigned row = 0; row < BUCKET_KEYS_PER_THREAD; ++row)  // past the end: stay behind
            words[row] = first + row * 32 < items ? staged[first + row * 32] : ~0u;
        rank_rows<STEP_BITS>(words, shift, warp_counters, ranks);
#pragma unroll
        for (unsigned row = 0; row < BUCKET_KEYS_PER_THREAD; ++row) pin(words[row]);
        __syncthreads();  // all warps have counted, and have their words in registers

        unsigned count = 0, total;
        if (threadIdx.x < STEP_RADIX)
#pragma unroll 4
            for (unsigned w = 0; w < BUCKET_WARPS; ++w)
                count += counters[w * STEP_RADIX + threadIdx.x];
        unsigned place = exclusive_scan_block<BUCKET_THREADS>(count, total);
        if (threadIdx.x < STEP_RADIX)
#pragma unroll 4
            for (unsigned w = 0; w < BUCKET_WARPS; ++w) {
                const unsigned warp_count = counters[w * STEP_RADIX + threadIdx.x];
                counters[w * STEP_RADIX + threadIdx.x] = place;
                place += warp_count;
            }
        __syncthreads();  // the places are ready
#pragma unroll
        for (unsigned row = 0; row < BUCKET_KEYS_PER_THREAD; ++row) {
            const unsigned rank = ranks[row / 2] >> row % 2 * 16 & 0xffff;
            staged[warp_counters[digit_at(words[row], shift, STEP_BITS)] + rank] = words[row];
        }
        __syncthreads();  // the words are in the order of the digit
    }
}

// A block sorts a bucket in 2^bin_bits bins, by the bits below the top bits. Bins are counted in 16
// bits, two to a word. The blocks beyond those of the buckets copy the large buckets.
extern "C" __global__ void __launch_bounds__(BUCKET_THREADS, RESIDENT_BUCKETS) sort_buckets(
    const T* in, T* out, Buckets* buckets, unsigned n, int top_bits, int bin_bits) {
    // BUCKET_ITEMS words and four more, as many values, then 2^bin_bits bins and one more or the
    // counters of sweep_words
    extern __shared__ unsigned long long bucket_memory[];
    unsigned* const staged = reinterpret_cast<unsigned*>(bucket_memory);
    T* const values = reinterpret_cast<T*>(staged + BUCKET_ITEMS + 4);
    unsigned* const bins = staged + 2 * BUCKET_ITEMS + 4;
    const unsigned num_buckets = 1u << top_bits;
    // Other blocks may write the word meanwhile: all threads agree on what they have read.
    if (!__syncthreads_and(load(&buckets->fit) != 0)) return;
    if (blockIdx.x >= num_buckets) {
        copy_large_buckets(in, out, buckets, TopBits{top_bits}, num_buckets);
        return;
    }
    const unsigned start = buckets->starts[blockIdx.x];
    const unsigned items = buckets->starts[blockIdx.x + 1] - start;
    if (threadIdx.x == 0 && TILES_AHEAD > 0 && blockIdx.x + TILES_AHEAD < num_buckets)
        prefetch_bucket(in, buckets->starts + blockIdx.x + TILES_AHEAD, n);
    if (items == 0 || items > BUCKET_ITEMS) return;

    in += start;
    out += start;
    // A thread's pairs, one in each row, are among the `left` pairs from `first` on.
    const unsigned first = threadIdx.x;
    const int left = (int)(items - first);
    const auto inside = [&](unsigned row) { return (int)(row * BUCKET_THREADS) < left; };
    const auto word_of = [&](unsigned i) { return ordered_bits(in[i]) << top_bits | i; };
    const unsigned bin_words = 1u << (bin_bits - 1);
    const auto bin_of = [&](unsigned word) { return word >> (BITS - bin_bits); };
    const auto count_in = [&](unsigned bin) {  // returns the count before
        const unsigned both = atomicAdd(&bins[bin / 2], bin % 2 ? 0x10000u : 1u);
        return bin % 2 ? both >> 16 : both & 0xffff;
    };
    unsigned row_words[BUCKET_KEYS_PER_THREAD];
    const auto load_rows = [&] {
#pragma unroll
        for (unsigned row = 0; row < BUCKET_KEYS_PER_THREAD; ++row)
            row_words[row] = inside(row) ? word_of(first + row * BUCKET_THREADS) : 0;
    };
    load_rows();
#pragma unroll
    for (unsigned row = 0; row < BUCKET_KEYS_PER_THREAD; ++row)  // under way until they are used
        if (inside(row))
            copy_async(reinterpret_cast<float*>(values + first) + row * BUCKET_THREADS,
                       reinterpret_cast<const float*>(in + n + first) + row * BUCKET_THREADS);
    commit_copies();
    for (unsigned i = threadIdx.x; i < bin_words; i += BUCKET_THREADS) bins[i] = 0;
    // No thread counts before all bins are zero. Equal keys would queue for one counter.
    if (__syncthreads_and(!inside(0) || row_words[0] >> top_bits == word_of(0) >> top_bits)) {
        if (copy_if_equal(in, out, items, n)) {
            wait_for_copies<0>();  // no copy may arrive after the block has ended
            return;
        }
        load_rows();  // again, rather than keep them during the call
    }
    unsigned ranks[(BUCKET_KEYS_PER_THREAD + 1) / 2];  // in its bin, two to a register
#pragma unroll
    for (unsigned row = 0; row < BUCKET_KEYS_PER_THREAD; ++row) {
        const unsigned rank = inside(row) ? count_in(bin_of(row_words[row])) : 0;
        ranks[row / 2] = row % 2 ? ranks[row / 2] | rank << 16 : rank;
        pin(ranks[row / 2]);
    }
    __syncthreads();  // all have counted

    exclusive_scan_shared_halves<BUCKET_THREADS>(bins, bin_words);
    if (threadIdx.x == 0) {
        bins[bin_words] = items;  // where the last bin ends
        staged[items] = ~0u;      // greater than all words before
    }
    const unsigned short* const starts = reinterpret_cast<const unsigned short*>(bins);
#pragma unroll
    for (unsigned row = 0; row < BUCKET_KEYS_PER_THREAD; ++row) {
        const unsigned rank = ranks[row / 2] >> row % 2 * 16 & 0xffff;
        if (inside(row)) staged[starts[bin_of(row_words[row])] + rank] = row_words[row];
    }
    wait_for_copies<0>();
    __syncthreads();  // the words are in their bins, and all values have arrived

    const auto write = [&](unsigned place, unsigned word) {
        out[place] = from_ordered_bits<T>(blockIdx.x << (BITS - top_bits) | word >> top_bits);
        out[n + place] = values[word & (num_buckets - 1)];
    };
    bool full = false;
#pragma unroll 2
    for (unsigned i = threadIdx.x; i < items; i += BUCKET_THREADS) {
        const unsigned word = staged[i], bin = bin_of(word);
        const unsigned from = starts[bin], to = starts[bin + 1];
        unsigned place = from;
        if (to - from > FULL_BIN) {
            full = true;
            place = i;
        } else {
            unsigned other = from;
#pragma unroll 1  // a bin rarely has more than two or three; words behind its end are greater
            do {
                const bool one = staged[other] < word, two = staged[other + 1] < word;
                place += one;
                place += two;
                other += 2;
            } while (other < to);
        }
        write(place, word);
    }
    // One full bin is enough. Also: all have read the words, which are overwritten below.
    if (!__syncthreads_or(full)) return;

    // Once more, from the order in which the pairs arrived.
    for (unsigned i = threadIdx.x; i < items; i += BUCKET_THREADS) staged[i] = word_of(i);
    __syncthreads();  // the words are ready
    sweep_words(staged, bins, items, top_bits);
    for (unsigned i = threadIdx.x; i < items; i += BUCKET_THREADS) write(i, staged[i]);
}

// Source: Stehle and Jacobsen, A Memory Bandwidth-Efficient Hybrid Radix Sort on GPUs. SIGMOD 2017.
