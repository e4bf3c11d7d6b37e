// /// cudalab
// summary  = "TM x TN elements per thread, in registers"
// order    = 10
// adds     = "TM x TN elements per thread: both factors are reused"
// dispatch = "tiles"
// defines  = { BM = 128, BN = 128, BK = 8, TM = 8, TN = 8, THREADS_PER_BLOCK = 256 }
// ///
//
// A block computes a BM x BN tile of C, a thread TM x TN elements of it. For each p it reads TM
// numbers of As and TN of Bs and makes TM * TN products of them: 16 numbers from shared memory for
// 64 products, where `register_tiled_1d` needs 72. But there nvcc joins most of them into reads of
// 16 bytes, and here none, since a thread's rows and columns are apart: 16 reads instead of 24,
// which is why so little is gained.
//
// A thread's rows and columns are 16 apart: row ty + 16 i, column tx + 16 j. So the 16 lanes of a
// tile row read and write neighbours, and the 32 lanes of a warp need 16 words of Bs and 2 of As,
// all in different banks. As is kept transposed, As[p][row], to be read in the same way as Bs; rows
// of 132 words put a store along k (8 values of p, 4 rows) in banks 4p + row: no conflict.
// Limits: 4-byte loads, and while the tiles are loaded nothing is multiplied: `vectorized`.
//
// Macros from outside: B_TRANSPOSED (1: B is stored n x k), BM, BN, BK, TM, TN, THREADS_PER_BLOCK.

constexpr unsigned TX = BN / TN, TY = BM / TM;  // threads across and down the tile
static_assert(TX * TY == THREADS_PER_BLOCK, "one thread for each TM x TN elements");
static_assert(BM * BK % THREADS_PER_BLOCK == 0 && BN * BK % THREADS_PER_BLOCK == 0, "equal loads");

// A tile of a matrix whose lines run along k, stored as [p][line].
__device__ inline void load_transposed(float tile[BK][BM + 4], const float* source, unsigned line0,
                                       unsigned lines, unsigned p0, unsigned k) {
#pragma unroll
    for (unsigned e = threadIdx.x; e < BM * BK; e += THREADS_PER_BLOCK) {
        const unsigned line = e / BK, p = e % BK;
        const bool inside = line0 + line < lines && p0 + p < k;
        tile[p][line] = inside ? source[(size_t)(line0 + line) * k + p0 + p] : 0;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) multiply(const float* a,
                                                                         const float* b, float* c,
                                                                         unsigned m, unsigned k,
                                                                         unsigned n) {
    static_assert(BM == BN, "load_transposed serves both factors");
    __shared__ float As[BK][BM + 4], Bs[BK][BN + 4];
    const unsigned tx = threadIdx.x % TX, ty = threadIdx.x / TX;
    const unsigned tiles_across = (n + BN - 1) / BN;
    const unsigned row0 = blockIdx.x / tiles_across * BM, col0 = blockIdx.x % tiles_across * BN;

    float acc[TM][TN] = {};
    for (unsigned p0 = 0; p0 < k; p0 += BK) {
        load_transposed(As, a, row0, m, p0, k);
        if (B_TRANSPOSED) {
            load_transposed(Bs, b, col0, n, p0, k);
        } else {
#pragma unroll
            for (unsigned e = threadIdx.x; e < BK * BN; e += THREADS_PER_BLOCK) {
                const unsigned p = e / BN, col = e % BN;
                const bool inside = p0 + p < k && col0 + col < n;
                Bs[p][col] = inside ? b[(size_t)(p0 + p) * n + col0 + col] : 0;
            }
        }
        __syncthreads();  // the tiles are complete

#pragma unroll
        for (unsigned p = 0; p < BK; ++p) {
            float left[TM], right[TN];
#pragma unroll
            for (unsigned i = 0; i < TM; ++i) left[i] = As[p][ty + TY * i];
#pragma unroll
            for (unsigned j = 0; j < TN; ++j) right[j] = Bs[p][tx + TX * j];
#pragma unroll
            for (unsigned i = 0; i < TM; ++i)
#pragma unroll
                for (unsigned j = 0; j < TN; ++j) acc[i][j] += left[i] * right[j];
        }
        __syncthreads();  // the tiles may be overwritten
    }

#pragma unroll
    for (unsigned i = 0; i < TM; ++i) {
        const unsigned row = row0 + ty + TY * i;
#pragma unroll
        for (unsigned j = 0; j < TN; ++j) {
            const unsigned col = col0 + tx + TX * j;
            if (row < m && col < n) c[(size_t)row * n + col] = acc[i][j];
        }
    }
}

// Source: Volkov and Demmel, Benchmarking GPUs to Tune Dense Linear Algebra. SC08, 2008.
