// cub::DeviceSelect, by Thrust.
#pragma once

#include <thrust/copy.h>
#include <thrust/unique.h>

#include <cub/util_type.cuh>

#include "cudalab/cub_device.h"

CUB_NAMESPACE_BEGIN

struct DeviceSelect {
    template <class In, class Out, class Count, class Number, class Condition>
    static cudaError_t If(void* temporary, size_t& bytes, In in, Out out, Count count, Number n,
                          Condition condition, cudaStream_t = nullptr) {
        return detail::run_with_temporary(temporary, bytes, [&] {
            *count = thrust::copy_if(thrust::device, in, in + n, out, condition) - out;
        });
    }
    template <class In, class Flags, class Out, class Count, class Number>
    static cudaError_t Flagged(void* temporary, size_t& bytes, In in, Flags flags, Out out,
                               Count count, Number n, cudaStream_t = nullptr) {
        return detail::run_with_temporary(temporary, bytes, [&] {
            *count = thrust::copy_if(thrust::device, in, in + n, flags, out,
                                     [](auto flag) { return (bool)flag; }) -
                     out;
        });
    }
    template <class In, class Out, class Count, class Number>
    static cudaError_t Unique(void* temporary, size_t& bytes, In in, Out out, Count count, Number n,
                              cudaStream_t = nullptr) {
        return detail::run_with_temporary(temporary, bytes, [&] {
            *count = thrust::unique_copy(thrust::device, in, in + n, out) - out;
        });
    }
    template <class Keys, class Values, class KeysOut, class ValuesOut, class Count, class Number>
    static cudaError_t UniqueByKey(void* temporary, size_t& bytes, Keys keys, Values values,
                                   KeysOut keys_out, ValuesOut values_out, Count count, Number n,
                                   cudaStream_t = nullptr) {
        return detail::run_with_temporary(temporary, bytes, [&] {
            const auto ends = thrust::unique_by_key_copy(thrust::device, keys, keys + n, values,
                                                         keys_out, values_out);
            *count = ends.first - keys_out;
        });
    }
};

CUB_NAMESPACE_END
