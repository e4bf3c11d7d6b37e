// Buckets of any size: one read counts their keys, so that it is known where each begins, and
// whether each of them fits into a block.
#pragma once
#include "radixsort/parts/scan_shared.cuh"
#include "radixsort/parts/sweep_all_passes.cuh"
#include "radixsort/parts/top_bits.cuh"

constexpr int MAX_TOP_BITS = 15;
constexpr unsigned MAX_BUCKETS = 1u << MAX_TOP_BITS;
constexpr unsigned LOADS = 4;  // 16-byte loads under way

// The state that the launches share. All of it is zero before the first of them.
struct Buckets {
    unsigned fit;                  // 1 while this path can sort the keys
    unsigned blocks_done;          // that have counted; zero between launches
    unsigned mixed;                // 1 if a large bucket has different keys; zero between launches
    unsigned largest;              // how many keys the largest bucket has
    unsigned group_next[GROUPS];   // where the next key of a group goes
    unsigned counts[MAX_BUCKETS];  // of each bucket's keys; zero between launches
    unsigned next[MAX_BUCKETS];    // where the next key of a bucket goes
    unsigned starts[MAX_BUCKETS + 1];  // where each bucket begins, and where the last one ends

    // Leaves the keys to the safe path. Any thread may call it at any time: others look.
    __device__ void give_up() { atomicExch(&fit, 0u); }
};

__constant__ unsigned buckets_bytes = sizeof(Buckets);  // for the host

// Whether all loaded keys that are in the bucket of the last one are equal to it.
template <class BucketOf>
__device__ inline bool are_equal_in_bucket(const Vector (&loaded)[LOADS],
                                           const BucketOf& bucket_of) {
    const Bits last = ordered_bits(loaded[LOADS - 1].items[VECTOR_ITEMS - 1]);
    bool equal = true;
#pragma unroll
    for (unsigned load = 0; load < LOADS; ++load)
#pragma unroll
        for (unsigned k = 0; k < VECTOR_ITEMS; ++k) {
            const Bits key = ordered_bits(loaded[load].items[k]);
            equal &= key == last || bucket_of(key) != bucket_of(last);
        }
    return equal;
}

// Counts the keys of each bucket; the last block to finish works out where buckets begin and
// whether all of them fit. Takes a word of dynamic shared memory for each bucket. The whole grid
// calls it; true for the one thread that has written the results.
template <class BucketOf>
__device__ inline bool count_keys_of_buckets(const T* keys, Buckets* buckets, unsigned n,
                                             const BucketOf& bucket_of) {
    extern __shared__ unsigned long long counter_memory[];
    unsigned* const counters = reinterpret_cast<unsigned*>(counter_memory);
    __shared__ bool is_last;
    __shared__ unsigned largest;
    const unsigned num_buckets = bucket_of.buckets();
    for (unsigned b = threadIdx.x; b < num_buckets; b += COUNT_THREADS) counters[b] = 0;
    if (threadIdx.x == 0) largest = 0;
    __syncthreads();  // no thread counts before all counters are zero

    const auto count = [&](T key) {  // shared by the threads of the block; returns the count before
        return atomicAdd(&counters[bucket_of(ordered_bits(key))], 1u);
    };
    const Vector* const vector = reinterpret_cast<const Vector*>(keys);
    const unsigned vectors = n / VECTOR_ITEMS, stride = gridDim.x * COUNT_THREADS;
    unsigned v = blockIdx.x * COUNT_THREADS + threadIdx.x;
    const unsigned rest = vectors * VECTOR_ITEMS + v;
    bool equal = true;  // as far as this thread has seen, each large bucket has equal keys
    for (; equal && v + (LOADS - 1) * stride < vectors; v += LOADS * stride) {
        Vector loaded[LOADS];
        unsigned before;
#pragma unroll
        for (unsigned load = 0; load < LOADS; ++load) loaded[load] = vector[v + load * stride];
#pragma unroll
        for (unsigned load = 0; load < LOADS; ++load)
#pragma unroll
            for (unsigned k = 0; k < VECTOR_ITEMS; ++k) before = count(loaded[load].items[k]);
        // Two different keys in a bucket that is too large: there is no need to count further.
        if (before >= BUCKET_ITEMS) equal = are_equal_in_bucket(loaded, bucket_of);
    }
    if (!equal) *(volatile unsigned*)&buckets->mixed = 1;
    for (; equal && v < vectors; v += stride)
        for (unsigned k = 0; k < VECTOR_ITEMS; ++k) count(vector[v].items[k]);
    if (rest < n) count(keys[rest]);
    __syncthreads();  // all have counted

    for (unsigned b = threadIdx.x; b < num_buckets; b += COUNT_THREADS)
        if (counters[b] > 0) atomicAdd(&buckets->counts[b], counters[b]);  // shared by all blocks
    when_written([&] {
        is_last = atomicInc(&buckets->blocks_done, gridDim.x - 1) == gridDim.x - 1;  // wraps to 0
        __threadfence();  // the counts are read after the last block has said that it is done
    });
    __syncthreads();  // is_last is known
    if (!is_last) return false;

    unsigned max_items = 0;
    for (unsigned b = threadIdx.x; b < num_buckets; b += COUNT_THREADS) {
        counters[b] = __ldcg(&buckets->counts[b]);  // from L2, where the blocks have added
        max_items = max(max_items, counters[b]);
        buckets->counts[b] = 0;
    }
    atomicMax(&largest, max_items);
    __syncthreads();  // all counts are ready
    exclusive_scan_shared<COUNT_THREADS>(counters, num_buckets);
    for (unsigned b = threadIdx.x; b < num_buckets; b += COUNT_THREADS)
        buckets->starts[b] = buckets->next[b] = counters[b];
    if (bucket_of.low_bits() > 0 && threadIdx.x < GROUPS)
        buckets->group_next[threadIdx.x] = counters[threadIdx.x << bucket_of.low_bits()];
    if (threadIdx.x > 0) return false;
    buckets->starts[num_buckets] = n;
    buckets->largest = largest;
    // Keys that share all their top bits would be split in vain.
    buckets->fit = load(&buckets->mixed) == 0 && (largest <= BUCKET_ITEMS || largest < n);
    buckets->mixed = 0;
    return true;
}

// Copies the keys of large buckets, with their values, and gives up if the keys of one are not all
// equal. The blocks from `first_block` on share the work.
template <class Key, class BucketOf>
__device__ inline void copy_large_buckets(const Key* in, T* out, Buckets* buckets,
                                          const BucketOf& bucket_of, unsigned first_block) {
    constexpr unsigned COPY_ROWS = BucketOf::COPY_ROWS;
    const unsigned block = blockIdx.x - first_block, blocks = gridDim.x - first_block;
    if (buckets->largest <= BUCKET_ITEMS) return;
    const unsigned n = buckets->starts[bucket_of.buckets()];
    const unsigned tile_items = COPY_ROWS * BUCKET_THREADS;
    for (unsigned tile = block; tile < (n + tile_items - 1) / tile_items; tile += blocks) {
        const unsigned first = tile * tile_items + threadIdx.x;
        Bits bits[COPY_ROWS];
#pragma unroll
        for (unsigned row = 0; row < COPY_ROWS; ++row) {
            const unsigned i = first + row * BUCKET_THREADS;
            bits[row] = i < n ? ordered_bits(in[i]) : 0;
        }
#pragma unroll
        for (unsigned row = 0; row < COPY_ROWS; ++row) {
            const unsigned i = first + row * BUCKET_THREADS;
            const unsigned* const start = buckets->starts + bucket_of(bits[row]);
            if (i >= n || start[1] - start[0] <= BUCKET_ITEMS) continue;
            if (bits[row] != ordered_bits(in[start[0]])) buckets->give_up();
            out[i] = from_ordered_bits<T>(bits[row]);
            if constexpr (PAIRS) out[n + i] = in[n + i];
        }
    }
}

// Prefetches into L2 a bucket that another block will soon sort.
template <class Key>
__device__ inline void prefetch_bucket(const Key* in, const unsigned* start, unsigned n = 0) {
    const unsigned from = start[0] / 4 * 4, to = start[1] / 4 * 4;  // whole pieces of 16 bytes
    if (from >= to || to - from > BUCKET_ITEMS) return;
    prefetch_to_l2(in + from, (to - from) * sizeof(Key));
    if (PAIRS) prefetch_to_l2(in + n + from, (to - from) * sizeof(Key));
}

// The safe path, for keys that did not fit.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, RESIDENT_SWEEPS) sweep_all(
    const Buckets* buckets, const T* in, T* spare, T* out, Progress* progress, Word* statuses,
    unsigned n) {
    if (buckets->fit) return;
    sweep_all_passes<CHUNK_ROWS>(in, spare, out, progress, statuses, n);
}
