// Buckets of unequal widths: narrow where a sample has many keys, wide where it has few.
//
// Buckets by the top bits do not fit floats of a few magnitudes, or integers below some bound:
// nearly all of them share those bits. So one launch looks at a sample. The range of the keys is
// cut into 2^12 cells of equal width; a cell of many keys becomes 2, 4, 8, ... buckets, neighbours
// of few become one. Whatever the sample says, a bucket is a range of keys, and the buckets are in
// order: the count that follows finds out whether they fit.
//
// A bucket's width is a power of two, and it begins at a multiple of it: a table of the cells says
// which bucket a key is in, and by which bits to go on there.
#include "common/warp/warp_sum.cuh"
#include "radixsort/parts/buckets.cuh"
#include "radixsort/parts/heavy_values.cuh"

constexpr int CELL_BITS = 12;
constexpr unsigned CELLS = 1u << CELL_BITS;
constexpr int BITS_BELOW_CELL = BITS - CELL_BITS;
// Cells cover about the range of the sample where that makes them narrower by so many bits, and
// otherwise all keys there can be: the least of the floats between 0 and 1 is hard to guess.
constexpr int LEAST_NARROWING = 6;
constexpr unsigned FILLS = 5;              // of buckets, that are tried
constexpr unsigned MOST_QUICK_SWEEPS = 2;  // which take less time than buckets
// Counting heavy values pays from this part of the keys on: beside sweeps over all digits, or few.
constexpr float WORTH_COUNTING = 1.0f / 3, WORTH_COUNTING_AT_ONCE = 7.0f / 8;

// What to do. Sweeps over few digits go in one launch; over all of them each has its own, and late
// ones have to count the digits first.
enum Plan : unsigned {
    BY_TOP_BITS,
    BY_CELLS,
    BY_FEW_SWEEPS,
    BY_SWEEPS,
    BY_HEAVY_VALUES,
    BY_LATE_SWEEPS
};

// What the sample has told. All words are zero before the first launch.
struct Cells {
    unsigned* told;  // the word in which the host reads the plan
    unsigned plan;
    unsigned lowest;                // the first key of the first cell
    int narrowing;                  // a cell is 2^(BITS_BELOW_CELL - narrowing) keys wide
    int bucket_bits;                // there are 2^bucket_bits buckets, of which the last are empty
    unsigned blocks_done;           // zero between launches, like the next three
    unsigned ones, zeros;           // the bits that are 1, and those that are 0, in some key
    unsigned counts[CELLS];         // of sampled keys
    unsigned first_buckets[CELLS];  // in the low half; above: a bucket's width as a power of two,
                                    // were cells 2^BITS_BELOW_CELL keys wide
};

// Which bucket a key belongs to: that of its cell, or one of them.
struct CellBuckets {
    static constexpr unsigned COPY_ROWS = 4;  // there are no registers for more
    const unsigned* first_buckets;
    unsigned lowest;
    int narrowing, bucket_bits;

    __device__ explicit CellBuckets(const Cells& cells)
        : first_buckets(cells.first_buckets),
          lowest(cells.lowest),
          narrowing(cells.narrowing),
          bucket_bits(cells.bucket_bits) {}
    // In units of which a cell has 2^BITS_BELOW_CELL. Keys beyond the cells count as their ends.
    __device__ static unsigned place(Bits key, unsigned lowest, int narrowing) {
        return min(max(key, lowest) - lowest, ~0u >> narrowing) << narrowing;
    }
    __device__ unsigned place(Bits key) const { return place(key, lowest, narrowing); }
    // The bucket of what lies `at` such a place, in this cell.
    __device__ static unsigned bucket_at(unsigned at, unsigned cell) {
        return (cell & 0xffff) + ((at & ((1u << BITS_BELOW_CELL) - 1)) >> (cell >> 16));
    }
    __device__ unsigned operator()(Bits key) const {
        const unsigned at = place(key);
        return bucket_at(at, __ldg(first_buckets + (at >> BITS_BELOW_CELL)));
    }
    __device__ unsigned buckets() const { return 1u << bucket_bits; }
    __device__ int low_bits() const { return bucket_bits - (int)GROUP_BITS; }
    // The width of the key's bucket as a power of two.
    __device__ int width_bits(Bits key) const {
        return (int)(__ldg(first_buckets + (place(key) >> BITS_BELOW_CELL)) >> 16) - narrowing;
    }
    // Whether the bucket takes keys from beyond the cells.
    __device__ bool takes_others(unsigned bucket) const {
        return (lowest > 0 && bucket == (*this)(0)) ||
               (~0u - lowest > ~0u >> narrowing && bucket == (*this)(~0u));
    }
};

// Without a sample nothing has to be read, which a short array would wait for.
__device__ inline unsigned plan_of(const Cells* cells, int sampled) {
    return sampled ? load(&cells->plan) : BY_TOP_BITS;
}

// Calls use(bucket_of) with what the plan says, or nothing where there are no buckets.
template <class Use>
__device__ inline void with_plan(const Cells* cells, int sampled, int top_bits, const Use& use) {
    const unsigned plan = plan_of(cells, sampled);
    if (plan == BY_TOP_BITS) use(TopBits{top_bits});
    if (plan == BY_CELLS) use(CellBuckets(*cells));
}

// The least of the warp's values, for all its lanes.
__device__ inline unsigned warp_min(unsigned value) {
    for (unsigned distance = 16; distance > 0; distance /= 2)
        value = min(value, __shfl_xor_sync(FULL_WARP, value, distance));
    return value;
}
__device__ inline unsigned warp_or(unsigned value) {
    for (unsigned distance = 16; distance > 0; distance /= 2)
        value |= __shfl_xor_sync(FULL_WARP, value, distance);
    return value;
}

// The width of the buckets in a cell, where a bucket may have `most` keys of the sample, of which
// counts[c] are in front of cell c. Twice the deviation of such a count has to fit, too, so that
// few buckets turn out too large: (sqrt(keys) + 1)^2 keys. `width`: what a smaller `most` has
// given.
__device__ inline int width_by_sample(const unsigned* counts, unsigned cell, float most, int least,
                                      int width) {
    const float root = sqrtf(most) - 1;
    const float limit = root * fabsf(root);
    const auto keys_in = [&](unsigned first, unsigned cells) {
        return (float)(counts[first + cells] - counts[first]);
    };
    const float keys = keys_in(cell, 1);
    width = max(width, BITS_BELOW_CELL);
    if (keys > limit) {  // as many halvings as it takes
        const float wanted = sqrtf(keys) + 1;
        int power;
        const float part = frexpf(wanted * wanted / most, &power);
        width = max(width - (part > 0.5f ? power : power - 1), least);
    } else {
        unsigned run = 2u << (width - BITS_BELOW_CELL);
        for (; run < CELLS && keys_in(cell / run * run, run) <= limit; run *= 2) ++width;
    }
    return width;
}

// Makes cells into buckets, and says whether there are few enough. `counts`: of the cells in the
// sample, and a word more. `full`: the keys of the sample in a bucket that is as large as it may
// be. `first_buckets` become those of `cells`. The whole block calls it.
__device__ inline bool cut_buckets(unsigned* first_buckets, unsigned* counts, float full,
                                   int narrowing, int bucket_bits) {
    __shared__ unsigned totals[FILLS];  // of buckets
    const unsigned last_count = counts[CELLS - 1];
    if (threadIdx.x < FILLS) totals[threadIdx.x] = 0;
    exclusive_scan_shared<COUNT_THREADS>(counts, CELLS);
    if (threadIdx.x == 0) counts[CELLS] = counts[CELLS - 1] + last_count;
    __syncthreads();  // the sums are there, up to the end
    const int least = max(narrowing, BITS_BELOW_CELL - bucket_bits);
    // The buckets of a cell; the first cell of a run stands for all.
    const auto buckets_of = [](unsigned cell, int width) {
        const unsigned run = 1u << max(width - BITS_BELOW_CELL, 0);
        return cell % run > 0 ? 0 : 1u << max(BITS_BELOW_CELL - width, 0);
    };
    int widths[CELLS / COUNT_THREADS] = {};
    // Half full at first, which leaves most room for error; fuller where these are too many.
    for (unsigned fill = 0; fill < FILLS; ++fill) {
        const float most = (0.5f + 0.11f * (float)fill) * full;
        unsigned mine = 0;
#pragma unroll
        for (unsigned i = 0; i < CELLS / COUNT_THREADS; ++i) {
            const unsigned cell = i * COUNT_THREADS + threadIdx.x;
            widths[i] = width_by_sample(counts, cell, most, least, widths[i]);
            first_buckets[cell] = buckets_of(cell, widths[i]);
            mine += first_buckets[cell];
        }
        mine = sum_over_warp(mine);
        if (threadIdx.x % 32 == 0) atomicAdd(&totals[fill], mine);
        __syncthreads();  // the total is there, and the numbers of buckets
        if (totals[fill] > 1u << bucket_bits) continue;
        exclusive_scan_shared<COUNT_THREADS>(first_buckets, CELLS);
        unsigned found[CELLS / COUNT_THREADS];
#pragma unroll
        for (unsigned i = 0; i < CELLS / COUNT_THREADS; ++i) {
            const unsigned cell = i * COUNT_THREADS + threadIdx.x;
            const unsigned run = 1u << max(widths[i] - BITS_BELOW_CELL, 0);
            found[i] = first_buckets[cell / run * run] | (unsigned)widths[i] << 16;
        }
        __syncthreads();  // all have read them
#pragma unroll
        for (unsigned i = 0; i < CELLS / COUNT_THREADS; ++i)
            first_buckets[i * COUNT_THREADS + threadIdx.x] = found[i];
        __syncthreads();  // they are there for all
        return true;
    }
    return false;
}

// Whether a bucket has many sampled keys, and not all equal: within a cell the keys lie unevenly,
// which no count of cells can tell. `full`: the keys of the block's sample in a bucket that is as
// large as it may be. `words`: 4096 of shared memory. The whole block calls it.
template <class BucketOf>
__device__ inline bool is_uneven(const Bits (&sample)[SAMPLES], unsigned* words, float full,
                                 const BucketOf& bucket_of) {
    constexpr unsigned SEATS = 2048;
    const unsigned most = (unsigned)(full + 4 * sqrtf(full)) + 7;
    unsigned *const keys = words, *const unlike = keys + SEATS;
    for (unsigned i = threadIdx.x; i < SEATS; i += COUNT_THREADS) unlike[i] = 0;
    // One of the keys that share a seat, most likely of the bucket that has most of them.
#pragma unroll
    for (unsigned s = 0; s < SAMPLES; ++s)
        atomicExch(&keys[bucket_of(sample[s]) % SEATS], sample[s]);
    __syncthreads();  // all seats are taken, all is zero
    bool is_full = false;
#pragma unroll
    for (unsigned s = 0; s < SAMPLES; ++s) {
        const unsigned bucket = bucket_of(sample[s]), seat = bucket % SEATS;
        if (sample[s] != keys[seat] && bucket_of(keys[seat]) == bucket)
            is_full |= atomicAdd(&unlike[seat], 1u) >= most;
    }
    return __syncthreads_or(is_full);  // one thread that saw a full bucket speaks for all
}

// Draws a sample of SAMPLES keys for each thread; the last block to finish says what is to be done,
// to later launches and to the host.
extern "C" __global__ void __launch_bounds__(COUNT_THREADS, 1) sample_keys(
    const T* keys, Cells* cells, HeavyValues* heavy, unsigned* told, unsigned n, int top_bits,
    int bucket_bits) {
    __shared__ __align__(16) unsigned counters[CELLS + 4], first_buckets[CELLS];
    __shared__ unsigned least, least_complement;  // of the keys that all blocks see
    __shared__ unsigned ones, zeros;              // of those that this one has drawn
    __shared__ bool is_last;
    const unsigned stride = gridDim.x * COUNT_THREADS;
    // Key i of `of` that are spread over the array, not evenly: it may be periodic.
    const auto sampled = [&](unsigned i, unsigned of) {
        const unsigned step = n / of;
        return ordered_bits(keys[i * step + __umulhi((i + 1) * 2654435761u, step)]);
    };
    const bool first_lane = threadIdx.x % 32 == 0;
    for (unsigned c = threadIdx.x; c < CELLS; c += COUNT_THREADS) counters[c] = 0;
    if (threadIdx.x == 0) {
        least = least_complement = ~0u;
        ones = zeros = 0;
    }
    // All blocks see the same keys here, and choose the same cells.
    const Bits key = sampled(threadIdx.x, COUNT_THREADS);
    Bits own[SAMPLES];
#pragma unroll
    for (unsigned s = 0; s < SAMPLES; ++s)
        own[s] = sampled(s * stride + blockIdx.x * COUNT_THREADS + threadIdx.x, SAMPLES * stride);
    // Where few values have most keys, some keys of a warp are equal.
    const bool repeated = __popc(__match_any_sync(FULL_WARP, key)) > 1;
    // Also: nobody counts before all is zero.
    const int repeats = __syncthreads_count(repeated);
    const bool few_values = repeats > (int)COUNT_THREADS / 4;
    const unsigned warp_least = warp_min(key), warp_complement = warp_min(~key);
    if (first_lane) atomicMin(&least, warp_least);
    if (first_lane) atomicMin(&least_complement, warp_complement);
    __syncthreads();  // the sample's range is there
    // Three times the range: few keys lie beyond.
    const unsigned range = ~least_complement - least;
    unsigned lowest = least - min(range, least);
    const unsigned width = ~least_complement + min(range, least_complement) - lowest;
    int narrowing = min(__clz((int)width), BITS_BELOW_CELL);
    if (narrowing < LEAST_NARROWING) narrowing = lowest = 0;

    unsigned own_ones = 0, own_zeros = 0;
#pragma unroll
    for (unsigned s = 0; s < SAMPLES; ++s) {
        own_ones |= own[s];
        own_zeros |= ~own[s];
        const unsigned place = own[s] - lowest;
        if (place <= ~0u >> narrowing)
            atomicAdd(&counters[place << narrowing >> BITS_BELOW_CELL], 1u);
    }
    own_ones = warp_or(own_ones);
    own_zeros = warp_or(own_zeros);
    if (first_lane) atomicOr(&ones, own_ones);
    if (first_lane) atomicOr(&zeros, own_zeros);
    __syncthreads();  // all have counted

    for (unsigned c = threadIdx.x; c < CELLS; c += COUNT_THREADS)
        if (counters[c] > 0) atomicAdd(&cells->counts[c], counters[c]);  // blocks meet here
    when_written([&] {
        atomicOr(&cells->ones, ones);
        atomicOr(&cells->zeros, zeros);
        __threadfence();
        is_last = atomicInc(&cells->blocks_done, gridDim.x - 1) == gridDim.x - 1;  // wraps to 0
        __threadfence();  // the counts are read after the last block has said that it is done
    });
    __syncthreads();  // is_last is known
    if (!is_last) return;

    // Samples in a bucket that is as large as it may be.
    const float full = (float)(SAMPLES * stride) / n * BUCKET_ITEMS;
    const float in_cell = ldexpf(full, top_bits - CELL_BITS);
    bool too_full = false;  // a bucket by the top bits
    for (unsigned c = threadIdx.x; c < CELLS; c += COUNT_THREADS) {
        const unsigned count = __ldcg(&cells->counts[c]);  // from L2, where the blocks have added
        too_full |= (float)count - 4 * sqrtf((float)count) > in_cell;
        counters[c] = count;
        cells->counts[c] = 0;
    }
    const unsigned varying = __ldcg(&cells->ones) & __ldcg(&cells->zeros);
    unsigned sweeps = 0;
    for (int shift = 0; shift < BITS; shift += RADIX_BITS)
        sweeps += digit_at(varying, shift, RADIX_BITS) > 0;
    too_full = __syncthreads_or(too_full);  // also: all counts are there

    const bool quick = sweeps <= MOST_QUICK_SWEEPS;
    // Of a third of the keys that have values of 0.4 % each, one in eight meets its equal.
    const float covered = repeats > (int)COUNT_THREADS / 64 ? find_heavy_values(own, heavy) : 0;
    unsigned plan = BY_TOP_BITS;
    if (covered > (quick ? WORTH_COUNTING_AT_ONCE : WORTH_COUNTING))
        plan = BY_HEAVY_VALUES;
    else if (quick)
        plan = BY_FEW_SWEEPS;
    else if (narrowing > 0 || (too_full && !few_values))
        plan = cut_buckets(first_buckets, counters, full, narrowing, bucket_bits) ? BY_CELLS
                                                                                  : BY_SWEEPS;
    if (plan == BY_CELLS) {
        const auto bucket_of = [&](Bits key) {
            const unsigned at = CellBuckets::place(key, lowest, narrowing);
            return CellBuckets::bucket_at(at, first_buckets[at >> BITS_BELOW_CELL]);
        };
        for (unsigned c = threadIdx.x; c < CELLS; c += COUNT_THREADS)
            cells->first_buckets[c] = first_buckets[c];
        if (is_uneven(own, counters, full / gridDim.x, bucket_of)) plan = BY_SWEEPS;
    }
    if (threadIdx.x == 0) {
        cells->told = told;
        cells->plan = *told = plan;
        cells->lowest = lowest;
        cells->narrowing = narrowing;
        cells->bucket_bits = bucket_bits;
        cells->ones = cells->zeros = 0;
    }
}
