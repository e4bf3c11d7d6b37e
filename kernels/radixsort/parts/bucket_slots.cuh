// Buckets of a short array: each has a slot, as large as a block can sort, so that keys can go
// there without having been counted. Those for which a slot has no room stay behind: they have to
// be equal to all others of their bucket, which is then filled instead of sorted.
#include "radixsort/parts/buckets.cuh"

constexpr unsigned MOST_SLOTS = GROUPS;

// What the launches tell each other. All words are zero between sorts.
struct Slots {
    unsigned* failed;  // 1 when this path cannot sort the keys
    unsigned* items;   // of each bucket
    unsigned* beyond;  // a key that stayed behind, its top bit set, which all of a bucket share

    __device__ explicit Slots(unsigned* words)
        : failed(words), items(words + 1), beyond(items + MOST_SLOTS) {}
    __device__ void require(bool fits) const {
        if (!fits) *(volatile unsigned*)failed = 1;
    }
    // Whether a key that stays behind equals all others that do. The first one is kept.
    __device__ bool is_alike(unsigned bucket, Bits key) const {
        const unsigned kept = atomicCAS(&beyond[bucket], 0u, key | 1u << (BITS - 1));
        return kept == 0 || kept == (key | 1u << (BITS - 1));
    }
    // One block calls it.
    __device__ void clear() const {
        for (unsigned i = threadIdx.x; i < 2 * MOST_SLOTS; i += THREADS_PER_BLOCK) items[i] = 0;
    }
};

// Writes the buckets that their slots have no room for, all blocks together; each of them checks
// the keys in its own slot.
__device__ inline void fill_large_buckets(const Bits* slots, T* out, const Slots& state) {
    unsigned start = 0;
    for (unsigned bucket = 0; bucket < gridDim.x; ++bucket) {
        const unsigned items = state.items[bucket];
        if (items > BUCKET_ITEMS) {
            const Bits* const slot = slots + bucket * BUCKET_ITEMS;
            const Bits key = slot[0];
            if (bucket == blockIdx.x) {
                bool alike = state.is_alike(bucket, key);
                for (unsigned i = threadIdx.x; i < BUCKET_ITEMS; i += BUCKET_THREADS)
                    alike &= slot[i] == key;
                state.require(alike);
            }
            const unsigned stride = gridDim.x * BUCKET_THREADS;
            for (unsigned i = blockIdx.x * BUCKET_THREADS + threadIdx.x; i < items; i += stride)
                out[start + i] = from_ordered_bits<T>(key);
        }
        start += items;
    }
}
