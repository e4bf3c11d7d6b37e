// The iterator that CUB has removed since CUDA 13, as Thrust's.
#pragma once

#include <thrust/iterator/constant_iterator.h>

#include <cub/config.cuh>

CUB_NAMESPACE_BEGIN
template <class Value, class Offset = ptrdiff_t>
using ConstantInputIterator = THRUST_NS_QUALIFIER::constant_iterator<Value>;
CUB_NAMESPACE_END
