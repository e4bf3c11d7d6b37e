// /// cudalab
// summary  = "Buckets by the top bits: counted, split twice, and each sorted in shared memory"
// order    = 7
// adds     = "two splits by the top bits, buckets sorted in shared memory"
// dispatch = "most_significant_first"
// applies  = { dtype = ["uint32", "int32", "float32"], layout = ["keys"] }
// requires = ["shared_96kb"]
//
// [defines]
// THREADS_PER_BLOCK      = 512
// BLOCKS_PER_SM          = 2      # leaves a thread 64 registers
// KEYS_PER_THREAD        = 32     # in registers: a tile
// BUCKET_THREADS         = 512
// BUCKET_KEYS_PER_THREAD = 18     # the maximum that a block can sort
// BUCKETS_PER_SM         = 3
// MAX_BIN_BITS           = 13     # of a bucket
// COUNT_THREADS          = 1024
// COUNT_BLOCKS           = "MULTIPROCESSORS"
// COPY_BLOCKS            = "3 * MULTIPROCESSORS"
// MAX_BLOCKS             = "2 * MULTIPROCESSORS"  # of the safe path
// RADIX_BITS             = 8
// TILES_AHEAD            = 100    # of the tile or bucket that is prefetched
// ///
//
// `onesweep` moves every key once for each digit, least significant first, and every pass must keep
// the order that the passes before it have made. If the sort begins with the top bits instead, the
// order within a bucket does not matter. As soon as a bucket fits into the shared memory of a
// block, the block does the rest there, as in `bucket_slots`. A key of 4 bytes is counted (4 bytes
// of traffic), split twice and sorted (8 bytes each time): 28 bytes per key. Sweeps take 36.
//
// A long array has too many buckets for slots of equal size and for a single split. One read counts
// the keys of each bucket, so that a bucket can begin where the one before it ends. A split into
// 2^14 buckets at once would write runs of one or two keys, so there are two splits. The first is
// by the top 8 bits, into 256 groups of buckets. The second reads the groups one after the other,
// so that the keys of a tile belong to only a few groups, and splits each group by the bits that
// follow.
//
// The order within a bucket does not matter. So a tile's ranks come from atomics in shared memory,
// and it reserves its part of a bucket with one more atomic: no votes and no look-back.
//
// Buckets have about the same size only if the top bits of the keys are random. A bucket that is
// too large for a block is copied if all its keys are equal, since it is then already sorted. If
// anything else does not fit, a word on the device says so, and the last launch sweeps, as
// `single_launch` does.
//
// Limits: keys that share their top bits, such as floats between 0 and 1 or small integers, are
// sorted by sweeps, and the count was of no use. So are more than 2^28 keys, or 2^27 if a block
// cannot have 128 KB of shared memory. A short array is split into too many buckets.
//
// Macros from outside: T (element type), PAIRS (1: a value follows each key), THREADS_PER_BLOCK,
// BLOCKS_PER_SM, KEYS_PER_THREAD, BUCKET_THREADS, BUCKET_KEYS_PER_THREAD, BUCKETS_PER_SM,
// MAX_BIN_BITS, COUNT_THREADS, RADIX_BITS, TILES_AHEAD.
#include "radixsort/parts/buckets.cuh"
#include "radixsort/parts/sort_bucket.cuh"
#include "radixsort/parts/split_tile.cuh"

constexpr unsigned TILE_ITEMS = KEYS_PER_THREAD * THREADS_PER_BLOCK;
constexpr unsigned RESIDENT_BUCKETS = resident_blocks(BUCKETS_PER_SM, BUCKET_THREADS, BUCKET_BYTES);

extern "C" __global__ void __launch_bounds__(COUNT_THREADS) count_buckets(const T* keys,
                                                                          Buckets* buckets,
                                                                          unsigned n,
                                                                          int top_bits) {
    count_keys_of_buckets(keys, buckets, n, TopBits{top_bits});
}

// The first split: into groups, by the top GROUP_BITS bits.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, RESIDENT_SPLITS<KEYS_PER_THREAD>)
split_into_groups(const T* in, Bits* out, Buckets* buckets, unsigned n, int top_bits) {
    __shared__ __align__(16) Bins memory;
    if (!buckets->fit) return;
    const TopBits bucket_of{top_bits};
    Bits bits[KEYS_PER_THREAD];
    load_tile(in, n, bits);
    const auto group_of = [&](Bits key) { return bucket_of(key) >> bucket_of.low_bits(); };
    const auto reserve = [&](unsigned group, unsigned count) {
        return atomicAdd(&buckets->group_next[group], count);  // shared by all blocks
    };
    split_tile(bits, n, group_of, GROUPS, reserve, put_into(out), memory);
}

// The second split: the bins of a tile are the buckets of the groups that its keys belong to.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, RESIDENT_SPLITS<KEYS_PER_THREAD>)
split_groups(const Bits* in, Bits* out, Buckets* buckets, unsigned n, int top_bits) {
    __shared__ __align__(16) Bins memory;
    if (!buckets->fit) return;
    const TopBits bucket_of{top_bits};
    const int low_bits = bucket_of.low_bits();
    Bits bits[KEYS_PER_THREAD];
    load_tile(in, n, bits);
    // Groups are in order, so the first and the last key of the tile tell which groups it has.
    const unsigned start = blockIdx.x * TILE_ITEMS, left = n - start;
    const unsigned first_group = bucket_of(in[start]) >> low_bits;
    const unsigned last_group = bucket_of(in[start + min(left, TILE_ITEMS) - 1]) >> low_bits;
    const unsigned first_bucket = first_group << low_bits;
    const unsigned bins = (last_group + 1 - first_group) << low_bits;
    if (bins <= MAX_SPLIT_BINS) {
        const auto bin_of = [&](Bits key) { return bucket_of(key) - first_bucket; };
        const auto reserve = [&](unsigned bin, unsigned count) {
            return atomicAdd(&buckets->next[first_bucket + bin], count);  // shared by all blocks
        };
        split_tile(bits, n, bin_of, bins, reserve, put_into(out), memory);
        return;
    }
    // Many small groups: key by key.
    for (unsigned row = 0; row < KEYS_PER_THREAD; ++row)
        if (row * THREADS_PER_BLOCK + threadIdx.x < left)
            out[atomicAdd(&buckets->next[bucket_of(bits[row])], 1u)] = bits[row];
}

// A block for each bucket; further blocks copy the large buckets.
extern "C" __global__ void __launch_bounds__(BUCKET_THREADS, RESIDENT_BUCKETS) sort_buckets(
    const Bits* in, T* out, Buckets* buckets, int top_bits, int bin_bits) {
    const TopBits bucket_of{top_bits};
    const unsigned num_buckets = bucket_of.buckets(), bucket = blockIdx.x;
    // Other blocks may write the word meanwhile: all threads agree on what they have read.
    if (!__syncthreads_and(load(&buckets->fit) != 0)) return;
    if (bucket >= num_buckets) {
        copy_large_buckets(in, out, buckets, bucket_of, num_buckets);
        return;
    }
    const unsigned start = buckets->starts[bucket], items = buckets->starts[bucket + 1] - start;
    if (threadIdx.x == 0 && TILES_AHEAD > 0 && bucket + TILES_AHEAD < num_buckets)
        prefetch_bucket(in, buckets->starts + bucket + TILES_AHEAD);
    if (items > 0 && items <= BUCKET_ITEMS)
        sort_bucket<false>(in + start, out + start, items, 0, BITS - top_bits, bin_bits,
                           [&] { buckets->give_up(); });
}

// Source: Stehle and Jacobsen, A Memory Bandwidth-Efficient Hybrid Radix Sort on GPUs. SIGMOD 2017.
