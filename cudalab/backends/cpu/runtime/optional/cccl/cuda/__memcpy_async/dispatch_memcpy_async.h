// The copies of cuda::memcpy_async: each thread of the group copies its part, at the time of the
// call.
#pragma once

#include <cuda/__memcpy_async/completion_mechanism.h>
#include <cuda/__memcpy_async/cp_async_fallback.h>

#include <cuda/std/cstdint>

_CCCL_BEGIN_NAMESPACE_CUDA

template <size_t alignment, class Group>
__completion_mechanism __dispatch_memcpy_async(const Group& group, char* to, const char* from,
                                               size_t bytes, uint32_t, uint64_t* = nullptr) {
    __cp_async_fallback_mechanism<alignment>(group, to, from, bytes);
    return __completion_mechanism::__sync;
}

_CCCL_END_NAMESPACE_CUDA
