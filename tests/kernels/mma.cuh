// What the PTX manual says of mma.m16n8k16, in plain C++: in the place of matmul/parts/mma.cuh on a
// device without the instruction. The fragments are written down as the manual's formulas for a_i,
// b_i and c_i are.

__device__ inline float half_of(unsigned pair, unsigned i) {
    return __uint_as_float(i % 2 ? pair & 0xFFFF0000 : pair << 16);
}
__device__ inline void multiply_add(float (&sums)[4], const unsigned (&left)[4],
                                    const unsigned (&right)[2]) {
    __shared__ float a[THREADS_PER_BLOCK / 32][16][16], b[THREADS_PER_BLOCK / 32][16][8];
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned group = lane >> 2, in_group = lane % 4;
    for (unsigned i = 0; i < 8; ++i) {
        const unsigned row = i < 2 || (4 <= i && i < 6) ? group : group + 8;
        const unsigned col = in_group * 2 + (i & 1) + (i >= 4 ? 8 : 0);
        a[warp][row][col] = half_of(left[i / 2], i);
    }
    for (unsigned i = 0; i < 4; ++i) {
        const unsigned row = in_group * 2 + (i & 1) + (i >= 2 ? 8 : 0);
        b[warp][row][group] = half_of(right[i / 2], i);
    }
    __syncwarp();  // both factors are there
    for (unsigned i = 0; i < 4; ++i) {
        const unsigned row = i < 2 ? group : group + 8, col = in_group * 2 + (i & 1);
        for (unsigned k = 0; k < 16; ++k) sums[i] += a[warp][row][k] * b[warp][k][col];
    }
    __syncwarp();  // the factors may be overwritten
}
