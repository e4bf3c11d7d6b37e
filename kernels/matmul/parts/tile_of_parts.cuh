// A product of matrices whose numbers are split into parts, on tensor cores: rings of stages,
// tiles, and what is done with numbers that parts do not represent. Whoever includes this has said
// how numbers are split and multiplied:
//   PARTS          of a number; stages of STAGE_K numbers along k have them one after the other
//   split_lines    writes the parts of BK numbers of some lines and returns their exponents
//   add_block      adds the products of a block, BK numbers of all lines, to the sums of a tile
//   out_of_range   whether parts may be less exact than floats between blocks with these exponents
//   MIN_K          for shorter sums they may be, too
//
// Macros from outside: B_TRANSPOSED (1: B is stored n x k), BM, BN, BK, STAGES, BLOCKS_PER_TILE,
// THREADS_PER_BLOCK, SPLIT_THREADS, SHARED_BYTES.
#pragma once
#if BLOCKS_PER_TILE > 1
#include "matmul/parts/cluster.cuh"
#endif

// In 16-byte chunks: a part of BM lines of A, and of BN lines of B; a stage's parts of each, which
// are contiguous, and both.
constexpr unsigned A_PART = BM * CHUNKS, B_PART = BN * CHUNKS;
constexpr unsigned A_STAGE = PARTS * A_PART, B_STAGE = PARTS * B_PART;
constexpr unsigned STAGE = A_STAGE + B_STAGE;
constexpr unsigned BLOCK_STAGES = BK / STAGE_K;  // in a block of BK numbers along k
constexpr unsigned CONSUMERS = 256;              // two warpgroups; the third one fills the stages
constexpr unsigned BAND = 16;                    // tile rows

static_assert(BM == 128 && (BN == 128 || BN == 192), "two warpgroups of 64 rows");
static_assert(THREADS_PER_BLOCK == CONSUMERS + 128, "whole warpgroups");
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

// Stores two neighbours in a row of C, from `col` on.
__device__ inline void store_two(float* c, float x, float y, unsigned row, unsigned col, unsigned m,
                                 unsigned n) {
    if (row >= m) return;
    float* target = c + (size_t)row * n + col;
    if (n % 2 == 0) {  // both inside or neither, at a multiple of 8 bytes
        if (col < n) *reinterpret_cast<float2*>(target) = make_float2(x, y);
    } else {
        if (col < n) target[0] = x;
        if (col + 1 < n) target[1] = y;
    }
}

// A barrier of the two warpgroups that multiply.
__device__ inline void wait_for_consumers() {
    asm volatile("bar.sync 1, %0;" ::"n"(CONSUMERS) : "memory");
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
    bool doubtful = k < MIN_K;
    const unsigned log_k = 32 - __clz((int)(k - 1));
    for (unsigned i = t; i < k_blocks; i += THREADS_PER_BLOCK)
        doubtful |= out_of_range(a_ranges[a_first + i], b_ranges[b_first + i], log_k);
    // Also, the copies' barriers may not be used earlier. All blocks of a cluster decide alike.
    if (__syncthreads_or(doubtful)) {
        float* shared = reinterpret_cast<float*>(ring);
        for (unsigned col = rank * 128; col < BN; col += BLOCKS_PER_TILE * 128)
            multiply_floats(shared, a, b, c, m, k, n, tile_row * BM, tile_col * BN + col,
                            min(BN - col, 128));
        if (MIRRORED && tile_row != tile_col)
            multiply_floats(shared, a, b, c, m, k, n, tile_col * BN, tile_row * BM, BM);
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

    // Element 4j + 2h + e of a lane: see common/warpgroup/wgmma.cuh.
    const unsigned own_row = warpgroup * 64 + t % 128 / 32 * 16 + t % 32 / 4, own_col = t % 4 * 2;
#if BLOCKS_PER_TILE == 1
#pragma unroll
    for (unsigned h = 0; h < 2; ++h)
#pragma unroll
        for (unsigned j = 0; j < BN / 8; ++j)
            store_two(c, sum[4 * j + 2 * h], sum[4 * j + 2 * h + 1],
                      tile_row * BM + own_row + 8 * h, tile_col * BN + own_col + 8 * j, m, n);
    if (!MIRRORED) return;
    // The tile is transposed in shared memory. With 4 words of padding per row, 4 pairs of columns
    // of 8 rows go to 32 banks.
    constexpr unsigned LD = BM + 4;
    static_assert(BN * LD * 4 <= STAGES * STAGE * 16, "the ring has room for a tile");
    float* turned = reinterpret_cast<float*>(ring);
    wait_for_consumers();  // no product still reads a stage
#pragma unroll
    for (unsigned h = 0; h < 2; ++h)
#pragma unroll
        for (unsigned j = 0; j < BN / 8; ++j)
#pragma unroll
            for (unsigned e = 0; e < 2; ++e)
                turned[(own_col + 8 * j + e) * LD + own_row + 8 * h] = sum[4 * j + 2 * h + e];
    wait_for_consumers();  // the tile is complete
    for (unsigned e = t; e < BN * BM / 2; e += CONSUMERS) {
        const unsigned row = e / (BM / 2), col = e % (BM / 2) * 2;
        // Tiles on the diagonal too: the two sums of a mirrored pair were rounded in different
        // orders.
        if (tile_row == tile_col && col >= row) continue;
        const float2 v = *reinterpret_cast<const float2*>(turned + row * LD + col);
        store_two(c, v.x, v.y, tile_col * BN + row, tile_row * BM + col, m, n);
    }
#else
    // The sums of this block's part of k go to its shared memory, where the cluster can read them.
    // With 8 words of padding per row, 8 rows of 4 pairs are written to each of the 32 banks twice.
    constexpr unsigned LD = BN + 8, ROWS = BM / BLOCKS_PER_TILE;
    static_assert(BM * LD * 4 <= STAGES * STAGE * 16, "the ring has room for a tile");
    float* sums = reinterpret_cast<float*>(ring);
    wait_for_consumers();  // no product still reads a stage
#pragma unroll
    for (unsigned h = 0; h < 2; ++h)
#pragma unroll
        for (unsigned j = 0; j < BN / 8; ++j)
            *reinterpret_cast<float2*>(sums + (own_row + 8 * h) * LD + own_col + 8 * j) =
                make_float2(sum[4 * j + 2 * h], sum[4 * j + 2 * h + 1]);
    sync_cluster();  // all blocks' sums are ready
    // Each block adds up its share of the rows, in the order of the parts.
    for (unsigned e = t; e < ROWS * (BN / 4); e += CONSUMERS) {
        const unsigned row = rank * ROWS + e / (BN / 4), col = e % (BN / 4) * 4;
        float4 v = read_from_block(address_in_block(sums + row * LD + col, 0));
#pragma unroll
        for (unsigned r = 1; r < BLOCKS_PER_TILE; ++r) {
            const float4 w = read_from_block(address_in_block(sums + row * LD + col, r));
            v.x += w.x, v.y += w.y, v.z += w.z, v.w += w.w;
        }
        store_two(c, v.x, v.y, tile_row * BM + row, tile_col * BN + col, m, n);
        store_two(c, v.z, v.w, tile_row * BM + row, tile_col * BN + col + 2, m, n);
    }
    sync_cluster();  // others may have been reading this block's sums
#endif
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
