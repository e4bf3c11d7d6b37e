// The iterator that CUB has removed since CUDA 13, as Thrust's.
#pragma once

#include <thrust/iterator/transform_iterator.h>

#include <cub/config.cuh>

CUB_NAMESPACE_BEGIN
template <class Value, class Operation, class Iterator, class Offset = ptrdiff_t>
using TransformInputIterator = THRUST_NS_QUALIFIER::transform_iterator<Operation, Iterator, Value>;
CUB_NAMESPACE_END
