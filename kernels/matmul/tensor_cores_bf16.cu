// /// cudalab
// summary   = "Tensor cores, inputs rounded to bfloat16: two to three correct digits"
// order     = 18.5
// ladder    = "tensor cores"
// adds      = "`tiled` with an instruction for 16 x 8 x 16 products, inputs rounded to bfloat16"
// dispatch  = "tiles"
// defines   = { BM = 128, BN = 128, BK = 32, THREADS_PER_BLOCK = 256 }
// requires  = ["sm_80", "tensor_cores", "inline_ptx"]
// precision = "bf16"
// ///
//
// Tensor cores multiply small matrices in one instruction of a warp, many times faster than the
// other units multiply floats, but only narrow numbers. Here A and B are simply rounded to bfloat16
// as they are stored into shared memory: 8 bits remain of the 24 of a float. The products are
// summed in float.
//
// What it loses: each product may be off by 2^-7 of itself, so this is not a float32 product, and
// `verify` and `check` reject it. Neural networks can be trained with that; linear algebra needs
// more: `tensor_cores_bf16x6` keeps all 24 bits. Beyond bfloat16's range, from 3.396e38 on, numbers
// become infinite.
//
// Tiles as in `tiled`: load, barrier, multiply, barrier. A block computes 128 x 128 elements, each
// of its 8 warps 64 x 32 of them by 4 x 4 instructions for 16 numbers along k; matmul/parts/mma.cuh
// describes how an instruction's numbers lie in the registers. Lines (rows of A, columns of B) are
// stored as pairs of neighbours along k, a word each, in rows of 20 words: 8 lines of 4 pairs, what
// a warp stores and reads at a time, are in 32 different banks.
// Limits: nothing is multiplied while the tiles are loaded; every block that reads a number rounds
// it again.
//
// Macros from outside: B_TRANSPOSED (1: B is stored n x k), BM, BN, BK, THREADS_PER_BLOCK.
#include "common/thread/bf16.cuh"
#include "matmul/parts/mma.cuh"

constexpr unsigned PAIRS = BK / 2;  // of a line of a tile
constexpr unsigned LD = PAIRS + 4;  // words per line
constexpr unsigned LINES_OF_WARP = 16;

static_assert(BM == 128 && BN == 128 && THREADS_PER_BLOCK == 256, "2 x 4 warps of 64 x 32");
static_assert(BK == 32, "8 lines of LD words, 4 of them read, lie in different banks");

// Loads a tile of 128 lines from line0 on, BK numbers of each from p0 on. ALONG: lines run along
// memory, as the rows of A do. A warp loads 16 of the lines, in steps of 8 lines and 4 pairs:
// numbers that are neighbours in memory come from neighbouring lanes. Zeros past the edges add
// nothing.
template <bool ALONG>
__device__ inline void load_tile(unsigned (&tile)[BM][LD], const float* source, unsigned line0,
                                 unsigned lines, unsigned p0, unsigned k) {
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    auto number = [&](unsigned line, unsigned p) -> float {
        if (line >= lines || p >= k) return 0;
        return source[ALONG ? (size_t)line * k + p : (size_t)p * lines + line];
    };
#pragma unroll 4
    for (unsigned step = 0; step < LINES_OF_WARP / 8 * (PAIRS / 4); ++step) {
        const unsigned line = warp * LINES_OF_WARP + step % 2 * 8 + (ALONG ? lane / 4 : lane % 8);
        const unsigned pair = step / 2 * 4 + (ALONG ? lane % 4 : lane / 8), p = p0 + 2 * pair;
        tile[line][pair] = round_to_bf16(number(line0 + line, p), number(line0 + line, p + 1));
    }
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, 2) multiply(
    const float* a, const float* b, float* c, unsigned m, unsigned k, unsigned n) {
    __shared__ unsigned As[BM][LD], Bs[BN][LD];  // [line][pair]
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned tiles_across = (n + BN - 1) / BN;
    const unsigned row0 = blockIdx.x / tiles_across * BM, col0 = blockIdx.x % tiles_across * BN;
    // The warp's elements, and this lane's place in the registers of an instruction.
    const unsigned warp_row = warp / 4 * 64, warp_col = warp % 4 * 32;
    const unsigned group = lane / 4, place = lane % 4;

    float sums[4][4][4] = {};
    for (unsigned p0 = 0; p0 < k; p0 += BK) {
        load_tile<true>(As, a, row0, m, p0, k);
        load_tile<B_TRANSPOSED>(Bs, b, col0, n, p0, k);
        __syncthreads();  // the tiles are complete

#pragma unroll
        for (unsigned pair0 = 0; pair0 < PAIRS; pair0 += 8) {  // 16 numbers along k
            unsigned left[4][4], right[4][2];
#pragma unroll
            for (unsigned i = 0; i < 4; ++i)
#pragma unroll
                for (unsigned r = 0; r < 4; ++r)
                    left[i][r] =
                        As[warp_row + 16 * i + r % 2 * 8 + group][pair0 + r / 2 * 4 + place];
#pragma unroll
            for (unsigned j = 0; j < 4; ++j)
#pragma unroll
                for (unsigned r = 0; r < 2; ++r)
                    right[j][r] = Bs[warp_col + 8 * j + group][pair0 + r * 4 + place];
#pragma unroll
            for (unsigned i = 0; i < 4; ++i)
#pragma unroll
                for (unsigned j = 0; j < 4; ++j) multiply_add(sums[i][j], left[i], right[j]);
        }
        __syncthreads();  // the tiles may be overwritten
    }

#pragma unroll
    for (unsigned i = 0; i < 4; ++i)
#pragma unroll
        for (unsigned j = 0; j < 4; ++j)
#pragma unroll
            for (unsigned e = 0; e < 4; ++e) {
                const unsigned row = row0 + warp_row + 16 * i + e / 2 * 8 + group;
                const unsigned col = col0 + warp_col + 8 * j + 2 * place + e % 2;
                if (row < m && col < n) c[(size_t)row * n + col] = sums[i][j][e];
            }
}

// Source: Markidis et al., NVIDIA Tensor Core Programmability, Performance and Precision. IPDPS
// Workshops, 2018.
