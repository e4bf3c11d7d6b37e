// Buckets of unequal width: narrow where a sample has many keys, wide where it has few.
//
// One launch looks at a sample of the keys and cuts their range into 2^12 cells of equal width. A
// cell with many sampled keys becomes 2, 4, 8, ... buckets; neighbouring cells with few become one
// bucket. Whatever the sample was like, a bucket is a range of keys, and the buckets are in order;
// the count that follows finds out whether each of them fits into a block.
//
// The width of a bucket is a power of two, and it begins at a multiple of its width. So a single
// look at a table of cells tells which bucket a key is in, and by which bits to sort the bucket.
//
// If the keys are spread evenly over a part of all possible keys, the sample's range is divided
// instead, by a multiplication.
#pragma once
#include "common/warp/warp_sum.cuh"
#include "radixsort/parts/buckets.cuh"

constexpr int CELL_BITS = 12;
constexpr unsigned CELLS = 1u << CELL_BITS;
constexpr int BITS_BELOW_CELL = BITS - CELL_BITS;
constexpr unsigned SAMPLES = 4;  // sampled keys per thread
// Cells cover three times the range of the sample if that makes them narrower by at least so many
// bits. Otherwise they cover all possible keys: no sample of floats between 0 and 1, say, has the
// smallest.
constexpr int MIN_NARROWING = 6;
constexpr unsigned FILLS = 5;             // how many limits to try for how full buckets may be
constexpr unsigned MAX_QUICK_SWEEPS = 2;  // so many sweeps take less time than buckets

// A range of keys is divided evenly if a bucket has at least so many values.
constexpr unsigned MIN_SPAN = 16;

// How to sort, as the sample has decided; the first three are buckets.
enum Plan : unsigned { BY_TOP_BITS, BY_RANGE, BY_CELLS, BY_FEW_SWEEPS, BY_SWEEPS };

// The sample's results. All of it is zero before the first launch.
struct __align__(8) Cells {
    unsigned plan;
    unsigned lowest;       // the first key of the first cell
    int narrowing;         // a cell is 2^(BITS_BELOW_CELL - narrowing) keys wide
    int bucket_bits;       // there are 2^bucket_bits buckets; the last may be empty
    unsigned blocks_done;  // zero between launches, like the next five
    unsigned ones, zeros;  // the bits that are 1 in some key, and those that are 0
    unsigned greatest, greatest_complement;  // of the sampled keys, and of their complements
    unsigned last_place, factor;             // of RangeBuckets
    unsigned counts[CELLS];                  // of sampled keys
    unsigned first_buckets[CELLS];  // in the low half; in the high half the base-2 logarithm of its
                                    // width, as if cells were 2^BITS_BELOW_CELL keys wide
};

__constant__ unsigned cells_bytes = sizeof(Cells);  // for the host

// Which bucket a key belongs to: one of 2^top_bits parts of a range. A key beyond the range has the
// place of the nearest key within it.
struct RangeBuckets {
    static constexpr unsigned COPY_ROWS = 4;  // as many as the registers allow
    unsigned lowest, last_place, factor;
    int top_bits;

    __device__ RangeBuckets(unsigned lowest, unsigned highest, int top_bits)
        : lowest(lowest),
          last_place(highest - lowest),
          factor((unsigned)((1ull << (BITS + top_bits)) / (last_place + 1ull))),
          top_bits(top_bits) {}
    __device__ RangeBuckets(const Cells& cells, int top_bits)
        : lowest(cells.lowest),
          last_place(cells.last_place),
          factor(cells.factor),
          top_bits(top_bits) {}
    __device__ unsigned operator()(Bits key) const {
        return __umulhi(min(max(key, lowest) - lowest, last_place), factor);
    }
    __device__ unsigned buckets() const { return 1u << top_bits; }
    __device__ int low_bits() const { return top_bits - (int)GROUP_BITS; }
    // No key of the bucket is less. Rounding makes `factor` too small, so buckets begin a little
    // later than this.
    __device__ unsigned first_key(unsigned bucket) const {
        return lowest + (unsigned)(bucket * (last_place + 1ull) >> top_bits);
    }
    // In how many bits the keys of a bucket differ from its first key, at most.
    __device__ int width_bits() const {
        const unsigned later = last_place / factor + 1;  // how much, at most
        return BITS - __clz((int)((last_place >> top_bits) + 1 + later));
    }
    // Whether the bucket takes keys from beyond the range.
    __device__ bool takes_others(unsigned bucket) const {
        return (lowest > 0 && bucket == 0) ||
               (~0u - lowest > last_place && bucket == (1u << top_bits) - 1);
    }
};

// Which bucket a key belongs to: its cell's bucket, or one of them.
struct CellBuckets {
    static constexpr unsigned COPY_ROWS = 4;  // as many as the registers allow
    const unsigned* first_buckets;
    unsigned lowest;
    int narrowing, bucket_bits;

    __device__ explicit CellBuckets(const Cells& cells)
        : first_buckets(cells.first_buckets),
          lowest(cells.lowest),
          narrowing(cells.narrowing),
          bucket_bits(cells.bucket_bits) {}
    // Where a key lies among the cells, each of which is 2^BITS_BELOW_CELL places wide. A key
    // beyond the cells has the place of the nearest key within them.
    __device__ static unsigned place(Bits key, unsigned lowest, int narrowing) {
        return min(max(key, lowest) - lowest, ~0u >> narrowing) << narrowing;
    }
    __device__ unsigned place(Bits key) const { return place(key, lowest, narrowing); }
    // The bucket of a place, given its cell's entry in the table.
    __device__ static unsigned bucket_at(unsigned at, unsigned cell) {
        return (cell & 0xffff) + ((at & ((1u << BITS_BELOW_CELL) - 1)) >> (cell >> 16));
    }
    __device__ unsigned operator()(Bits key) const {
        const unsigned at = place(key);
        return bucket_at(at, __ldg(first_buckets + (at >> BITS_BELOW_CELL)));
    }
    __device__ unsigned buckets() const { return 1u << bucket_bits; }
    __device__ int low_bits() const { return bucket_bits - (int)GROUP_BITS; }
    // The base-2 logarithm of the width of the key's bucket.
    __device__ int width_bits(Bits key) const {
        return (int)(__ldg(first_buckets + (place(key) >> BITS_BELOW_CELL)) >> 16) - narrowing;
    }
    // Whether the bucket takes keys from beyond the cells.
    __device__ bool takes_others(unsigned bucket) const {
        return (lowest > 0 && bucket == (*this)(0)) ||
               (~0u - lowest > ~0u >> narrowing && bucket == (*this)(~0u));
    }
};

// The smallest of the warp's values, for all its lanes.
__device__ inline unsigned warp_min(unsigned value) {
    for (unsigned distance = 16; distance > 0; distance /= 2)
        value = min(value, __shfl_xor_sync(FULL_WARP, value, distance));
    return value;
}
// The bits that are set in any of the warp's values.
__device__ inline unsigned warp_or(unsigned value) {
    for (unsigned distance = 16; distance > 0; distance /= 2)
        value |= __shfl_xor_sync(FULL_WARP, value, distance);
    return value;
}

// The base-2 logarithm of the width of a cell's buckets. counts[c] sampled keys come before cell c;
// a bucket may have `room` of them. Sampled counts vary by about their square root, so a bucket
// with k sampled keys counts as (sqrt(k) + 1)^2, two deviations more: few buckets then turn out too
// large. `width`: the answer for less room, to start from.
__device__ inline int width_by_sample(const unsigned* counts, unsigned cell, float room,
                                      int min_width, int width) {
    const float root = sqrtf(room) - 1;
    const float limit = root * fabsf(root);
    const auto keys_in = [&](unsigned first, unsigned cells) {
        return (float)(counts[first + cells] - counts[first]);
    };
    const float keys = keys_in(cell, 1);
    width = max(width, BITS_BELOW_CELL);
    if (keys > limit) {  // as many halvings as it takes
        const float wanted = sqrtf(keys) + 1;
        int power;
        const float part = frexpf(wanted * wanted / room, &power);
        width = max(width - (part > 0.5f ? power : power - 1), min_width);
    } else {
        unsigned run = 2u << (width - BITS_BELOW_CELL);
        for (; run < CELLS && keys_in(cell / run * run, run) <= limit; run *= 2) ++width;
    }
    return width;
}

// Turns cells into buckets; false if there would be more than 2^bucket_bits of them. `counts`: the
// number of sampled keys in each cell, and one more word. `full`: how many sampled keys to expect
// in the largest bucket that a block can sort. `first_buckets` becomes the table in Cells. The
// whole block calls it.
__device__ inline bool cut_buckets(unsigned* first_buckets, unsigned* counts, float full,
                                   int narrowing, int bucket_bits) {
    __shared__ unsigned totals[FILLS];  // of buckets
    const unsigned last_count = counts[CELLS - 1];
    if (threadIdx.x < FILLS) totals[threadIdx.x] = 0;
    exclusive_scan_shared<COUNT_THREADS>(counts, CELLS);
    if (threadIdx.x == 0) counts[CELLS] = counts[CELLS - 1] + last_count;
    __syncthreads();  // all sums are ready, also the one after the last cell
    const int min_width = max(narrowing, BITS_BELOW_CELL - bucket_bits);
    // The number of a cell's buckets; the first cell of a run stands for the whole run.
    const auto buckets_of = [](unsigned cell, int width) {
        const unsigned run = 1u << max(width - BITS_BELOW_CELL, 0);
        return cell % run > 0 ? 0 : 1u << max(BITS_BELOW_CELL - width, 0);
    };
    int widths[CELLS / COUNT_THREADS] = {};
    // Buckets should be half full, which leaves ample room for error; if that makes too many of
    // them, they have to be fuller.
    for (unsigned fill = 0; fill < FILLS; ++fill) {
        const float room = (0.5f + 0.11f * (float)fill) * full;
        unsigned mine = 0;
#pragma unroll
        for (unsigned i = 0; i < CELLS / COUNT_THREADS; ++i) {
            const unsigned cell = i * COUNT_THREADS + threadIdx.x;
            widths[i] = width_by_sample(counts, cell, room, min_width, widths[i]);
            first_buckets[cell] = buckets_of(cell, widths[i]);
            mine += first_buckets[cell];
        }
        mine = sum_over_warp(mine);
        if (threadIdx.x % 32 == 0) atomicAdd(&totals[fill], mine);
        __syncthreads();  // the total and the numbers of buckets are ready
        if (totals[fill] > 1u << bucket_bits) continue;
        exclusive_scan_shared<COUNT_THREADS>(first_buckets, CELLS);
        unsigned entries[CELLS / COUNT_THREADS];
#pragma unroll
        for (unsigned i = 0; i < CELLS / COUNT_THREADS; ++i) {
            const unsigned cell = i * COUNT_THREADS + threadIdx.x;
            const unsigned run = 1u << max(widths[i] - BITS_BELOW_CELL, 0);
            entries[i] = first_buckets[cell / run * run] | (unsigned)widths[i] << 16;
        }
        __syncthreads();  // all have read them
#pragma unroll
        for (unsigned i = 0; i < CELLS / COUNT_THREADS; ++i)
            first_buckets[i * COUNT_THREADS + threadIdx.x] = entries[i];
        __syncthreads();  // all threads can read them
        return true;
    }
    return false;
}

// Whether some bucket has far more keys of this block's sample than expected, not all of them
// equal. Such keys crowd together within a cell, which counts of cells cannot show. `full`: how
// many keys of the block's sample to expect in the largest bucket that a block can sort. `words`:
// 4096 words of shared memory. The whole block calls it.
template <class BucketOf>
__device__ inline bool is_uneven(const Bits (&sample)[SAMPLES], unsigned* words, float full,
                                 const BucketOf& bucket_of) {
    constexpr unsigned SEATS = 2048;
    const unsigned crowd = (unsigned)(full + 4 * sqrtf(full)) + 7;
    unsigned *const keys = words, *const unlike = keys + SEATS;
    for (unsigned i = threadIdx.x; i < SEATS; i += COUNT_THREADS) unlike[i] = 0;
    // Every bucket has a seat, which some buckets share, and one key takes it. The more of the keys
    // that want a seat belong to one bucket, the likelier it goes to a key of that bucket.
#pragma unroll
    for (unsigned s = 0; s < SAMPLES; ++s)
        atomicExch(&keys[bucket_of(sample[s]) % SEATS], sample[s]);
    __syncthreads();  // all seats are taken, all is zero
    bool is_full = false;
#pragma unroll
    for (unsigned s = 0; s < SAMPLES; ++s) {
        const unsigned bucket = bucket_of(sample[s]), seat = bucket % SEATS;
        if (sample[s] != keys[seat] && bucket_of(keys[seat]) == bucket)
            is_full |= atomicAdd(&unlike[seat], 1u) >= crowd;
    }
    return __syncthreads_or(is_full);  // one thread that saw a full bucket speaks for all
}

// Draws a sample of SAMPLES keys for each thread; the last block to finish decides how to sort and
// writes `cells`. All threads of that block first call instead(sample, repeats, quick) with their
// part of the sample, how many of 1,024 keys have an equal in their warp, and whether a few sweeps
// will do. If this returns any plan but BY_TOP_BITS, that is the decision. The whole grid calls
// this function; it returns true in the one thread that has written the decision.
template <class Instead>
__device__ inline bool decide_by_sample(const T* keys, Cells* cells, unsigned n, int top_bits,
                                        int bucket_bits, const Instead& instead) {
    __shared__ __align__(16) unsigned counters[CELLS + 4], first_buckets[CELLS];
    __shared__ unsigned smallest, smallest_complement;  // of the keys that all blocks see
    __shared__ unsigned ones, zeros;                    // of those that this block has drawn
    __shared__ unsigned greatest, greatest_complement;  // of the same
    __shared__ bool is_last;
    const unsigned stride = gridDim.x * COUNT_THREADS;
    // Key i of `of` keys. They are spread over the array, but unevenly, since it may be periodic.
    const auto sampled = [&](unsigned i, unsigned of) {
        const unsigned step = n / of;
        return ordered_bits(keys[i * step + __umulhi((i + 1) * 2654435761u, step)]);
    };
    const bool first_lane = threadIdx.x % 32 == 0;
    for (unsigned c = threadIdx.x; c < CELLS; c += COUNT_THREADS) counters[c] = 0;
    if (threadIdx.x == 0) {
        smallest = smallest_complement = ~0u;
        ones = zeros = greatest = greatest_complement = 0;
    }
    // All blocks see the same keys here, and choose the same cells.
    const Bits key = sampled(threadIdx.x, COUNT_THREADS);
    Bits own[SAMPLES];
#pragma unroll
    for (unsigned s = 0; s < SAMPLES; ++s)
        own[s] = sampled(s * stride + blockIdx.x * COUNT_THREADS + threadIdx.x, SAMPLES * stride);
    // If most keys have one of a few values, some keys of a warp are equal.
    const bool repeated = __popc(__match_any_sync(FULL_WARP, key)) > 1;
    // Also: no thread counts before all counters are zero.
    const int repeats = __syncthreads_count(repeated);
    const bool few_values = repeats > (int)COUNT_THREADS / 4;
    const unsigned warp_smallest = warp_min(key), warp_complement = warp_min(~key);
    if (first_lane) atomicMin(&smallest, warp_smallest);
    if (first_lane) atomicMin(&smallest_complement, warp_complement);
    __syncthreads();  // the sample's range is ready
    // Three times the range: few keys lie beyond it.
    const unsigned range = ~smallest_complement - smallest;
    unsigned lowest = smallest - min(range, smallest);
    const unsigned width = ~smallest_complement + min(range, smallest_complement) - lowest;
    int narrowing = min(__clz((int)width), BITS_BELOW_CELL);
    if (narrowing < MIN_NARROWING) narrowing = lowest = 0;

    unsigned own_ones = 0, own_zeros = 0, own_least = ~0u, own_least_complement = ~0u;
#pragma unroll
    for (unsigned s = 0; s < SAMPLES; ++s) {
        own_ones |= own[s];
        own_zeros |= ~own[s];
        own_least = min(own_least, own[s]);
        own_least_complement = min(own_least_complement, ~own[s]);
        const unsigned place = own[s] - lowest;
        if (place <= ~0u >> narrowing)
            atomicAdd(&counters[place << narrowing >> BITS_BELOW_CELL], 1u);
    }
    own_ones = warp_or(own_ones);
    own_zeros = warp_or(own_zeros);
    own_least = warp_min(own_least);
    own_least_complement = warp_min(own_least_complement);
    if (first_lane) atomicOr(&ones, own_ones);
    if (first_lane) atomicOr(&zeros, own_zeros);
    if (first_lane) atomicMax(&greatest, ~own_least_complement);
    if (first_lane) atomicMax(&greatest_complement, ~own_least);
    __syncthreads();  // all have counted

    for (unsigned c = threadIdx.x; c < CELLS; c += COUNT_THREADS)
        if (counters[c] > 0) atomicAdd(&cells->counts[c], counters[c]);  // shared by all blocks
    when_written([&] {
        atomicOr(&cells->ones, ones);
        atomicOr(&cells->zeros, zeros);
        atomicMax(&cells->greatest, greatest);
        atomicMax(&cells->greatest_complement, greatest_complement);
        __threadfence();
        is_last = atomicInc(&cells->blocks_done, gridDim.x - 1) == gridDim.x - 1;  // wraps to 0
        __threadfence();  // the counts are read after the last block has said that it is done
    });
    __syncthreads();  // is_last is known
    if (!is_last) return false;

    // How many sampled keys to expect in the largest bucket that a block can sort.
    const float full = (float)(SAMPLES * stride) / n * BUCKET_ITEMS;
    // The range of the samples and two buckets more at either end, or, if cells cover all possible
    // keys, their range.
    const unsigned most = __ldcg(&cells->greatest), least = ~__ldcg(&cells->greatest_complement);
    const unsigned span = ((most - least) >> top_bits) + 1;  // of a bucket
    const unsigned first_key = narrowing > 0 ? least - min(2 * span, least) : 0;
    const unsigned last_key = narrowing > 0 ? most + min(2 * span, ~most) : ~0u;
    const float in_range = ldexpf(full, top_bits + BITS_BELOW_CELL - narrowing);
    const float in_cell = in_range / ((float)(last_key - first_key) + 1);
    bool too_full = false;  // some bucket, if they divide the range evenly
    for (unsigned c = threadIdx.x; c < CELLS; c += COUNT_THREADS) {
        const unsigned count = __ldcg(&cells->counts[c]);  // from L2, where the blocks have added
        too_full |= (float)count - 4 * sqrtf((float)count) > in_cell;
        counters[c] = count;
        cells->counts[c] = 0;
    }
    const unsigned varying = __ldcg(&cells->ones) & __ldcg(&cells->zeros);
    too_full = __syncthreads_or(too_full);  // also: all counts are ready

    unsigned sweeps = 0;  // over digits in which keys differ
    for (int shift = 0; shift < BITS; shift += RADIX_BITS)
        sweeps += digit_at(varying, shift, RADIX_BITS) > 0;
    const bool quick = sweeps <= MAX_QUICK_SWEEPS;
    unsigned plan = instead(own, repeats, quick);
    if (plan == BY_TOP_BITS && quick)
        plan = BY_FEW_SWEEPS;
    else if (plan == BY_TOP_BITS && narrowing > 0 && !too_full && span >= MIN_SPAN)
        plan = BY_RANGE;
    else if (plan == BY_TOP_BITS && (narrowing > 0 || (too_full && !few_values)))
        plan = cut_buckets(first_buckets, counters, full, narrowing, bucket_bits) ? BY_CELLS
                                                                                  : BY_SWEEPS;
    const RangeBuckets parts(first_key, last_key, top_bits);
    if (plan == BY_RANGE) {
        if (is_uneven(own, counters, full / gridDim.x, parts)) plan = BY_SWEEPS;
        lowest = first_key;
    } else if (plan == BY_CELLS) {
        const auto bucket_of = [&](Bits key) {
            const unsigned at = CellBuckets::place(key, lowest, narrowing);
            return CellBuckets::bucket_at(at, first_buckets[at >> BITS_BELOW_CELL]);
        };
        for (unsigned c = threadIdx.x; c < CELLS; c += COUNT_THREADS)
            cells->first_buckets[c] = first_buckets[c];
        if (is_uneven(own, counters, full / gridDim.x, bucket_of)) plan = BY_SWEEPS;
    }
    if (threadIdx.x > 0) return false;
    cells->plan = plan;
    cells->lowest = lowest;
    cells->narrowing = narrowing;
    cells->bucket_bits = bucket_bits;
    cells->last_place = parts.last_place;
    cells->factor = parts.factor;
    cells->ones = cells->zeros = cells->greatest = cells->greatest_complement = 0;
    return true;
}
