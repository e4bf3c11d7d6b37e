// Half precision (fp16): a sign, 5 bits of exponent and 10 of mantissa; numbers from 2^-14 to 65504
// with 11 bits, and below that multiples of 2^-24. Needs compute capability 8.0.
#pragma once

// Rounds two floats to the nearest fp16 numbers; `low` goes to bits 0 to 15.
__device__ inline unsigned round_to_fp16(float low, float high) {
    unsigned both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

// The number in bits 0 to 15, exactly.
__device__ inline float from_fp16(unsigned bits) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"((unsigned short)bits));
    return value;
}
