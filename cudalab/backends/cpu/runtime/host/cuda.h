// The driver API's header: programs include it for CUDA's version; its functions are not here.
#pragma once
#include "cuda_runtime.h"
