// cub::DeviceRunLengthEncode, by Thrust.
#pragma once

#include <thrust/iterator/constant_iterator.h>
#include <thrust/reduce.h>

#include <cub/util_type.cuh>

#include "cudalab/cub_device.h"

CUB_NAMESPACE_BEGIN

struct DeviceRunLengthEncode {
    template <class In, class Unique, class Lengths, class Count, class Number>
    static cudaError_t Encode(void* temporary, size_t& bytes, In in, Unique unique, Lengths lengths,
                              Count count, Number n, cudaStream_t = nullptr) {
        return detail::run_with_temporary(temporary, bytes, [&] {
            typedef detail::value_of<Lengths> Length;
            const auto ends = thrust::reduce_by_key(
                thrust::device, in, in + n, thrust::constant_iterator<Length>(1), unique, lengths);
            *count = ends.first - unique;
        });
    }
    // Runs of two and more.
    template <class In, class Starts, class Lengths, class Count, class Number>
    static cudaError_t NonTrivialRuns(void* temporary, size_t& bytes, In in, Starts starts,
                                      Lengths lengths, Count count, Number n,
                                      cudaStream_t = nullptr) {
        return detail::run_with_temporary(temporary, bytes, [&] {
            Number runs = 0;
            for (Number first = 0, next; first < n; first = next) {
                for (next = first + 1; next < n && in[next] == in[first];) ++next;
                if (next - first < 2) continue;
                starts[runs] = first;
                lengths[runs++] = next - first;
            }
            *count = runs;
        });
    }
};

CUB_NAMESPACE_END
