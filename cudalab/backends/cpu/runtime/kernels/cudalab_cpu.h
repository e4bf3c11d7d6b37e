// CUDA's built-ins for a host C++17 compiler, so that a .cu file compiles unchanged.
//
// A kernel is an ordinary function. The threads of a block run one after another until one of them
// must wait for others; from then on each is a fiber (fibers.h). `__shared__` is memory of the
// OS thread that runs the block, so all threads of a block, and no other block, see it.
#pragma once

#include <initializer_list>  // as with nvcc, for loops over lists in braces

// The special functions of C++17, which no kernel may call: g++ would make their templates at the
// end of each file, which takes a third of the time of a small one.
#if defined(_GLIBCXX_USE_STD_SPEC_FUNCS) && !defined(_GLIBCXX_CMATH)
#undef _GLIBCXX_USE_STD_SPEC_FUNCS
#define _GLIBCXX_USE_STD_SPEC_FUNCS 0
#endif

// The type of what a template returns that these headers call themselves. Where it is deduced, g++
// makes the template once, when it reads the headers, and not at the end of each file.
#if __cplusplus >= 201402L
#define CUDALAB_DEDUCED(...) auto
#else  // a host's file in C++11
#define CUDALAB_DEDUCED(...) __VA_ARGS__
#endif

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <new>
#include <type_traits>

#include "conversions.h"

// Each build of a file has the same time, so that no code depends on which build it is.
#pragma GCC diagnostic ignored "-Wbuiltin-macro-redefined"
#define __DATE__ "Jan  1 2000"
#define __TIME__ "00:00:00"
#define __TIMESTAMP__ "Sat Jan  1 00:00:00 2000"

#define CUDALAB_CPU 1
#define __CUDACC__ 1
#ifndef __CUDA_ARCH__      // in kernel files
#define __CUDA_ARCH__ 750  // above this they may assume inline PTX
#ifdef __GLIBC__
#define __assert_fail(condition, file, line, function) \
    ::cudalab::cudalab_fail_assertion(condition, file, line)
#endif
#endif

// ------------------------------------------------------------------ qualifiers

// g++ would guard the initialization of shared arrays of structs that have functions, in check
// mode.
#if defined(CUDALAB_CHECK) && !defined(__clang__)
#define CUDALAB_NO_GUARD __constinit
#else
#define CUDALAB_NO_GUARD
#endif

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __shared__ __attribute__((aligned(16))) static CUDALAB_NO_GUARD thread_local
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define register  // as nvcc has it in C++17

#include "accesses.h"
#include "kernels.h"
#include "numbers.h"
#include "synchronization.h"

// ------------------------------------------------------------------ clocks and the rest

// Nanoseconds of the machine's clock, the same in all blocks: cycles at 1 GHz, which the device
// reports. A thread that waits by the clock lets the others of its block run.
inline long long clock64() {
    return ::cudalab::cudalab_read_clock(nullptr);
}
inline long clock() {
    return (long)clock64();
}
inline void __trap() {
    __builtin_trap();
}
inline void __brkpt() {
    __builtin_trap();
}
#define __builtin_assume(condition) ((void)0)
#define __CUDA_ALIGN__(bytes) __align__(bytes)
