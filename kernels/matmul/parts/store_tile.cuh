// How two warpgroups store a tile of C whose sums are in their registers, as wgmma.cuh describes.
//
// Macros from outside: BM, BLOCKS_PER_TILE, SHARED_BYTES.
#pragma once
#if BLOCKS_PER_TILE > 1
#include "matmul/parts/cluster.cuh"
#endif

constexpr unsigned CONSUMERS = 256;  // the threads of two warpgroups

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

// Stores the sums of a tile from row0 and col0 on; `ring` is shared memory that no copy is under
// way to. MIRRORED: in a product of A and its transpose, also the tile's mirror image across the
// diagonal.
template <bool MIRRORED, unsigned SUMS>
__device__ inline void store_tile(const float (&sum)[SUMS], uint4* ring, float* c, unsigned m,
                                  unsigned n, unsigned row0, unsigned col0) {
    constexpr unsigned COLUMNS = 2 * SUMS;
    // Element 4j + 2h + e of a lane: see common/warpgroup/wgmma.cuh.
    const unsigned t = threadIdx.x, warpgroup = t / 128;
    const unsigned own_row = warpgroup * 64 + t % 128 / 32 * 16 + t % 32 / 4, own_col = t % 4 * 2;
#if BLOCKS_PER_TILE == 1
#pragma unroll
    for (unsigned h = 0; h < 2; ++h)
#pragma unroll
        for (unsigned j = 0; j < COLUMNS / 8; ++j)
            store_two(c, sum[4 * j + 2 * h], sum[4 * j + 2 * h + 1], row0 + own_row + 8 * h,
                      col0 + own_col + 8 * j, m, n);
    if (!MIRRORED) return;
    // The tile is transposed in shared memory. With 4 words of padding per row, 4 pairs of columns
    // of 8 rows go to 32 banks.
    constexpr unsigned LD = BM + 4;
    static_assert(COLUMNS * LD * 4 <= SHARED_BYTES, "the ring has room for a tile");
    float* turned = reinterpret_cast<float*>(ring);
    wait_for_consumers();  // no product still reads a stage
#pragma unroll
    for (unsigned h = 0; h < 2; ++h)
#pragma unroll
        for (unsigned j = 0; j < COLUMNS / 8; ++j)
#pragma unroll
            for (unsigned e = 0; e < 2; ++e)
                turned[(own_col + 8 * j + e) * LD + own_row + 8 * h] = sum[4 * j + 2 * h + e];
    wait_for_consumers();  // the tile is complete
    for (unsigned e = t; e < COLUMNS * BM / 2; e += CONSUMERS) {
        const unsigned row = e / (BM / 2), col = e % (BM / 2) * 2;
        // Tiles on the diagonal too: the two sums of a mirrored pair were rounded in different
        // orders.
        if (row0 == col0 && col >= row) continue;
        const float2 v = *reinterpret_cast<const float2*>(turned + row * LD + col);
        store_two(c, v.x, v.y, col0 + row, row0 + col, m, n);
    }
#else
    // The sums of this block's part of k go to its shared memory, where the cluster can read them.
    // With 8 words of padding per row, 8 rows of 4 pairs are written to each of the 32 banks twice.
    constexpr unsigned LD = COLUMNS + 8, ROWS = BM / BLOCKS_PER_TILE;
    static_assert(BM * LD * 4 <= SHARED_BYTES, "the ring has room for a tile");
    float* sums = reinterpret_cast<float*>(ring);
    wait_for_consumers();  // no product still reads a stage
#pragma unroll
    for (unsigned h = 0; h < 2; ++h)
#pragma unroll
        for (unsigned j = 0; j < COLUMNS / 8; ++j)
            *reinterpret_cast<float2*>(sums + (own_row + 8 * h) * LD + own_col + 8 * j) =
                make_float2(sum[4 * j + 2 * h], sum[4 * j + 2 * h + 1]);
    sync_cluster();  // all blocks' sums are ready
    const unsigned rank = blockIdx.y;
    // Each block adds up its share of the rows, in the order of the parts.
    for (unsigned e = t; e < ROWS * (COLUMNS / 4); e += CONSUMERS) {
        const unsigned row = rank * ROWS + e / (COLUMNS / 4), col = e % (COLUMNS / 4) * 4;
        float4 v = read_from_block(address_in_block(sums + row * LD + col, 0));
#pragma unroll
        for (unsigned r = 1; r < BLOCKS_PER_TILE; ++r) {
            const float4 w = read_from_block(address_in_block(sums + row * LD + col, r));
            v.x += w.x, v.y += w.y, v.z += w.z, v.w += w.w;
        }
        store_two(c, v.x, v.y, row0 + row, col0 + col, m, n);
        store_two(c, v.z, v.w, row0 + row, col0 + col + 2, m, n);
    }
    sync_cluster();  // others may have been reading this block's sums
#endif
}
