// A strip's columns of L and rows of U as scaled fp16 parts, and the rest of the matrix minus their
// product, on tensor cores.
//
// With 256 numbers along k, a tile takes only eight stages. So a block computes one tile after the
// other, and its ring of stages never runs dry between them: the thread that fills it goes on to
// the next tile while the others finish this one. The elements to be updated are read at the
// beginning of a tile and needed at its end.
#pragma once
#include "common/block/fp16_parts.cuh"

constexpr unsigned K_BLOCKS = BLOCK / BK;        // of a tile, each with a power of two
constexpr unsigned BLOCK_STAGES = BK / STAGE_K;  // of a block
constexpr unsigned PART = TILE * CHUNKS;         // 16-byte chunks
constexpr unsigned PARTS_STAGE = PARTS * PART;   // of one factor in a stage
constexpr unsigned STAGE = 2 * PARTS_STAGE;
constexpr unsigned CONSUMERS = 256;  // two warpgroups; the third one fills the stages
constexpr unsigned BAND = 16;        // tile rows

static_assert(sizeof(T) == 4, "a float has two parts");
static_assert(TILE == 128, "two warpgroups of 64 rows, 128 columns");
static_assert(BLOCK % BK == 0, "whole blocks");
static_assert(UPDATE_THREADS == CONSUMERS + 128, "whole warpgroups");
static_assert(SHARED_BYTES == STAGES * (STAGE * 16 + 2 * sizeof(Barrier)), "ring and barriers");

// The parts of the strip's columns of L and of its rows of U, and the exponents of their blocks.
struct Strip {
    const uint4 *l_parts, *u_parts;
    const unsigned *l_exponents, *u_exponents;
};

// The first half of the blocks split the strip's columns of L, tile row by tile row, along k; the
// others its rows of U, tile column by tile column.
extern "C" __global__ void __launch_bounds__(SPLIT_THREADS) split_strip(
    const float* lu, uint4* l_parts, uint4* u_parts, unsigned* l_exponents, unsigned* u_exponents,
    unsigned ld, unsigned start) {
    const unsigned rest = ld - start - BLOCK, blocks = gridDim.x / 2;
    const bool of_l = blockIdx.x < blocks;
    const unsigned block = of_l ? blockIdx.x : blockIdx.x - blocks;
    const unsigned line0 = block / K_BLOCKS * TILE, k0 = block % K_BLOCKS * BK;
    uint4* target = (of_l ? l_parts : u_parts) + (size_t)block * BLOCK_STAGES * PARTS_STAGE;
    const float* corner = lu + (size_t)start * ld + start;
    const float* source = of_l ? corner + (size_t)BLOCK * ld : corner + BLOCK;
    const uint2 range = split_lines<TILE>(source, ld, target, of_l, line0, k0, rest, BLOCK);
    if (threadIdx.x == 0) (of_l ? l_exponents : u_exponents)[block] = range.x;
}

// The tiles that a launch updates: all tile rows, and the tile columns from `first_column` on.
struct Rectangle {
    unsigned rows, first_column, columns;

    __device__ unsigned count() const { return rows * columns; }

    // The tile row and the tile column of the tile with this number: in bands of BAND tile rows,
    // column by column, so that blocks that run together read a nearly square part of the factors.
    __device__ uint2 at(unsigned number) const {
        const unsigned in_band = BAND * columns, band = number / in_band, place = number % in_band;
        const unsigned rows_in_band = min(rows - band * BAND, BAND);
        return make_uint2(band * BAND + place % rows_in_band, first_column + place / rows_in_band);
    }
};

// Fills the stages of all tiles of this block, one after the other, as they become empty.
template <class Tiles>
__device__ inline void fill_stages(uint4* ring, Barrier* filled, Barrier* emptied,
                                   const Strip& strip, const Tiles& tiles) {
    constexpr unsigned TILE_STAGES = K_BLOCKS * BLOCK_STAGES;
    unsigned count = 0;
    for (unsigned number = blockIdx.x; number < tiles.count(); number += gridDim.x) {
        const uint2 tile = tiles.at(number);
        const uint4* left = strip.l_parts + (size_t)tile.x * TILE_STAGES * PARTS_STAGE;
        const uint4* right = strip.u_parts + (size_t)tile.y * TILE_STAGES * PARTS_STAGE;
        for (unsigned i = 0; i < TILE_STAGES; ++i, ++count) {
            const unsigned stage = count % STAGES, round = count / STAGES;
            uint4* target = ring + stage * STAGE;
            wait_for_phase(emptied + stage, (round + 1) % 2);  // the first round need not wait
            arrive_expecting(filled + stage, STAGE * 16);
            copy_bulk(target, left + i * PARTS_STAGE, PARTS_STAGE * 16, filled + stage);
            copy_bulk(target + PARTS_STAGE, right + i * PARTS_STAGE, PARTS_STAGE * 16,
                      filled + stage);
        }
    }
}

// Subtracts (the strip's columns of L) x (its rows of U) from these tiles of the matrix below and
// right of the strip. Any number of blocks of UPDATE_THREADS threads share the tiles.
template <class Tiles>
__device__ inline void subtract_from(const Tiles& tiles, float* lu, const Strip& strip, uint4* ring,
                                     unsigned ld, unsigned start) {
    Barrier* filled = reinterpret_cast<Barrier*>(ring + STAGES * STAGE);  // one for each stage
    Barrier* emptied = filled + STAGES;
    const unsigned t = threadIdx.x;
    if (t == 0) {
        for (unsigned stage = 0; stage < STAGES; ++stage) {
            init_barrier(filled + stage, 1);   // the thread that starts the copies
            init_barrier(emptied + stage, 2);  // one thread of each warpgroup
        }
        publish_barriers();
    }
    __syncthreads();  // all threads may use the barriers
    // Accumulators, sums and elements need more registers than an equal share: the third warpgroup
    // gives some of its own.
    if (t >= CONSUMERS) {
        give_registers<40>();
        if (t == CONSUMERS) fill_stages(ring, filled, emptied, strip, tiles);
        return;
    }
    take_registers<232>();

    // Element 4j + 2h + e of a lane: see common/warpgroup/wgmma.cuh.
    const unsigned warpgroup = t / 128;
    const unsigned own_row = warpgroup * 64 + t % 128 / 32 * 16 + t % 32 / 4, own_col = t % 4 * 2;
    unsigned count = 0;
    for (unsigned number = blockIdx.x; number < tiles.count(); number += gridDim.x) {
        const uint2 tile = tiles.at(number);
        const size_t row = start + BLOCK + tile.x * TILE + own_row;
        float* corner = lu + row * ld + start + BLOCK + tile.y * TILE + own_col;
        auto pair_at = [&](unsigned h, unsigned j) {
            return reinterpret_cast<float2*>(corner + (size_t)(8 * h) * ld + 8 * j);
        };
        float2 elements[2][TILE / 8];
#pragma unroll
        for (unsigned h = 0; h < 2; ++h)
#pragma unroll
            for (unsigned j = 0; j < TILE / 8; ++j) elements[h][j] = *pair_at(h, j);

        float sum[TILE / 2] = {}, acc[TILE / 2] = {};
        for (unsigned block = 0; block < K_BLOCKS; ++block) {
            unsigned left[BLOCK_STAGES], right[BLOCK_STAGES];
#pragma unroll
            for (unsigned i = 0; i < BLOCK_STAGES; ++i) {
                const unsigned stage = (count + i) % STAGES, round = (count + i) / STAGES;
                wait_for_phase(filled + stage, round % 2);
                left[i] = shared_address(ring + stage * STAGE) + warpgroup * 64 * LINE_BYTES;
                right[i] = shared_address(ring + stage * STAGE + PARTS_STAGE);
            }
            const unsigned exponents = strip.l_exponents[tile.x * K_BLOCKS + block] +
                                       strip.u_exponents[tile.y * K_BLOCKS + block];
            add_block<PART, PART>(sum, acc, left, right, exponents, [&] {
                // The tensor core has read the stages for the whole warpgroup.
                if (t % 128 > 0) return;
                for (unsigned i = 0; i < BLOCK_STAGES; ++i) arrive(emptied + (count + i) % STAGES);
            });
            count += BLOCK_STAGES;
        }
#pragma unroll
        for (unsigned h = 0; h < 2; ++h)
#pragma unroll
            for (unsigned j = 0; j < TILE / 8; ++j) {
                const float2 element = elements[h][j];
                *pair_at(h, j) =
                    make_float2(element.x - sum[4 * j + 2 * h], element.y - sum[4 * j + 2 * h + 1]);
            }
    }
}

// Updates so many tile columns below the strip, counted from its end.
extern "C" __global__ void __launch_bounds__(UPDATE_THREADS, 1) subtract_products(
    float* lu, const uint4* l_parts, const uint4* u_parts, const unsigned* l_exponents,
    const unsigned* u_exponents, unsigned tile_rows, unsigned first_column, unsigned tile_columns,
    unsigned ld, unsigned start) {
    extern __shared__ __align__(1024) uint4 ring[];  // the swizzle counts from multiples of 1024
    subtract_from(Rectangle{tile_rows, first_column, tile_columns}, lu,
                  Strip{l_parts, u_parts, l_exponents, u_exponents}, ring, ld, start);
}
