// Weighted sums of texels, of floats, halves and small integers. Part of sampling.cpp, which says
// how they are made.
#pragma once

#include <math.h>
#include <string.h>

#include "texels.h"

namespace cudalab {

static const int GUARD_BITS = 4, SLICE_GUARD_BITS = 14;  // below the mantissa

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

typedef int Four __attribute__((vector_size(16)));
typedef double FourDoubles __attribute__((vector_size(32)));

// The weights of one slice, `total` together, at the fractions of two axes.
static inline Four weights_at(int x, int y, int total) {
    const int right = (total * x + ONE / 2) >> WEIGHT_BITS, left = total - right;
    const int below_left = (left * y + ONE / 2 - 1) >> WEIGHT_BITS;
    const int below_right = (right * y + ONE / 2) >> WEIGHT_BITS;
    return Four{left - below_left, right - below_right, below_left, below_right};
}

// ------------------------------------------------------------------ floats and halves

// A weighted sum of aligned mantissas.
struct Sum {
    int64_t value;
    int exponent;      // the greatest
    uint32_t signs;    // bits that all numbers have that count
    bool has_special;  // an infinity or a NaN
};
// The format of a number, with so many bits of mantissa and exponent.
template <int mantissa_bits, int exponent_bits, bool has_denormals>
struct Number {
    static const int TOP = (1 << exponent_bits) - 1, HIDDEN = 1 << mantissa_bits;
    static const uint32_t SIGN = (uint32_t)HIDDEN << exponent_bits;
    static const uint32_t INFINITE = (uint32_t)TOP << mantissa_bits;

    static Sum sum_of(const Four& weight, const Four& value) {
        Four exponent = value >> mantissa_bits & TOP, mantissa = value & (HIDDEN - 1);
        const Four special = exponent == TOP, normal = exponent != 0, counts = weight != 0;
        if (has_denormals)
            exponent -= (mantissa != 0) & ~normal;  // a condition that holds is -1
        else
            mantissa &= normal;
        mantissa |= normal & HIDDEN;
        const Four counted = exponent & counts, signs = value | ~counts;
        const int left = counted[0] > counted[1] ? counted[0] : counted[1];
        const int right = counted[2] > counted[3] ? counted[2] : counted[3];
        const int greatest = left > right ? left : right;
        Four shift = greatest - exponent;  // below 0 where a weight is 0
        const Four far = (shift < 0) | (shift > 31);
        shift = (shift & ~far) | (far & 31);
        const Four aligned = (mantissa << GUARD_BITS) >> shift;
        const Four negative = (value << (31 - mantissa_bits - exponent_bits)) >> 31;
        const FourDoubles products =
            __builtin_convertvector((aligned ^ negative) - negative, FourDoubles) *
            __builtin_convertvector(weight, FourDoubles);
        const double sum = (products[0] + products[1]) + (products[2] + products[3]);  // exact
        return {(int64_t)sum, sum != 0 ? greatest : 0,
                (uint32_t)(signs[0] & signs[1] & signs[2] & signs[3]) & SIGN,
                (special[0] | special[1] | special[2] | special[3]) != 0};
    }
    // The sum of values of which one is an infinity or a NaN.
    static uint32_t special(int slices, const Four* values) {
        bool nan = false, infinite[2] = {false, false};
        for (int i = 0; i < 4 * slices; ++i) {
            const uint32_t value = (uint32_t)values[i / 4][i % 4];
            if ((value & INFINITE) != INFINITE) continue;
            nan = nan || value & (HIDDEN - 1);
            infinite[(value & SIGN) != 0] = true;
        }
        if (nan || (infinite[0] && infinite[1])) return SIGN - 1;
        return INFINITE | (infinite[1] ? SIGN : 0);
    }
    static uint32_t rounded(int64_t sum, int exponent_of_sum, int below) {
        const uint32_t sign = sum < 0 ? SIGN : 0;
        const uint64_t magnitude = sum < 0 ? (uint64_t)-sum : (uint64_t)sum;
        int shift = 63 - __builtin_clzll(magnitude) - mantissa_bits;
        int exponent = exponent_of_sum + shift - below;
        if (exponent < 1) {
            if (!has_denormals) return sign;
            shift += 1 - exponent;
            exponent = 1;
        }
        const uint64_t mantissa =
            shift > 0 ? (magnitude + ((uint64_t)1 << (shift - 1))) >> shift : magnitude << -shift;
        // The hidden bit, where there is one, adds 1 to the exponent.
        const uint64_t result = ((uint64_t)(exponent - 1) << mantissa_bits) + mantissa;
        return sign | (result < INFINITE ? (uint32_t)result : INFINITE);
    }
    // Values that no weight touches are zeros.
    static inline uint32_t blend(int slices, const Four* weights, const Four* values) {
        Sum sums[4];
        int greatest = 0;
        uint32_t signs = SIGN;
        bool has_special = false;
        for (int i = 0; i < slices; ++i) {
            sums[i] = sum_of(weights[i], values[i]);
            greatest = sums[i].exponent > greatest ? sums[i].exponent : greatest;
            signs &= sums[i].signs;
            has_special = has_special || sums[i].has_special;
        }
        if (has_special) return special(slices, values);
        int below = GUARD_BITS + WEIGHT_BITS;  // bits of the sum below the mantissa's last one
        int64_t sum = sums[0].value;
        if (slices > 1) {
            sum = 0;
            for (int i = 0; i < slices; ++i) {
                const int shift = greatest - sums[i].exponent + below - SLICE_GUARD_BITS;
                sum += shift < 0 ? sums[i].value << -shift
                                 : sums[i].value >> (sums[i].value == 0 || shift > 63 ? 63 : shift);
            }
            below = SLICE_GUARD_BITS;
        }
        return sum ? rounded(sum, greatest, below) : signs;
    }
};
typedef Number<23, 8, false> Float;
typedef Number<10, 5, true> Half;

static uint32_t float_of_half(uint32_t half) {
    const uint32_t sign = (half & 0x8000) << 16, exponent = half >> 10 & 31, mantissa = half & 1023;
    if (exponent == 31) return sign | 0x7f800000 | mantissa << 13;
    if (exponent) return sign | (exponent + 112) << 23 | mantissa << 13;
    return sign | bits_of((float)mantissa * 0x1p-24f);
}
// A border's color: cut off, not rounded.
static uint32_t half_of_border(float x) {
    const uint32_t bits = bits_of(fminf(fmaxf(x, -65504), 65504)), sign = bits >> 16 & 0x8000;
    const int exponent = (int)(bits >> 23 & 255) - 112;
    if (exponent > 0) return sign | (uint32_t)exponent << 10 | (bits >> 13 & 1023);
    return sign | (exponent < -10 ? 0 : (0x400 | (bits >> 13 & 1023)) >> (1 - exponent));
}

// ------------------------------------------------------------------ integers

static int channel_of(const TexelFormat& format, const char* texel, unsigned channel) {
    const bool is_signed = format.kind == cudaChannelFormatKindSigned;
    if (format.bits == 8) {
        const unsigned char value = (unsigned char)texel[channel];
        return is_signed ? (signed char)value : value;
    }
    if (format.bits == 16) {
        unsigned short value;
        memcpy(&value, texel + channel * 2, 2);
        return is_signed ? (short)value : value;
    }
    int value;
    memcpy(&value, texel + channel * 4, 4);
    return value;
}
static float greatest_of(const TexelFormat& format) {
    const bool is_signed = format.kind == cudaChannelFormatKindSigned;
    return (float)((1 << (format.bits - is_signed)) - 1);
}
// A border's color: rounded, halves towards zero.
static int border_of(const TexelFormat& format, float color) {
    const float least = format.kind == cudaChannelFormatKindSigned ? -1 : 0;
    const float value = fminf(fmaxf(color, least), 1) * greatest_of(format);
    int rounded = (int)fabsf(value);
    rounded += fabsf(value) - (float)rounded > 0.5f;
    return value < 0 ? -rounded : rounded;
}

// A number of 16 bits, from the sum of weighted integers.
static uint32_t blend_integers(const TexelFormat& format, int sum) {
    if (format.kind == cudaChannelFormatKindUnsigned) {
        const int value = format.bits == 8 ? sum + ((sum + ONE / 2) >> WEIGHT_BITS)
                                           : (int)(((unsigned)sum + ONE / 2) >> WEIGHT_BITS);
        return bits_of((float)value / 65535);
    }
    int value = format.bits == 8 ? sum + (((sum >> 4) + (sum >> 12) + 4) >> 3)
                                 : (sum + ONE / 2) >> WEIGHT_BITS;
    value = value < -32767 ? -32767 : value > 32767 ? 32767 : value;
    return bits_of((float)value / 32767);
}

}  // namespace cudalab
