// The warp's matrix instruction of compute capability 8.0, for bfloat16: 32 lanes multiply a
// 16 x 16 matrix by a 16 x 8 matrix and add the product to 16 x 8 floats. All three are spread over
// the registers of the lanes; a register of a factor holds two neighbours along k. With
// g = lane / 4 and p = 2 (lane % 4), a lane has
//   left    rows g, g + 8, g, g + 8 of the left factor: the numbers p and p + 1 along k of the
//           first two, p + 8 and p + 9 of the others; the lower number in bits 0 to 15
//   right   column g of the right factor: p and p + 1 along k, then p + 8 and p + 9
//   sums    row g, columns p and p + 1 of the sums, then row g + 8, columns p and p + 1
// as the PTX manual draws them for mma.m16n8k16. The whole warp calls it.
#pragma once
__device__ inline void multiply_add(float (&sums)[4], const unsigned (&left)[4],
                                    const unsigned (&right)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
}
