// Includes thrust::tuple and thrust::pair, as before CCCL 3.5 and as programs count on.
#pragma once

#include_next <thrust/iterator/zip_iterator.h>
#include <thrust/pair.h>
#include <thrust/tuple.h>
