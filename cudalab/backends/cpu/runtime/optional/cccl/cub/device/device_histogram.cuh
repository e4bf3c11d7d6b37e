// cub::DeviceHistogram of one channel.
#pragma once

#include <thrust/binary_search.h>
#include <thrust/fill.h>
#include <thrust/for_each.h>

#include <cub/util_type.cuh>

#include "cudalab/cub_device.h"

CUB_NAMESPACE_BEGIN

struct DeviceHistogram {
    // Bins of equal width, `levels` - 1 of them from `lower` to `upper`.
    template <class Samples, class Count, class Level, class Number>
    static cudaError_t HistogramEven(void* temporary, size_t& bytes, Samples samples,
                                     Count* histogram, int levels, Level lower, Level upper,
                                     Number n, cudaStream_t = nullptr) {
        return detail::run_with_temporary(temporary, bytes, [&] {
            const int bins = levels - 1;
            thrust::fill(thrust::device, histogram, histogram + bins, Count());
            thrust::for_each(thrust::device, samples, samples + n, [=](auto sample) {
                const Level level = (Level)sample;
                if (lower <= level && level < upper) ++histogram[bin_of(level, lower, upper, bins)];
            });
        });
    }
    // Bins between neighbours of the increasing `levels`.
    template <class Samples, class Count, class Level, class Number>
    static cudaError_t HistogramRange(void* temporary, size_t& bytes, Samples samples,
                                      Count* histogram, int num_levels, const Level* levels,
                                      Number n, cudaStream_t = nullptr) {
        return detail::run_with_temporary(temporary, bytes, [&] {
            const int bins = num_levels - 1;
            thrust::fill(thrust::device, histogram, histogram + bins, Count());
            thrust::for_each(thrust::device, samples, samples + n, [=](auto sample) {
                const Level* above =
                    thrust::upper_bound(thrust::seq, levels, levels + num_levels, (Level)sample);
                if (above != levels && above != levels + num_levels)
                    ++histogram[above - levels - 1];
            });
        });
    }

  private:
    template <class Level>
    static int bin_of(Level level, Level lower, Level upper, int bins) {
        if constexpr (::cuda::std::is_integral_v<Level>)
            return (int)((unsigned long long)(level - lower) * (unsigned long long)bins /
                         (unsigned long long)(upper - lower));
        else
            return (int)((level - lower) * ((Level)bins / (upper - lower)));
    }
};

CUB_NAMESPACE_END
