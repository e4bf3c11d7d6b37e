// Floats as sums of two fp16 numbers, s x = x0 + 2^-11 x1: how a block splits a factor of a matrix
// product into these parts, and how a warpgroup multiplies them. Of a float's 24 bits the first
// part has 11 and the second, with its own sign, 12 or 13: what is lost is at most 2^-23 |x|. The
// power of two s makes the greatest number of a block at least 2^14 and less than 2^15; the factor
// 2^11 keeps the second part in the range of fp16, too.
//
// The parts are written in blocks of LINES lines (rows of the left factor, columns of the right
// one) and BK numbers along k. A block has a stage for each 32 numbers along k; a stage has all
// first parts, then all second parts, each in the layout that wgmma.cuh describes for shared
// memory.
//
// Macros from outside: BK, SPLIT_THREADS.
#pragma once
#include "common/block/exponents.cuh"
#include "common/thread/fp16.cuh"
#include "common/thread/read_along.cuh"
#include "common/warpgroup/wgmma.cuh"

constexpr unsigned PARTS = 2, STAGE_K = 32;
constexpr int LOW_BITS = 11;       // the second part is 2^11 times what the first one leaves
constexpr unsigned GREATEST = 14;  // the power of two of a block's greatest number

static_assert(BK % STAGE_K == 0 && STAGE_K * 2 == LINE_BYTES, "lines of a stage are 64 bytes");

// The float 2^(exponent - 127), for exponents that a normal float can have.
__device__ inline float power_of_two(unsigned exponent) {
    return __uint_as_float(min(max((int)exponent, 1), 254) << 23);
}

// Writes the parts of 8 numbers of a line, PART chunks apart.
template <unsigned PART>
__device__ inline void split_chunk(const float (&x)[8], float scale, uint4* target) {
    unsigned high[4], low[4];
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
        const float left = x[2 * i] * scale, right = x[2 * i + 1] * scale;
        high[i] = round_to_fp16(left, right);
        // Exact: rounding errors of fp16 are floats, and multiplied by a power of two.
        low[i] = round_to_fp16((left - from_fp16(high[i] & 0xFFFF)) * (1 << LOW_BITS),
                               (right - from_fp16(high[i] >> 16)) * (1 << LOW_BITS));
    }
    target[0] = make_uint4(high[0], high[1], high[2], high[3]);
    target[PART] = make_uint4(low[0], low[1], low[2], low[3]);
}

// Writes the parts of BK numbers from p0 on, in LINES lines from line0 on; returns their range, the
// exponents of the greatest magnitude and of the least one but 0 (255 if there is none) as floats
// store them. `source` has `lines` lines of `k` numbers, `along` memory or across it, in rows of
// `ld`.
template <unsigned LINES>
__device__ inline uint2 split_lines(const float* source, unsigned ld, uint4* parts, bool along,
                                    unsigned line0, unsigned p0, unsigned lines, unsigned k) {
    constexpr unsigned BLOCK_CHUNKS = BK / 8;
    constexpr unsigned OWN = LINES * BLOCK_CHUNKS / SPLIT_THREADS;  // chunks of a thread
    // A word of padding per row: a warp reads 4 chunks c of 8 lines l at once, from banks 8c + l.
    __shared__ float tile[STAGE_K][LINES + 1];
    const unsigned t = threadIdx.x;

    float x[OWN][8];
    uint2 range = make_uint2(0, 255u << 23);
#pragma unroll
    for (unsigned stage = 0; stage < BK / STAGE_K; ++stage) {
        const unsigned first = p0 + stage * STAGE_K;
        // Columns of B lie across memory: they are read along rows and picked up by columns.
        if (!along) {
            if (stage > 0) __syncthreads();  // the tile before has been read
#pragma unroll
            for (unsigned i = 0; i < STAGE_K * LINES / SPLIT_THREADS; ++i) {
                const unsigned e = t + i * SPLIT_THREADS, p = e / LINES, line = e % LINES;
                const bool inside = first + p < k && line0 + line < lines;
                tile[p][line] = inside ? source[(size_t)(first + p) * ld + line0 + line] : 0;
            }
            __syncthreads();  // the tile is complete
        }
        constexpr unsigned PASSES = LINES * CHUNKS / SPLIT_THREADS;
#pragma unroll
        for (unsigned pass = 0; pass < PASSES; ++pass) {
            float (&own)[8] = x[stage * PASSES + pass];
            const unsigned line = t / CHUNKS + pass * (SPLIT_THREADS / CHUNKS), chunk = t % CHUNKS;
            if (along) {
                read_along(own, source, ld, line0 + line, first + 8 * chunk, lines, k);
            } else {
#pragma unroll
                for (unsigned i = 0; i < 8; ++i) own[i] = tile[8 * chunk + i][line];
            }
#pragma unroll
            for (unsigned i = 0; i < 8; ++i) {
                const unsigned magnitude = __float_as_uint(own[i]) & 0x7FFFFFFF;
                range.x = max(range.x, magnitude);
                if (magnitude) range.y = min(range.y, magnitude);
            }
        }
    }
    const uint2 exponents = exponents_of_block(range);
    const float scale = power_of_two(2 * 127 + GREATEST - exponents.x);
#pragma unroll
    for (unsigned i = 0; i < OWN; ++i) {
        constexpr unsigned PASSES = LINES * CHUNKS / SPLIT_THREADS;
        const unsigned line = t / CHUNKS + i % PASSES * (SPLIT_THREADS / CHUNKS);
        uint4* stage = parts + i / PASSES * (PARTS * LINES * CHUNKS);
        split_chunk<LINES * CHUNKS>(x[i], scale, stage + swizzled(line, t % CHUNKS));
    }
    return exponents;
}

// Adds `acc` times a power of two to the sums.
template <unsigned N>
__device__ inline void promote(float (&sum)[N], const float (&acc)[N], unsigned exponent) {
    const float scale = power_of_two(exponent);
#pragma unroll
    for (unsigned e = 0; e < N; ++e) sum[e] += acc[e] * scale;
}

// Adds the products of BK numbers, of 64 lines of the left factor and all lines of the right one,
// to the sums. The parts of a stage begin at these addresses in shared memory, LEFT_PART and
// RIGHT_PART chunks apart; `exponents` is the sum of the factors' greatest ones. `read` is called
// when the tensor core has read everything.
template <unsigned LEFT_PART, unsigned RIGHT_PART, unsigned N, typename Read>
__device__ inline void add_block(float (&sum)[N], float (&acc)[N],
                                 const unsigned (&left)[BK / STAGE_K],
                                 const unsigned (&right)[BK / STAGE_K], unsigned exponents,
                                 const Read& read) {
    const unsigned exponent = exponents - 127 - 2 * GREATEST;
    // First the products with a second part, which count 2^-11 times as much.
#pragma unroll
    for (unsigned first = 0; first < 2; ++first) {
        begin_products();
#pragma unroll
        for (unsigned i = 0; i < BK / 16; ++i) {  // 16 numbers along k, 32 bytes of a line
            const unsigned a = left[i / 2] + i % 2 * 32, b = right[i / 2] + i % 2 * 32;
            if (first) {
                start_fp16_product(acc, describe(a), describe(b), i > 0);
            } else {
                start_fp16_product(acc, describe(a), describe(b + RIGHT_PART * 16), i > 0);
                start_fp16_product(acc, describe(a + LEFT_PART * 16), describe(b), true);
            }
        }
        finish_products(acc);
        if (first) read();
        promote(sum, acc, first ? exponent : exponent - LOW_BITS);
    }
}
