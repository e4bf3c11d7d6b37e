// Floats as exact sums of three bfloat16 numbers, x = x0 + x1 + x2, each the rounded remainder of
// those before: how a block splits a factor of a matrix product into its parts, and how a warpgroup
// multiplies them. Of the nine products of parts the six large ones are summed; the others, x1 y2,
// x2 y1 and x2 y2, are together below 2^-24 |x y|.
//
// The parts are written in blocks of LINES lines (rows of the left factor, columns of the right
// one) and BK numbers along k, the three parts one after the other, each in the layout that
// wgmma.cuh describes for shared memory.
//
// Macros from outside: BK, SPLIT_THREADS.
#pragma once
#include "common/thread/read_along.cuh"
#include "common/warpgroup/wgmma.cuh"

constexpr unsigned PARTS = 3;

static_assert(BK * 2 == LINE_BYTES, "a block's lines are 64 bytes");

// Writes the parts of the 8 numbers of a chunk, PART chunks apart, and widens `range` to include
// the bits of their magnitudes.
template <unsigned PART>
__device__ inline void split_chunk(float (&x)[8], uint4* target, uint2& range) {
#pragma unroll
    for (unsigned i = 0; i < 8; ++i) {
        const unsigned magnitude = __float_as_uint(x[i]) & 0x7FFFFFFF;
        range.x = max(range.x, magnitude);
        if (magnitude) range.y = min(range.y, magnitude);
    }
#pragma unroll
    for (unsigned part = 0; part < PARTS; ++part) {
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

// Writes the parts of BK numbers from p0 on, in LINES lines from line0 on; returns their range, the
// bits of the greatest magnitude and of the least one but 0. `source` has `lines` lines of `k`
// numbers, `along` memory or across it, in rows of `ld`.
template <unsigned LINES>
__device__ inline uint2 split_block(const float* source, unsigned ld, uint4* parts, bool along,
                                    unsigned line0, unsigned p0, unsigned lines, unsigned k) {
    constexpr unsigned LINES_PER_PASS = SPLIT_THREADS / CHUNKS;
    // A word of padding per row: a warp reads 4 chunks c of 8 lines l at once, from banks 8c + l.
    __shared__ float tile[BK][LINES + 1];
    const unsigned t = threadIdx.x, chunk = t % CHUNKS;

    // Columns of B lie across memory: they are read along rows and picked up by columns.
    if (!along) {
#pragma unroll
        for (unsigned i = 0; i < BK * LINES / SPLIT_THREADS; ++i) {
            const unsigned e = t + i * SPLIT_THREADS, p = e / LINES, line = e % LINES;
            const bool inside = p0 + p < k && line0 + line < lines;
            tile[p][line] = inside ? source[(size_t)(p0 + p) * ld + line0 + line] : 0;
        }
        __syncthreads();  // the tile is complete
    }

    uint2 range = make_uint2(0, 255u << 23);
#pragma unroll
    for (unsigned line = t / CHUNKS; line < LINES; line += LINES_PER_PASS) {
        float x[8];
        if (along) {
            read_along(x, source, ld, line0 + line, p0 + 8 * chunk, lines, k);
        } else {
#pragma unroll
            for (unsigned i = 0; i < 8; ++i) x[i] = tile[8 * chunk + i][line];
        }
        split_chunk<LINES * CHUNKS>(x, parts + swizzled(line, chunk), range);
    }
    return range;
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
            start_product(acc, describe(left + LEFT[q] * LEFT_PART * 16 + half * 32),
                          describe(right + RIGHT[q] * RIGHT_PART * 16 + half * 32), q + half > 0);
    }
    finish_products(acc);
}
