// Lets CCCL see the host's compiler, not a CUDA compiler, and leaves loops to it. (g++ rejects some
// of the pragmas that unroll them.)
#pragma once

#pragma push_macro("__CUDACC__")
#pragma push_macro("__CUDA_ARCH__")
#undef __CUDACC__
#undef __CUDA_ARCH__
#include_next <cuda/std/__cccl/compiler.h>
#pragma pop_macro("__CUDA_ARCH__")
#pragma pop_macro("__CUDACC__")

#undef _CCCL_PRAGMA_UNROLL
#undef _CCCL_PRAGMA_UNROLL_FULL
#define _CCCL_PRAGMA_UNROLL(count)
#define _CCCL_PRAGMA_UNROLL_FULL()
