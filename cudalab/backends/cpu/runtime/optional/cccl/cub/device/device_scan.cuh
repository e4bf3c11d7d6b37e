// cub::DeviceScan, by Thrust.
#pragma once

#include <thrust/scan.h>

#include <cub/util_type.cuh>
#include <cuda/std/functional>

#include "cudalab/cub_device.h"

CUB_NAMESPACE_BEGIN

struct DeviceScan {
    template <class In, class Out, class Function, class T, class Number>
    static cudaError_t ExclusiveScan(void* temporary, size_t& bytes, In in, Out out,
                                     Function function, T init, Number n, cudaStream_t = nullptr) {
        return detail::run_with_temporary(temporary, bytes, [&] {
            thrust::exclusive_scan(thrust::device, in, in + n, out, init, function);
        });
    }
    template <class In, class Out, class Number>
    static cudaError_t ExclusiveSum(void* temporary, size_t& bytes, In in, Out out, Number n,
                                    cudaStream_t = nullptr) {
        typedef detail::value_of<In> T;
        return ExclusiveScan(temporary, bytes, in, out, ::cuda::std::plus<>(), T(), n);
    }
    template <class In, class Out, class Function, class Number>
    static cudaError_t InclusiveScan(void* temporary, size_t& bytes, In in, Out out,
                                     Function function, Number n, cudaStream_t = nullptr) {
        return detail::run_with_temporary(temporary, bytes, [&] {
            thrust::inclusive_scan(thrust::device, in, in + n, out, function);
        });
    }
    template <class In, class Out, class Function, class T, class Number>
    static cudaError_t InclusiveScanInit(void* temporary, size_t& bytes, In in, Out out,
                                         Function function, T init, Number n,
                                         cudaStream_t = nullptr) {
        return detail::run_with_temporary(temporary, bytes, [&] {
            thrust::inclusive_scan(thrust::device, in, in + n, out, init, function);
        });
    }
    template <class In, class Out, class Number>
    static cudaError_t InclusiveSum(void* temporary, size_t& bytes, In in, Out out, Number n,
                                    cudaStream_t = nullptr) {
        return InclusiveScan(temporary, bytes, in, out, ::cuda::std::plus<>(), n);
    }
    // In place.
    template <class Data, class Number>
    static cudaError_t ExclusiveSum(void* temporary, size_t& bytes, Data data, Number n,
                                    cudaStream_t = nullptr) {
        return ExclusiveSum(temporary, bytes, data, data, n);
    }
    template <class Data, class Number>
    static cudaError_t InclusiveSum(void* temporary, size_t& bytes, Data data, Number n,
                                    cudaStream_t = nullptr) {
        return InclusiveSum(temporary, bytes, data, data, n);
    }
    // Runs of equal keys, each by itself.
    template <class Keys, class In, class Out, class Number>
    static cudaError_t ExclusiveSumByKey(void* temporary, size_t& bytes, Keys keys, In in, Out out,
                                         Number n) {
        return detail::run_with_temporary(temporary, bytes, [&] {
            thrust::exclusive_scan_by_key(thrust::device, keys, keys + n, in, out);
        });
    }
    template <class Keys, class In, class Out, class Number>
    static cudaError_t InclusiveSumByKey(void* temporary, size_t& bytes, Keys keys, In in, Out out,
                                         Number n) {
        return detail::run_with_temporary(temporary, bytes, [&] {
            thrust::inclusive_scan_by_key(thrust::device, keys, keys + n, in, out);
        });
    }
};

CUB_NAMESPACE_END
