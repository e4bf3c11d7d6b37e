// The waits of libcu++: in a kernel, a thread that waits lets the other threads of its block run.
#pragma once

#define __cccl_thread_poll_with_backoff __cccl_thread_poll_on_host
#include_next <cuda/std/__thread/threading_support.h>
#undef __cccl_thread_poll_with_backoff

_CCCL_BEGIN_NAMESPACE_CUDA_STD

// Returns whether `arrived` became true within `longest`, which is zero if there is no limit.
template <class F>
bool __cccl_thread_poll_with_backoff(
    F&& arrived, ::cuda::std::chrono::nanoseconds longest = ::cuda::std::chrono::nanoseconds(0)) {
    if (!::cudalab::cudalab_in_kernel()) return __cccl_thread_poll_on_host(arrived, longest);
    const long long begin = longest.count() ? ::cudalab::cudalab_clock() : 0;
    while (!arrived()) {
        if (longest.count() && ::cudalab::cudalab_clock() - begin > longest.count()) return false;
        ::cudalab::cudalab_yield();
    }
    return true;
}

_CCCL_END_NAMESPACE_CUDA_STD
