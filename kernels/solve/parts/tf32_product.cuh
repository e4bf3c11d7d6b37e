// A product on the tensor cores of compute capability 8.0 and higher (mma.sync), nearly as accurate
// as float32: each factor is two tf32 numbers of 11 bits, and of their four products the least, of
// two rests, is left out.
#pragma once

// A number rounded to 11 bits, and what that leaves of it, of which the tensor cores take 11 bits.
// A NaN is one in the rest.
struct Tf32Pair {
    unsigned high, low;
};

// Conversions (cvt.rna.tf32) would be slower: a multiprocessor does 16 of them per cycle.
__device__ inline Tf32Pair in_two_parts(float x) {
    const unsigned high = (__float_as_uint(x) + 0x1000) & 0xffffe000;
    return {high, __float_as_uint(x - __uint_as_float(high))};
}

// sum += (16 rows, 8 columns) x (8 rows, 8 columns).
__device__ inline void multiply_tf32(float (&sum)[4], unsigned a0, unsigned a1, unsigned a2,
                                     unsigned a3, unsigned b0, unsigned b1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// The row and the column of element i of a product of 16 rows and 8 columns.
__device__ inline unsigned row_of_product(unsigned i) {
    return threadIdx.x % 32 / 4 + i / 2 * 8;
}
__device__ inline unsigned column_of_product(unsigned i) {
    return threadIdx.x % 4 * 2 + i % 2;
}

// A warp computes a product of 16 ROWS rows and 16 columns, 16 rows and 8 columns at a time, of
// factors K long: left(row, k) x right(k, column).
template <unsigned ROWS, unsigned K, class Left, class Right>
__device__ inline void multiply_tf32(float (&product)[ROWS][2][4], const Left& left,
                                     const Right& right) {
    const unsigned line = threadIdx.x % 32 / 4, part = threadIdx.x % 4;
    float rests[ROWS][2][4] = {};  // sums of their own, since a product waits for the one before it
#pragma unroll
    for (unsigned m = 0; m < ROWS; ++m)
#pragma unroll
        for (unsigned h = 0; h < 2; ++h)
#pragma unroll
            for (unsigned i = 0; i < 4; ++i) product[m][h][i] = 0;
#pragma unroll
    for (unsigned k0 = 0; k0 < K; k0 += 8) {
        const unsigned k = k0 + part;
        Tf32Pair b[2][2];
#pragma unroll
        for (unsigned h = 0; h < 2; ++h)
#pragma unroll
            for (unsigned i = 0; i < 2; ++i) b[h][i] = in_two_parts(right(k + 4 * i, 8 * h + line));
#pragma unroll
        for (unsigned m = 0; m < ROWS; ++m) {
            Tf32Pair a[4];
#pragma unroll
            for (unsigned i = 0; i < 4; ++i)
                a[i] = in_two_parts(left(16 * m + line + i % 2 * 8, k + i / 2 * 4));
#pragma unroll
            for (unsigned h = 0; h < 2; ++h) {
                multiply_tf32(product[m][h], a[0].high, a[1].high, a[2].high, a[3].high,
                              b[h][0].high, b[h][1].high);
                multiply_tf32(rests[m][h], a[0].high, a[1].high, a[2].high, a[3].high, b[h][0].low,
                              b[h][1].low);
                multiply_tf32(rests[m][h], a[0].low, a[1].low, a[2].low, a[3].low, b[h][0].high,
                              b[h][1].high);
            }
        }
    }
#pragma unroll
    for (unsigned m = 0; m < ROWS; ++m)
#pragma unroll
        for (unsigned h = 0; h < 2; ++h)
#pragma unroll
            for (unsigned i = 0; i < 4; ++i) product[m][h][i] += rests[m][h][i];
}
