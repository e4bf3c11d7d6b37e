// What cuda_fp16.h and cuda_bf16.h share: numbers of 16 bits and their conversions.
//
// A GPU rounds each operation once. Sums, products, quotients and roots are computed in float,
// which has more than twice the bits, so that rounding its result is the same as rounding the exact
// one.
#pragma once

#include "cuda_runtime.h"

namespace cudalab {

enum Narrowing { TO_NEAREST, TO_ZERO_16, DOWN_16, UP_16 };

// ------------------------------------------------------------------ rounding to odd
// A value that does not fit gets an odd last bit: it stays on its side of what fewer bits can hold,
// so that it may be rounded a second time.

inline float odd_float(double value) {
    const float nearest = (float)value;
    if ((double)nearest == value || value != value) return nearest;
    const unsigned bits = __float_as_uint(nearest);
    const bool too_large = fabs((double)nearest) > fabs(value);
    return __uint_as_float((bits - too_large) | 1);
}
inline double odd_double(unsigned long long value) {
    if (value >> 53) value = (value & ~0xfffull) | (value & 0xfff ? 0x800 : 0);
    return (double)value;
}
inline double odd_double(long long value) {
    const unsigned long long size = (unsigned long long)value;
    return value < 0 ? -odd_double(0 - size) : odd_double(size);
}
// a * b + c for numbers of 16 bits: the product is exact, and the sum rounded to odd.
inline double odd_fma(float a, float b, float c) {
    const double product = (double)a * (double)b, sum = product + (double)c;
    const double rest = sum - product, error = (product - (sum - rest)) + ((double)c - rest);
    if (error == 0 || sum - sum != 0) return sum;
    const uint64_t bits = to_bits(sum);
    return from_bits<double>((bits - ((error > 0) != (sum > 0))) | 1);
}

// ------------------------------------------------------------------ the two formats

struct Half {  // 5 bits of exponent, 10 of fraction
    static uint16_t bits(float value) {
        const unsigned word = __float_as_uint(value), sign = word >> 16 & 0x8000;
        const unsigned size = word & 0x7fffffff;
        if (size > 0x7f800000) return 0x7fff;                      // not a number
        if (size >= 0x477ff000) return (uint16_t)(sign | 0x7c00);  // rounds to infinity
        if (size >= 0x38800000) {                                  // normal
            const unsigned rounded = size - 0x38000000 + 0xfff + (size >> 13 & 1);
            return (uint16_t)(sign | rounded >> 13);
        }
        // Subnormal: adding 0.5 puts the last bit of a half at the last bit of the float.
        const unsigned shifted = __float_as_uint(__uint_as_float(size) + 0.5f) - 0x3f000000;
        return (uint16_t)(sign | shifted);
    }
    static float value(uint16_t bits) {
        const unsigned sign = (unsigned)(bits & 0x8000) << 16, size = (unsigned)bits & 0x7fff;
        const unsigned special = size >= 0x7c00 ? 0x7f800000 : 0;
        const float scaled = __uint_as_float(size << 13) * 0x1p112f;  // subnormal ones, too
        return __uint_as_float(sign | __float_as_uint(scaled) | special);
    }
};
struct Bfloat16 {  // the upper half of a float
    static uint16_t bits(float value) {
        const unsigned word = __float_as_uint(value);
        if ((word & 0x7fffffff) > 0x7f800000) return 0x7fff;
        return (uint16_t)((word + 0x7fff + (word >> 16 & 1)) >> 16);
    }
    static float value(uint16_t bits) { return __uint_as_float((unsigned)bits << 16); }
};

// `value`, rounded in the given direction.
template <class Format>
inline uint16_t narrowed(float value, Narrowing direction) {
    const uint16_t nearest = Format::bits(value);
    const float rounded = Format::value(nearest);
    const bool down = direction == DOWN_16 || (direction == TO_ZERO_16 && value > 0);
    if (direction == TO_NEAREST || (down ? rounded <= value : rounded >= value) || value != value)
        return nearest;
    // The next number in that direction: the bits of positive numbers grow with them.
    if ((nearest & 0x7fff) == 0) return down ? 0x8001 : 0x0001;
    return (uint16_t)(nearest + (down == (nearest >> 15 != 0) ? 1 : -1));
}

// A whole number as an integer: the nearest that there is, 0 for what is not a number.
template <class I>
inline I whole(float x) {
    if (sizeof(I) >= 4) return saturated<I>(x);
    const float top = (float)((1u << (8 * sizeof(I) - ((I)-1 < 0))) - 1);
    const float bottom = (I)-1 < 0 ? -top - 1 : 0;
    return (I)(x > top ? top : x < bottom ? bottom : x == x ? x : 0);
}

}  // namespace cudalab
