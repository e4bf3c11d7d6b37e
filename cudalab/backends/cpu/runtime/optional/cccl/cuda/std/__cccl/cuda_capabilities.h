// Lets this header of CCCL see the host's compiler, not a CUDA compiler.
#pragma once

#pragma push_macro("__CUDACC__")
#pragma push_macro("__CUDA_ARCH__")
#undef __CUDACC__
#undef __CUDA_ARCH__
#include_next <cuda/std/__cccl/cuda_capabilities.h>
#pragma pop_macro("__CUDA_ARCH__")
#pragma pop_macro("__CUDACC__")
