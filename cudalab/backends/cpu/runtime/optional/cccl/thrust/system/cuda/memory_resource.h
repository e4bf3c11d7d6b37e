// The memory of device, universal and pinned vectors.
#pragma once

#include <cuda/std/__memory/pointer_traits.h>
#include <thrust/mr/memory_resource.h>
#include <thrust/system/cuda/detail/util.h>
#include <thrust/system/cuda/error.h>
#include <thrust/system/cuda/pointer.h>
#include <thrust/system/detail/bad_alloc.h>

THRUST_NAMESPACE_BEGIN
namespace system::cuda {
namespace detail {

template <class Pointer, cudaError_t allocate(void**, size_t), cudaError_t release(void*)>
class Resource final : public mr::memory_resource<Pointer> {
  public:
    Pointer do_allocate(size_t bytes, size_t) override {
        void* memory;
        cudaError_t error = allocate(&memory, bytes);
        if (error == cudaSuccess) return Pointer(memory);
        cudaGetLastError();  // the exception takes its place
        throw thrust::system::detail::bad_alloc(thrust::cuda_category().message(error));
    }
    // A destructor may call this, so an error is no exception.
    void do_deallocate(Pointer pointer, size_t, size_t) override {
        release((void*)::cuda::std::to_address(pointer));
    }
};

// The API's functions have more parameters here than on a GPU.
inline cudaError_t allocate(void** memory, size_t bytes) {
    return ::cudaMalloc(memory, bytes);
}
inline cudaError_t allocate_managed(void** memory, size_t bytes) {
    return ::cudaMallocManaged(memory, bytes);
}
inline cudaError_t allocate_pinned(void** memory, size_t bytes) {
    return ::cudaMallocHost(memory, bytes);
}
inline cudaError_t release(void* memory) {
    return ::cudaFree(memory);
}
inline cudaError_t release_pinned(void* memory) {
    return ::cudaFreeHost(memory);
}

}  // namespace detail

typedef detail::Resource<thrust::cuda::pointer<void>, detail::allocate, detail::release>
    memory_resource;
typedef detail::Resource<thrust::cuda::universal_pointer<void>, detail::allocate_managed,
                         detail::release>
    universal_memory_resource;
typedef detail::Resource<thrust::cuda::universal_host_pinned_pointer<void>, detail::allocate_pinned,
                         detail::release_pinned>
    universal_host_pinned_memory_resource;

}  // namespace system::cuda

namespace cuda {
using thrust::system::cuda::memory_resource;
using thrust::system::cuda::universal_host_pinned_memory_resource;
using thrust::system::cuda::universal_memory_resource;
}  // namespace cuda
THRUST_NAMESPACE_END
