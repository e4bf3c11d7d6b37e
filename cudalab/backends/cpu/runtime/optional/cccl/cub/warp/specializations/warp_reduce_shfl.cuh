// CUB's own reduce by shuffles. Its steps in PTX are for sums, that is for an operator of type
// plus<>. Under another name for that type, the steps for any operator are chosen for sums, too;
// and the PTX, `asm volatile(...)`, is left out.
#pragma once

#include <cuda/__cmath/pow2.h>
#include <cuda/__functional/maximum.h>
#include <cuda/__functional/minimum.h>
#include <cuda/__warp/warp_shuffle.h>
#include <cuda/std/__algorithm/clamp.h>
#include <cuda/std/__bit/countr.h>
#include <cuda/std/__bit/integral.h>
#include <cuda/std/__functional/operations.h>
#include <cuda/std/__type_traits/integral_constant.h>
#include <cuda/std/__type_traits/is_integral.h>
#include <cuda/std/__type_traits/is_unsigned.h>

#include <cub/thread/thread_operators.cuh>
#include <cub/util_ptx.cuh>
#include <cub/util_type.cuh>
#include <cub/warp/specializations/warp_redux.cuh>

#include "cudalab/no_plus.h"

#define plus CudalabNoPlus
#define asm
#define volatile(...)
#include_next <cub/warp/specializations/warp_reduce_shfl.cuh>
#undef plus
#undef asm
#undef volatile
