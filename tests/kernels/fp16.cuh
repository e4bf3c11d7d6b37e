// Rounding to fp16 in plain C++, in the place of common/thread/fp16.cuh on a device without the
// instruction.
#pragma once

__device__ inline unsigned bits_of_fp16(float value) {
    const unsigned sign = __float_as_uint(value) >> 16 & 0x8000;
    const float size = fabsf(value);
    if (size != size) return 0x7FFF;
    if (size == 0) return sign;
    if (size >= 65520.0f) return sign | 0x7C00;
    int exponent;
    frexpf(size, &exponent);  // size is 2^exponent times 0.5 to 1
    const float unit = ldexpf(1, max(exponent - 11, -24));
    const unsigned units = (unsigned)rintf(size / unit);  // to the nearest, ties to even
    if (unit == ldexpf(1, -24)) return sign | units;      // below 2^-13: units count the bits
    return sign | ((unsigned)(exponent + 13) << 10) + units;
}
__device__ inline unsigned round_to_fp16(float low, float high) {
    return bits_of_fp16(low) | bits_of_fp16(high) << 16;
}
__device__ inline float from_fp16(unsigned bits) {
    const unsigned exponent = bits >> 10 & 31, mantissa = bits & 0x3FF;
    float size = exponent ? ldexpf(1024 + mantissa, (int)exponent - 25) : ldexpf(mantissa, -24);
    if (exponent == 31) size = mantissa ? nanf("") : INFINITY;
    return bits & 0x8000 ? -size : size;
}
