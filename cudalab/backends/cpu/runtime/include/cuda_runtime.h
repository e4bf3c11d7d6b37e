// The declarations that nvcc includes before every .cu file, for programs on the CPU device, and
// those for files in C. Kernel files include only cudalab_cpu.h instead.
#pragma once

#include "cudalab/guards.h"

#if !defined(__cplusplus)

#include "cudalab/c.h"

#elif defined(CUDALAB_CPU)

#include <type_traits>
#include <utility>

// For cooperative_groups.h: a lab's launches are not cooperative.
namespace cudalab {
inline unsigned converged_lanes(const char*, int) {
    return __activemask();
}
inline bool in_cooperative_launch() {
    return false;
}
inline void sync_grid(const char*, int) {
    __trap();
}
inline void arrive_at_grid(const char*, int) {
    __trap();
}
inline void wait_for_grid(const char*, int) {
    __trap();
}
}  // namespace cudalab

#else

#include <assert.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef CUDALAB_PART  // our own parts do without them: they take longer to read than all the rest
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>
#endif

#include "cudalab/api.h"
#include "cudalab/removed.h"
#include "cudalab/texture_reads.h"

#endif
