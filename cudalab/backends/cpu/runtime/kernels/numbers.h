// The functions of integers and of floating-point numbers that every kernel has. Whole programs
// have more: integers.h, mathematics.h, rounding.h and simd.h.
#pragma once

#include <math.h>

#include "runtime.h"

// ------------------------------------------------------------------ integers and bits

inline int __popc(unsigned x) {
    return __builtin_popcount(x);
}
inline int __popcll(unsigned long long x) {
    return __builtin_popcountll(x);
}
inline int __clz(int x) {
    return x ? __builtin_clz((unsigned)x) : 32;
}
inline int __clzll(long long x) {
    return x ? __builtin_clzll((unsigned long long)x) : 64;
}
inline int __ffs(int x) {
    return __builtin_ffs(x);
}
inline int __ffsll(long long x) {
    return __builtin_ffsll(x);
}
inline unsigned __brev(unsigned x) {
    x = (x & 0x55555555u) << 1 | (x >> 1 & 0x55555555u);
    x = (x & 0x33333333u) << 2 | (x >> 2 & 0x33333333u);
    x = (x & 0x0f0f0f0fu) << 4 | (x >> 4 & 0x0f0f0f0fu);
    return __builtin_bswap32(x);
}
inline unsigned long long __brevll(unsigned long long x) {
    return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32));
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
    uint64_t bytes = (uint64_t)y << 32 | x;
    unsigned result = 0;
    for (int i = 0; i < 4; ++i) {
        unsigned choice = selector >> (4 * i);
        result |= ((unsigned)(bytes >> (8 * (choice & 7))) & 0xff) << (8 * i);
    }
    return result;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)((((uint64_t)high << 32 | low) << (shift & 31)) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)(((uint64_t)high << 32 | low) >> (shift & 31));
}
inline unsigned __umulhi(unsigned a, unsigned b) {
    return (unsigned)((uint64_t)a * b >> 32);
}
inline int __mulhi(int a, int b) {
    return (int)((int64_t)a * b >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
inline int __mul24(int a, int b) {
    return (a << 8 >> 8) * (b << 8 >> 8);
}
inline unsigned __umul24(unsigned a, unsigned b) {
    return (a & 0xffffffu) * (b & 0xffffffu);
}
inline unsigned __sad(int a, int b, unsigned c) {
    return (unsigned)(a > b ? a - b : b - a) + c;
}
inline unsigned __usad(unsigned a, unsigned b, unsigned c) {
    return (a > b ? a - b : b - a) + c;
}
inline int __dp4a(int a, int b, int c) {
    for (int i = 0; i < 4; ++i) c += (int8_t)(a >> (8 * i)) * (int8_t)(b >> (8 * i));
    return c;
}

#define CUDALAB_MIN_MAX(T)             \
    inline constexpr T min(T a, T b) { \
        return b < a ? b : a;          \
    }                                  \
    inline constexpr T max(T a, T b) { \
        return a < b ? b : a;          \
    }
CUDALAB_MIN_MAX(int)
CUDALAB_MIN_MAX(unsigned)
CUDALAB_MIN_MAX(long)
CUDALAB_MIN_MAX(unsigned long)
CUDALAB_MIN_MAX(long long)
CUDALAB_MIN_MAX(unsigned long long)
inline constexpr unsigned min(int a, unsigned b) {
    return min((unsigned)a, b);
}
inline constexpr unsigned min(unsigned a, int b) {
    return min(a, (unsigned)b);
}
inline constexpr unsigned max(int a, unsigned b) {
    return max((unsigned)a, b);
}
inline constexpr unsigned max(unsigned a, int b) {
    return max(a, (unsigned)b);
}
inline float min(float a, float b) {
    return fminf(a, b);
}
inline float max(float a, float b) {
    return fmaxf(a, b);
}
inline double min(double a, double b) {
    return fmin(a, b);
}
inline double max(double a, double b) {
    return fmax(a, b);
}

// ------------------------------------------------------------------ floating point

inline float rsqrtf(float x) {
    return 1.0f / sqrtf(x);
}
inline double rsqrt(double x) {
    return 1.0 / sqrt(x);
}
inline float rcbrtf(float x) {
    return 1.0f / cbrtf(x);
}
inline float __saturatef(float x) {
    return x > 0 ? x < 1 ? x : 1.0f : 0.0f;
}
// The fast intrinsics, which are as accurate here as the host's own functions.
inline float __sinf(float x) {
    return sinf(x);
}
inline float __cosf(float x) {
    return cosf(x);
}
inline float __tanf(float x) {
    return tanf(x);
}
inline float __expf(float x) {
    return expf(x);
}
inline float __exp10f(float x) {
    return powf(10.0f, x);
}
inline float __logf(float x) {
    return logf(x);
}
inline float __log2f(float x) {
    return log2f(x);
}
inline float __log10f(float x) {
    return log10f(x);
}
inline float __powf(float x, float y) {
    return powf(x, y);
}
inline float __fdividef(float a, float b) {
    return a / b;
}
inline void __sincosf(float x, float* s, float* c) {
    *s = sinf(x);
    *c = cosf(x);
}
// Rounded to nearest, never contracted into a fused multiply-add.
inline float __fadd_rn(float a, float b) {
    volatile float r = a + b;
    return r;
}
inline float __fsub_rn(float a, float b) {
    volatile float r = a - b;
    return r;
}
inline float __fmul_rn(float a, float b) {
    volatile float r = a * b;
    return r;
}
inline float __fdiv_rn(float a, float b) {
    return a / b;
}
inline float __fsqrt_rn(float x) {
    return sqrtf(x);
}
inline float __frcp_rn(float x) {
    return 1.0f / x;
}
inline float __frsqrt_rn(float x) {
    return (float)(1.0 / sqrt((double)x));
}
inline float __fmaf_rn(float a, float b, float c) {
    return fmaf(a, b, c);
}
inline double __dadd_rn(double a, double b) {
    volatile double r = a + b;
    return r;
}
inline double __dsub_rn(double a, double b) {
    volatile double r = a - b;
    return r;
}
inline double __dmul_rn(double a, double b) {
    volatile double r = a * b;
    return r;
}
inline double __ddiv_rn(double a, double b) {
    return a / b;
}
inline double __dsqrt_rn(double x) {
    return sqrt(x);
}
inline double __fma_rn(double a, double b, double c) {
    return fma(a, b, c);
}

inline int __float_as_int(float x) {
    return ::cudalab::from_bits<int>(::cudalab::to_bits(x));
}
inline unsigned __float_as_uint(float x) {
    return ::cudalab::from_bits<unsigned>(::cudalab::to_bits(x));
}
inline float __int_as_float(int x) {
    return ::cudalab::from_bits<float>(::cudalab::to_bits(x));
}
inline float __uint_as_float(unsigned x) {
    return ::cudalab::from_bits<float>(::cudalab::to_bits(x));
}
inline long long __double_as_longlong(double x) {
    return ::cudalab::from_bits<long long>(::cudalab::to_bits(x));
}
inline double __longlong_as_double(long long x) {
    return ::cudalab::from_bits<double>(::cudalab::to_bits(x));
}
inline int __double2hiint(double x) {
    return (int)(::cudalab::to_bits(x) >> 32);
}
inline int __double2loint(double x) {
    return (int)::cudalab::to_bits(x);
}
inline double __hiloint2double(int high, int low) {
    return ::cudalab::from_bits<double>((uint64_t)(unsigned)high << 32 | (unsigned)low);
}
