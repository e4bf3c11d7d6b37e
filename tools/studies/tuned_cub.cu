// One algorithm of CUB with one tuning policy: prints the median time of 11 runs in microseconds,
// with caches flushed before each. The macro WORK (keys, pairs, scan or reduce) and three numbers
// say which; if all three are 0, the policy is CUB's own. For CUB 3.5 and newer.
//
//     TUNED_THREADS  of a block; with TUNED_AHEAD, its warps that scan
//     TUNED_ITEMS    of a thread
//     TUNED_AHEAD    if not 0, a scan is the one that looks ahead, by so many items of a thread
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cuda/execution>
#include <vector>

using Capability = ::cuda::compute_capability;
using Count = int;
using Offset = cub::detail::choose_offset_t<Count>;

struct Arrays {
    unsigned *in, *values, *out, *out_values;
};

template <class Value>
struct Sort {
    constexpr cub::RadixSortPolicy operator()(Capability capability) const {
        using Own = cub::detail::radix_sort::policy_selector_from_types<unsigned, Value, Offset>;
        auto policy = Own{}(capability);
        if (TUNED_THREADS) policy.onesweep.threads_per_block = TUNED_THREADS;
        if (TUNED_ITEMS) policy.onesweep.items_per_thread = TUNED_ITEMS;
        return policy;
    }
};

struct Scan {
    constexpr cub::ScanPolicy operator()(Capability capability) const {
        using Plus = ::cuda::std::plus<>;
        using Own = cub::detail::scan::policy_selector_from_types<const float*, float*, float,
                                                                  Offset, Plus, false>;
        auto policy = Own{}(capability);
        if (TUNED_AHEAD) {
            policy.algorithm = cub::ScanAlgorithm::lookahead;
            policy.lookahead.reduce_and_scan_warps = TUNED_THREADS;
            policy.lookahead.items_per_thread = TUNED_ITEMS;
            policy.lookahead.lookahead_items_per_thread = TUNED_AHEAD;
        } else if (TUNED_THREADS) {
            policy.algorithm = cub::ScanAlgorithm::lookback;
            policy.lookback.threads_per_block = TUNED_THREADS;
            policy.lookback.items_per_thread = TUNED_ITEMS;
        }
        return policy;
    }
};

struct Reduce {
    constexpr cub::ReducePolicy operator()(Capability capability) const {
        using Own =
            cub::detail::reduce::policy_selector_from_types<float, Offset, ::cuda::std::plus<>>;
        auto policy = Own{}(capability);
        if (TUNED_THREADS) policy.multi_tile.threads_per_block = TUNED_THREADS;
        if (TUNED_ITEMS) policy.multi_tile.items_per_thread = TUNED_ITEMS;
        return policy;
    }
};

template <class Policy>
auto tuned(Policy) {
    return ::cuda::std::execution::env{::cuda::execution::tune(Policy{})};
}

cudaError_t keys(const Arrays& a, Count n) {
    const unsigned* const in = a.in;
    return cub::DeviceRadixSort::SortKeys(in, a.out, n, 0, 32, tuned(Sort<cub::NullType>{}));
}

cudaError_t pairs(const Arrays& a, Count n) {
    const unsigned *const in = a.in, *const values = a.values;
    return cub::DeviceRadixSort::SortPairs(in, a.out, values, a.out_values, n, 0, 32,
                                           tuned(Sort<unsigned>{}));
}

cudaError_t scan(const Arrays& a, Count n) {
    const float* const in = reinterpret_cast<const float*>(a.in);
    return cub::DeviceScan::ExclusiveSum(in, reinterpret_cast<float*>(a.out), n, tuned(Scan{}));
}

cudaError_t reduce(const Arrays& a, Count n) {
    const float* const in = reinterpret_cast<const float*>(a.in);
    return cub::DeviceReduce::Sum(in, reinterpret_cast<float*>(a.out), n, tuned(Reduce{}));
}

void check(cudaError_t error) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
    std::exit(1);
}

// Random patterns (SplitMix64), for floats of small magnitude.
__global__ void draw(unsigned* words, unsigned n, unsigned mask, unsigned set) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned long long z = (i + 1) * 0x9E3779B97F4A7C15ull;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ z >> 27) * 0x94D049BB133111EBull;
        words[i] = (unsigned)(z ^ z >> 31) & mask | set;
    }
}

int main(int, char** argv) {
    const Count n = std::atoi(argv[1]);
    const bool floats = std::atoi(argv[2]);
    constexpr size_t FLUSHED = size_t(256) << 20;
    Arrays arrays;
    char* flushed;
    for (unsigned** array : {&arrays.in, &arrays.values, &arrays.out, &arrays.out_values})
        check(cudaMalloc(array, size_t(n) * 4));
    check(cudaMalloc(&flushed, FLUSHED));
    draw<<<1024, 256>>>(arrays.in, n, floats ? 0x807fffffu : ~0u, floats ? 0x3f000000u : 0);
    draw<<<1024, 256>>>(arrays.values, n, ~0u, 0);
    cudaMemPool_t pool;  // keeps what CUB allocates for a run
    unsigned long long kept = ~0ull;
    check(cudaDeviceGetDefaultMemPool(&pool, 0));
    check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept));
    cudaEvent_t begin, end;
    check(cudaEventCreate(&begin));
    check(cudaEventCreate(&end));
    std::vector<float> times;
    for (int run = -2; run < 11; ++run) {
        check(cudaMemsetAsync(flushed, run, FLUSHED));
        check(cudaEventRecord(begin));
        check(WORK(arrays, n));
        check(cudaEventRecord(end));
        check(cudaEventSynchronize(end));
        float ms;
        check(cudaEventElapsedTime(&ms, begin, end));
        if (run >= 0) times.push_back(ms);
    }
    std::sort(times.begin(), times.end());
    std::printf("%.2f\n", 1e3 * times[times.size() / 2]);
}
