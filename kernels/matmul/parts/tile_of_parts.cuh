// A product of matrices whose numbers are split into parts, on tensor cores: rings of stages,
// tiles, and what is done with numbers that parts do not represent. Whoever includes this has said
// how numbers are split and multiplied:
//   PARTS          of a number; stages of STAGE_K numbers along k have them one after the other
//   split_lines    writes the parts of BK numbers of some lines and returns their exponents
//   add_block      adds the products of a block, BK numbers of all lines, to the sums of a tile
//   out_of_range   whether parts may be less exact than floats between blocks with these exponents
//   MIN_K          for shorter sums they may be, too
// Tiles for which parts may be less exact are computed in float arithmetic, or, if bf16_tile.cuh is
// included before this, by the parts that it makes where these suffice.
//
// Macros from outside: B_TRANSPOSED (1: B is stored n x k), BM, BN, BK, STAGES, BLOCKS_PER_TILE,
// THREADS_PER_BLOCK, SPLIT_THREADS, SHARED_BYTES.
#pragma once
#include "matmul/parts/float_tile.cuh"

// In 16-byte chunks: a part of BM lines of A, and of BN lines of B; a stage's parts of each, which
// are contiguous, and both.
constexpr unsigned A_PART = BM * CHUNKS, B_PART = BN * CHUNKS;
constexpr unsigned A_STAGE = PARTS * A_PART, B_STAGE = PARTS * B_PART;
constexpr unsigned STAGE = A_STAGE + B_STAGE;
constexpr unsigned BLOCK_STAGES = BK / STAGE_K;  // in a block of BK numbers along k
constexpr unsigned BAND = 16;                    // tile rows

static_assert(BM == 128 && (BN == 128 || BN == 192), "two warpgroups of 64 rows");
static_assert(THREADS_PER_BLOCK == CONSUMERS + 128, "a third warpgroup fills the stages");
static_assert(SHARED_BYTES == STAGES * (STAGE * 16 + 2 * sizeof(Barrier)), "ring and barriers");

// The first thread blocks split A, tile row by tile row, along k; the others split B. A block's
// range is the exponents of its largest number and of its smallest one but 0 (255 if there is
// none).
extern "C" __global__ void __launch_bounds__(SPLIT_THREADS) split_factors(
    const float* a, const float* b, uint4* a_parts, uint4* b_parts, uint2* a_ranges,
    uint2* b_ranges, unsigned m, unsigned k, unsigned n) {
    const unsigned k_blocks = (k + BK - 1) / BK, a_blocks = (m + BM - 1) / BM * k_blocks;
    const bool of_a = blockIdx.x < a_blocks;
    const unsigned block = of_a ? blockIdx.x : blockIdx.x - a_blocks;
    const unsigned tile = block / k_blocks, p0 = block % k_blocks * BK;
    const uint2 range =
        of_a ? split_lines<BM>(a, k, a_parts + (size_t)block * BLOCK_STAGES * A_STAGE, true,
                               tile * BM, p0, m, k)
             : split_lines<BN>(b, B_TRANSPOSED ? k : n,
                               b_parts + (size_t)block * BLOCK_STAGES * B_STAGE, B_TRANSPOSED,
                               tile * BN, p0, n, k);
    if (threadIdx.x == 0) (of_a ? a_ranges : b_ranges)[block] = range;
}

// Computes the tile in tile row `tile_row` and tile column `tile_col`. MIRRORED: in a product of A
// and its transpose, also the tile's mirror image across the diagonal.
template <bool MIRRORED>
__device__ inline void multiply_tile(const uint4* a_parts, const uint4* b_parts,
                                     const uint2* a_ranges, const uint2* b_ranges, const float* a,
                                     const float* b, float* c, unsigned m, unsigned k, unsigned n,
                                     unsigned tile_row, unsigned tile_col) {
    extern __shared__ __align__(1024) uint4 ring[];  // the swizzle counts from multiples of 1024
    Barrier* filled = reinterpret_cast<Barrier*>(ring + STAGES * STAGE);  // one for each stage
    Barrier* emptied = filled + STAGES;
    const unsigned t = threadIdx.x;
    const unsigned k_blocks = (k + BK - 1) / BK;
    const size_t a_first = (size_t)tile_row * k_blocks, b_first = (size_t)tile_col * k_blocks;
    // This block's part of k.
    const unsigned share = (k_blocks + BLOCKS_PER_TILE - 1) / BLOCKS_PER_TILE, rank = blockIdx.y;
    const unsigned begin = min(k_blocks, rank * share), end = min(k_blocks, begin + share);

    if (t == 0) {
        for (unsigned stage = 0; stage < STAGES; ++stage) {
            init_barrier(filled + stage, 1);   // the thread that starts the copies
            init_barrier(emptied + stage, 2);  // one thread of each warpgroup
        }
        publish_barriers();
    }
    const unsigned log_k = 32 - __clz((int)(k - 1));
    // Whether sums are too short, or some blocks that meet here have such exponents. All blocks of
    // a cluster decide alike.
    auto found = [&](bool is_short, const auto& beyond) {
        for (unsigned i = t; i < k_blocks; i += THREADS_PER_BLOCK)
            is_short |= beyond(a_ranges[a_first + i], b_ranges[b_first + i]);
        return __syncthreads_or(is_short);  // also, the copies' barriers may not be used earlier
    };
    if (found(k < MIN_K, [&](uint2 x, uint2 y) { return out_of_range(x, y, log_k); })) {
        const unsigned row0 = tile_row * BM, col0 = tile_col * BN;
#ifdef BF16_TILE
        if (!found(k < MIN_BF16_K, [&](uint2 x, uint2 y) { return beyond_bf16(x, y, log_k); })) {
            multiply_as_bf16<MIRRORED>(ring, a, b, c, m, k, n, row0, col0,
                                       {begin * BK, min(k, end * BK)});
            return;
        }
#endif
        float* shared = reinterpret_cast<float*>(ring);
        for (unsigned col = rank * 128; col < BN; col += BLOCKS_PER_TILE * 128)
            multiply_floats(shared, a, b, c, m, k, n, row0, col0 + col, min(BN - col, 128));
        if (MIRRORED && tile_row != tile_col)
            multiply_floats(shared, a, b, c, m, k, n, col0, row0, BM);
        return;
    }

    // The sums of 192 columns need more registers than an equal share: the third warpgroup gives
    // some of its own.
    if (t >= CONSUMERS) {
        if (BN > 128) give_registers<40>();
        if (t > CONSUMERS) return;
        const uint4* left = a_parts + (a_first + begin) * BLOCK_STAGES * A_STAGE;
        const uint4* right = b_parts + (b_first + begin) * BLOCK_STAGES * B_STAGE;
        for (unsigned i = 0; i < (end - begin) * BLOCK_STAGES; ++i) {
            const unsigned stage = i % STAGES, round = i / STAGES;
            wait_for_phase(emptied + stage, (round + 1) % 2);  // the first round need not wait
            arrive_expecting(filled + stage, STAGE * 16);
            uint4* target = ring + stage * STAGE;
            copy_bulk(target, left + (size_t)i * A_STAGE, A_STAGE * 16, filled + stage);
            copy_bulk(target + A_STAGE, right + (size_t)i * B_STAGE, B_STAGE * 16, filled + stage);
        }
        return;
    }
    if (BN > 128) take_registers<232>();

    const unsigned warpgroup = t / 128;
    float sum[BN / 2] = {}, acc[BN / 2] = {};
    for (unsigned block = 0; block < end - begin; ++block) {
        unsigned left[BLOCK_STAGES], right[BLOCK_STAGES];
#pragma unroll
        for (unsigned i = 0; i < BLOCK_STAGES; ++i) {
            const unsigned number = block * BLOCK_STAGES + i, stage = number % STAGES;
            wait_for_phase(filled + stage, number / STAGES % 2);
            left[i] = shared_address(ring + stage * STAGE) + warpgroup * 64 * LINE_BYTES;
            right[i] = shared_address(ring + stage * STAGE + A_STAGE);
        }
        const unsigned exponents =
            a_ranges[a_first + begin + block].x + b_ranges[b_first + begin + block].x;
        add_block<A_PART, B_PART>(sum, acc, left, right, exponents, [&] {
            // The tensor core has read the stages for the whole warpgroup: they may be filled
            // again.
            if (t % 128 > 0) return;
            for (unsigned i = 0; i < BLOCK_STAGES; ++i)
                arrive(emptied + (block * BLOCK_STAGES + i) % STAGES);
        });
    }

    store_tile<MIRRORED>(sum, ring, c, m, n, tile_row * BM, tile_col * BN);
}

#if BLOCKS_PER_TILE > 1
#define CLUSTER __cluster_dims__(1, BLOCKS_PER_TILE, 1)
#else
#define CLUSTER
#endif

extern "C" __global__ void CLUSTER __launch_bounds__(THREADS_PER_BLOCK, 1) multiply_parts(
    const uint4* a_parts, const uint4* b_parts, const uint2* a_ranges, const uint2* b_ranges,
    const float* a, const float* b, float* c, unsigned m, unsigned k, unsigned n) {
    // Tiles in bands of BAND tile rows, column by column: blocks that run together read a nearly
    // square part of A and B, which the second-level cache holds.
    const unsigned tile_rows = (m + BM - 1) / BM, tile_cols = (n + BN - 1) / BN;
    const unsigned band = blockIdx.x / (BAND * tile_cols), place = blockIdx.x % (BAND * tile_cols);
    const unsigned rows_in_band = min(tile_rows - band * BAND, BAND);
    multiply_tile<false>(a_parts, b_parts, a_ranges, b_ranges, a, b, c, m, k, n,
                         band * BAND + place % rows_in_band, place / rows_in_band);
}
