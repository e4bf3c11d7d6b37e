// What CUB's algorithms for a whole device have in common here: they are Thrust's.
#pragma once

#include <thrust/execution_policy.h>
#include <thrust/iterator/iterator_traits.h>
#include <thrust/system_error.h>

#include <cub/config.cuh>

CUB_NAMESPACE_BEGIN
namespace detail {

// Runs `algorithm` unless this is the first call, which asks for the size of the temporary memory.
template <class F>
cudaError_t run_with_temporary(void* temporary, size_t& bytes, F algorithm) {
    if (!temporary) return bytes = 1, cudaSuccess;
    try {
        ::cudalab::LibraryAccess access;
        if (access.error == cudaSuccess) algorithm();
        return access.error;
    } catch (const thrust::system_error& error) {
        return (cudaError_t)error.code().value();
    }
}

template <class Iterator>
using value_of = typename thrust::iterator_traits<Iterator>::value_type;

}  // namespace detail
CUB_NAMESPACE_END
