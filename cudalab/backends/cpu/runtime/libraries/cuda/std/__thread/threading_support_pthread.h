// The waits of libcu++: in a kernel, a thread that yields or sleeps lets the other threads of its
// block run.
#pragma once

#define __cccl_thread_yield __cccl_thread_yield_on_host
#define __cccl_thread_sleep_for __cccl_thread_sleep_for_on_host
#include_next <cuda/std/__thread/threading_support_pthread.h>
#undef __cccl_thread_yield
#undef __cccl_thread_sleep_for

_CCCL_BEGIN_NAMESPACE_CUDA_STD

inline void __cccl_thread_yield() {
    ::cudalab::in_kernel() ? ::cudalab::cudalab_yield() : __cccl_thread_yield_on_host();
}
inline void __cccl_thread_sleep_for(::cuda::std::chrono::nanoseconds time) {
    ::cudalab::in_kernel() ? ::cudalab::cudalab_yield() : __cccl_thread_sleep_for_on_host(time);
}

_CCCL_END_NAMESPACE_CUDA_STD
