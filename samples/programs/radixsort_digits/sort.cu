// Radix sort by digits of four bits: count, scan the counts, scatter; eight passes for 32 bits.

#include "sort.cuh"

namespace {

constexpr int THREADS = 256;
constexpr int ITEMS = 8;  // consecutive keys a thread
constexpr int TILE = THREADS * ITEMS;

__host__ __device__ constexpr int num_blocks(int n) {
    return (n + TILE - 1) / TILE;
}

__device__ __forceinline__ int digit_of(std::uint32_t key, int shift) {
    return key >> shift & (RADIX - 1);
}

// Exclusive scan of one value a thread over the block. All threads call it.
__device__ int scan_block(int value, int* total) {
    __shared__ int sums[THREADS];
    const int t = threadIdx.x;
    sums[t] = value;
    __syncthreads();
    for (int offset = 1; offset < THREADS; offset *= 2) {
        const int left = t >= offset ? sums[t - offset] : 0;
        __syncthreads();  // everyone has read
        sums[t] += left;
        __syncthreads();  // everyone has written
    }
    *total = sums[THREADS - 1];
    const int before = t ? sums[t - 1] : 0;
    __syncthreads();  // `sums` may be used again
    return before;
}

__global__ void __launch_bounds__(THREADS) count_digits(const std::uint32_t* keys,
                                                        std::uint32_t* counts, int n, int shift) {
    __shared__ int histogram[RADIX];
    if (threadIdx.x < RADIX) histogram[threadIdx.x] = 0;
    __syncthreads();
    const int begin = blockIdx.x * TILE, end = min(begin + TILE, n);
    for (int i = begin + threadIdx.x; i < end; i += THREADS)
        atomicAdd(&histogram[digit_of(keys[i], shift)], 1);
    __syncthreads();
    // All blocks' counts of a digit lie together: their scan gives each block its offset.
    if (threadIdx.x < RADIX) counts[threadIdx.x * gridDim.x + blockIdx.x] = histogram[threadIdx.x];
}

// One block walks over all counts.
__global__ void __launch_bounds__(THREADS) scan_counts(std::uint32_t* counts, int num) {
    std::uint32_t carry = 0;
    for (int begin = 0; begin < num; begin += THREADS) {
        const int i = begin + threadIdx.x;
        int total;
        const std::uint32_t before = scan_block(i < num ? counts[i] : 0, &total);
        if (i < num) counts[i] = carry + before;
        carry += total;
    }
}

__global__ void __launch_bounds__(THREADS) scatter(const std::uint32_t* keys, std::uint32_t* sorted,
                                                   const std::uint32_t* offsets, int n, int shift) {
    const int begin = blockIdx.x * TILE + threadIdx.x * ITEMS;
    const int count = max(0, min(ITEMS, n - begin));
    std::uint32_t own[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
        if (i < count) own[i] = keys[begin + i];
    for (int digit = 0; digit < RADIX; ++digit) {
        int mine = 0, total;
        for (int i = 0; i < count; ++i) mine += digit_of(own[i], shift) == digit;
        std::uint32_t to =
            offsets[digit * gridDim.x + blockIdx.x] + (std::uint32_t)scan_block(mine, &total);
        for (int i = 0; i < count; ++i)
            if (digit_of(own[i], shift) == digit) sorted[to++] = own[i];
    }
}

}  // namespace

std::size_t num_counts(int n) {
    return static_cast<std::size_t>(RADIX) * num_blocks(n);
}

cudaError_t sort(std::uint32_t* keys, int n, const Workspace& workspace) {
    const int blocks = num_blocks(n);
    std::uint32_t *from = keys, *to = workspace.other;
    static_assert(32 / RADIX_BITS % 2 == 0, "the sorted keys end up where they came from");
    for (int shift = 0; shift < 32; shift += RADIX_BITS) {
        count_digits<<<blocks, THREADS>>>(from, workspace.counts, n, shift);
        scan_counts<<<1, THREADS>>>(workspace.counts, static_cast<int>(num_counts(n)));
        scatter<<<blocks, THREADS>>>(from, to, workspace.counts, n, shift);
        std::uint32_t* const swap = from;
        from = to;
        to = swap;
    }
    return cudaGetLastError();
}
