// /// cudalab
// summary  = "Groups of warps share a stage's steps; 16-byte copies of rows at any address"
// order    = 17.5
// dispatch = "cluster_split_k"
// requires = ["sm_90", "clusters", "inline_ptx"]
//
// [defines]
// BM                = 64
// BN                = 80
// BK                = 32
// STAGES            = 4
// TM                = 8
// TN                = 5
// WARP_M            = 32     # rows of C a warp computes, and columns
// WARP_N            = 40
// GROUPS            = 4      # of warps; each computes the whole tile from its part of a stage
// THREADS_PER_BLOCK = 512
// MULTIPROCESSORS   = 132
// PIECE_COST        = 64     # what a piece costs besides its products, in steps along k
// SHARED_BYTES      = 86016  # GROUPS * BM * (BN + 4) * 4, and STAGES * BK * (BM + BN + 8) * 4
// ///
//
// In `cluster_split_k` several blocks of four warps share a tile, so that a multiprocessor has
// enough warps, and copy their numbers each for itself. Here four groups of four warps in one block
// share the steps of a stage: sixteen warps, and one ring of stages. At the end the block adds up
// the groups' sums in its own shared memory. Small tiles are still shared by clusters of two or
// four blocks, which read each other's sums.
//
// Rows of B may start at any address, but 16-byte copies may not. Where n is odd, the aligned 16
// bytes that cover a row's part are copied, so that row p of the tile is shifted by p n mod 4
// numbers. The steps are taken in an order in which the shifts are 0, 1, 2, 3: constants.
//
// Tiles of 64 x 80: a product of 777 x 777 elements has 130 of them for 132 multiprocessors; of
// 64 x 64 it has 169.
// Limits: the blocks of a cluster run on neighbouring multiprocessors, so that clusters of four
// leave some without work.
#include "common/async_copy.cuh"
#include "common/cluster.cuh"

constexpr unsigned BAND = 16;                           // tile rows
constexpr unsigned GROUP = THREADS_PER_BLOCK / GROUPS;  // threads
constexpr unsigned STEPS = BK / GROUPS;                 // of a stage, a group's
constexpr unsigned WARPS_M = BM / WARP_M;               // below each other
constexpr unsigned FOURS = TN / 4, REST = TN % 4, SLOTS = (TN + 3) / 4 * 4;  // a thread's columns
constexpr unsigned LDA = BM + 4, LDB = BN + 4;                    // words a row of a tile
constexpr unsigned A_TILE = BK * LDA, STAGE = A_TILE + BK * LDB;  // words
constexpr unsigned LDC = BN + 4, C_TILE = BM * LDC;

static_assert(WARPS_M * (BN / WARP_N) * 32 == GROUP, "a group's warps cover the tile");
static_assert(WARP_M == 4 * TM && WARP_N == 8 * TN, "the lanes, 4 x 8, cover a warp's part of it");
static_assert(SHARED_BYTES >= STAGES * STAGE * 4, "what the stages need");
static_assert(SHARED_BYTES >= GROUPS * C_TILE * 4, "what the groups' sums need");
static_assert(TM % 4 == 0 && REST != 3, "16 bytes a read, or 8");
static_assert(BK % 8 == 0 && STEPS % 4 == 0, "8 steps a pass; every shift once");

// This thread's copies of a matrix whose rows run along k, stage after stage, into tiles [p][line]:
// single numbers, at every eighth step of some lines. A warp's copies, 8 steps of 4 lines, go to 32
// banks: rows have 4 words more than lines. Lines past the edge repeat the last one: what they give
// is never stored. Only k has to be filled up with zeros.
template <unsigned LINES>
struct CopiesAlongK {
    static constexpr unsigned LD = LINES + 4, PASS = THREADS_PER_BLOCK / 8;
    static constexpr unsigned PASSES = (LINES + PASS - 1) / PASS;
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
    // `rest`: how many numbers along k are left; `whole`: no copy has to be looked at.
    __device__ inline void start(float* tile, int rest, bool whole) {
        const unsigned p = threadIdx.x % 8;
        float* target = tile + p * LD + threadIdx.x / 8;
#pragma unroll
        for (unsigned i = 0; i < PASSES; ++i) {
            if (PASS * (i + 1) > LINES && threadIdx.x / 8 + PASS * i >= LINES) break;
            if (whole) {
#pragma unroll
                for (unsigned j = 0; j < BK; j += 8)
                    copy_async(target + j * LD + PASS * i, at[i] + j);
            } else {
                for (unsigned j = 0; j < BK; j += 8) {
                    const bool inside = (int)(p + j) < rest;
                    copy_async(target + j * LD + PASS * i, inside ? at[i] + j : source, inside);
                }
            }
            at[i] += BK;
        }
    }
    static __device__ inline int rows_beyond(unsigned, unsigned) { return 0; }
};

// The same for B itself: rows of the tile as they are, WIDTH numbers a copy, of which n is a
// multiple; or, where n is odd, shifted, as said above.
enum Rows { SHIFTED, OF_TWOS, OF_FOURS };

// How many rows of `copies` copies all threads copy at once: a power of two.
constexpr unsigned rows_a_pass(unsigned copies) {
    unsigned rows = 1;
    while (2 * rows * copies <= THREADS_PER_BLOCK && BK % (2 * rows) == 0) rows *= 2;
    return rows;
}

template <Rows ROWS>
struct CopiesAcrossK {
    static constexpr unsigned WIDTH = ROWS == OF_TWOS ? 2 : 4, COLS = BN / WIDTH;
    static constexpr unsigned PASS = rows_a_pass(COLS);
    static_assert(PASS * COLS <= THREADS_PER_BLOCK && BK <= THREADS_PER_BLOCK, "enough threads");
    static_assert(ROWS != SHIFTED || PASS % 4 == 0, "the same shift in every pass");
    const float *source, *at;
    const float *end, *behind;  // of B; this thread's copy behind a shifted row
    size_t step;

    __device__ inline CopiesAcrossK(const float* b, unsigned first, unsigned n, unsigned k,
                                    unsigned k_begin)
        : source(b), step((size_t)PASS * n) {
        const unsigned row = k_begin + threadIdx.x / COLS, col = threadIdx.x % COLS * WIDTH;
        if (ROWS == SHIFTED) {
            at = b + ((size_t)row * n + first) / 4 * 4 + col;
            behind = b + ((size_t)(k_begin + threadIdx.x) * n + first) / 4 * 4 + BN;
            end = b + (size_t)k * n;
        } else {
            at = b + (size_t)row * n + min(first + col, n - WIDTH);
        }
    }
    __device__ inline void copy(float* target, const float* from, bool inside) const {
        if (ROWS == SHIFTED) {  // never beyond the end of B
            const unsigned count =
                inside && from < end ? (unsigned)min((long long)(end - from), 4LL) : 0;
            copy_async_some(target, count ? from : source, count);
        } else if (ROWS == OF_TWOS) {
            copy_async_8(target, inside ? from : source, inside);
        } else {
            copy_async_16(target, inside ? from : source, inside);
        }
    }
    __device__ inline void start(float* tile, int rest, bool whole) {
        const unsigned own = threadIdx.x / COLS;
        float* target = tile + own * LDB + threadIdx.x % COLS * WIDTH;
        if (PASS * COLS == THREADS_PER_BLOCK || own < PASS) {
            if (whole) {
#pragma unroll
                for (unsigned p = 0; p < BK; p += PASS, at += step) {
                    if (ROWS == OF_TWOS) {
                        copy_async_8(target + p * LDB, at);
                    } else {
                        copy_async_16(target + p * LDB, at);
                    }
                }
            } else {
                for (unsigned p = 0; p < BK; p += PASS, at += step)
                    copy(target + p * LDB, at, (int)(own + p) < rest);
            }
        }
        if (ROWS == SHIFTED && threadIdx.x < BK) {
            float* last = tile + threadIdx.x * LDB + BN;
            if (whole) {
                copy_async_16(last, behind);
            } else {
                copy(last, behind, (int)threadIdx.x < rest);
            }
            behind += BK / PASS * step;
        }
    }
    // How many rows below a stage's last one its copies may reach.
    static __device__ inline int rows_beyond(unsigned first, unsigned n) {
        return ROWS == SHIFTED && first + LDB > n ? (int)((first + LDB - 1) / n) : 0;
    }
};

#if B_TRANSPOSED
template <Rows>
using CopiesOfB = CopiesAlongK<BN>;
#else
template <Rows ROWS>
using CopiesOfB = CopiesAcrossK<ROWS>;
#endif

// acc += left x right. The order decides how well ptxas can spread the registers over their banks:
// groups of four rows and two columns, there and back again.
__device__ inline void add_products(float (&acc)[TM][TN], const float (&left)[TM],
                                    const float (&right)[SLOTS]) {
    constexpr unsigned PAIRS = (TN + 1) / 2;
#pragma unroll
    for (unsigned four = 0; four < TM / 4; ++four)
#pragma unroll
        for (unsigned along = 0; along < PAIRS; ++along) {
            const unsigned pair = four % 2 ? PAIRS - 1 - along : along;
#pragma unroll
            for (unsigned e = 0; e < 8; ++e) {
                const unsigned i = 4 * four + e / 2, j = 2 * pair + e % 2;
                if (j < TN) acc[i][j] += left[i] * right[j];
            }
        }
}

// COUNT numbers, `shift` places behind an address that is a multiple of COUNT numbers.
template <int COUNT>
__device__ inline void read_shifted(float* to, const float* from, unsigned shift) {
    if (COUNT == 4 && shift == 0) {
        *reinterpret_cast<float4*>(to) = *reinterpret_cast<const float4*>(from);
    } else if (COUNT == 4 && shift == 1) {
        const float4 v = *reinterpret_cast<const float4*>(from);
        to[0] = v.y, to[1] = v.z, to[2] = v.w, to[3] = from[4];
    } else if (COUNT == 4 && shift == 3) {
        const float4 v = *reinterpret_cast<const float4*>(from + 4);
        to[0] = from[3], to[1] = v.x, to[2] = v.y, to[3] = v.z;
    } else if (COUNT % 2 == 0 && shift % 2 == 0) {
#pragma unroll
        for (int i = 0; i < COUNT; i += 2) {
            const float2 v = *reinterpret_cast<const float2*>(from + shift + i);
            to[i] = v.x, to[i + 1] = v.y;
        }
    } else {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) to[i] = from[shift + i];
    }
}

__device__ inline void add_four(float4& sum, float4 v) {
    sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
}

// This block's piece of the sums of its tile, blockIdx.y of PIECES, then its share of the rows.
template <unsigned PIECES, Rows ROWS>
__device__ inline void multiply_piece(float* ring, const float* a, const float* b, float* c,
                                      unsigned m, unsigned k, unsigned n) {
    // Tiles in bands of BAND tile rows, column by column: blocks that run together read a nearly
    // square part of A and B, which the second-level cache holds.
    const unsigned tile_rows = (m + BM - 1) / BM, tile_cols = (n + BN - 1) / BN;
    const unsigned band = blockIdx.x / (BAND * tile_cols),
                   in_band = blockIdx.x % (BAND * tile_cols);
    const unsigned rows_in_band = min(tile_rows - band * BAND, BAND);
    const unsigned row0 = (band * BAND + in_band % rows_in_band) * BM;
    const unsigned col0 = in_band / rows_in_band * BN;
    // Pieces start at multiples of 8 rows, where rows of B have no shift.
    const unsigned rank = blockIdx.y, piece_k = (k + PIECES * 8 - 1) / (PIECES * 8) * 8;
    const unsigned k_begin = min(k, rank * piece_k), k_end = min(k, k_begin + piece_k);

    CopiesAlongK<BM> copies_a(a, row0, m, k, k_begin);
    CopiesOfB<ROWS> copies_b(b, col0, n, k, k_begin);
    int rest = (int)(k_end - k_begin);  // still to be copied
    // A stage is whole if no row of it ends a piece, and no copy reaches beyond B's last row.
    const int spare = min(0, (int)(k - k_end) - copies_b.rows_beyond(col0, n));
    unsigned filling = 0;  // where a stage starts
    auto copy_stage = [&]() {
        if (rest > 0) {
            const bool whole = rest + spare >= (int)BK;
            copies_a.start(ring + filling, rest, whole);
            copies_b.start(ring + filling + A_TILE, rest, whole);
        }
        rest -= BK;
        filling = filling == (STAGES - 1) * STAGE ? 0 : filling + STAGE;
        commit_copies();
    };

    // A thread's rows are fours, 16 apart, its columns fours, 32 apart, and REST more. A 16-byte
    // read takes half as long if lanes 2 i and 2 i + 1, or i and i + 2, read the same address:
    // lane bits 0 and 4 number the rows, 1 to 3 the columns.
    const unsigned group = threadIdx.x / GROUP, warp = threadIdx.x % GROUP / 32;
    const unsigned lane_row = threadIdx.x % 2 + threadIdx.x % 32 / 16 * 2;
    const unsigned lane_col = threadIdx.x / 2 % 8;
    const unsigned own_row = warp % WARPS_M * WARP_M + lane_row * 4;
    const unsigned warp_col = warp / WARPS_M * WARP_N, own_col = warp_col + lane_col * 4;
    const unsigned own_rest = warp_col + FOURS * 32 + lane_col * REST;
    __align__(16) float left[2][TM], right[2][SLOTS];
    // Step q of the group: row q of its part; if shifted, the row of the same four with shift q
    // % 4.
    const unsigned odd_row = ROWS == SHIFTED ? n % 4 : 1;
    auto read_step = [&](unsigned buffer, const float* stage, unsigned q) {
        const unsigned shift = ROWS == SHIFTED && !B_TRANSPOSED ? q % 4 : 0;
        const unsigned p = q % 4 == 1 ? q - 1 + odd_row : q % 4 == 3 ? q + 1 - odd_row : q;
        const float* row_a = stage + (group * STEPS + p) * LDA + own_row;
        const float* row_b = stage + A_TILE + (group * STEPS + p) * LDB;
#pragma unroll
        for (unsigned g = 0; g < TM / 4; ++g)
            read_shifted<4>(&left[buffer][4 * g], row_a + 16 * g, 0);
#pragma unroll
        for (unsigned g = 0; g < FOURS; ++g)
            read_shifted<4>(&right[buffer][4 * g], row_b + own_col + 32 * g, shift);
        read_shifted<REST>(&right[buffer][4 * FOURS], row_b + own_rest, shift);
    };

    float acc[TM][TN] = {};
#pragma unroll
    for (unsigned s = 0; s < STAGES - 1; ++s) copy_stage();
    wait_for_copies<STAGES - 2>();
    __syncthreads();  // the first stage is complete
    read_step(0, ring, 0);
    unsigned reading = 0;
    for (int steps = (int)(k_end - k_begin); steps > 0; steps -= BK) {
        const float* stage = ring + reading;
        reading = reading == (STAGES - 1) * STAGE ? 0 : reading + STAGE;
        const float* next = ring + reading;
        const int own_steps = steps - (int)(group * STEPS);
#pragma unroll
        for (unsigned q = 0; q < STEPS; ++q) {
            if (q % 4 == 0 && own_steps <= (int)q) break;  // in the last stage only
            if (q < STEPS - 1) {
                read_step((q + 1) % 2, stage, q + 1);
            } else if (steps > (int)BK) {
                // The next stage is complete; and all have read this one, so that the copies that
                // follow may overwrite it.
                wait_for_copies<STAGES - 2>();
                __syncthreads();
                read_step(0, next, 0);
            }
            if (q == 0) copy_stage();
            add_products(acc, left[q % 2], right[q % 2]);
        }
    }
    wait_for_copies<0>();
    __syncthreads();  // nobody reads the ring any more

    // Each group's sums. Rows of 4 words more: a quarter of a warp, two rows 4 apart and four fours
    // of columns, writes to 32 banks.
#pragma unroll
    for (unsigned i = 0; i < TM; ++i) {
        float* row = ring + group * C_TILE + (own_row + i / 4 * 16 + i % 4) * LDC;
#pragma unroll
        for (unsigned g = 0; g < FOURS; ++g) {
            const float* v = acc[i] + 4 * g;
            *reinterpret_cast<float4*>(row + own_col + 32 * g) =
                make_float4(v[0], v[1], v[2], v[3]);
        }
#pragma unroll
        for (unsigned j = 4 * FOURS; j < TN; ++j) row[own_rest + j - 4 * FOURS] = acc[i][j];
    }
    __syncthreads();  // the sums are there
    constexpr bool BY_FOURS = ROWS == OF_FOURS;
    constexpr unsigned PER_ROW = BN / 4;  // fours
    auto place = [&](unsigned e) { return ring + e / PER_ROW * LDC + e % PER_ROW * 4; };
    auto store = [&](unsigned e, float4 v) {
        const unsigned row = row0 + e / PER_ROW, col = col0 + e % PER_ROW * 4;
        if (!BY_FOURS) {
            *reinterpret_cast<float4*>(place(e)) = v;
        } else if (row < m && col < n) {
            *reinterpret_cast<float4*>(c + (size_t)row * n + col) = v;
        }
    };
    if (PIECES == 1 || GROUPS > 1) {
        for (unsigned e = threadIdx.x; e < BM * PER_ROW; e += THREADS_PER_BLOCK) {
            float4 sum = *reinterpret_cast<const float4*>(place(e));
#pragma unroll
            for (unsigned g = 1; g < GROUPS; ++g)
                add_four(sum, *reinterpret_cast<const float4*>(place(e) + g * C_TILE));
            if (PIECES == 1) {
                store(e, sum);
            } else {
                *reinterpret_cast<float4*>(place(e)) = sum;
            }
        }
    }

    // This block's share of the rows: the pieces' sums in their order.
    constexpr unsigned SHARE = BM / PIECES, FIRSTS = SHARE * PER_ROW;
    if (PIECES > 1) {
        constexpr unsigned EACH = (FIRSTS + THREADS_PER_BLOCK - 1) / THREADS_PER_BLOCK;
        float4 sums[EACH];
        sync_cluster();  // all blocks' sums are there
#pragma unroll
        for (unsigned i = 0; i < EACH; ++i) {
            const unsigned e = threadIdx.x + i * THREADS_PER_BLOCK;
            if (e >= FIRSTS) break;
            const float* at = place(rank * FIRSTS + e);
            sums[i] = make_float4(0, 0, 0, 0);
#pragma unroll
            for (unsigned piece = 0; piece < PIECES; ++piece)
                add_four(sums[i], piece == rank ? *reinterpret_cast<const float4*>(at)
                                                : read_from_block(address_in_block(at, piece)));
        }
        arrive_in_cluster();  // this block has read what it wants
#pragma unroll
        for (unsigned i = 0; i < EACH; ++i) {
            const unsigned e = threadIdx.x + i * THREADS_PER_BLOCK;
            if (e < FIRSTS) store(rank * FIRSTS + e, sums[i]);
        }
    }
    if (!BY_FOURS) {
        // Rows of C start anywhere: neighbours are stored by neighbours, 4 bytes each.
        __syncthreads();  // the share is complete
        for (unsigned e = threadIdx.x; e < SHARE * BN; e += THREADS_PER_BLOCK) {
            const unsigned row = rank * SHARE + e / BN, col = e % BN;
            if (row0 + row < m && col0 + col < n)
                c[(size_t)(row0 + row) * n + col0 + col] = ring[row * LDC + col];
        }
    }
    if (PIECES > 1) wait_for_cluster();  // others may have been reading this block's sums
}

template <unsigned PIECES>
__device__ inline void multiply_pieces(const float* a, const float* b, float* c, unsigned m,
                                       unsigned k, unsigned n) {
    extern __shared__ __align__(16) float ring[];
    if (n % 4 == 0) {
        multiply_piece<PIECES, OF_FOURS>(ring, a, b, c, m, k, n);
    } else if (n % 2 == 0) {
        multiply_piece<PIECES, OF_TWOS>(ring, a, b, c, m, k, n);
    } else {
        multiply_piece<PIECES, SHIFTED>(ring, a, b, c, m, k, n);
    }
}

// blockIdx.x: the tile; blockIdx.y: the piece of k, and the block's number in the cluster.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) multiply_in_1(
    const float* a, const float* b, float* c, unsigned m, unsigned k, unsigned n) {
    multiply_pieces<1>(a, b, c, m, k, n);
}
extern "C" __global__ void __cluster_dims__(1, 2, 1) __launch_bounds__(THREADS_PER_BLOCK)
multiply_in_2(const float* a, const float* b, float* c, unsigned m, unsigned k, unsigned n) {
    multiply_pieces<2>(a, b, c, m, k, n);
}
extern "C" __global__ void __cluster_dims__(1, 4, 1) __launch_bounds__(THREADS_PER_BLOCK)
multiply_in_4(const float* a, const float* b, float* c, unsigned m, unsigned k, unsigned n) {
    multiply_pieces<4>(a, b, c, m, k, n);
}
