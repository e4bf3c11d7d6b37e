// Buckets by the top bits of the keys: counted in one read, and each sorted by a block that holds
// it.
//
// The launches agree through a few words in memory. The count says where buckets begin, and whether
// they fit into blocks. Those too large to fit are sorted already when all their keys are equal:
// blocks beyond those of the buckets copy them. Whatever else does not fit is left to a launch that
// comes last and returns at once when there is nothing to do: it sorts by sweeps, from the input as
// it was.
#include "radixsort/parts/scan_shared.cuh"
#include "radixsort/parts/sweep_all_passes.cuh"

constexpr unsigned GROUP_BITS = 8, GROUPS = 1u << GROUP_BITS;  // of the first of two splits
constexpr int MOST_TOP_BITS = 15;
constexpr unsigned BUCKET_ITEMS = BUCKET_KEYS_PER_THREAD * BUCKET_THREADS;
constexpr unsigned LOADS = 4;  // 16-byte loads under way
constexpr int BITS = 8 * sizeof(Bits);
#ifdef __CUDA_ARCH__
constexpr unsigned ARCH = __CUDA_ARCH__;
#else
constexpr unsigned ARCH = 900;
#endif
// Threads of a multiprocessor: fewer in GPUs that are not made for data centres.
constexpr unsigned MOST_RESIDENT = ARCH == 750 ? 1024
                                   : ARCH == 800 || ARCH == 900 || (ARCH >= 1000 && ARCH < 1100)
                                       ? 2048
                                       : 1536;
constexpr unsigned RESIDENT_BUCKETS = BUCKETS_PER_SM * BUCKET_THREADS <= MOST_RESIDENT
                                          ? BUCKETS_PER_SM
                                          : MOST_RESIDENT / BUCKET_THREADS;

// What the launches tell each other. All words are zero before the first of them.
struct Buckets {
    unsigned* fit;            // 1 while this path can sort the keys
    unsigned* blocks_done;    // counting; zero between launches
    unsigned* mixed;          // 1 when a large bucket has different keys; zero between launches
    unsigned* largest;        // the keys of the largest bucket
    unsigned* group_next;     // where the next key of a group goes
    unsigned *counts, *next;  // of each bucket; counts are zero between launches
    unsigned* starts;         // of each bucket, and the end

    __device__ explicit Buckets(unsigned* words)
        : fit(words),
          blocks_done(words + 1),
          mixed(words + 2),
          largest(words + 3),
          group_next(words + 4),
          counts(group_next + GROUPS),
          next(counts + (1u << MOST_TOP_BITS)),
          starts(next + (1u << MOST_TOP_BITS)) {}
};

// Which bucket a key belongs to: that of its top bits.
struct TopBits {
    static constexpr unsigned COPY_ROWS = PAIRS ? 4 : 16;  // keys of a thread, to be copied
    int top_bits;
    __device__ unsigned operator()(Bits key) const { return key >> (BITS - top_bits); }
    __device__ unsigned buckets() const { return 1u << top_bits; }
    // By which the buckets of a group differ.
    __device__ int low_bits() const { return top_bits - (int)GROUP_BITS; }
};

// Whether those of the keys that share the last one's bucket are equal to it.
template <class BucketOf>
__device__ inline bool alike_in_bucket(const Vector (&loaded)[LOADS], const BucketOf& bucket_of) {
    const Bits last = ordered_bits(loaded[LOADS - 1].items[VECTOR_ITEMS - 1]);
    bool alike = true;
#pragma unroll
    for (unsigned load = 0; load < LOADS; ++load)
#pragma unroll
        for (unsigned k = 0; k < VECTOR_ITEMS; ++k) {
            const Bits key = ordered_bits(loaded[load].items[k]);
            alike &= key == last || bucket_of(key) != bucket_of(last);
        }
    return alike;
}

// Counts the keys of each bucket; the last block to finish says where buckets begin and whether
// all of them fit. Takes a word of dynamic shared memory for each bucket. True for the one thread
// that has said so.
template <class BucketOf>
__device__ inline bool count_keys_of_buckets(const T* keys, const Buckets& buckets, unsigned n,
                                             const BucketOf& bucket_of) {
    extern __shared__ unsigned long long counter_memory[];
    unsigned* const counters = reinterpret_cast<unsigned*>(counter_memory);
    __shared__ bool is_last;
    __shared__ unsigned largest;
    const unsigned num_buckets = bucket_of.buckets();
    for (unsigned b = threadIdx.x; b < num_buckets; b += COUNT_THREADS) counters[b] = 0;
    if (threadIdx.x == 0) largest = 0;
    __syncthreads();  // nobody counts before all is zero

    const auto count = [&](T key) {  // shared by the threads of the block; gives the count before
        return atomicAdd(&counters[bucket_of(ordered_bits(key))], 1u);
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
        if (before >= BUCKET_ITEMS) alike = alike_in_bucket(loaded, bucket_of);
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
    if (!is_last) return false;

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
    if (bucket_of.low_bits() > 0 && threadIdx.x < GROUPS)
        buckets.group_next[threadIdx.x] = counters[threadIdx.x << bucket_of.low_bits()];
    if (threadIdx.x > 0) return false;
    buckets.starts[num_buckets] = n;
    *buckets.largest = largest;
    // Keys that share all their top bits would be split in vain.
    *buckets.fit = load(buckets.mixed) == 0 && (largest <= BUCKET_ITEMS || largest < n);
    *buckets.mixed = 0;
    return true;
}

// Copies the keys of large buckets, which have to be equal, and their values: block `block` of
// `blocks`.
template <class Key, class BucketOf>
__device__ inline void copy_large_buckets(const Key* in, T* out, const Buckets& buckets,
                                          const BucketOf& bucket_of, unsigned block,
                                          unsigned blocks) {
    constexpr unsigned COPY_ROWS = BucketOf::COPY_ROWS;
    if (*buckets.largest <= BUCKET_ITEMS) return;
    const unsigned n = buckets.starts[bucket_of.buckets()];
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
            const unsigned* const start = buckets.starts + bucket_of(bits[row]);
            if (i >= n || start[1] - start[0] <= BUCKET_ITEMS) continue;
            if (bits[row] != ordered_bits(in[start[0]])) *(volatile unsigned*)buckets.fit = 0;
            out[i] = from_ordered_bits<T>(bits[row]);
            if constexpr (PAIRS) out[n + i] = in[n + i];
        }
    }
}

// Copies the keys if they are equal; with pairs also their values, n items further on. The whole
// block calls it. Not inline: the caller has no register to spare.
template <class Key>
__device__ __noinline__ bool copy_if_alike(const Key* in, T* out, unsigned items, unsigned n = 0) {
    const Bits bits = ordered_bits(in[0]);
    bool alike = true;
    for (unsigned i = threadIdx.x; i < items; i += BUCKET_THREADS)
        alike &= ordered_bits(in[i]) == bits;
    if (!__syncthreads_and(alike)) return false;  // one key that differs is enough
    for (unsigned i = threadIdx.x; i < items; i += BUCKET_THREADS) {
        out[i] = from_ordered_bits<T>(bits);
        if constexpr (PAIRS) out[n + i] = in[n + i];
    }
    return true;
}

// The safe path, for keys that did not fit.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, BLOCKS_PER_SM) sweep_all(
    const unsigned* words, const T* in, T* spare, T* out, Progress* progress, Word* statuses,
    unsigned n) {
    if (*words) return;
    sweep_all_passes<CHUNK_ROWS>(in, spare, out, progress, statuses, n);
}
