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
// PAIRS_PER_THREAD       = 18     # in registers: a tile
// BUCKET_THREADS         = 256
// BUCKET_KEYS_PER_THREAD = 18     # the maximum that a block can sort
// BUCKETS_PER_SM         = 5
// MAX_BIN_BITS           = 12     # of a bucket
// COUNT_THREADS          = 1024
// COUNT_BLOCKS           = "MULTIPROCESSORS"
// COPY_BLOCKS            = "4 * MULTIPROCESSORS"
// MAX_BLOCKS             = "2 * MULTIPROCESSORS"  # of the safe path
// FIRST_BITS             = 7      # of the first split
// RADIX_BITS             = 8      # of the second
// TILES_AHEAD            = 100    # of the tile or bucket that is prefetched
// ///
//
// `most_significant_first` changes the order of equal keys, and of their values with them. Here
// both splits are sweeps, as in `onesweep`: votes rank a tile's keys, and a tile looks back for its
// places. The first sweep is by the top 7 bits. The second is by 8 bits, the lowest of those that
// make a bucket. It treats each segment by itself, that is, all pairs that share the bits above: a
// segment's tiles look back no further than its start. A pair is moved three times instead
// of four: 52 bytes of traffic instead of 68.
//
// Pairs arrive in their bucket in the order of the input, and all keys of a bucket share their top
// bits. A pair's place in the bucket takes no more bits than those: the rest of the key and the
// place make a word of 32 bits. All words are different, so atomics and comparisons may handle them
// in any order, and equal keys still end up as they were. The word also says where the pair's value
// lies, which waits in shared memory meanwhile. A bucket with a bin that is too full for this is
// sorted by sweeps within shared memory, six bits at a time.
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
// MAX_BIN_BITS, COUNT_THREADS, FIRST_BITS, RADIX_BITS, TILES_AHEAD.
#include "common/thread/async_copy.cuh"
#include "radixsort/parts/buckets.cuh"
#include "radixsort/parts/take_tile.cuh"

constexpr unsigned FULL_BIN = 32;  // so many words or more are not compared with each other
constexpr unsigned BUCKET_WARPS = BUCKET_THREADS / 32;
constexpr int STEP_BITS = 6;  // of a sweep within a bucket
constexpr unsigned STEP_RADIX = 1u << STEP_BITS;
// Words of a bucket and four more, values and four more, then bins and their end or the counters of
// sweep_words, and some words for scans.
constexpr unsigned VALUES_AT = BUCKET_ITEMS + 4, BINS_AT = 2 * VALUES_AT;
constexpr unsigned BIN_BYTES = (sizeof(short) << MAX_BIN_BITS) + 16;
constexpr unsigned STEP_BYTES = BUCKET_WARPS * STEP_RADIX * sizeof(unsigned);
constexpr unsigned BUCKET_BYTES =
    BINS_AT * sizeof(T) + (BIN_BYTES > STEP_BYTES ? BIN_BYTES : STEP_BYTES) + 256;
constexpr unsigned RESIDENT_BUCKETS = resident_blocks(BUCKETS_PER_SM, BUCKET_THREADS, BUCKET_BYTES);

static_assert(sizeof(T) == 4 && PAIRS, "pairs of 4-byte keys and values");
static_assert(BUCKET_ITEMS % 4 == 0, "values and bins are aligned to 16 bytes");
static_assert(THREADS_PER_BLOCK >= 1 << FIRST_BITS, "a thread for each segment");

extern "C" __global__ void __launch_bounds__(COUNT_THREADS) count_buckets(const T* keys,
                                                                          Buckets* buckets,
                                                                          unsigned n,
                                                                          int top_bits) {
    count_keys_of_buckets(keys, buckets, n, TopBits{top_bits});
}

// All pairs whose keys share their highest bits.
struct Segment {
    unsigned number, start, end;
    // Its first tile begins at its first key. The tile's number is that of the whole tiles before
    // that key, plus that of the segments before, so that they have enough numbers.
    __device__ unsigned first_tile() const { return start / CHUNK_ITEMS + number; }
    __device__ unsigned last_tile() const { return end / CHUNK_ITEMS + number; }
};

// Sweeps a tile of a segment by WIDTH bits, below the segment_bits bits that the keys share. The
// whole block calls it.
template <int WIDTH>
__device__ inline void sweep_tile_of_segment(const T* in, T* out, const Buckets* buckets,
                                             Word* statuses, Word taken, const Segment& segment,
                                             unsigned n, int top_bits, int segment_bits) {
    __shared__ int hidden_shift;
    const int shift = BITS - WIDTH - segment_bits;
    const int low_bits = top_bits - segment_bits;  // by which the buckets of a segment differ
    const unsigned tile = (unsigned)taken;
    const unsigned tile_start = segment.start + (tile - segment.first_tile()) * CHUNK_ITEMS;
    if (tile_start >= segment.end) return;  // the last tile of a segment may be empty
    if (threadIdx.x == 0) hidden_shift = shift;
    if (threadIdx.x == 0 && TILES_AHEAD > 0 && n - tile_start > (TILES_AHEAD + 1) * CHUNK_ITEMS) {
        const T* const ahead = in + tile_start + TILES_AHEAD * CHUNK_ITEMS;
        prefetch_to_l2(ahead, CHUNK_ITEMS * sizeof(T));
        prefetch_to_l2(ahead + n, CHUNK_ITEMS * sizeof(T));
    }
    // The safe path's sweeps use the same statuses, with lower numbers.
    const unsigned run = 1u << 30 | (unsigned)(taken >> 32);
    const unsigned bucket = (segment.number << low_bits) + (threadIdx.x << (low_bits - WIDTH));
    const bool has_digit = threadIdx.x < 1u << WIDTH;
    LookBack<2> places{statuses, tile, run, has_digit ? buckets->starts[bucket] : 0,
                       segment.first_tile()};
    scatter_chunk<CHUNK_ROWS, WIDTH>(in, out, n, tile_start,
                                     min(segment.end - tile_start, CHUNK_ITEMS), shift,
                                     hidden_shift, places);
}

// The first split: all pairs are one segment. segment_bits is 0, but the compiler would need more
// registers if it knew.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, RESIDENT_SWEEPS)
split_into_segments(const T* in, T* out, Buckets* buckets, Word* statuses, Word* ticket, unsigned n,
                    int top_bits, int segment_bits) {
    if (!buckets->fit) return;
    sweep_tile_of_segment<FIRST_BITS>(in, out, buckets, statuses, take_tile(ticket),
                                      Segment{0, 0, n}, n, top_bits, segment_bits);
}

// The second split, of 2^segment_bits segments.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, RESIDENT_SWEEPS) split_segments(
    const T* in, T* out, Buckets* buckets, Word* statuses, Word* ticket, unsigned n, int top_bits,
    int segment_bits) {
    __shared__ Segment segment;  // of the tile
    if (!buckets->fit) return;
    const int low_bits = top_bits - segment_bits;
    const unsigned s = threadIdx.x;
    const bool is_segment = s < 1u << segment_bits;
    const unsigned start = is_segment ? buckets->starts[s << low_bits] : 0;
    const unsigned end = is_segment ? buckets->starts[(s + 1) << low_bits] : 0;
    const Segment own{s, start, end};
    const Word taken = take_tile(ticket);
    const unsigned tile = (unsigned)taken;
    if (is_segment && tile >= own.first_tile() && tile <= own.last_tile()) segment = own;
    __syncthreads();  // all threads can read the segment
    sweep_tile_of_segment<RADIX_BITS>(in, out, buckets, statuses, taken, segment, n, top_bits,
                                      segment_bits);
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
    extern __shared__ unsigned long long bucket_memory[];
    unsigned* const staged = reinterpret_cast<unsigned*>(bucket_memory);
    T* const values = reinterpret_cast<T*>(staged + VALUES_AT);
    unsigned* const bins = staged + BINS_AT;
    const unsigned num_buckets = 1u << top_bits;
    unsigned start = 0, items = 0;
    if (blockIdx.x < num_buckets) {
        start = buckets->starts[blockIdx.x];
        items = buckets->starts[blockIdx.x + 1] - start;
    }
    // Other blocks may write the word meanwhile: all threads agree on what they have read.
    if (!__syncthreads_and(load(&buckets->fit) != 0)) return;
    if (blockIdx.x >= num_buckets) {
        copy_large_buckets(in, out, buckets, TopBits{top_bits}, num_buckets);
        return;
    }
    if (threadIdx.x == 0 && TILES_AHEAD > 0 && blockIdx.x + TILES_AHEAD < num_buckets)
        prefetch_bucket(in, buckets->starts + blockIdx.x + TILES_AHEAD, n);
    if (items == 0 || items > BUCKET_ITEMS) return;

    in += start;
    out += start;
    // Values are under way until they are used, 16 bytes at a time, from the multiple of 16 bytes
    // before the first of them on.
    const unsigned skipped = (unsigned)(reinterpret_cast<size_t>(in + n) / sizeof(T) % 4);
    const T* const aligned = in + n - skipped;
#pragma unroll 1
    for (unsigned i = 4 * threadIdx.x; i < skipped + items; i += 4 * BUCKET_THREADS)
        copy_async_some(reinterpret_cast<float*>(values + i),
                        reinterpret_cast<const float*>(aligned + i), min(skipped + items - i, 4u));
    commit_copies();

    // A thread's pairs, one in each row, are among the `left` pairs from `first` on. Rows beyond
    // them have the greatest word.
    const unsigned first = threadIdx.x;
    const int left = (int)(items - first);
    const T* own = in + first;
    pin(own);
    const auto inside = [&](unsigned row) { return (int)(row * BUCKET_THREADS) < left; };
    const auto word_of = [&](T key, unsigned i) { return (ordered_bits(key) << top_bits) + i; };
    // Twice the number of a bin is as good: a word of two counters has four bytes.
    const auto twice_bin_of = [&](unsigned word) { return word >> (BITS - 1 - bin_bits); };
    unsigned words[BUCKET_KEYS_PER_THREAD];
    const auto load_rows = [&] {
#pragma unroll
        for (unsigned row = 0; row < BUCKET_KEYS_PER_THREAD; ++row) {
            const unsigned i = row * BUCKET_THREADS;
            words[row] = inside(row) ? word_of(own[i], first + i) : ~0u;
        }
    };
    load_rows();
    const unsigned bin_words = 1u << (bin_bits - 1);
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < bin_words / 4; i += BUCKET_THREADS)
        reinterpret_cast<uint4*>(bins)[i] = make_uint4(0, 0, 0, 0);
    staged[first] = 0;
    // No thread counts before all bins are zero. Equal keys would queue for one counter.
    if (__syncthreads_and(!inside(0) || words[0] >> top_bits == word_of(in[0], 0) >> top_bits)) {
        if (copy_if_equal(in, out, items, n)) {
            wait_for_copies<0>();  // no copy may arrive after the block has ended
            return;
        }
        load_rows();  // again, rather than keep them during the call
    }
    unsigned ranks[(BUCKET_KEYS_PER_THREAD + 1) / 2];  // in its bin, two to a register
    unsigned all_ranks = 0;
#pragma unroll
    for (unsigned row = 0; row < BUCKET_KEYS_PER_THREAD; ++row) {
        // Without a branch: rows beyond the pairs count in a word that is not in use yet.
        const unsigned twice_bin = twice_bin_of(words[row]);
        const bool is_high = twice_bin & 2;
        const unsigned both = atomicAdd(&staged[inside(row) ? BINS_AT + twice_bin / 4 : first],
                                        is_high ? 0x10000u : 1u);  // a bin is shared by the block
        const unsigned rank = is_high ? both >> 16 : both & 0xffff;
        ranks[row / 2] = row % 2 ? ranks[row / 2] | rank << 16 : rank;
        pin(ranks[row / 2]);
        all_ranks |= rank;
    }
    T *out_keys = out, *out_values = out + n;
    pin(out_keys);
    pin(out_values);
    const auto write = [&](unsigned place, unsigned word) {
        out_keys[place] = from_ordered_bits<T>(blockIdx.x << (BITS - top_bits) | word >> top_bits);
        out_values[place] = values[skipped + (word & (num_buckets - 1))];
    };
    // All have counted; one full bin is enough.
    if (__syncthreads_or(all_ranks >= FULL_BIN)) {
        for (unsigned i = threadIdx.x; i < items; i += BUCKET_THREADS)
            staged[i] = word_of(in[i], i);
        wait_for_copies<0>();
        __syncthreads();  // the words are ready, and all values have arrived
        sweep_words(staged, bins, items, top_bits);
        for (unsigned i = threadIdx.x; i < items; i += BUCKET_THREADS) write(i, staged[i]);
        return;
    }

    exclusive_scan_shared_halves<BUCKET_THREADS>(bins, bin_words);
    if (threadIdx.x == 0) {
        bins[bin_words] = items;     // where the last bin ends
        staged[BUCKET_ITEMS] = ~0u;  // as greater than all words before as those beyond the pairs
    }
    const unsigned short* const starts = reinterpret_cast<const unsigned short*>(bins);
#pragma unroll
    for (unsigned row = 0; row < BUCKET_KEYS_PER_THREAD; ++row) {
        const unsigned rank = ranks[row / 2] >> row % 2 * 16 & 0xffff;
        const unsigned place = starts[twice_bin_of(words[row]) / 2] + rank;
        staged[inside(row) ? place : first + row * BUCKET_THREADS] = words[row];
    }
    wait_for_copies<0>();
    __syncthreads();  // the words are in their bins, and all values have arrived

#pragma unroll 2
    for (unsigned i = threadIdx.x; i < items; i += BUCKET_THREADS) {
        const unsigned word = staged[i], bin = twice_bin_of(word) / 2, from = starts[bin];
        const unsigned *other = staged + from, *const end = staged + starts[bin + 1];
        // A smaller word subtracts one from the high half, by its borrow.
        unsigned long long borrows = 0;
        const auto compare = [&](unsigned one) {
            borrows = ((borrows & ~0ull << 32) | one) - word;
        };
#pragma unroll 1  // a bin rarely has more than two or three; words behind its end are greater
        do {
            compare(other[0]);
            compare(other[1]);
            other += 2;
        } while (other < end);
        write(from - (unsigned)(borrows >> 32), word);
    }
}

// Source: Stehle and Jacobsen, A Memory Bandwidth-Efficient Hybrid Radix Sort on GPUs. SIGMOD 2017.
