// bfloat16: the upper half of a float, with its sign, its 8 bits of exponent and 7 of the 23 bits
// of its mantissa. Needs compute capability 8.0.
#pragma once

// Rounds two floats to the nearest bfloat16, with an error of half a unit in the last place at
// most; `low` goes to bits 0 to 15.
__device__ inline unsigned round_to_bf16(float low, float high) {
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}
