// Integer functions of CUDA, the kinds of memory that an address may lie in, and hints.
#pragma once

#include "cudalab_cpu.h"

// ------------------------------------------------------------------ minima, maxima, averages

#define CUDALAB_MIN_MAX(name, T)   \
    inline T name##min(T a, T b) { \
        return b < a ? b : a;      \
    }                              \
    inline T name##max(T a, T b) { \
        return a < b ? b : a;      \
    }
CUDALAB_MIN_MAX(u, unsigned)
CUDALAB_MIN_MAX(ll, long long)
CUDALAB_MIN_MAX(ull, unsigned long long)
#undef CUDALAB_MIN_MAX
// Rounded down, and up; the sum does not overflow.
inline int __hadd(int a, int b) {
    return (int)(((long long)a + b) >> 1);
}
inline int __rhadd(int a, int b) {
    return (int)(((long long)a + b + 1) >> 1);
}
inline unsigned __uhadd(unsigned a, unsigned b) {
    return (unsigned)(((unsigned long long)a + b) >> 1);
}
inline unsigned __urhadd(unsigned a, unsigned b) {
    return (unsigned)(((unsigned long long)a + b + 1) >> 1);
}

// ------------------------------------------------------------------ products and bits

inline long long __mul64hi(long long a, long long b) {
    return (long long)((__int128)a * b >> 64);
}
// The shift is at most 32, not modulo 32.
inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
    return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
    return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}
inline unsigned __nv_bswap32(unsigned x) {
    return __builtin_bswap32(x);
}
inline unsigned long long __nv_bswap64(unsigned long long x) {
    return __builtin_bswap64(x);
}
inline unsigned short __nv_bswap16(unsigned short x) {
    return __builtin_bswap16(x);
}

// Sums of products of four bytes, or of two halves and the low or high two bytes of `b`.
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
    for (int i = 0; i < 32; i += 8) c += (a >> i & 0xff) * (b >> i & 0xff);
    return c;
}
inline int __dp4a(char4 a, char4 b, int c) {
    return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w + c;
}
inline unsigned __dp4a(uchar4 a, uchar4 b, unsigned c) {
    return (unsigned)(a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w) + c;
}
inline int __dp2a_lo(int a, int b, int c) {
    return (short)a * (signed char)b + (a >> 16) * (signed char)(b >> 8) + c;
}
inline unsigned __dp2a_lo(unsigned a, unsigned b, unsigned c) {
    return (a & 0xffff) * (b & 0xff) + (a >> 16) * (b >> 8 & 0xff) + c;
}
inline int __dp2a_lo(short2 a, char4 b, int c) {
    return a.x * b.x + a.y * b.y + c;
}
inline unsigned __dp2a_lo(ushort2 a, uchar4 b, unsigned c) {
    return (unsigned)a.x * b.x + (unsigned)a.y * b.y + c;
}
inline int __dp2a_hi(int a, int b, int c) {
    return __dp2a_lo(a, b >> 16, c);
}
inline unsigned __dp2a_hi(unsigned a, unsigned b, unsigned c) {
    return __dp2a_lo(a, b >> 16, c);
}
inline int __dp2a_hi(short2 a, char4 b, int c) {
    return a.x * b.z + a.y * b.w + c;
}
inline unsigned __dp2a_hi(ushort2 a, uchar4 b, unsigned c) {
    return (unsigned)a.x * b.z + (unsigned)a.y * b.w + c;
}

// The position of the |offset|-th bit of `mask` that is set, counted upwards from `base`, or
// downwards if `offset` is negative; all ones if there is none.
inline unsigned __fns(unsigned mask, unsigned base, int offset) {
    if (offset == 0) return mask >> (base & 31) & 1 ? base : ~0u;
    const int step = offset > 0 ? 1 : -1;
    int left = offset > 0 ? offset : -offset;
    for (int bit = (int)base; bit >= 0 && bit < 32; bit += step)
        if ((mask >> bit & 1) && --left == 0) return (unsigned)bit;
    return ~0u;
}

// ------------------------------------------------------------------ hints

inline void __prof_trigger(int) {}
#define __assume(condition) ((void)0)
