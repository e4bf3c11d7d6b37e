// Floats as exact sums of three bfloat16 numbers, x = x0 + x1 + x2, each the rounded remainder of
// those before: how a thread splits them, how a warpgroup multiplies them, and which numbers can be
// split. Of the nine products of parts the six large ones are summed; the others, x1 y2, x2 y1 and
// x2 y2, are together below 2^-24 |x y|.
#pragma once
#include "common/warpgroup/wgmma.cuh"

constexpr unsigned BF16_PARTS = 3;

// The ranges in which sums of products of parts are as good as sums of products of floats.
// Exponents are as floats store them, 127 more than the power of two. All numbers but 0:
constexpr unsigned MAX_EXPONENT = 253;  // below 2^127: no first part is rounded to infinity
constexpr unsigned MIN_EXPONENT = 27;   // from 2^-100: no part is below the normal numbers
// The exponents of two factors, added up. A sum of k products that is below 2^126 is finite, and so
// are all its partial sums. Tensor cores have subnormal numbers too, so what they cut off is below
// 2^-149, which is nothing beside a product of 2^-110 or more.
constexpr unsigned MAX_SUM = 2 * 126 + 126;
constexpr unsigned MIN_SUM = 2 * 127 - 110;
// Everything that is cut off or left out may come near 3 units of 2^-24 |x y|, the maximum that is
// allowed for k = 1.
constexpr unsigned MIN_BF16_K = 16;

// Whether sums of k products, k up to 2^log_k, may go wrong between blocks whose greatest and least
// exponents are these.
__device__ inline bool beyond_bf16(uint2 a, uint2 b, unsigned log_k) {
    return max(a.x, b.x) > MAX_EXPONENT || min(a.y, b.y) < MIN_EXPONENT ||
           a.x + b.x + log_k > MAX_SUM || a.y + b.y < MIN_SUM;
}

// Writes the parts of the 8 numbers of a chunk, PART chunks apart.
template <unsigned PART>
__device__ inline void split_chunk(float (&x)[8], uint4* target) {
#pragma unroll
    for (unsigned part = 0; part < BF16_PARTS; ++part) {
        unsigned pairs[4];
#pragma unroll
        for (unsigned i = 0; i < 4; ++i) {
            pairs[i] = round_to_bf16(x[2 * i], x[2 * i + 1]);
            x[2 * i] -= __uint_as_float(pairs[i] << 16);  // exact: the rounding error
            x[2 * i + 1] -= __uint_as_float(pairs[i] & 0xFFFF0000);
        }
        target[part * PART] = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
    }
}

// Starts and finishes acc = left x right for one stage: 64 lines of the left factor and all lines
// of the right one, whose parts begin at these addresses in shared memory, LEFT_PART and RIGHT_PART
// chunks apart. The smallest products come first.
template <unsigned LEFT_PART, unsigned RIGHT_PART, unsigned ACCUMULATORS>
__device__ inline void multiply_stage(float (&acc)[ACCUMULATORS], unsigned left, unsigned right) {
    constexpr unsigned LEFT[] = {1, 0, 2, 0, 1, 0}, RIGHT[] = {1, 2, 0, 1, 0, 0};
    begin_products();
#pragma unroll
    for (unsigned q = 0; q < 6; ++q) {
#pragma unroll
        for (unsigned half = 0; half < 2; ++half)  // 16 numbers along k, 32 bytes of a line
            start_bf16_product(acc, describe(left + LEFT[q] * LEFT_PART * 16 + half * 32),
                               describe(right + RIGHT[q] * RIGHT_PART * 16 + half * 32),
                               q + half > 0);
    }
    finish_products(acc);
}
