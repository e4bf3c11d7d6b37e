// The built-ins of kernels for whole programs: cudalab_cpu.h, with names that host functions may
// also use for variables of their own, such as `dim3 blockDim(16, 16);`.
#pragma once

#include <stdio.h>
#include <time.h>

// In kernels these mean something else: see c_library.cpp.
extern "C" {
clock_t clock() __THROW __asm__("cudalab_clock_here");
int printf(const char* format, ...) __asm__("cudalab_printf_here");
}

#define __CUDA_ARCH__ 800               // all that programs have: neither clusters nor bulk copies
#define clock cudalab_clock_of_kernels  // <time.h> has the function
// Variables instead of macros: a local variable or a member of the same name hides them, as it
// does under nvcc. They are fields of cudalab::current under other names (builtin_names.h).
#ifndef CUDALAB_PART
#define CUDALAB_BUILTIN_VARIABLES
#endif
#include "../../kernels/cudalab_cpu.h"
#undef clock
#undef threadIdx
#undef blockIdx
#undef blockDim
#undef gridDim
#undef warpSize
// clang-format off
#include "spaces.h"
#if __cplusplus >= 201703L  // the host's compiler may be told another one, for a file of the host
#include "arithmetic.h"
#endif
// clang-format on

#include "../../kernels/atomics.h"
#include "../../kernels/integers.h"
#include "../../kernels/mathematics.h"
#include "../../kernels/ptx.h"
#include "../../kernels/rounding.h"
#include "../../kernels/simd.h"
#undef __noinline__  // libstdc++ says __attribute__((__noinline__)); the rewriter handles ours

static constexpr int warpSize = 32;

// The vectors of four 8-byte numbers by the alignment that their names say.
#define CUDALAB_ALIGNED_VECTOR(T, name, bytes)                                         \
    struct alignas(bytes) name {                                                       \
        T x, y, z, w;                                                                  \
        CUDALAB_COPIES(name, (T a, T b = 0, T c = 0, T d = 0), x(a), y(b), z(c), w(d)) \
    };                                                                                 \
    static inline name make_##name(T x, T y, T z, T w) {                               \
        return {x, y, z, w};                                                           \
    }
#define CUDALAB_ALIGNED_VECTORS(T, name)       \
    CUDALAB_ALIGNED_VECTOR(T, name##4_16a, 16) \
    CUDALAB_ALIGNED_VECTOR(T, name##4_32a, 32)
CUDALAB_ALIGNED_VECTORS(long, long)
CUDALAB_ALIGNED_VECTORS(unsigned long, ulong)
CUDALAB_ALIGNED_VECTORS(long long, longlong)
CUDALAB_ALIGNED_VECTORS(unsigned long long, ulonglong)
CUDALAB_ALIGNED_VECTORS(double, double)
#undef CUDALAB_ALIGNED_VECTORS
#undef CUDALAB_ALIGNED_VECTOR

// Device variables lie together, so that they can be protected from the host.
#define CUDALAB_DEVICE_DATA __attribute__((section("cudalab_device")))
#define CUDALAB_CONSTANT_DATA __attribute__((section("cudalab_constant")))
#define CUDALAB_MANAGED_DATA __attribute__((section("cudalab_managed")))

// For cooperative_groups.h and libraries; the lanes are those that arrive here together, not only
// the caller.
namespace cudalab {
bool cudalab_in_kernel();  // whether this thread runs one
bool cudalab_on_device();  // or what a library, such as Thrust, does by one
unsigned converged_lanes(const char* file, int line);
bool in_cooperative_launch();
unsigned dynamic_shared_bytes();  // of a block of the kernel that runs
unsigned total_shared_bytes();    // with its static variables
void sync_grid(const char* file, int line);
void arrive_at_grid(const char* file, int line);
void wait_for_grid(const char* file, int line);
void sync_grid_of_loops(const char* file, int line);  // for a whole block (regions.h)
}  // namespace cudalab
#ifndef CUDALAB_CHECK
#define __activemask() ::cudalab::converged_lanes(__FILE__, __LINE__)
#endif

// Mixed arguments, as CUDA's own min and max take them.
inline double min(float a, double b) {
    return fmin((double)a, b);
}
inline double min(double a, float b) {
    return fmin(a, (double)b);
}
inline double max(float a, double b) {
    return fmax((double)a, b);
}
inline double max(double a, float b) {
    return fmax(a, (double)b);
}
