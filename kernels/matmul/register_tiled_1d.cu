// /// cudalab
// summary  = "A column of TM elements per thread, in registers"
// order    = 9
// adds     = "a column of TM elements per thread: one read serves TM products"
// dispatch = "tiles"
// defines  = { BM = 64, BN = 64, BK = 8, TM = 8, THREADS_PER_BLOCK = 512 }
// ///
//
// A block computes a BM x BN tile of C, a thread TM elements of one column of it. An element of Bs
// is read once and used for TM products from registers: TM + 1 numbers from shared memory for TM
// products, where `tiled` needs 2 TM. nvcc joins four neighbours of a row of As in one read here,
// too: 24 reads for 64 products, where `tiled` has 80. Such a thread, which does the work of
// several, is a coarsened one.
//
// Banks: a warp lies within one group of TM rows, so As[row][p] is one word, broadcast; Bs[p][col]
// are 32 neighbours. A transposed B is loaded along k and stored down a column of Bs: lanes with
// p = 0..7 and 4 columns; rows of BN + 4 words put them in banks 4p + column, all different.
// Limits: still more than one number per product. `register_tiled_2d` reuses both factors.
//
// Macros from outside: B_TRANSPOSED (1: B is stored n x k), BM, BN, BK, TM, THREADS_PER_BLOCK.

static_assert(BM * BN == TM * THREADS_PER_BLOCK, "a thread has TM elements");
static_assert(BM * BK == THREADS_PER_BLOCK && BN * BK == THREADS_PER_BLOCK, "a load each");

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) multiply(const float* a,
                                                                         const float* b, float* c,
                                                                         unsigned m, unsigned k,
                                                                         unsigned n) {
    __shared__ float As[BM][BK];
    __shared__ float Bs[BK][BN + 4];
    const unsigned t = threadIdx.x;
    const unsigned tiles_across = (n + BN - 1) / BN;
    const unsigned row0 = blockIdx.x / tiles_across * BM, col0 = blockIdx.x % tiles_across * BN;
    const unsigned first_row = t / BN * TM, tile_col = t % BN;  // of this thread's elements

    float acc[TM] = {};
    for (unsigned p0 = 0; p0 < k; p0 += BK) {
        const unsigned line = t / BK, place = t % BK;  // neighbours along k
        As[line][place] =
            row0 + line < m && p0 + place < k ? a[(size_t)(row0 + line) * k + p0 + place] : 0;
        if (B_TRANSPOSED) {
            Bs[place][line] =
                col0 + line < n && p0 + place < k ? b[(size_t)(col0 + line) * k + p0 + place] : 0;
        } else {
            const unsigned p = t / BN, col = t % BN;
            Bs[p][col] = p0 + p < k && col0 + col < n ? b[(size_t)(p0 + p) * n + col0 + col] : 0;
        }
        __syncthreads();  // the tiles are complete

#pragma unroll
        for (unsigned p = 0; p < BK; ++p) {
            const float factor = Bs[p][tile_col];
#pragma unroll
            for (unsigned i = 0; i < TM; ++i) acc[i] += As[first_row + i][p] * factor;
        }
        __syncthreads();  // the tiles may be overwritten
    }

    const unsigned col = col0 + tile_col;
#pragma unroll
    for (unsigned i = 0; i < TM; ++i) {
        const unsigned row = row0 + first_row + i;
        if (row < m && col < n) c[(size_t)row * n + col] = acc[i];
    }
}

// Source: Volkov and Demmel, Benchmarking GPUs to Tune Dense Linear Algebra. SC08, 2008.
