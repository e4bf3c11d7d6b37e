// Bfloat16: the range of float with 8 bits of precision.
#pragma once

#include "cudalab/narrow.h"

#define CUDALAB_FLOAT __nv_bfloat16
#define CUDALAB_FLOAT2 __nv_bfloat162
#define CUDALAB_RAW __nv_bfloat16_raw
#define CUDALAB_RAW2 __nv_bfloat162_raw
#define CUDALAB_FORMAT Bfloat16
#define CUDALAB_NAME(before, after) before##bfloat16##after
#include "cudalab/narrow_functions.h"

typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 a) {
    return {a, a};
}
