// NVTX's names for the objects of the CUDA runtime.
#pragma once

#include "cuda_runtime.h"
#include "nvToolsExt.h"

CUDALAB_TEXTS(CUDALAB_NO_VALUE, void, nvtxNameCudaDevice, CUDALAB_UNUSED int device CUDALAB_COMMA, )
CUDALAB_TEXTS(CUDALAB_NO_VALUE, void, nvtxNameCudaStream,
              CUDALAB_UNUSED cudaStream_t stream CUDALAB_COMMA, )
CUDALAB_TEXTS(CUDALAB_NO_VALUE, void, nvtxNameCudaEvent,
              CUDALAB_UNUSED cudaEvent_t event CUDALAB_COMMA, )

#define nvtxNameCudaDevice nvtxNameCudaDeviceA
#define nvtxNameCudaStream nvtxNameCudaStreamA
#define nvtxNameCudaEvent nvtxNameCudaEventA
