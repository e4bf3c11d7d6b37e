// NVTX's names for the objects of the CUDA driver interface.
#pragma once

#include "cuda.h"
#include "nvToolsExt.h"

CUDALAB_TEXTS(CUDALAB_NO_VALUE, void, nvtxNameCuDevice,
              CUDALAB_UNUSED CUdevice device CUDALAB_COMMA, )
CUDALAB_TEXTS(CUDALAB_NO_VALUE, void, nvtxNameCuContext,
              CUDALAB_UNUSED CUcontext context CUDALAB_COMMA, )
CUDALAB_TEXTS(CUDALAB_NO_VALUE, void, nvtxNameCuStream,
              CUDALAB_UNUSED CUstream stream CUDALAB_COMMA, )
CUDALAB_TEXTS(CUDALAB_NO_VALUE, void, nvtxNameCuEvent, CUDALAB_UNUSED CUevent event CUDALAB_COMMA, )

#define nvtxNameCuDevice nvtxNameCuDeviceA
#define nvtxNameCuContext nvtxNameCuContextA
#define nvtxNameCuStream nvtxNameCuStreamA
#define nvtxNameCuEvent nvtxNameCuEventA
