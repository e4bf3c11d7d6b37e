// The launches of `most_significant_first`, for buckets by the top bits, by parts of a range or by
// cells, whichever a sample has decided on.
#pragma once
#include "radixsort/parts/bucket_cells.cuh"
#include "radixsort/parts/sort_bucket.cuh"
#include "radixsort/parts/split_tile.cuh"

constexpr unsigned RESIDENT_BUCKETS = resident_blocks(BUCKETS_PER_SM, BUCKET_THREADS, BUCKET_BYTES);

// The plan; BY_TOP_BITS if there was no sample. For a short array nothing is read, which saves
// time.
__device__ inline unsigned plan_of(const Cells* cells, int sampled) {
    return sampled ? load(&cells->plan) : BY_TOP_BITS;
}

// Calls use(bucket_of) if the plan is to make buckets.
template <class Use>
__device__ inline void with_plan(const Cells* cells, int sampled, int top_bits, const Use& use) {
    const unsigned plan = plan_of(cells, sampled);
    if (plan == BY_TOP_BITS) use(TopBits{top_bits});
    if (plan == BY_RANGE) use(RangeBuckets(*cells, top_bits));
    if (plan == BY_CELLS) use(CellBuckets(*cells));
}

// The first of two splits, into groups of buckets.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, RESIDENT_SPLITS<KEYS_PER_THREAD>)
split_into_groups(const T* in, Bits* out, Buckets* buckets, const Cells* cells, unsigned n,
                  int top_bits, int sampled) {
    __shared__ __align__(16) Bins memory;
    if (!buckets->fit) return;
    with_plan(cells, sampled, top_bits, [&](const auto& bucket_of) {
        const int low_bits = bucket_of.low_bits();
        Bits bits[KEYS_PER_THREAD];
        load_tile(in, n, bits);
        const auto group_of = [&](Bits key) { return bucket_of(key) >> low_bits; };
        const auto reserve = [&](unsigned group, unsigned count) {
            return atomicAdd(&buckets->group_next[group], count);  // shared by all blocks
        };
        split_tile(bits, n, group_of, GROUPS, reserve, put_into(out), memory);
    });
}

// The second split: keys come in groups, and the bins of a tile are the buckets of its groups.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, RESIDENT_SPLITS<KEYS_PER_THREAD>)
split_groups(const Bits* in, Bits* out, Buckets* buckets, const Cells* cells, unsigned n,
             int top_bits, int sampled) {
    constexpr unsigned TILE_ITEMS = KEYS_PER_THREAD * THREADS_PER_BLOCK;
    __shared__ __align__(16) Bins memory;
    if (!buckets->fit) return;
    with_plan(cells, sampled, top_bits, [&](const auto& bucket_of) {
        const int low_bits = bucket_of.low_bits();
        Bits bits[KEYS_PER_THREAD];
        load_tile(in, n, bits);
        const unsigned start = blockIdx.x * TILE_ITEMS, left = n - start;
        const unsigned first_group = bucket_of(in[start]) >> low_bits;
        const unsigned last_group = bucket_of(in[start + min(left, TILE_ITEMS) - 1]) >> low_bits;
        const unsigned first_bin = first_group << low_bits;
        const unsigned bins = (last_group + 1 - first_group) << low_bits;
        if (bins <= MAX_SPLIT_BINS) {
            const auto bin_of = [&](Bits key) { return bucket_of(key) - first_bin; };
            const auto reserve = [&](unsigned bin, unsigned count) {
                return atomicAdd(&buckets->next[first_bin + bin], count);  // shared by all blocks
            };
            split_tile(bits, n, bin_of, bins, reserve, put_into(out), memory);
            return;
        }
        // Many small groups: key by key.
        for (unsigned row = 0; row < KEYS_PER_THREAD; ++row)
            if (row * THREADS_PER_BLOCK + threadIdx.x < left)
                out[atomicAdd(&buckets->next[bucket_of(bits[row])], 1u)] = bits[row];
    });
}

// A block for each bucket, or for several if cells have made more buckets than there are blocks.
// Further blocks copy the large buckets.
extern "C" __global__ void __launch_bounds__(BUCKET_THREADS, RESIDENT_BUCKETS) sort_buckets(
    const Bits* in, T* out, Buckets* buckets, const Cells* cells, int top_bits, int bin_bits,
    int sampled) {
    const unsigned blocks = 1u << top_bits;  // which sort buckets
    // Other blocks may write the word meanwhile: all threads agree on what they have read.
    if (!__syncthreads_and(load(&buckets->fit) != 0)) return;
    if (blockIdx.x >= blocks) {
        with_plan(cells, sampled, top_bits, [&](const auto& bucket_of) {
            copy_large_buckets(in, out, buckets, bucket_of, blocks);
        });
        return;
    }
    unsigned bucket = blockIdx.x;
    do {
        const unsigned plan = plan_of(cells, sampled);
        const unsigned start = buckets->starts[bucket], items = buckets->starts[bucket + 1] - start;
        if (threadIdx.x == 0 && TILES_AHEAD > 0 && blockIdx.x + TILES_AHEAD < blocks)
            prefetch_bucket(in, buckets->starts + bucket + TILES_AHEAD);
        if (items > 0 && items <= BUCKET_ITEMS) {
            unsigned lowest = 0;
            int width = BITS - top_bits;
            if (plan == BY_RANGE) {
                const RangeBuckets bucket_of(*cells, top_bits);
                const bool others = bucket_of.takes_others(bucket);
                lowest = others ? 0 : bucket_of.first_key(bucket);
                width = others ? BITS : bucket_of.width_bits();
            } else if (plan == BY_CELLS) {
                const CellBuckets bucket_of(*cells);
                const bool others = bucket_of.takes_others(bucket);
                lowest = others ? 0 : bucket_of.lowest;
                width = others ? BITS : bucket_of.width_bits(in[start]);
            }
            sort_bucket<false>(in + start, out + start, items, lowest, width, bin_bits,
                               [&] { buckets->give_up(); });
            __syncthreads();  // all have written before the next bucket comes to shared memory
        }
        bucket += blocks;
        // Read again: there is no register to spare.
    } while (plan_of(cells, sampled) == BY_CELLS && bucket < 1u << load(&cells->bucket_bits));
}
