// /// cudalab
// summary  = "128 x 256 tiles: few instructions beside the products, and an order of tiles"
// order    = 12
// adds     = "addresses that step on, an order of the products, and one of the tiles"
// dispatch = "tiles"
// default  = ["cuda"]
//
// [defines]
// BM                = 128
// BN                = 256
// BK                = 8
// STAGES            = 5
// TM                = 8
// TN                = 16
// THREADS_PER_BLOCK = 256
// SHARED_BYTES      = 62720  # STAGES * BK * (BM + BN + 8) * 4
// ///
//
// As `read_ahead`, with two ideas more, both of a few lines.
//
// The first: what is not a product takes the schedulers' time, so there is as little of it as
// possible. Each thread keeps the addresses of its copies and lets them step on, where the rungs
// before compute them anew; lines past an edge repeat the last one instead of being asked about,
// since their results are never stored; and whether rows of B are aligned is decided once, outside
// the loop. So 106 other instructions go with 1024 products, in the rung before 148. The order of
// the products is free, and decides how well their operands are spread over the banks of the
// register file: add_products.
//
// The second: the order of the tiles. Blocks that run together read a nearly square part of A and
// B, which the second-level cache holds: first_element. This is for large matrices; at n = 2048 all
// tiles run at a time.
//
// The ring has one stage more than in the rung before. A stage may have more than 8 numbers along
// k: the loop body is a slice of 8, with one barrier per stage. `async_copy_deep` uses that. A
// warp's lanes form 8 rows of 4 in plain order, in which reads of B take 4 wavefronts.
// Limits: few tiles: a matrix of order 1024 has 32 of them. There is a barrier every 8 steps:
// `async_copy_deep`.
//
// Macros from outside: B_TRANSPOSED (1: B is stored n x k), BM, BN, BK, STAGES, TM, TN,
// THREADS_PER_BLOCK, SHARED_BYTES.
#include "common/thread/async_copy.cuh"

constexpr unsigned SLICE = 8;                   // along k: what the loop body copies and multiplies
constexpr unsigned SLICES = BK / SLICE;         // in a stage
constexpr unsigned LDA = BM + 4, LDB = BN + 4;  // words per row of a tile
constexpr unsigned STAGE = BK * (LDA + LDB);    // words
constexpr unsigned LINES = THREADS_PER_BLOCK / SLICE;  // rows that one pass of 4-byte copies covers
constexpr unsigned BAND = 16;                          // tile rows

static_assert(BM == 128 && BN == 256 && TM == 8 && TN == 16, "2 x 4 warps of 64 x 64 elements");
static_assert(THREADS_PER_BLOCK == 256 && BK % SLICE == 0, "whole slices");
static_assert(SHARED_BYTES == STAGES * STAGE * 4, "what the stages need");

// acc += left x right. The order of the 128 products is free, and decides how well ptxas can spread
// the registers over their banks: up to 10 % on an H100. It goes by pairs of rows, along each pair
// by groups of four columns, there and back again, and likewise within a group.
__device__ inline void add_products(float (&acc)[TM][TN], const float (&left)[TM],
                                    const float (&right)[TN]) {
#pragma unroll
    for (unsigned group = 0; group < TM / 2 * (TN / 4); ++group) {
        const unsigned pair = group / (TN / 4), along = group % (TN / 4);
        const unsigned four = pair % 2 ? TN / 4 - 1 - along : along;
#pragma unroll
        for (unsigned e = 0; e < 8; ++e) {
            const unsigned column = e / 2, row = (column + group) % 2 ? 1 - e % 2 : e % 2;
            const unsigned i = 2 * pair + row, j = 4 * four + column;
            acc[i][j] += left[i] * right[j];
        }
    }
}

// Sixteen bytes from shared memory into registers.
__device__ inline void read_four(float* values, const float* shared) {
    *reinterpret_cast<float4*>(values) = *reinterpret_cast<const float4*>(shared);
}

// The first of this thread's rows and columns: the others are 1 to 3 and 32 rows further on, 1 to 3
// and 16, 32 and 48 columns.
__device__ inline unsigned row_in_tile() {
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    return warp % 2 * 64 + lane / 4 * 4;
}
__device__ inline unsigned column_in_tile() {
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    return warp / 2 * 64 + lane % 4 * 4;
}

// Adds up this thread's elements of the product of the rows from row0 on and the columns from col0
// on; the second half of these are the columns from middle on. Sums run along k from k_begin to
// k_end, which is excluded. WIDE: rows of B start at multiples of 16 bytes.
template <bool WIDE>
__device__ inline void sum_tile(float (&acc)[TM][TN], float* ring, const float* a, const float* b,
                                unsigned m, unsigned k, unsigned n, unsigned row0, unsigned col0,
                                unsigned middle, unsigned k_begin, unsigned k_end) {
    const unsigned t = threadIdx.x;
    a += k_begin;
    b += B_TRANSPOSED ? k_begin : (size_t)k_begin * n;

    // Where this thread's copies read. Lines past the edge repeat the last one; their results are
    // never stored. Only k has to be filled up with zeros.
    const unsigned along_k = t % SLICE, line = t / SLICE;
    const float* a_at[BM / LINES];
#pragma unroll
    for (unsigned i = 0; i < BM / LINES; ++i)
        a_at[i] = a + (size_t)min(row0 + line + LINES * i, m - 1) * k + along_k;
    constexpr unsigned WIDTH = WIDE ? 4 : 1;                       // elements of B per copy
    constexpr unsigned B_ROWS = THREADS_PER_BLOCK / (BN / WIDTH);  // rows of B per pass
    constexpr unsigned B_LINES = B_TRANSPOSED ? BN / LINES : 1;
    const unsigned b_row = t / (BN / WIDTH), b_col = t % (BN / WIDTH) * WIDTH;
    const float* b_at[B_LINES];
#pragma unroll
    for (unsigned i = 0; i < B_LINES; ++i) {
        const unsigned first = 2 * i < B_LINES ? col0 : middle - BN / 2;
        b_at[i] = B_TRANSPOSED ? b + (size_t)min(first + line + LINES * i, n - 1) * k + along_k
                               : b + (size_t)b_row * n + min(col0 + b_col, n - WIDTH);
    }

    int rest = (int)(k_end - k_begin);  // still to be copied
    unsigned filling = 0, slice = 0;
    // Starts the copies of the next slice; at a stage's last one, closes the group.
    auto copy_slice = [&]() {
        float* As = ring + filling * STAGE + slice * SLICE * LDA;
        float* Bs = ring + filling * STAGE + BK * LDA + slice * SLICE * LDB;
        const bool whole = rest >= (int)SLICE;
        const bool inside = whole || (int)along_k < rest;
#pragma unroll
        for (unsigned i = 0; i < BM / LINES; ++i) {
            copy_async(As + along_k * LDA + line + LINES * i, inside ? a_at[i] : a, inside);
            a_at[i] += SLICE;
        }
        if (B_TRANSPOSED) {
#pragma unroll
            for (unsigned i = 0; i < B_LINES; ++i) {
                copy_async(Bs + along_k * LDB + line + LINES * i, inside ? b_at[i] : b, inside);
                b_at[i] += SLICE;
            }
        } else {
#pragma unroll
            for (unsigned i = 0; i < SLICE / B_ROWS; ++i) {
                float* target = Bs + (b_row + i * B_ROWS) * LDB + b_col;
                const bool there = whole || (int)(b_row + i * B_ROWS) < rest;
                if (WIDE) {
                    copy_async_16(target, there ? b_at[0] : b, there);
                } else {
                    copy_async(target, there ? b_at[0] : b, there);
                }
                b_at[0] += (size_t)B_ROWS * n;
            }
        }
        rest -= SLICE;
        if (++slice == SLICES) {
            slice = 0;
            filling = filling + 1 == STAGES ? 0 : filling + 1;
            commit_copies();
        }
    };

    const float* As = ring + row_in_tile();
    const float* Bs = ring + BK * LDA + column_in_tile();
    __align__(16) float left[2][TM], right[2][TN];
    auto read_step = [&](unsigned buffer, unsigned p) {
#pragma unroll
        for (unsigned g = 0; g < TM / 4; ++g)
            read_four(&left[buffer][4 * g], As + p * LDA + 32 * g);
#pragma unroll
        for (unsigned g = 0; g < TN / 4; ++g)
            read_four(&right[buffer][4 * g], Bs + p * LDB + 16 * g);
    };

    for (unsigned s = 0; s < (STAGES - 1) * SLICES; ++s) copy_slice();
    wait_for_copies<STAGES - 2>();
    __syncthreads();  // the first stage is complete
    read_step(0, 0);
    unsigned reading = 0, done = 0;  // the stage being multiplied; how many of its slices are done
    const unsigned stages = (k_end - k_begin + BK - 1) / BK;
    for (unsigned s = stages * SLICES; s > 0; --s) {
        copy_slice();
#pragma unroll
        for (unsigned p = 0; p < SLICE; ++p) {
            if (p == SLICE - 1) {  // what is read ahead now is the next slice
                As += SLICE * LDA;
                Bs += SLICE * LDB;
                if (++done == SLICES) {
                    done = 0;
                    As += STAGE - BK * LDA;
                    Bs += STAGE - BK * LDB;
                    if (++reading == STAGES) {
                        reading = 0;
                        As -= STAGES * STAGE;
                        Bs -= STAGES * STAGE;
                    }
                    // The next stage is complete; and all have read this one, so that the copies
                    // that follow may overwrite it.
                    wait_for_copies<STAGES - 2>();
                    __syncthreads();
                }
            }
            read_step((p + 1) % 2, (p + 1) % SLICE);
            add_products(acc, left[p % 2], right[p % 2]);
        }
    }
    wait_for_copies<0>();
}

// Row and column of a tile's first element. Tiles are counted in bands of BAND tile rows, column by
// column: blocks that run together read a nearly square part of A and B, which the second-level
// cache holds.
__device__ inline uint2 first_element(unsigned tile, unsigned m, unsigned n) {
    const unsigned tile_rows = (m + BM - 1) / BM, tile_cols = (n + BN - 1) / BN;
    const unsigned band = tile / (BAND * tile_cols), place = tile % (BAND * tile_cols);
    const unsigned rows_in_band = min(tile_rows - band * BAND, BAND);
    return make_uint2((band * BAND + place % rows_in_band) * BM, place / rows_in_band * BN);
}

// Stores this thread's elements to C, from `row` and `column` on. WIDE: rows of C start at
// multiples of 16 bytes.
template <bool WIDE>
__device__ inline void store_elements(float* c, const float (&acc)[TM][TN], unsigned row0,
                                      unsigned column, unsigned m, unsigned n) {
#pragma unroll
    for (unsigned i = 0; i < TM; ++i) {
        const unsigned row = row0 + i / 4 * 32 + i % 4;
        if (row >= m) continue;
#pragma unroll
        for (unsigned g = 0; g < TN / 4; ++g) {
            const unsigned col = column + g * 16;
            const float* v = acc[i] + 4 * g;
            float* target = c + (size_t)row * n + col;
            if (WIDE) {
                if (col < n)
                    *reinterpret_cast<float4*>(target) = make_float4(v[0], v[1], v[2], v[3]);
            } else {
#pragma unroll
                for (unsigned j = 0; j < 4; ++j)
                    if (col + j < n) target[j] = v[j];
            }
        }
    }
}

template <bool WIDE>
__device__ inline void multiply_tile(float* ring, const float* a, const float* b, float* c,
                                     unsigned m, unsigned k, unsigned n) {
    const uint2 first = first_element(blockIdx.x, m, n);
    float acc[TM][TN] = {};
    sum_tile<WIDE>(acc, ring, a, b, m, k, n, first.x, first.y, first.y + BN / 2, 0, k);
    store_elements<WIDE>(c, acc, first.x + row_in_tile(), first.y + column_in_tile(), m, n);
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, 1) multiply(
    const float* a, const float* b, float* c, unsigned m, unsigned k, unsigned n) {
    extern __shared__ __align__(16) float ring[];
    if (n % 4 == 0) {
        multiply_tile<true>(ring, a, b, c, m, k, n);
    } else {
        multiply_tile<false>(ring, a, b, c, m, k, n);
    }
}

// Source: NVIDIA, Efficient GEMM in CUDA, Threadblock Rasterization. Documentation of CUTLASS.
