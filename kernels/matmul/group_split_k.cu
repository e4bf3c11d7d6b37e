// /// cudalab
// summary  = "Small tiles, each shared by groups of warps; wide copies of rows at any address"
// order    = 16
// ladder   = "small products"
// adds     = "small tiles; groups of warps share k within a block"
// dispatch = "tiles"
//
// [defines]
// BM                = 32
// BN                = 64
// BK                = 32
// STAGES            = 3
// TM                = 8
// TN                = 4
// GROUPS            = 4      # of warps; each computes the whole tile from its share of a stage
// THREADS_PER_BLOCK = 256
// COPY_STEP         = 1      # the step of a stage at which the copies of another begin
// SHARED_BYTES      = 39936  # STAGES * BK * (BM + BN + 8) * 4
// ///
//
// For a small product every multiprocessor should have the same amount of work. `split_k` has
// several blocks share a tile, and adds up their sums in a second launch. Here tiles are small, and
// groups of warps of one block share the steps of each stage: group g takes the rows g, g + GROUPS,
// ... of B, and the same columns of A. At the end the block adds up the groups' sums in shared
// memory, always in the same order.
//
// Asynchronous copies bring the tiles into a ring of stages, as in `async_copy`. The steps that do
// not fill a stage come first, in a separate loop. So the main loop needs no tests, and 85 to 90 %
// of its instructions are products.
//
// Rows of B may start at any address, but copies of 16 bytes may not. If n is not a multiple of 4,
// the aligned words that cover a row's part are copied. All rows of a group are then shifted by the
// same number of words, since GROUPS * n is a multiple of W, the number of words in a copy. The
// group computes shifted columns, and its sums are shifted back when they are added up. The columns
// that the shift leaves out at one end of the tile are copied one by one to its other end.
//
// Limits: each block has all of k, so a product of few elements with long sums leaves
// multiprocessors idle. Small tiles read more, which makes large products slower: n = 2048 takes
// 0.439 ms on an H100, and 0.415 ms with `split_k`.
//
// Macros from outside: B_TRANSPOSED (1: B is stored n x k), BM, BN, BK, STAGES, TM, TN, GROUPS,
// THREADS_PER_BLOCK, COPY_STEP, SHARED_BYTES.
#include "common/thread/async_copy.cuh"

constexpr unsigned BAND = 16;                           // tile rows
constexpr unsigned WARP_M = 4 * TM, WARP_N = 8 * TN;    // rows and columns a warp computes
constexpr unsigned WARPS_M = BM / WARP_M;               // one below the other
constexpr unsigned GROUP = THREADS_PER_BLOCK / GROUPS;  // threads
constexpr unsigned STEPS = BK / GROUPS;                 // a group's, of a stage
constexpr unsigned FOURS = TN / 4, REST = TN % 4, SLOTS = (TN + 3) / 4 * 4;  // a thread's columns
constexpr unsigned LDA = BM + 4, LDB = BN + (B_TRANSPOSED ? 4 : 0);  // words per row of a tile
constexpr unsigned A_TILE = BK * LDA, STAGE = A_TILE + BK * LDB;     // words
constexpr unsigned LDC = BN + 4, C_TILE = BM * LDC;

static_assert(WARPS_M * (BN / WARP_N) * 32 == GROUP, "a group's warps cover the tile");
static_assert(SHARED_BYTES >= STAGES * STAGE * 4, "what the stages need");
static_assert(SHARED_BYTES >= GROUPS * C_TILE * 4, "what the groups' sums need");
static_assert(TM % 4 == 0 && REST % 2 == 0, "16 bytes a read, or 8");
static_assert(BK % 8 == 0 && STEPS % 2 == 0, "8 steps a pass; two buffers in turns");
static_assert(COPY_STEP < STEPS - 1, "the last step waits for copies that have begun");

// By how many words the rows of a group are shifted, if a copy has W words.
template <unsigned W>
__device__ inline unsigned shift_of(unsigned group, unsigned n) {
    return group * n % W;
}

// This thread's copies of a matrix whose rows run along k, into tiles [p][line]: single numbers, at
// every eighth step of some lines. A warp copies 8 steps of 4 lines, to 32 banks, since rows have 4
// words of padding. Lines past the edge repeat the last one; their results are never stored.
template <unsigned LINES>
struct CopiesAlongK {
    static constexpr unsigned LD = LINES + 4, PASS = THREADS_PER_BLOCK / 8;
    static constexpr unsigned PASSES = (LINES + PASS - 1) / PASS;
    const float* at[PASSES];

    __device__ inline CopiesAlongK(const float* matrix, unsigned first, unsigned lines,
                                   unsigned k) {
#pragma unroll
        for (unsigned i = 0; i < PASSES; ++i) {
            const unsigned line = min(first + threadIdx.x / 8 + PASS * i, lines - 1);
            at[i] = matrix + (size_t)line * k + threadIdx.x % 8;
        }
    }
    // Starts copying `count` steps from `first` on.
    __device__ inline void start_some(float* tile, unsigned first, unsigned count) const {
        float* target = tile + threadIdx.x % 8 * LD + threadIdx.x / 8;
#pragma unroll
        for (unsigned i = 0; i < PASSES; ++i) {
            if (PASS * (i + 1) > LINES && threadIdx.x / 8 + PASS * i >= LINES) break;
#pragma unroll 1
            for (unsigned j = 0; threadIdx.x % 8 + j < count; j += 8)
                copy_async(target + j * LD + PASS * i, at[i] + first + j);
        }
    }
    // Starts copying a whole stage; the next call copies the next one.
    __device__ inline void start(float* tile) {
        float* target = tile + threadIdx.x % 8 * LD + threadIdx.x / 8;
#pragma unroll
        for (unsigned i = 0; i < PASSES; ++i) {
            if (PASS * (i + 1) > LINES && threadIdx.x / 8 + PASS * i >= LINES) break;
#pragma unroll
            for (unsigned j = 0; j < BK; j += 8) copy_async(target + j * LD + PASS * i, at[i] + j);
            at[i] += BK;
        }
    }
};

template <unsigned W>
__device__ inline void copy_words(float* target, const float* source) {
    if (W == 4) {
        copy_async_16(target, source);
    } else {
        copy_async_8(target, source);
    }
}

// How many rows of `copies` copies all threads copy at once: a power of two.
constexpr unsigned rows_per_pass(unsigned copies) {
    unsigned rows = 1;
    while (2 * rows * copies <= THREADS_PER_BLOCK && BK % (2 * rows) == 0) rows *= 2;
    return rows;
}

// The same for B itself, whose rows are copied as they are, W words per copy. SHIFTED: position i
// of row p has the tile's column i - shift, or BN more if that is negative.
template <bool SHIFTED>
struct CopiesAcrossK {
    static constexpr unsigned W = SHIFTED && GROUPS < 4 ? GROUPS : 4, COLS = BN / W;
    static constexpr unsigned PASS = rows_per_pass(COLS);
    static_assert(!SHIFTED || (GROUPS > 1 && GROUPS % W == 0 && BK % GROUPS == 0 && PASS % W == 0),
                  "every row of a group has the same shift");
    static_assert(!SHIFTED || BK * W <= THREADS_PER_BLOCK, "a thread has one single copy a stage");
    const float *first, *at, *single;  // of column col0; of this thread's next copies
    unsigned n, columns;               // columns of the tile that B has

    __device__ inline CopiesAcrossK(const float* b, unsigned col0, unsigned num_columns)
        : first(b + col0), n(num_columns), columns(min(BN, num_columns - col0)) {
        const unsigned row = threadIdx.x / COLS, col = threadIdx.x % COLS * W;
        if (SHIFTED) {
            // Copies that start beyond the last column repeat the last copy.
            const unsigned shift = shift_of<W>(row, n);
            at = first + (size_t)row * n - shift + min(col, (columns + shift - 1) / W * W);
            single = first + (size_t)(threadIdx.x / W) * n +
                     min(column(threadIdx.x / W, threadIdx.x % W), columns - 1);
        } else {
            at = first + (size_t)row * n + min(col, columns - W);
        }
    }
    __device__ inline unsigned column(unsigned p, unsigned position) const {
        return SHIFTED ? (position + BN - shift_of<W>(p, n)) % BN : position;
    }
    // Number by number, since the last row's copies might reach beyond the end of B.
    __device__ inline void start_some(float* tile, unsigned first_row, unsigned count) const {
#pragma unroll 1
        for (unsigned e = threadIdx.x; e < count * BN; e += THREADS_PER_BLOCK) {
            const unsigned p = e / BN, col = min(column(p, e % BN), columns - 1);
            copy_async(tile + e, first + (size_t)(first_row + p) * n + col);
        }
    }
    __device__ inline void start(float* tile) {
        const unsigned row = threadIdx.x / COLS, col = threadIdx.x % COLS * W;
        if ((PASS * COLS == THREADS_PER_BLOCK || row < PASS) && (!SHIFTED || col > 0)) {
#pragma unroll
            for (unsigned p = 0; p < BK; p += PASS)
                copy_words<W>(tile + (row + p) * LDB + col, at + (size_t)p * n);
        }
        at += (size_t)BK * n;
        if (SHIFTED) {
            if (BK * W == THREADS_PER_BLOCK || threadIdx.x < BK * W)
                copy_async(tile + threadIdx.x / W * LDB + threadIdx.x % W, single);
            single += (size_t)BK * n;
        }
    }
};

// acc += left x right. The order decides how well ptxas can spread the registers over their banks:
// squares of two rows and two columns, there and back again, and within each down one column and up
// the other.
__device__ inline void add_products(float (&acc)[TM][TN], const float (&left)[TM],
                                    const float (&right)[SLOTS]) {
#pragma unroll
    for (unsigned square = 0; square < TM * TN / 4; ++square) {
        const unsigned i = square / (TN / 2) * 2, along = square % (TN / 2) * 2;
        const unsigned j = i % 4 ? TN - 2 - along : along;
#pragma unroll
        for (unsigned e = 0; e < 4; ++e) {
            const unsigned col = e / 2, row = (square + col) % 2 ? 1 - e % 2 : e % 2;
            acc[i + row][j + col] += left[i + row] * right[j + col];
        }
    }
}

__device__ inline float4 read_four(const float* at) {
    return *reinterpret_cast<const float4*>(at);
}

// OF_FOURS: n is a multiple of 4, so that rows of B and C start at multiples of 16 bytes.
template <bool OF_FOURS>
__device__ inline void multiply_tile(float* ring, const float* a, const float* b, float* c,
                                     unsigned m, unsigned k, unsigned n) {
    constexpr bool SHIFTED = !OF_FOURS && !B_TRANSPOSED;
    // Tiles in bands of BAND tile rows, column by column: blocks that run together read a nearly
    // square part of A and B, which the second-level cache holds.
    const unsigned tile_rows = (m + BM - 1) / BM, tile_cols = (n + BN - 1) / BN;
    const unsigned band = blockIdx.x / (BAND * tile_cols), place = blockIdx.x % (BAND * tile_cols);
    const unsigned rows_in_band = min(tile_rows - band * BAND, BAND);
    const unsigned row0 = (band * BAND + place % rows_in_band) * BM;
    const unsigned col0 = place / rows_in_band * BN;

    CopiesAlongK<BM> copies_a(a, row0, m, k);
#if B_TRANSPOSED
    CopiesAlongK<BN> copies_b(b, col0, n, k);
#else
    CopiesAcrossK<SHIFTED> copies_b(b, col0, n);
#endif
    // The last steps come first if they fill no stage, or if copies might reach beyond the end of
    // B: those of its last row do, and if there are fewer than 4 columns, so do those of other
    // rows.
    const unsigned single_steps = !SHIFTED ? k % BK : n < 4 ? k : (k - 1) % BK + 1;
    unsigned to_copy = (k - single_steps) / BK, filling = 0;  // stages; where the next one starts
    auto copy_stage = [&]() {
        if (to_copy > 0) {
            --to_copy;
            copies_a.start(ring + filling);
            copies_b.start(ring + filling + A_TILE);
        }
        filling = filling == (STAGES - 1) * STAGE ? 0 : filling + STAGE;
        commit_copies();
    };

    // A thread's rows are groups of four, 16 apart; its columns are groups of four, 32 apart, and
    // REST more. A 16-byte read takes half as long if lanes 2 i and 2 i + 1, or i and i + 2, read
    // the same address, so lane bits 0 and 4 number the rows, and bits 1 to 3 the columns.
    const unsigned group = threadIdx.x / GROUP, warp = threadIdx.x % GROUP / 32;
    const unsigned lane_row = threadIdx.x % 2 + threadIdx.x % 32 / 16 * 2;
    const unsigned lane_col = threadIdx.x / 2 % 8;
    const unsigned own_row = warp % WARPS_M * WARP_M + lane_row * 4;
    const unsigned warp_col = warp / WARPS_M * WARP_N, own_col = warp_col + lane_col * 4;
    const unsigned own_rest = warp_col + FOURS * 32 + lane_col * REST;
    const float *row_a, *row_b;  // the group's first rows in a stage
    auto read_from = [&](const float* stage) {
        row_a = stage + group * LDA + own_row;
        row_b = stage + A_TILE + group * LDB + own_col;
    };
    __align__(16) float left[2][TM], right[2][SLOTS];
    auto read_step = [&](unsigned buffer, unsigned q) {
#pragma unroll
        for (unsigned g = 0; g < TM / 4; ++g)
            *reinterpret_cast<float4*>(&left[buffer][4 * g]) =
                read_four(row_a + q * GROUPS * LDA + 16 * g);
#pragma unroll
        for (unsigned g = 0; g < FOURS; ++g)
            *reinterpret_cast<float4*>(&right[buffer][4 * g]) =
                read_four(row_b + q * GROUPS * LDB + 32 * g);
        if (REST > 0)
            *reinterpret_cast<float2*>(&right[buffer][4 * FOURS]) =
                *reinterpret_cast<const float2*>(row_b + q * GROUPS * LDB + (own_rest - own_col));
    };

    float acc[TM][TN] = {};
    float* last = ring + (STAGES - 1) * STAGE;  // the stage that is filled last is free till then
    auto copy_single_steps = [&](unsigned from, unsigned count) {
        copies_a.start_some(last, from, count);
        copies_b.start_some(last + A_TILE, from, count);
        commit_copies();
    };
    unsigned first = k - single_steps, count = min(single_steps, BK);
    copy_single_steps(first, count);
    unsigned stages = to_copy;
#pragma unroll
    for (unsigned s = 0; s < STAGES - 1; ++s) copy_stage();
    if (single_steps > 0) {
        wait_for_copies<STAGES - 1>();
        for (;;) {
            __syncthreads();  // the single steps are complete
            read_from(last);
#pragma unroll 1
            for (unsigned q = 0; group + q * GROUPS < count; ++q) {
                read_step(0, q);
                add_products(acc, left[0], right[0]);
            }
            first += count;
            if (first == k) break;
            __syncthreads();  // all have read them
            count = min(k - first, BK);
            copy_single_steps(first, count);
            wait_for_copies<0>();
        }
    }

    wait_for_copies<STAGES - 2>();
    __syncthreads();  // the first stage is complete, and the last one free
    read_from(ring);
    if (stages > 0) read_step(0, 0);
    unsigned reading = 0;
#pragma unroll 1
    for (; stages > 0; --stages) {
        // After the last stage, that stage is read once more, and nothing is done with it.
        if (stages > 1) reading = reading == (STAGES - 1) * STAGE ? 0 : reading + STAGE;
#pragma unroll
        for (unsigned q = 0; q < STEPS; ++q) {
            if (q == STEPS - 1) {
                // The next stage is complete; and all have read this one, so that the copies that
                // follow may overwrite it.
                wait_for_copies<STAGES - 2>();
                __syncthreads();
                read_from(ring + reading);
            }
            if (q == COPY_STEP) copy_stage();
            read_step((q + 1) % 2, (q + 1) % STEPS);
            add_products(acc, left[q % 2], right[q % 2]);
        }
    }
    wait_for_copies<0>();
    __syncthreads();  // no thread reads the ring any more

    // Each group's sums go to shared memory. With 4 words of padding per row, a quarter of a warp,
    // which writes two rows 4 apart and four groups of four columns, writes to 32 banks.
#pragma unroll
    for (unsigned i = 0; i < TM; ++i) {
        float* row = ring + group * C_TILE + (own_row + i / 4 * 16 + i % 4) * LDC;
#pragma unroll
        for (unsigned g = 0; g < FOURS; ++g) {
            const float* v = acc[i] + 4 * g;
            *reinterpret_cast<float4*>(row + own_col + 32 * g) =
                make_float4(v[0], v[1], v[2], v[3]);
        }
        if (REST > 0)
            *reinterpret_cast<float2*>(row + own_rest) =
                make_float2(acc[i][TN - 2], acc[i][TN - 1]);
    }
    __syncthreads();  // the sums are ready
    if (OF_FOURS) {
        for (unsigned e = threadIdx.x; e < BM * BN / 4; e += THREADS_PER_BLOCK) {
            const unsigned row = e / (BN / 4), col = e % (BN / 4) * 4;
            const float* at = ring + row * LDC + col;
            float4 sum = read_four(at);
#pragma unroll
            for (unsigned g = 1; g < GROUPS; ++g) {
                const float4 v = read_four(at + g * C_TILE);
                sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
            }
            if (row0 + row < m && col0 + col < n)
                *reinterpret_cast<float4*>(c + (size_t)(row0 + row) * n + col0 + col) = sum;
        }
        return;
    }
    // Rows of C start anywhere: a warp stores neighbours, 4 bytes each, and finds them where the
    // group's shift has put them.
    constexpr unsigned W = GROUPS < 4 ? GROUPS : 4, WARPS = THREADS_PER_BLOCK / 32;
#pragma unroll
    for (unsigned base = 0; base < BN; base += 32) {
        const unsigned col = base + threadIdx.x % 32;
        if (col >= BN || col0 + col >= n) break;
        unsigned at[GROUPS];
#pragma unroll
        for (unsigned g = 0; g < GROUPS; ++g) {
            at[g] = g * C_TILE + (SHIFTED ? (col + shift_of<W>(g, n)) % BN : col);
        }
#pragma unroll 4
        for (unsigned row = threadIdx.x / 32; row < BM; row += WARPS) {
            float sum = ring[at[0] + row * LDC];
#pragma unroll
            for (unsigned g = 1; g < GROUPS; ++g) sum += ring[at[g] + row * LDC];
            if (row0 + row < m) c[(size_t)(row0 + row) * n + col0 + col] = sum;
        }
    }
}

// The 1 says that a block may have all registers; without it the compiler uses fewer.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, 1) multiply(
    const float* a, const float* b, float* c, unsigned m, unsigned k, unsigned n) {
    extern __shared__ __align__(16) float ring[];
    if (n % 4 == 0) {
        multiply_tile<true>(ring, a, b, c, m, k, n);
    } else {
        multiply_tile<false>(ring, a, b, c, m, k, n);
    }
}

// Source: NVIDIA, Efficient GEMM in CUDA, Sliced K. Documentation of CUTLASS.
