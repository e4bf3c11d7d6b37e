// cuda::memcpy_async with a barrier, which CCCL has for CUDA compilers only.
#pragma once

#include <cuda/__memcpy_async/check_preconditions.h>
#include <cuda/__memcpy_async/memcpy_async_barrier.h>
#include <cuda/std/__type_traits/void_t.h>

#pragma push_macro("_CCCL_CUDA_COMPILATION")
#undef _CCCL_CUDA_COMPILATION
#define _CCCL_CUDA_COMPILATION() 1
#include_next <cuda/__memcpy_async/memcpy_async.h>
#pragma pop_macro("_CCCL_CUDA_COMPILATION")
