// The driver API's header: programs include it for CUDA's version; its functions are not here.
#pragma once
#define __cuda_cuda_h__
#include "cuda_runtime.h"
