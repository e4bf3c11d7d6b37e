// cub::DeviceReduce, by Thrust.
#pragma once

#include <thrust/extrema.h>
#include <thrust/reduce.h>
#include <thrust/transform_reduce.h>

#include <cub/util_type.cuh>
#include <cuda/std/functional>
#include <cuda/std/limits>

#include "cudalab/cub_device.h"

CUB_NAMESPACE_BEGIN

struct DeviceReduce {
    template <class In, class Out, class Number, class Function, class T>
    static cudaError_t Reduce(void* temporary, size_t& bytes, In in, Out out, Number n,
                              Function function, T init, cudaStream_t = nullptr) {
        return detail::run_with_temporary(temporary, bytes, [&] {
            *out = thrust::reduce(thrust::device, in, in + n, init, function);
        });
    }
    template <class In, class Out, class Number>
    static cudaError_t Sum(void* temporary, size_t& bytes, In in, Out out, Number n,
                           cudaStream_t = nullptr) {
        typedef detail::value_of<In> T;
        return Reduce(temporary, bytes, in, out, n, ::cuda::std::plus<>(), T());
    }
    template <class In, class Out, class Number>
    static cudaError_t Min(void* temporary, size_t& bytes, In in, Out out, Number n,
                           cudaStream_t = nullptr) {
        typedef detail::value_of<In> T;
        const T init = ::cuda::std::numeric_limits<T>::max();
        return Reduce(temporary, bytes, in, out, n, ::cuda::minimum<>(), init);
    }
    template <class In, class Out, class Number>
    static cudaError_t Max(void* temporary, size_t& bytes, In in, Out out, Number n,
                           cudaStream_t = nullptr) {
        typedef detail::value_of<In> T;
        const T init = ::cuda::std::numeric_limits<T>::lowest();
        return Reduce(temporary, bytes, in, out, n, ::cuda::maximum<>(), init);
    }
    template <class In, class Out, class Number, class Function, class Change, class T>
    static cudaError_t TransformReduce(void* temporary, size_t& bytes, In in, Out out, Number n,
                                       Function function, Change change, T init,
                                       cudaStream_t = nullptr) {
        return detail::run_with_temporary(temporary, bytes, [&] {
            *out = thrust::transform_reduce(thrust::device, in, in + n, change, init, function);
        });
    }

    // The place and the value of an extremum, as a pair or apart.
    template <class In, class Pair, class Number>
    static cudaError_t ArgMin(void* temporary, size_t& bytes, In in, Pair out, Number n,
                              cudaStream_t = nullptr) {
        return detail::run_with_temporary(temporary, bytes, [&] {
            const auto place = thrust::min_element(thrust::device, in, in + n) - in;
            out->key = (decltype(out->key))place, out->value = in[place];
        });
    }
    template <class In, class Pair, class Number>
    static cudaError_t ArgMax(void* temporary, size_t& bytes, In in, Pair out, Number n,
                              cudaStream_t = nullptr) {
        return detail::run_with_temporary(temporary, bytes, [&] {
            const auto place = thrust::max_element(thrust::device, in, in + n) - in;
            out->key = (decltype(out->key))place, out->value = in[place];
        });
    }
    template <class In, class Out, class Place>
    static cudaError_t ArgMin(void* temporary, size_t& bytes, In in, Out out, Place place,
                              int64_t n, cudaStream_t = nullptr) {
        return detail::run_with_temporary(temporary, bytes, [&] {
            *place = thrust::min_element(thrust::device, in, in + n) - in;
            *out = in[*place];
        });
    }
    template <class In, class Out, class Place>
    static cudaError_t ArgMax(void* temporary, size_t& bytes, In in, Out out, Place place,
                              int64_t n, cudaStream_t = nullptr) {
        return detail::run_with_temporary(temporary, bytes, [&] {
            *place = thrust::max_element(thrust::device, in, in + n) - in;
            *out = in[*place];
        });
    }

    template <class Keys, class Unique, class Values, class Sums, class Count, class Function,
              class Number>
    static cudaError_t ReduceByKey(void* temporary, size_t& bytes, Keys keys, Unique unique,
                                   Values values, Sums sums, Count count, Function function,
                                   Number n, cudaStream_t = nullptr) {
        return detail::run_with_temporary(temporary, bytes, [&] {
            const auto ends = thrust::reduce_by_key(thrust::device, keys, keys + n, values, unique,
                                                    sums, ::cuda::std::equal_to<>(), function);
            *count = ends.first - unique;
        });
    }
};

CUB_NAMESPACE_END
