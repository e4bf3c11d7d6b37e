// SIMD intrinsics: functions of the two halves or the four bytes of a word.
#pragma once

#include "cudalab_cpu.h"

namespace cudalab {

// `compute` for each part of the words, as numbers of the type Part; what it returns is cut to
// the part's bits.
template <class Part, class F, class... Words>
inline CUDALAB_DEDUCED(unsigned) by_parts(F compute, Words... words) {
    typedef typename std::make_unsigned<Part>::type Bits;
    unsigned result = 0;
    for (unsigned at = 0; at < 32; at += 8 * sizeof(Part))
        result |= (unsigned)(Bits)compute((int)(Part)((unsigned)words >> at)...) << at;
    return result;
}
template <class Part, class F>
inline unsigned sum_of_parts(F compute, unsigned a, unsigned b) {
    unsigned sum = 0;
    for (unsigned at = 0; at < 32; at += 8 * sizeof(Part))
        sum += (unsigned)compute((int)(Part)(a >> at), (int)(Part)(b >> at));
    return sum;
}
template <class Part>
inline int clamped(int value) {
    const int top = (1 << (8 * sizeof(Part) - ((Part)-1 < 0))) - 1,
              bottom = (Part)-1 < 0 ? ~top : 0;
    return value > top ? top : value < bottom ? bottom : value;
}

}  // namespace cudalab

#define CUDALAB_SIMD1(name, Part, ...)                                           \
    inline unsigned name(unsigned a_) {                                          \
        return ::cudalab::by_parts<Part>([](int a) { return __VA_ARGS__; }, a_); \
    }
#define CUDALAB_SIMD2(name, Part, ...)                                                      \
    inline unsigned name(unsigned a_, unsigned b_) {                                        \
        return ::cudalab::by_parts<Part>([](int a, int b) { return __VA_ARGS__; }, a_, b_); \
    }
#define CUDALAB_SIMD3(name, Part, ...)                                                            \
    inline unsigned name(unsigned a_, unsigned b_, unsigned c_) {                                 \
        return ::cudalab::by_parts<Part>([](int a, int b, int c) { return __VA_ARGS__; }, a_, b_, \
                                         c_);                                                     \
    }
#define CUDALAB_SIMD_SUM(name, Part, ...)                                                       \
    inline unsigned name(unsigned a_, unsigned b_) {                                            \
        return ::cudalab::sum_of_parts<Part>([](int a, int b) { return __VA_ARGS__; }, a_, b_); \
    }

// ------------------------------------------------------------------ halves (2) and bytes (4)

#define CUDALAB_SIMD(count, S, U)                                            \
    CUDALAB_SIMD1(__vabs##count, S, a < 0 ? -a : a)                          \
    CUDALAB_SIMD1(__vneg##count, S, -a)                                      \
    CUDALAB_SIMD1(__vabsss##count, S, ::cudalab::clamped<S>(a < 0 ? -a : a)) \
    CUDALAB_SIMD1(__vnegss##count, S, ::cudalab::clamped<S>(-a))             \
    CUDALAB_SIMD2(__vadd##count, U, a + b)                                   \
    CUDALAB_SIMD2(__vaddss##count, S, ::cudalab::clamped<S>(a + b))          \
    CUDALAB_SIMD2(__vaddus##count, U, ::cudalab::clamped<U>(a + b))          \
    CUDALAB_SIMD2(__vsub##count, U, a - b)                                   \
    CUDALAB_SIMD2(__vsubss##count, S, ::cudalab::clamped<S>(a - b))          \
    CUDALAB_SIMD2(__vsubus##count, U, ::cudalab::clamped<U>(a - b))          \
    CUDALAB_SIMD2(__vabsdiffs##count, S, a > b ? a - b : b - a)              \
    CUDALAB_SIMD2(__vabsdiffu##count, U, a > b ? a - b : b - a)              \
    CUDALAB_SIMD2(__vavgs##count, S, (a + b + (a + b >= 0)) >> 1)            \
    CUDALAB_SIMD2(__vavgu##count, U, (a + b + 1) >> 1)                       \
    CUDALAB_SIMD2(__vhaddu##count, U, (a + b) >> 1)                          \
    CUDALAB_SIMD2(__vmaxs##count, S, a > b ? a : b)                          \
    CUDALAB_SIMD2(__vmaxu##count, U, a > b ? a : b)                          \
    CUDALAB_SIMD2(__vmins##count, S, a < b ? a : b)                          \
    CUDALAB_SIMD2(__vminu##count, U, a < b ? a : b)                          \
    CUDALAB_SIMD_SUM(__vsads##count, S, a > b ? a - b : b - a)               \
    CUDALAB_SIMD_SUM(__vsadu##count, U, a > b ? a - b : b - a)               \
    CUDALAB_SIMD_COMPARE(eq##count, U, a == b)                               \
    CUDALAB_SIMD_COMPARE(ne##count, U, a != b)                               \
    CUDALAB_SIMD_COMPARE(ges##count, S, a >= b)                              \
    CUDALAB_SIMD_COMPARE(geu##count, U, a >= b)                              \
    CUDALAB_SIMD_COMPARE(gts##count, S, a > b)                               \
    CUDALAB_SIMD_COMPARE(gtu##count, U, a > b)                               \
    CUDALAB_SIMD_COMPARE(les##count, S, a <= b)                              \
    CUDALAB_SIMD_COMPARE(leu##count, U, a <= b)                              \
    CUDALAB_SIMD_COMPARE(lts##count, S, a < b)                               \
    CUDALAB_SIMD_COMPARE(ltu##count, U, a < b)
// Ones in all bits of a part, and 1.
#define CUDALAB_SIMD_COMPARE(name, Part, ...)                 \
    CUDALAB_SIMD2(__vcmp##name, Part, (__VA_ARGS__) ? -1 : 0) \
    CUDALAB_SIMD2(__vset##name, Part, (__VA_ARGS__) ? 1 : 0)
CUDALAB_SIMD(2, short, unsigned short)
CUDALAB_SIMD(4, signed char, unsigned char)

// ------------------------------------------------------------------ minima and maxima of sums

#define CUDALAB_EXTREME(max, op, reaches)                                                         \
    inline int __vi##max##3_s32(int a, int b, int c) {                                            \
        return a op b ? (a op c ? a : c) : b op c ? b : c;                                        \
    }                                                                                             \
    inline unsigned __vi##max##3_u32(unsigned a, unsigned b, unsigned c) {                        \
        return a op b ? (a op c ? a : c) : b op c ? b : c;                                        \
    }                                                                                             \
    inline int __vi##max##_s32_relu(int a, int b) {                                               \
        const int result = a op b ? a : b;                                                        \
        return result > 0 ? result : 0;                                                           \
    }                                                                                             \
    inline int __vi##max##3_s32_relu(int a, int b, int c) {                                       \
        return __vi##max##_s32_relu(a op b ? a : b, c);                                           \
    }                                                                                             \
    inline int __viadd##max##_s32(int a, int b, int c) {                                          \
        return a + b op c ? a + b : c;                                                            \
    }                                                                                             \
    inline unsigned __viadd##max##_u32(unsigned a, unsigned b, unsigned c) {                      \
        return a + b op c ? a + b : c;                                                            \
    }                                                                                             \
    inline int __viadd##max##_s32_relu(int a, int b, int c) {                                     \
        return __vi##max##_s32_relu(a + b, c);                                                    \
    }                                                                                             \
    CUDALAB_SIMD2(__vi##max##_s16x2_relu, short, __vi##max##_s32_relu(a, b))                      \
    CUDALAB_SIMD3(__vi##max##3_s16x2, short, __vi##max##3_s32(a, b, c))                           \
    CUDALAB_SIMD3(__vi##max##3_u16x2, unsigned short, __vi##max##3_s32(a, b, c))                  \
    CUDALAB_SIMD3(__vi##max##3_s16x2_relu, short, __vi##max##3_s32_relu(a, b, c))                 \
    CUDALAB_SIMD3(__viadd##max##_s16x2, short, (short)(a + b) op c ? a + b : c)                   \
    CUDALAB_SIMD3(__viadd##max##_u16x2, unsigned short, (unsigned short)(a + b) op c ? a + b : c) \
    CUDALAB_SIMD3(__viadd##max##_s16x2_relu, short, __vi##max##_s32_relu((short)(a + b), c))      \
    inline int __vib##max##_s32(int a, int b, bool* first) {                                      \
        *first = a reaches b;                                                                     \
        return *first ? a : b;                                                                    \
    }                                                                                             \
    inline unsigned __vib##max##_u32(unsigned a, unsigned b, bool* first) {                       \
        *first = a reaches b;                                                                     \
        return *first ? a : b;                                                                    \
    }                                                                                             \
    inline unsigned __vib##max##_s16x2(unsigned a, unsigned b, bool* high, bool* low) {           \
        *high = (short)(a >> 16) reaches(short)(b >> 16);                                         \
        *low = (short)a reaches(short) b;                                                         \
        return (*high ? a : b) & 0xffff0000u | (*low ? a : b) & 0xffffu;                          \
    }                                                                                             \
    inline unsigned __vib##max##_u16x2(unsigned a, unsigned b, bool* high, bool* low) {           \
        *high = (a >> 16) reaches(b >> 16);                                                       \
        *low = (a & 0xffff) reaches(b & 0xffff);                                                  \
        return (*high ? a : b) & 0xffff0000u | (*low ? a : b) & 0xffffu;                          \
    }
CUDALAB_EXTREME(max, >, >=)
CUDALAB_EXTREME(min, <, <=)

#undef CUDALAB_SIMD1
#undef CUDALAB_SIMD2
#undef CUDALAB_SIMD3
#undef CUDALAB_SIMD_SUM
#undef CUDALAB_SIMD_COMPARE
#undef CUDALAB_SIMD
#undef CUDALAB_EXTREME
