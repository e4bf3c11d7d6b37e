// Complex numbers.
#pragma once
#define CU_COMPLEX_H_

#include "cuda_runtime.h"

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

#define CUDALAB_COMPLEX(Complex, T, suffix, hypotenuse)                          \
    inline Complex make_##Complex(T x, T y) {                                    \
        return {x, y};                                                           \
    }                                                                            \
    inline T cuCreal##suffix(Complex a) {                                        \
        return a.x;                                                              \
    }                                                                            \
    inline T cuCimag##suffix(Complex a) {                                        \
        return a.y;                                                              \
    }                                                                            \
    inline Complex cuConj##suffix(Complex a) {                                   \
        return {a.x, -a.y};                                                      \
    }                                                                            \
    inline Complex cuCadd##suffix(Complex a, Complex b) {                        \
        return {a.x + b.x, a.y + b.y};                                           \
    }                                                                            \
    inline Complex cuCsub##suffix(Complex a, Complex b) {                        \
        return {a.x - b.x, a.y - b.y};                                           \
    }                                                                            \
    inline Complex cuCmul##suffix(Complex a, Complex b) {                        \
        return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};                   \
    }                                                                            \
    inline Complex cuCdiv##suffix(Complex a, Complex b) {                        \
        const T size = b.x * b.x + b.y * b.y;                                    \
        return {(a.x * b.x + a.y * b.y) / size, (a.y * b.x - a.x * b.y) / size}; \
    }                                                                            \
    inline T cuCabs##suffix(Complex a) {                                         \
        return hypotenuse(a.x, a.y);                                             \
    }
CUDALAB_COMPLEX(cuFloatComplex, float, f, hypotf)
CUDALAB_COMPLEX(cuDoubleComplex, double, , hypot)
#undef CUDALAB_COMPLEX
inline cuComplex make_cuComplex(float x, float y) {
    return {x, y};
}
