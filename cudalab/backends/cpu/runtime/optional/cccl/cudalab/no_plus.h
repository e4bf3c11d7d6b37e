// A type that no operator has, in the place of cuda::std::plus<>.
#pragma once

#include <cuda/std/detail/__config>

_CCCL_BEGIN_NAMESPACE_CUDA_STD
template <class T = void>
struct CudalabNoPlus {};
_CCCL_END_NAMESPACE_CUDA_STD
