// A tile of a matrix product in float arithmetic, by a block that is made for tensor cores.
//
// Macros from outside: B_TRANSPOSED (1: B is stored n x k).
#pragma once
#include "matmul/parts/store_tile.cuh"

// Computes a tile of 128 x `columns` elements, at most 128, from row0 and col0 on, in float
// arithmetic, much as `double_buffered` does: the first 256 threads compute 8 x 8 elements each,
// from two tiles in turn that hold FLOATS_K numbers along k.
__device__ inline void multiply_floats(float* shared, const float* a, const float* b, float* c,
                                       unsigned m, unsigned k, unsigned n, unsigned row0,
                                       unsigned col0, unsigned columns) {
    // With 4 words of padding per row, four lines are read at multiples of 16 bytes.
    constexpr unsigned FLOATS_K = 16, LINES = 128, LD = LINES + 4;
    constexpr unsigned OWN = FLOATS_K * LINES / CONSUMERS;  // numbers of each factor that it loads
    auto tiles = reinterpret_cast<float (*)[2][FLOATS_K][LD]>(shared);  // [set][factor][p][line]
    const unsigned t = threadIdx.x, ty = t / 16 * 4, tx = t % 16 * 4;
    const bool works = t < CONSUMERS;
    // A factor that is stored along k is read 16 numbers along k at a time, another one by lines.
    auto place = [&](unsigned i, bool along) {
        const unsigned e = t + i * CONSUMERS;
        return along ? make_uint2(e / FLOATS_K, e % FLOATS_K) : make_uint2(e % LINES, e / LINES);
    };
    float next[2][OWN];
    auto fetch = [&](unsigned p0) {
#pragma unroll
        for (unsigned i = 0; i < OWN; ++i) {
            const uint2 own = place(i, true), other = place(i, B_TRANSPOSED);
            const unsigned row = row0 + own.x, col = col0 + other.x, p = p0 + other.y;
            next[0][i] = p0 + own.y < k && row < m ? a[(size_t)row * k + p0 + own.y] : 0;
            const size_t from = B_TRANSPOSED ? (size_t)col * k + p : (size_t)p * n + col;
            next[1][i] = p < k && col < n ? b[from] : 0;
        }
    };
    auto store = [&](unsigned set) {
#pragma unroll
        for (unsigned i = 0; i < OWN; ++i) {
            const uint2 own = place(i, true), other = place(i, B_TRANSPOSED);
            tiles[set][0][own.y][own.x] = next[0][i];
            tiles[set][1][other.y][other.x] = next[1][i];
        }
    };
    float acc[8][8] = {};
    if (works) {
        fetch(0);
        store(0);
    }
    __syncthreads();  // the first tiles are complete
    for (unsigned p0 = 0, set = 0; p0 < k; p0 += FLOATS_K, set ^= 1) {
        if (works) {
            fetch(p0 + FLOATS_K);
#pragma unroll
            for (unsigned p = 0; p < FLOATS_K; ++p) {
                float left[8], right[8];
#pragma unroll
                for (unsigned i = 0; i < 8; ++i) {
                    left[i] = tiles[set][0][p][i / 4 * 64 + ty + i % 4];
                    right[i] = tiles[set][1][p][i / 4 * 64 + tx + i % 4];
                }
#pragma unroll
                for (unsigned i = 0; i < 8; ++i)
#pragma unroll
                    for (unsigned j = 0; j < 8; ++j) acc[i][j] += left[i] * right[j];
            }
            store(set ^ 1);
        }
        __syncthreads();  // the next tiles are complete, and these may be overwritten
    }
    if (!works) return;
#pragma unroll
    for (unsigned i = 0; i < 8; ++i) {
        const unsigned row = row0 + i / 4 * 64 + ty + i % 4;
#pragma unroll
        for (unsigned j = 0; j < 8; ++j) {
            const unsigned in_tile = j / 4 * 64 + tx + j % 4, col = col0 + in_tile;
            if (row < m && col < n && in_tile < columns) c[(size_t)row * n + col] = acc[i][j];
        }
    }
}
