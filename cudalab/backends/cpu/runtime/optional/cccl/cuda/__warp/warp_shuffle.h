// Shuffles of values of any size, which CCCL has for CUDA compilers only.
#pragma once

#include <cuda/__cmath/ceil_div.h>
#include <cuda/__cmath/pow2.h>
#include <cuda/__ptx/instructions/shfl_sync.h>
#include <cuda/std/__cstring/memcpy.h>
#include <cuda/std/__memory/addressof.h>
#include <cuda/std/__type_traits/enable_if.h>
#include <cuda/std/__type_traits/integral_constant.h>
#include <cuda/std/__type_traits/is_array.h>
#include <cuda/std/__type_traits/is_default_constructible.h>
#include <cuda/std/__type_traits/is_pointer.h>
#include <cuda/std/__type_traits/is_same.h>
#include <cuda/std/__type_traits/remove_cv.h>

#include <cuda/std/cstdint>

#pragma push_macro("_CCCL_CUDA_COMPILATION")
#pragma push_macro("__cccl_ptx_isa")
#undef _CCCL_CUDA_COMPILATION
#undef __cccl_ptx_isa
#define _CCCL_CUDA_COMPILATION() 1
#define __cccl_ptx_isa 900
#include_next <cuda/__warp/warp_shuffle.h>
#pragma pop_macro("__cccl_ptx_isa")
#pragma pop_macro("_CCCL_CUDA_COMPILATION")
