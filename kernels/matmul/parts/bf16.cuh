// bfloat16: the upper half of a float, with its sign, its 8 bits of exponent and 7 bits of the 23
// of the mantissa. Compute capability 8.0.

// Two floats rounded to the nearest bfloat16, half a unit in the last place at most; `low` in bits
// 0 to 15.
__device__ inline unsigned round_to_bf16(float low, float high) {
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}
