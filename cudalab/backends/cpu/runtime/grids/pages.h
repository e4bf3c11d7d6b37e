// The size of a page: 4 KB on x86-64; 4, 16 or 64 KB on ARM, as the system was built.
#pragma once

#include <stddef.h>

namespace cudalab {

#if defined(__x86_64__)
const size_t PAGE = 4 << 10;
#else
const size_t PAGE = 64 << 10;  // whole pages, whatever their size is
#endif

}  // namespace cudalab
