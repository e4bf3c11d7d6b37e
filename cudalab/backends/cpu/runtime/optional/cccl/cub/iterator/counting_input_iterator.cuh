// The iterator that CUB has removed since CUDA 13, as Thrust's.
#pragma once

#include <thrust/iterator/counting_iterator.h>

#include <cub/config.cuh>

CUB_NAMESPACE_BEGIN
template <class Value, class Offset = ptrdiff_t>
using CountingInputIterator = THRUST_NS_QUALIFIER::counting_iterator<Value>;
CUB_NAMESPACE_END
