// A tile of a matrix product from three bfloat16 parts of each number, by a block whose own parts
// do not represent the numbers. They are split on the way: the third warpgroup keeps a ring of
// stages filled, as in tile_of_parts.cuh, but with parts that it makes itself, while the numbers of
// the next stage are on their way to its registers. So every tile splits its numbers anew, which is
// hardly noticed: tensor cores have six products to compute meanwhile.
//
// Macros from outside: B_TRANSPOSED (1: B is stored n x k), BM, BN, BLOCKS_PER_TILE, SHARED_BYTES.
#pragma once
#define BF16_TILE
#include "common/thread/read_along.cuh"
#include "matmul/parts/bf16_parts.cuh"
#include "matmul/parts/store_tile.cuh"

// Columns that are computed at once: the sums of a wider tile would need registers that the third
// warpgroup keeps here, for the numbers it splits.
constexpr unsigned BF16_COLUMNS = BN > 128 ? BN / 2 : BN;
// Chunks of 16 bytes: a part of the lines of A, and of those of B; a stage's parts of both.
constexpr unsigned BF16_A = BM * CHUNKS, BF16_B = BF16_COLUMNS * CHUNKS;
constexpr unsigned BF16_STAGE = BF16_PARTS * (BF16_A + BF16_B);
constexpr unsigned BF16_DEPTH = 3;           // stages of the ring
constexpr unsigned BF16_K = LINE_BYTES / 2;  // numbers along k of a stage
constexpr unsigned SPLITTERS = 128;          // threads of the third warpgroup

// The numbers along k that are multiplied: whole stages, but for the end of k.
struct Along {
    unsigned begin, end;
};

// The ring, and its barriers, where none have been before. A warpgroup counts the stages it uses.
struct Bf16Ring {
    uint4* stages;
    Barrier *filled, *emptied;  // one for each stage
    unsigned count = 0;

    __device__ explicit Bf16Ring(uint4* shared) : stages(shared) {
        static_assert(BF16_DEPTH * (BF16_STAGE * 16 + 2 * sizeof(Barrier)) < SHARED_BYTES - 1024,
                      "it ends before the other barriers");
        filled = reinterpret_cast<Barrier*>(shared + BF16_DEPTH * BF16_STAGE);
        emptied = filled + BF16_DEPTH;
    }
    __device__ void init_barriers() {
        for (unsigned stage = 0; stage < BF16_DEPTH; ++stage) {
            init_barrier(filled + stage, SPLITTERS / 32);    // one thread of each warp
            init_barrier(emptied + stage, CONSUMERS / 128);  // one thread of each warpgroup
        }
        publish_barriers();
    }
};

// The two warpgroups that multiply: 64 rows each, all columns.
__device__ inline void multiply_stages(float (&sum)[BF16_COLUMNS / 2], Bf16Ring& ring,
                                       const Along& along) {
    float acc[BF16_COLUMNS / 2] = {};
    for (unsigned p0 = along.begin; p0 < along.end; p0 += BF16_K, ++ring.count) {
        const unsigned stage = ring.count % BF16_DEPTH;
        wait_for_phase(ring.filled + stage, ring.count / BF16_DEPTH % 2);
        const unsigned left = shared_address(ring.stages + stage * BF16_STAGE);
        multiply_stage<BF16_A, BF16_B>(acc, left + threadIdx.x / 128 * 64 * LINE_BYTES,
                                       left + BF16_PARTS * BF16_A * 16);
        if (threadIdx.x % 128 == 0) arrive(ring.emptied + stage);
#pragma unroll
        for (unsigned e = 0; e < BF16_COLUMNS / 2; ++e) sum[e] += acc[e];
    }
}

// What the third warpgroup splits: BM rows of A and BF16_COLUMNS columns of B, from row0 and col0
// on.
struct Splitter {
    // Chunks of a thread in a stage: those of A, then those of B.
    static constexpr unsigned OF_A = BF16_A / SPLITTERS, OWN = OF_A + BF16_B / SPLITTERS;
    using Numbers = float[OWN][8];

    const float *a, *b;
    unsigned m, k, n, row0, col0;

    // The line and the chunk of an own one: neighbours read along memory.
    __device__ static uint2 place(unsigned i) {
        const unsigned e = threadIdx.x % SPLITTERS + (i < OF_A ? i : i - OF_A) * SPLITTERS;
        return i < OF_A || B_TRANSPOSED ? make_uint2(e / CHUNKS, e % CHUNKS)
                                        : make_uint2(e % BF16_COLUMNS, e / BF16_COLUMNS);
    }
    // Whether a stage that begins at p0 is inside both matrices, with rows at multiples of 16
    // bytes.
    __device__ bool is_inside(unsigned p0) const {
        return row0 + BM <= m && col0 + BF16_COLUMNS <= n && p0 + BF16_K <= k && k % 4 == 0;
    }
    template <bool INSIDE>
    __device__ void fetch_chunk(float (&x)[8], unsigned i, unsigned p0) const {
        const uint2 own = place(i);
        const unsigned p = p0 + 8 * own.y, line = (i < OF_A ? row0 : col0) + own.x;
        const float* source = i < OF_A ? a : b;
        if (i < OF_A || B_TRANSPOSED) {
            read_along<INSIDE>(x, source, k, line, p, i < OF_A ? m : n, k);
        } else {
#pragma unroll
            for (unsigned j = 0; j < 8; ++j)
                x[j] = INSIDE || (line < n && p + j < k) ? b[(size_t)(p + j) * n + line] : 0;
        }
    }
    __device__ static void split_chunk_of(float (&x)[8], unsigned i, uint4* stage) {
        const uint2 own = place(i);
        uint4* target = stage + swizzled(own.x, own.y);
        if (i < OF_A)
            split_chunk<BF16_A>(x, target);
        else
            split_chunk<BF16_B>(x, target + BF16_PARTS * BF16_A);
    }
    // Writes the parts of the own numbers to a stage, and reads those of the stage that begins at
    // p0, each chunk in the place of one that has been split.
    template <bool INSIDE>
    __device__ void split_and_fetch(Numbers& x, uint4* stage, unsigned p0) const {
#pragma unroll
        for (unsigned i = 0; i < OWN; ++i) {
            split_chunk_of(x[i], i, stage);
            fetch_chunk<INSIDE>(x[i], i, p0);
        }
    }
};

// The third warpgroup.
__device__ inline void split_stages(const Splitter& splitter, Bf16Ring& ring, const Along& along) {
    Splitter::Numbers x;
#pragma unroll
    for (unsigned i = 0; i < Splitter::OWN; ++i) splitter.fetch_chunk<false>(x[i], i, along.begin);
    for (unsigned p0 = along.begin; p0 < along.end; p0 += BF16_K, ++ring.count) {
        const unsigned stage = ring.count % BF16_DEPTH, next = p0 + BF16_K;
        uint4* parts = ring.stages + stage * BF16_STAGE;
        // The first round need not wait.
        wait_for_phase(ring.emptied + stage, (ring.count / BF16_DEPTH + 1) % 2);
        if (splitter.is_inside(next))
            splitter.split_and_fetch<true>(x, parts, next);
        else
            splitter.split_and_fetch<false>(x, parts, next);
        publish_factors();
        __syncwarp();  // the warp has written its parts
        if (threadIdx.x % 32 == 0) arrive(ring.filled + stage);
    }
}

// Computes the tile from row0 and col0 on. The whole block calls it; no copy is under way to its
// shared memory.
template <bool MIRRORED>
__device__ inline void multiply_as_bf16(uint4* shared, const float* a, const float* b, float* c,
                                        unsigned m, unsigned k, unsigned n, unsigned row0,
                                        unsigned col0, const Along& along) {
    Bf16Ring ring(shared);
    if (threadIdx.x == 0) ring.init_barriers();
    __syncthreads();  // the barriers may be used
    for (unsigned col = col0; col < col0 + BN; col += BF16_COLUMNS) {
        if (threadIdx.x >= CONSUMERS) {
            split_stages({a, b, m, k, n, row0, col}, ring, along);
        } else {
            float sum[BF16_COLUMNS / 2] = {};
            multiply_stages(sum, ring, along);
            store_tile<MIRRORED>(sum, shared, c, m, n, row0, col);
        }
    }
}
