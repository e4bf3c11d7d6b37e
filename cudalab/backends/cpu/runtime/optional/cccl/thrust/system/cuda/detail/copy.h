// Takes the place of Thrust's copies by the CUDA runtime: execution_policy.h has all algorithms.
#pragma once

#include <thrust/system/cuda/detail/execution_policy.h>
#include <thrust/tuple.h>  // which programs find here
