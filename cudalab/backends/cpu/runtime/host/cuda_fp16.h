// Half precision: stored in 16 bits, computed in float and rounded to nearest even, like a single
// operation on a GPU.
#pragma once
#define __CUDA_FP16_H__

#include "cuda_runtime.h"

namespace cudalab {

inline uint16_t half_bits(float value) {
    const unsigned bits = __float_as_uint(value), sign = bits >> 16 & 0x8000;
    const unsigned size = bits & 0x7fffffff;
    if (size > 0x7f800000) return (uint16_t)(sign | 0x7fff);   // not a number
    if (size >= 0x477ff000) return (uint16_t)(sign | 0x7c00);  // rounds to infinity
    if (size >= 0x38800000) {                                  // normal
        const unsigned rounded = size - 0x38000000 + 0xfff + (size >> 13 & 1);
        return (uint16_t)(sign | rounded >> 13);
    }
    // Subnormal: adding 0.5 puts the last bit of a half at the last bit of the float.
    const unsigned shifted = __float_as_uint(__uint_as_float(size) + 0.5f) - 0x3f000000;
    return (uint16_t)(sign | shifted);
}
inline float half_value(uint16_t bits) {
    const unsigned sign = (unsigned)(bits & 0x8000) << 16, size = bits & 0x7fff;
    if (size >= 0x7c00) return __uint_as_float(sign | 0x7f800000 | (size & 0x3ff) << 13);
    if (size >= 0x400) return __uint_as_float(sign | (size << 13) + 0x38000000);
    const float value = (float)size * 5.9604644775390625e-08f;  // 2^-24
    return sign ? -value : value;
}

}  // namespace cudalab

struct __half {
    uint16_t bits;
    __half() = default;
    __half(float value) : bits(cudalab::half_bits(value)) {}
    __half(double value) : __half((float)value) {}
    __half(int value) : __half((float)value) {}
    __half(unsigned value) : __half((float)value) {}
    __half(long long value) : __half((float)value) {}
    __half(unsigned long long value) : __half((float)value) {}
    operator float() const { return cudalab::half_value(bits); }
    __half& operator+=(__half other) { return *this = __half((float)*this + (float)other); }
    __half& operator-=(__half other) { return *this = __half((float)*this - (float)other); }
    __half& operator*=(__half other) { return *this = __half((float)*this * (float)other); }
    __half& operator/=(__half other) { return *this = __half((float)*this / (float)other); }
};
typedef __half half;
struct alignas(4) __half2 {
    __half x, y;
    __half2() = default;
    __half2(__half a, __half b) : x(a), y(b) {}
};
typedef __half2 half2;

#define CUDALAB_HALF(op, name)                          \
    inline __half operator op(__half a, __half b) {     \
        return __half((float)a op(float) b);            \
    }                                                   \
    inline __half2 operator op(__half2 a, __half2 b) {  \
        return {a.x op b.x, a.y op b.y};                \
    }                                                   \
    inline __half __h##name(__half a, __half b) {       \
        return a op b;                                  \
    }                                                   \
    inline __half2 __h##name##2(__half2 a, __half2 b) { \
        return a op b;                                  \
    }
CUDALAB_HALF(+, add)
CUDALAB_HALF(-, sub)
CUDALAB_HALF(*, mul)
CUDALAB_HALF(/, div)
#undef CUDALAB_HALF
inline __half2 __h2div(__half2 a, __half2 b) {
    return a / b;
}
inline __half operator-(__half a) {
    a.bits ^= 0x8000;
    return a;
}
#define CUDALAB_HALF_COMPARE(op, name)            \
    inline bool operator op(__half a, __half b) { \
        return (float)a op(float) b;              \
    }                                             \
    inline bool __h##name(__half a, __half b) {   \
        return a op b;                            \
    }
CUDALAB_HALF_COMPARE(==, eq)
CUDALAB_HALF_COMPARE(!=, ne)
CUDALAB_HALF_COMPARE(<, lt)
CUDALAB_HALF_COMPARE(<=, le)
CUDALAB_HALF_COMPARE(>, gt)
CUDALAB_HALF_COMPARE(>=, ge)
#undef CUDALAB_HALF_COMPARE

inline __half __float2half(float x) {
    return __half(x);
}
inline __half __float2half_rn(float x) {
    return __half(x);
}
inline __half __double2half(double x) {
    return __half(x);
}
inline float __half2float(__half x) {
    return (float)x;
}
inline __half __int2half_rn(int x) {
    return __half(x);
}
inline int __half2int_rn(__half x) {
    return (int)rintf((float)x);
}
inline int __half2int_rz(__half x) {
    return (int)(float)x;
}
inline unsigned short __half_as_ushort(__half x) {
    return x.bits;
}
inline __half __ushort_as_half(unsigned short bits) {
    __half x;
    x.bits = bits;
    return x;
}
inline __half2 __halves2half2(__half a, __half b) {
    return {a, b};
}
inline __half2 make_half2(__half a, __half b) {
    return {a, b};
}
inline __half2 __half2half2(__half a) {
    return {a, a};
}
inline __half2 __float2half2_rn(float a) {
    return {__half(a), __half(a)};
}
inline __half2 __floats2half2_rn(float a, float b) {
    return {__half(a), __half(b)};
}
inline __half2 __float22half2_rn(float2 a) {
    return {__half(a.x), __half(a.y)};
}
inline float2 __half22float2(__half2 a) {
    return {(float)a.x, (float)a.y};
}
inline __half __low2half(__half2 a) {
    return a.x;
}
inline __half __high2half(__half2 a) {
    return a.y;
}
inline float __low2float(__half2 a) {
    return (float)a.x;
}
inline float __high2float(__half2 a) {
    return (float)a.y;
}
// The product is exact in double, so that it is rounded once with the sum.
inline __half __hfma(__half a, __half b, __half c) {
    return __half((double)(float)a * (double)(float)b + (double)(float)c);
}
inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
    return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
inline __half __hneg(__half a) {
    return -a;
}
inline __half __habs(__half a) {
    return __ushort_as_half(a.bits & 0x7fff);
}
inline bool __hisnan(__half a) {
    return (a.bits & 0x7fff) > 0x7c00;
}
inline int __hisinf(__half a) {
    return (a.bits & 0x7fff) == 0x7c00 ? a.bits & 0x8000 ? -1 : 1 : 0;
}
inline __half __hmax(__half a, __half b) {
    return __half(fmaxf((float)a, (float)b));
}
inline __half __hmin(__half a, __half b) {
    return __half(fminf((float)a, (float)b));
}
#define CUDALAB_HALF_FUNCTION(name, function) \
    inline __half h##name(__half a) {         \
        return __half(function((float)a));    \
    }                                         \
    inline __half2 h2##name(__half2 a) {      \
        return {h##name(a.x), h##name(a.y)};  \
    }
CUDALAB_HALF_FUNCTION(sqrt, sqrtf)
CUDALAB_HALF_FUNCTION(rsqrt, rsqrtf)
CUDALAB_HALF_FUNCTION(exp, expf)
CUDALAB_HALF_FUNCTION(log, logf)
CUDALAB_HALF_FUNCTION(sin, sinf)
CUDALAB_HALF_FUNCTION(cos, cosf)
CUDALAB_HALF_FUNCTION(floor, floorf)
CUDALAB_HALF_FUNCTION(ceil, ceilf)
CUDALAB_HALF_FUNCTION(rint, rintf)
CUDALAB_HALF_FUNCTION(trunc, truncf)
#undef CUDALAB_HALF_FUNCTION

inline __half atomicAdd(__half* address, __half value) {
    uint16_t *bits = &address->bits, old = __atomic_load_n(bits, __ATOMIC_RELAXED), next;
    do {
        next = (__ushort_as_half(old) + value).bits;
    } while (
        !__atomic_compare_exchange_n(bits, &old, next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return __ushort_as_half(old);
}
