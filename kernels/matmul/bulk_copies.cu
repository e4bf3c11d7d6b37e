// /// cudalab
// summary  = "Tiles packed once, stages filled by bulk copies that one thread starts"
// order    = 18.3
// ladder   = "tensor cores"
// adds     = "`async_copy` with the copy engine: two copies per stage, and a warp that only copies"
// dispatch = "packed"
// requires = ["sm_90", "bulk_copy", "inline_ptx"]
//
// [defines]
// BM                = 128
// BN                = 256
// BK                = 8
// STAGES            = 5
// TM                = 8
// TN                = 16
// THREADS_PER_BLOCK = 256    # which multiply; 32 more copy
// SHARED_BYTES      = 62720  # STAGES * BK * (BM + BN + 8) * 4
// ///
//
// The tiles, the products and the ring of stages are those of `async_copy`. But there every thread
// starts copies of a few bytes, works out where each reads, and waits for its own. Here the copy
// engine fills a stage by two copies of some kilobytes, which a single thread starts.
//
// For that a stage has to be contiguous in global memory. So pack_factors first writes both factors
// tile by tile, each tile as it will lie in shared memory, [p][line] in rows of 4 words more than
// it has lines, and zeros past the edges: multiply_packed knows neither edges along k nor
// transposes.
//
// Two barriers in shared memory belong to each stage. `filled`: the copies of this round have
// arrived; the engine counts its bytes there. `emptied`: all warps have read it. The ninth warp
// keeps the ring filled, the other eight multiply, and no barrier holds them all together: warps
// may be stages apart. This is called warp specialization: a producer and its consumers. The phases
// of the barriers are described in common/thread/bulk_copy.cuh.
//
// Tensor cores are fed in this way in `tensor_cores_bf16x6`; here the multiplications are the
// ordinary ones, whose rate is the limit.
// Limits: the packed tiles take as much memory as the factors, and take time to write: n = 2048
// takes 0.436 ms in all on an H200, and 0.364 ms with `async_copy`.
//
// Macros from outside: B_TRANSPOSED (1: B is stored n x k), BM, BN, BK, STAGES, TM, TN,
// THREADS_PER_BLOCK, SHARED_BYTES.
#include "common/thread/bulk_copy.cuh"
#include "matmul/async_copy.cu"

constexpr unsigned A_TILE = BK * LDA, B_TILE = BK * LDB;  // words of a packed tile
constexpr unsigned WARPS = THREADS_PER_BLOCK / 32;        // that multiply

static_assert(A_TILE % 4 == 0 && B_TILE % 4 == 0, "bulk copies move multiples of 16 bytes");

// Writes BK numbers from p0 on of LINES lines as a tile, in rows of LD words. ALONG: the lines run
// along memory. A thread takes a line, so that neighbours write neighbours.
template <unsigned LINES, unsigned LD, bool ALONG>
__device__ inline void pack_tile(const float* source, float* tile, unsigned line0, unsigned lines,
                                 unsigned p0, unsigned k) {
    for (unsigned i = threadIdx.x; i < LD; i += THREADS_PER_BLOCK) {
        const unsigned line = line0 + i;
#pragma unroll
        for (unsigned p = 0; p < BK; ++p) {
            const bool inside = i < LINES && line < lines && p0 + p < k;
            const size_t at = ALONG ? (size_t)line * k + p0 + p : (size_t)(p0 + p) * lines + line;
            tile[p * LD + i] = inside ? source[at] : 0;
        }
    }
}

// A block per tile: those of A first, tile row by tile row, along k; then those of B, tile column
// by tile column.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) pack_factors(
    const float* a, const float* b, float* a_tiles, float* b_tiles, unsigned m, unsigned k,
    unsigned n) {
    const unsigned k_tiles = (k + BK - 1) / BK, of_a = (m + BM - 1) / BM * k_tiles;
    const bool is_a = blockIdx.x < of_a;
    const unsigned number = is_a ? blockIdx.x : blockIdx.x - of_a;
    const unsigned tile = number / k_tiles, p0 = number % k_tiles * BK;
    if (is_a) {
        pack_tile<BM, LDA, true>(a, a_tiles + (size_t)number * A_TILE, tile * BM, m, p0, k);
    } else {
        float* target = b_tiles + (size_t)number * B_TILE;
        pack_tile<BN, LDB, B_TRANSPOSED>(b, target, tile * BN, n, p0, k);
    }
}

// One thread of the ninth warp fills the k_tiles stages of a tile of C as they become empty.
__device__ inline void fill_stages(float* ring, Barrier* filled, Barrier* emptied,
                                   const float* a_tiles, const float* b_tiles, unsigned k_tiles) {
    for (unsigned i = 0; i < k_tiles; ++i) {
        const unsigned stage = i % STAGES, round = i / STAGES;
        float* target = ring + stage * STAGE;
        wait_for_phase(emptied + stage, (round + 1) % 2);  // the first round need not wait
        arrive_expecting(filled + stage, STAGE * 4);
        copy_bulk(target, a_tiles + (size_t)i * A_TILE, A_TILE * 4, filled + stage);
        copy_bulk(target + A_TILE, b_tiles + (size_t)i * B_TILE, B_TILE * 4, filled + stage);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK + 32, 1) multiply_packed(
    const float* a_tiles, const float* b_tiles, float* c, unsigned m, unsigned k, unsigned n) {
    extern __shared__ __align__(16) float ring[];
    __shared__ Barrier filled[STAGES], emptied[STAGES];
    const unsigned k_tiles = (k + BK - 1) / BK;
    const uint2 first = first_element(blockIdx.x, m, n);
    if (threadIdx.x == 0) {
        for (unsigned stage = 0; stage < STAGES; ++stage) {
            init_barrier(filled + stage, 1);       // the thread that starts the copies
            init_barrier(emptied + stage, WARPS);  // a thread of each warp that multiplies
        }
        publish_barriers();
    }
    __syncthreads();  // all threads may use the barriers
    if (threadIdx.x >= THREADS_PER_BLOCK) {
        if (threadIdx.x == THREADS_PER_BLOCK)
            fill_stages(ring, filled, emptied, a_tiles + (size_t)(first.x / BM) * k_tiles * A_TILE,
                        b_tiles + (size_t)(first.y / BN) * k_tiles * B_TILE, k_tiles);
        return;
    }

    float acc[TM][TN] = {};
    for (unsigned i = 0; i < k_tiles; ++i) {
        const unsigned stage = i % STAGES, round = i / STAGES;
        const float* As = ring + stage * STAGE + row_in_tile();
        const float* Bs = ring + stage * STAGE + A_TILE + column_in_tile();
        wait_for_phase(filled + stage, round % 2);
#pragma unroll
        for (unsigned p = 0; p < BK; ++p) {
            __align__(16) float left[TM], right[TN];
#pragma unroll
            for (unsigned g = 0; g < TM / 4; ++g) read_four(&left[4 * g], As + p * LDA + 32 * g);
#pragma unroll
            for (unsigned g = 0; g < TN / 4; ++g) read_four(&right[4 * g], Bs + p * LDB + 16 * g);
            add_products(acc, left, right);
        }
        __syncwarp();  // the whole warp has read the stage
        if (threadIdx.x % 32 == 0) arrive(emptied + stage);
    }
    const unsigned row = first.x + row_in_tile(), column = first.y + column_in_tile();
    if (n % 4 == 0) {
        store_elements<true>(c, acc, row, column, m, n);
    } else {
        store_elements<false>(c, acc, row, column, m, n);
    }
}

// Source: Bauer, Cook and Khailany, CudaDMA: Optimizing GPU Memory Bandwidth via Warp
// Specialization. SC11, 2011.
