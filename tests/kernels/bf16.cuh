// Rounding to bfloat16 in plain C++, in the place of common/thread/bf16.cuh on a device without the
// instruction.
#pragma once

__device__ inline unsigned bits_of_bf16(float value) {
    const unsigned bits = __float_as_uint(value);
    if (value != value) return 0x7FFF;
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;  // to the nearest, ties to even
}
__device__ inline unsigned round_to_bf16(float low, float high) {
    return bits_of_bf16(low) | bits_of_bf16(high) << 16;
}
