// A warp's product of pairs of tf32 numbers in plain C++, in the place of
// solve/parts/tf32_product.cuh on a device without tensor cores for them: each lane computes its
// own elements.

__device__ inline unsigned row_of_product(unsigned i) {
    return threadIdx.x % 32 / 4 + i / 2 * 8;
}
__device__ inline unsigned column_of_product(unsigned i) {
    return threadIdx.x % 4 * 2 + i % 2;
}

// The numbers that tensor cores take: the rest loses the bits beyond eleven.
__device__ inline void split_tf32(float x, float& high, float& low) {
    high = __uint_as_float((__float_as_uint(x) + 0x1000) & 0xffffe000);
    low = __uint_as_float(__float_as_uint(x - high) & 0xffffe000);
}

template <unsigned ROWS, unsigned K, class Left, class Right>
__device__ inline void multiply_tf32(float (&product)[ROWS][2][4], const Left& left,
                                     const Right& right) {
    for (unsigned m = 0; m < ROWS; ++m)
        for (unsigned h = 0; h < 2; ++h)
            for (unsigned i = 0; i < 4; ++i) {
                const unsigned row = 16 * m + row_of_product(i),
                               column = 8 * h + column_of_product(i);
                float sum = 0, rests = 0;
                for (unsigned k = 0; k < K; ++k) {
                    float a, rest_of_a, b, rest_of_b;
                    split_tf32(left(row, k), a, rest_of_a);
                    split_tf32(right(k, column), b, rest_of_b);
                    sum += a * b;
                    rests += a * rest_of_b + rest_of_a * b;
                }
                product[m][h][i] = sum + rests;
            }
}
