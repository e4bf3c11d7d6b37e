// Arithmetic that is rounded in a given direction: the processor is set to it for one operation.
#pragma once

#include <fenv.h>

#include "cudalab_cpu.h"

namespace cudalab {

// `compute` with a direction of rounding. No operation may move across the change: the operands
// and the result are volatile.
template <class F, class T, class... More>
inline __attribute__((noinline)) CUDALAB_DEDUCED(T)
    directed(int direction, F compute, T a, More... more) {
    const int before = fegetround();
    fesetround(direction);
    volatile T result = compute((volatile T&)a, (volatile More&)more...);
    fesetround(before);
    return result;
}

}  // namespace cudalab

#define CUDALAB_DIRECTED1(name, suffix, direction, T, ...)                                         \
    inline T name##_##suffix(T a_) {                                                               \
        return ::cudalab::directed(direction, [](volatile T& a) { return (T)(__VA_ARGS__); }, a_); \
    }
#define CUDALAB_DIRECTED2(name, suffix, direction, T, ...)                                     \
    inline T name##_##suffix(T a_, T b_) {                                                     \
        return ::cudalab::directed(                                                            \
            direction, [](volatile T& a, volatile T& b) { return (T)(__VA_ARGS__); }, a_, b_); \
    }
#define CUDALAB_DIRECTED3(name, suffix, direction, T, ...)                                        \
    inline T name##_##suffix(T a_, T b_, T c_) {                                                  \
        return ::cudalab::directed(                                                               \
            direction,                                                                            \
            [](volatile T& a, volatile T& b, volatile T& c) { return (T)(__VA_ARGS__); }, a_, b_, \
            c_);                                                                                  \
    }
#define CUDALAB_DIRECTED(count, name, T, ...)                          \
    CUDALAB_DIRECTED##count(name, rz, FE_TOWARDZERO, T, __VA_ARGS__)   \
        CUDALAB_DIRECTED##count(name, rd, FE_DOWNWARD, T, __VA_ARGS__) \
            CUDALAB_DIRECTED##count(name, ru, FE_UPWARD, T, __VA_ARGS__)
CUDALAB_DIRECTED(2, __fadd, float, a + b)
CUDALAB_DIRECTED(2, __fsub, float, a - b)
CUDALAB_DIRECTED(2, __fmul, float, a* b)
CUDALAB_DIRECTED(2, __fdiv, float, a / b)
CUDALAB_DIRECTED(1, __frcp, float, 1.0f / a)
CUDALAB_DIRECTED(1, __fsqrt, float, sqrtf(a))
CUDALAB_DIRECTED(3, __fmaf, float, fmaf(a, b, c))
CUDALAB_DIRECTED(2, __dadd, double, a + b)
CUDALAB_DIRECTED(2, __dsub, double, a - b)
CUDALAB_DIRECTED(2, __dmul, double, a* b)
CUDALAB_DIRECTED(2, __ddiv, double, a / b)
CUDALAB_DIRECTED(1, __drcp, double, 1.0 / a)
CUDALAB_DIRECTED(1, __dsqrt, double, sqrt(a))
CUDALAB_DIRECTED(3, __fma, double, fma(a, b, c))
#undef CUDALAB_DIRECTED
#undef CUDALAB_DIRECTED1
#undef CUDALAB_DIRECTED2
#undef CUDALAB_DIRECTED3

inline double __drcp_rn(double x) {
    return 1.0 / x;
}
// Never flushed to zero here, with or without these names.
#define __fmaf_ieee_rn __fmaf_rn
#define __fmaf_ieee_rz __fmaf_rz
#define __fmaf_ieee_rd __fmaf_rd
#define __fmaf_ieee_ru __fmaf_ru
