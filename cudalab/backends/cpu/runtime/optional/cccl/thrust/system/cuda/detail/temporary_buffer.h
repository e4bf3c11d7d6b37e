// The temporary memory of Thrust's algorithms is the host's, where they run.
#pragma once

#include <stdlib.h>
#include <thrust/system/cuda/detail/execution_policy.h>

THRUST_NAMESPACE_BEGIN
namespace cuda_cub {

template <class T, class Derived>
::cuda::std::pair<thrust::pointer<T, Derived>, ptrdiff_t> get_temporary_buffer(
    execution_policy<Derived>&, ptrdiff_t n) {
    T* memory = (T*)::malloc((size_t)n * sizeof(T));
    return {thrust::pointer<T, Derived>(memory), memory ? n : 0};
}
template <class Derived, class Pointer>
void return_temporary_buffer(execution_policy<Derived>&, Pointer pointer, ptrdiff_t) {
    ::free(thrust::raw_pointer_cast(pointer));
}

}  // namespace cuda_cub
THRUST_NAMESPACE_END
