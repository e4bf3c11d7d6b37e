// Half precision.
#pragma once
#define __CUDA_FP16_H__

#include "cudalab/narrow.h"

#define CUDALAB_FLOAT __half
#define CUDALAB_FLOAT2 __half2
#define CUDALAB_RAW __half_raw
#define CUDALAB_RAW2 __half2_raw
#define CUDALAB_FORMAT Half
#define CUDALAB_NAME(before, after) before##half##after
#include "cudalab/narrow_functions.h"

typedef __half half;
typedef __half2 half2;
typedef __half nv_half;
typedef __half2 nv_half2;
typedef __half __nv_half;
typedef __half2 __nv_half2;

inline __half2 __half2half2(__half a) {
    return {a, a};
}
