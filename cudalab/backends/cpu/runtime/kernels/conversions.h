// CUDA's conversions between floating point and integers. All of them have a value: what does not
// fit becomes the nearest integer that does. C++ leaves that undefined.
#pragma once

#include <math.h>

#include <type_traits>

namespace cudalab {

// The value of a conversion to I: truncated, and at most what I holds. A GPU converts to types of
// fewer than 32 bits by way of 32 bits.
template <class I, class F>
__attribute__((always_inline, no_sanitize("undefined"))) constexpr CUDALAB_DEDUCED(I)
    saturated(F x) {
    if constexpr (sizeof(I) < 4) {
        return (I)saturated<typename std::conditional<(I)-1 < (I)0, int, unsigned>::type>(x);
    } else {
        constexpr bool is_signed = (I)-1 < (I)0;
        constexpr int bits = sizeof(I) * 8 - is_signed;
        constexpr I least = is_signed ? (I)((I)1 << bits) : (I)0;
        constexpr F above = (F)((I)1 << (bits - 1)) * 2;  // the first that is too large
        constexpr I of_nan = sizeof(I) + sizeof(F) > 8 ? (I)((I)1 << (sizeof(I) * 8 - 1)) : (I)0;
        return x >= above ? (I)~least : x > (F)least ? (I)x : x <= (F)least ? least : of_nan;
    }
}

enum Rounding { DOWN, UP, TO_ZERO };

// `x`, an integer or a double, as the next F in a direction.
template <class F, class T>
inline CUDALAB_DEDUCED(F) rounded(T x, Rounding direction) {
    typedef typename std::conditional<std::is_integral<T>::value, __int128, T>::type Exact;
    const F nearest = (F)x;
    const bool down = direction == DOWN || (direction == TO_ZERO && x > 0);
    if (down ? (Exact)nearest <= (Exact)x : (Exact)nearest >= (Exact)x) return nearest;
    const F towards = down ? -(F)INFINITY : (F)INFINITY;
    return sizeof(F) == 4 ? (F)nextafterf((float)nearest, (float)towards)
                          : (F)nextafter((double)nearest, (double)towards);
}

}  // namespace cudalab

#define CUDALAB_TO_INTEGER(name, F, I, suffix)            \
    inline I name##_rn(F x) {                             \
        return ::cudalab::saturated<I>(rint##suffix(x));  \
    }                                                     \
    inline I name##_rz(F x) {                             \
        return ::cudalab::saturated<I>(x);                \
    }                                                     \
    inline I name##_rd(F x) {                             \
        return ::cudalab::saturated<I>(floor##suffix(x)); \
    }                                                     \
    inline I name##_ru(F x) {                             \
        return ::cudalab::saturated<I>(ceil##suffix(x));  \
    }
CUDALAB_TO_INTEGER(__float2int, float, int, f)
CUDALAB_TO_INTEGER(__float2uint, float, unsigned, f)
CUDALAB_TO_INTEGER(__float2ll, float, long long, f)
CUDALAB_TO_INTEGER(__float2ull, float, unsigned long long, f)
CUDALAB_TO_INTEGER(__double2int, double, int, )
CUDALAB_TO_INTEGER(__double2uint, double, unsigned, )
CUDALAB_TO_INTEGER(__double2ll, double, long long, )
CUDALAB_TO_INTEGER(__double2ull, double, unsigned long long, )
#undef CUDALAB_TO_INTEGER

#define CUDALAB_ROUNDED(name, T, F)                          \
    inline F name##_rn(T x) {                                \
        return (F)x;                                         \
    }                                                        \
    inline F name##_rz(T x) {                                \
        return ::cudalab::rounded<F>(x, ::cudalab::TO_ZERO); \
    }                                                        \
    inline F name##_rd(T x) {                                \
        return ::cudalab::rounded<F>(x, ::cudalab::DOWN);    \
    }                                                        \
    inline F name##_ru(T x) {                                \
        return ::cudalab::rounded<F>(x, ::cudalab::UP);      \
    }
CUDALAB_ROUNDED(__int2float, int, float)
CUDALAB_ROUNDED(__uint2float, unsigned, float)
CUDALAB_ROUNDED(__ll2float, long long, float)
CUDALAB_ROUNDED(__ull2float, unsigned long long, float)
CUDALAB_ROUNDED(__ll2double, long long, double)
CUDALAB_ROUNDED(__ull2double, unsigned long long, double)
CUDALAB_ROUNDED(__double2float, double, float)
#undef CUDALAB_ROUNDED
inline double __int2double_rn(int x) {
    return x;
}
inline double __uint2double_rn(unsigned x) {
    return x;
}
