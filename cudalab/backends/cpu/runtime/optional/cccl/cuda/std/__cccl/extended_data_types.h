// To CCCL, half precision is one more type of the program's. (Its own functions for it want what
// only NVIDIA's header has.)
#pragma once

#define CCCL_DISABLE_FP16_SUPPORT
#include_next <cuda/std/__cccl/extended_data_types.h>
