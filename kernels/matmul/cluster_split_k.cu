// /// cudalab
// summary  = "Small tiles; blocks of a cluster share the sums of a tile through shared memory"
// order    = 16
// dispatch = "cluster_split_k"
// requires = ["sm_90", "clusters", "inline_ptx"]
//
// [defines]
// BM                = 64
// BN                = 64
// BK                = 16
// STAGES            = 4
// TM                = 8
// TN                = 4
// WARP_M            = 32     # rows of C a warp computes, and columns
// WARP_N            = 32
// THREADS_PER_BLOCK = 128
// MULTIPROCESSORS   = 132
// PIECE_COST        = 64     # what a piece costs besides its products, in steps along k
// SHARED_BYTES      = 47104  # STAGES * BK * (BM + BN + 8) * 4 + BM * BN * 3 / 4 * 4
// ///
//
// `split_k` writes the sums of every piece of k to memory and starts a second kernel to add them
// up. Here the blocks that share a tile form a cluster: they run at the same time and may write to
// each other's shared memory. Every block adds up and stores its share of each thread's rows,
// always in the same order; a thread sends its other sums to the same thread of the other blocks.
// One launch, no memory for partial sums.
//
// The tiles come by asynchronous copies into a ring of stages, as in `async_copy`, but are smaller:
// what counts for a small product is that all multiprocessors have something to do. A whole stage
// is unrolled; with 8 x 4 elements a thread that still fits the instruction cache.
// Limits: the blocks of a cluster run on neighbouring multiprocessors, so that larger clusters
// leave some without work.
#include "common/async_copy.cuh"
#include "common/cluster.cuh"

constexpr unsigned BAND = 16;              // tile rows
constexpr unsigned WARPS_M = BM / WARP_M;  // below each other
constexpr unsigned LANES_M = WARP_M / TM, LANES_N = WARP_N / TN;
constexpr unsigned LDA = BM + 4, LDB = BN + (B_TRANSPOSED ? 4 : 0);  // words a row of a tile
constexpr unsigned A_TILE = BK * LDA, STAGE = A_TILE + BK * LDB;     // words

static_assert(WARPS_M * (BN / WARP_N) * 32 == THREADS_PER_BLOCK, "the warps cover the tile");
static_assert(LANES_M * LANES_N == 32, "the lanes cover a warp's part of it");
static_assert(SHARED_BYTES >= STAGES * STAGE * 4, "what the stages need");
static_assert(TM % 4 == 0 && TN % 4 == 0 && BK % 8 == 0, "16 bytes a read, 8 steps a pass");

// This thread's copies of a matrix whose rows run along k, stage after stage, into tiles [p][line]:
// single numbers, at every eighth step of some lines. A warp's copies, 8 steps of 4 lines, go to 32
// banks: rows have 4 words more than lines. Lines past the edge repeat the last one: what they give
// is never stored. Only k has to be filled up with zeros.
template <unsigned LINES>
struct CopiesAlongK {
    static constexpr unsigned LD = LINES + 4, PASS = THREADS_PER_BLOCK / 8, PASSES = LINES / PASS;
    const float* source;
    const float* at[PASSES];

    __device__ inline CopiesAlongK(const float* matrix, unsigned first, unsigned lines, unsigned k,
                                   unsigned k_begin)
        : source(matrix) {
#pragma unroll
        for (unsigned i = 0; i < PASSES; ++i) {
            const unsigned line = min(first + threadIdx.x / 8 + PASS * i, lines - 1);
            at[i] = matrix + (size_t)line * k + k_begin + threadIdx.x % 8;
        }
    }
    // `rest`: how many numbers along k are left.
    __device__ inline void start(float* tile, int rest) {
        const unsigned p = threadIdx.x % 8;
        float* target = tile + p * LD + threadIdx.x / 8;
#pragma unroll
        for (unsigned i = 0; i < PASSES; ++i) {
            if (rest >= (int)BK) {
#pragma unroll
                for (unsigned j = 0; j < BK; j += 8)
                    copy_async(target + j * LD + PASS * i, at[i] + j);
                at[i] += BK;
            } else {
                for (unsigned j = 0; j < BK; j += 8) {
                    const bool inside = (int)(p + j) < rest;
                    copy_async(target + j * LD + PASS * i, inside ? at[i] + j : source, inside);
                }
            }
        }
    }
};

// The same for B itself: rows of the tile as they are. WIDE: they start at multiples of 16 bytes.
template <bool WIDE>
struct CopiesAcrossK {
    static constexpr unsigned WIDTH = WIDE ? 4 : 1, COLS = BN / WIDTH;
    static constexpr unsigned PASS = THREADS_PER_BLOCK / COLS;  // rows
    static_assert(PASS > 0 && BK % PASS == 0, "whole passes of whole rows");
    const float *source, *at;
    size_t step;

    __device__ inline CopiesAcrossK(const float* b, unsigned first, unsigned n, unsigned k,
                                    unsigned k_begin)
        : source(b), step((size_t)PASS * n) {
        at = b + (size_t)(k_begin + threadIdx.x / COLS) * n +
             min(first + threadIdx.x % COLS * WIDTH, n - WIDTH);
    }
    __device__ inline void start(float* tile, int rest) {
        float* target = tile + threadIdx.x / COLS * LDB + threadIdx.x % COLS * WIDTH;
        if (rest >= (int)BK) {
#pragma unroll
            for (unsigned p = 0; p < BK; p += PASS, at += step) {
                if (WIDE) {
                    copy_async_16(target + p * LDB, at);
                } else {
                    copy_async(target + p * LDB, at);
                }
            }
        } else {
            for (unsigned p = 0; p < BK; p += PASS, at += step) {
                const bool inside = (int)(threadIdx.x / COLS + p) < rest;
                if (WIDE) {
                    copy_async_16(target + p * LDB, inside ? at : source, inside);
                } else {
                    copy_async(target + p * LDB, inside ? at : source, inside);
                }
            }
        }
    }
};

#if B_TRANSPOSED
template <bool>
using CopiesOfB = CopiesAlongK<BN>;
#else
template <bool WIDE>
using CopiesOfB = CopiesAcrossK<WIDE>;
#endif

// acc += left x right. The order decides how well ptxas can spread the registers over their banks:
// groups of four rows and two columns, there and back again.
__device__ inline void add_products(float (&acc)[TM][TN], const float (&left)[TM],
                                    const float (&right)[TN]) {
#pragma unroll
    for (unsigned four = 0; four < TM / 4; ++four)
#pragma unroll
        for (unsigned along = 0; along < TN / 2; ++along) {
            const unsigned pair = four % 2 ? TN / 2 - 1 - along : along;
#pragma unroll
            for (unsigned e = 0; e < 8; ++e) {
                const unsigned i = 4 * four + e / 2, j = 2 * pair + e % 2;
                acc[i][j] += left[i] * right[j];
            }
        }
}

// Four neighbours of a thread's sums, the e-th of those from a row on.
__device__ inline float4 four_sums(const float (&acc)[TM][TN], unsigned row, unsigned e) {
    const float* v = acc[row + e / (TN / 4)] + e % (TN / 4) * 4;
    return make_float4(v[0], v[1], v[2], v[3]);
}

// This block's piece of the sums of its tile, blockIdx.y of PIECES, then its share of the rows.
template <unsigned PIECES, bool WIDE>
__device__ inline void multiply_piece(float* ring, const float* a, const float* b, float* c,
                                      unsigned m, unsigned k, unsigned n) {
    arrive_in_cluster();
    // Tiles in bands of BAND tile rows, column by column: blocks that run together read a nearly
    // square part of A and B, which the second-level cache holds.
    const unsigned tile_rows = (m + BM - 1) / BM, tile_cols = (n + BN - 1) / BN;
    const unsigned band = blockIdx.x / (BAND * tile_cols), place = blockIdx.x % (BAND * tile_cols);
    const unsigned rows_in_band = min(tile_rows - band * BAND, BAND);
    const unsigned row0 = (band * BAND + place % rows_in_band) * BM;
    const unsigned col0 = place / rows_in_band * BN;
    const unsigned piece_k = (k + PIECES * BK - 1) / (PIECES * BK) * BK;
    const unsigned k_begin = min(k, blockIdx.y * piece_k), k_end = min(k, k_begin + piece_k);

    CopiesAlongK<BM> copies_a(a, row0, m, k, k_begin);
    CopiesOfB<WIDE> copies_b(b, col0, n, k, k_begin);
    int rest = (int)(k_end - k_begin);  // still to be copied
    unsigned filling = 0;               // stage
    auto copy_stage = [&]() {
        if (rest > 0) {
            float* stage = ring + filling * STAGE;
            copies_a.start(stage, rest);
            copies_b.start(stage + A_TILE, rest);
        }
        rest -= BK;
        filling = filling + 1 == STAGES ? 0 : filling + 1;
        commit_copies();
    };

    // A thread's rows are fours, LANES_M fours apart, its columns fours, LANES_N fours apart.
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned own_row = warp % WARPS_M * WARP_M + lane / LANES_N * 4;
    const unsigned own_col = warp / WARPS_M * WARP_N + lane % LANES_N * 4;
    __align__(16) float left[2][TM], right[2][TN];
    auto read_step = [&](unsigned buffer, const float* stage, unsigned p) {
#pragma unroll
        for (unsigned g = 0; g < TM / 4; ++g)
            *reinterpret_cast<float4*>(&left[buffer][4 * g]) =
                *reinterpret_cast<const float4*>(stage + p * LDA + own_row + g * LANES_M * 4);
#pragma unroll
        for (unsigned g = 0; g < TN / 4; ++g)
            *reinterpret_cast<float4*>(&right[buffer][4 * g]) = *reinterpret_cast<const float4*>(
                stage + A_TILE + p * LDB + own_col + g * LANES_N * 4);
    };

    float acc[TM][TN] = {};
#pragma unroll
    for (unsigned s = 0; s < STAGES - 1; ++s) copy_stage();
    wait_for_copies<STAGES - 2>();
    __syncthreads();  // the first stage is complete
    read_step(0, ring, 0);
    unsigned reading = 0;
    for (unsigned s = (k_end - k_begin + BK - 1) / BK; s > 0; --s) {
        const float* stage = ring + reading * STAGE;
        reading = reading + 1 == STAGES ? 0 : reading + 1;
        const float* next = ring + reading * STAGE;
#pragma unroll
        for (unsigned p = 0; p < BK; ++p) {
            if (p == BK - 1) {
                // The next stage is complete; and all have read this one, so that the copies that
                // follow may overwrite it.
                wait_for_copies<STAGES - 2>();
                __syncthreads();
            }
            read_step((p + 1) % 2, p == BK - 1 ? next : stage, (p + 1) % BK);
            if (p == 0) copy_stage();
            add_products(acc, left[p % 2], right[p % 2]);
        }
    }
    wait_for_copies<0>();

    // Sums from the other blocks arrive behind the ring, in the order of their pieces.
    constexpr unsigned SHARE = TM / PIECES;                     // of a thread's rows
    constexpr unsigned INBOX = SHARE * TN * THREADS_PER_BLOCK;  // words from one block
    static_assert(SHARED_BYTES >= (STAGES * STAGE + (PIECES - 1) * INBOX) * 4, "ring and inboxes");
    float* inboxes = ring + STAGES * STAGE + threadIdx.x * 4;
    const unsigned rank = blockIdx.y;
    wait_for_cluster();  // all blocks have started
#pragma unroll
    for (unsigned to = 0; to < PIECES; ++to) {
        if (to == rank) continue;
        const unsigned inbox = rank < to ? rank : rank - 1;
        const unsigned target = address_in_block(inboxes + inbox * INBOX, to);
#pragma unroll
        for (unsigned e = 0; e < SHARE * TN / 4; ++e)
            write_to_block(target + e * THREADS_PER_BLOCK * 16, four_sums(acc, to * SHARE, e));
    }
    sync_cluster();  // all sums have arrived; and all threads of this block have multiplied

#pragma unroll
    for (unsigned share = 0; share < PIECES;
         ++share) {  // registers have no addresses: if, not [rank]
        if (share != rank) continue;
#pragma unroll
        for (unsigned e = 0; e < SHARE * TN / 4; ++e) {
            float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll
            for (unsigned piece = 0; piece < PIECES; ++piece) {
                const float* inbox = inboxes + (piece < share ? piece : piece - 1) * INBOX;
                const float4 v =
                    piece == share
                        ? four_sums(acc, share * SHARE, e)
                        : *reinterpret_cast<const float4*>(inbox + e * THREADS_PER_BLOCK * 4);
                sum.x += v.x;
                sum.y += v.y;
                sum.z += v.z;
                sum.w += v.w;
            }
            const unsigned i = share * SHARE + e / (TN / 4);
            const unsigned row = own_row + i / 4 * LANES_M * 4 + i % 4;
            const unsigned col = own_col + e % (TN / 4) * LANES_N * 4;
            if (!WIDE) {
                *reinterpret_cast<float4*>(ring + row * BN + col) = sum;
            } else if (row0 + row < m && col0 + col < n) {
                *reinterpret_cast<float4*>(c + (size_t)(row0 + row) * n + col0 + col) = sum;
            }
        }
    }
    if (WIDE) return;
    // Where rows of C do not start at multiples of 16 bytes, a warp stores neighbours, 4 bytes
    // each.
    static_assert(STAGES * STAGE >= BM * BN, "the ring has room for the tile");
    __syncthreads();  // the sums are there
    for (unsigned row = warp; row < BM; row += THREADS_PER_BLOCK / 32) {
        const unsigned i = row % WARP_M / (LANES_M * 4) * 4 + row % 4;  // as a thread's row
        if (i / SHARE != rank || row0 + row >= m) continue;
        for (unsigned col = lane; col < BN && col0 + col < n; col += 32)
            c[(size_t)(row0 + row) * n + col0 + col] = ring[row * BN + col];
    }
}

template <unsigned PIECES>
__device__ inline void multiply_pieces(const float* a, const float* b, float* c, unsigned m,
                                       unsigned k, unsigned n) {
    extern __shared__ __align__(16) float ring[];
    if (n % 4 == 0) {
        multiply_piece<PIECES, true>(ring, a, b, c, m, k, n);
    } else {
        multiply_piece<PIECES, false>(ring, a, b, c, m, k, n);
    }
}

// blockIdx.x: the tile; blockIdx.y: the piece of k, and the block's number in the cluster.
extern "C" __global__ void __cluster_dims__(1, 2, 1) __launch_bounds__(THREADS_PER_BLOCK)
multiply_in_2(const float* a, const float* b, float* c, unsigned m, unsigned k, unsigned n) {
    multiply_pieces<2>(a, b, c, m, k, n);
}
extern "C" __global__ void __cluster_dims__(1, 4, 1) __launch_bounds__(THREADS_PER_BLOCK)
multiply_in_4(const float* a, const float* b, float* c, unsigned m, unsigned k, unsigned n) {
    multiply_pieces<4>(a, b, c, m, k, n);
}
