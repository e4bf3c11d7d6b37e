// In check mode functions are not inlined: the line of a call tells who called.
#pragma once

#include_next <cuda/std/__cccl/visibility.h>

#ifdef CUDALAB_CHECK
#undef _CCCL_FORCEINLINE
#undef _CCCL_FORCEINLINE_LAMBDA
#define _CCCL_FORCEINLINE inline
#define _CCCL_FORCEINLINE_LAMBDA
#endif
