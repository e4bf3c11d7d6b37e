// /// cudalab
// summary  = "Each thread computes whole rows of a tile: long inner loops, almost no cooperation"
// order    = 15
// ladder   = "a core's loop"
// adds     = "whole rows of a tile per thread"
// dispatch = "tiles"
// defines  = { BM = 128, BN = 128, BK = 64, TM = 16, THREADS_PER_BLOCK = 8 }
// default  = ["cpu"]
// ///
//
// A block of few threads computes a BM x BN tile of C, a thread TM whole rows of it. The innermost
// loop runs along a row of C, BN elements whose number the compiler knows: on a CPU that is vector
// code. It adds four products to each element of two rows at a time: four numbers of B are read
// once for both rows, and an element of C is read and written once for four products.
//
// On a CPU a thread is a loop on one core: its TM rows and the tile of B stay in the first two
// levels of cache, and there are two barriers, of 8 threads, per BK steps along k.
// On a GPU the same design is slow: TM * BN sums do not fit into registers and lie in local memory,
// each lane of a warp works in a different row of C, and a block is a quarter of a warp.
//
// Macros from outside: B_TRANSPOSED (1: B is stored n x k), BM, BN, BK, TM, THREADS_PER_BLOCK.

static_assert(BM == TM * THREADS_PER_BLOCK, "a thread has TM rows");
static_assert(TM % 2 == 0 && BK % 4 == 0, "two rows, four products at a time");

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) multiply(const float* a,
                                                                         const float* b, float* c,
                                                                         unsigned m, unsigned k,
                                                                         unsigned n) {
    __shared__ __align__(64) float Bs[BK][BN];
    const unsigned tiles_in_row = (n + BN - 1) / BN;
    const unsigned row0 = blockIdx.x / tiles_in_row * BM + threadIdx.x * TM;
    const unsigned col0 = blockIdx.x % tiles_in_row * BN;
    const unsigned width = n - col0 < BN ? n - col0 : BN;

    float acc[TM][BN] = {};
    for (unsigned p0 = 0; p0 < k; p0 += BK) {
        const unsigned depth = k - p0 < BK ? k - p0 : BK;
        // Zeros past the edges of both factors add nothing.
        for (unsigned p = threadIdx.x; p < BK; p += THREADS_PER_BLOCK) {
            for (unsigned j = 0; j < BN; ++j) {
                const size_t at = B_TRANSPOSED ? (size_t)(col0 + j) * k + p0 + p
                                               : (size_t)(p0 + p) * n + col0 + j;
                Bs[p][j] = p < depth && j < width ? b[at] : 0;
            }
        }
        float rows[TM][BK];  // this thread's rows of A
        for (unsigned i = 0; i < TM; ++i) {
            const float* row = a + (size_t)(row0 + i) * k + p0;
            for (unsigned p = 0; p < BK; ++p) rows[i][p] = row0 + i < m && p < depth ? row[p] : 0;
        }
        __syncthreads();  // the tile of B is complete

        for (unsigned i = 0; i < TM; i += 2) {
            for (unsigned p = 0; p < BK; p += 4) {
                const float* r = &rows[i][p];
                const float* s = &rows[i + 1][p];
                const float r0 = r[0], r1 = r[1], r2 = r[2], r3 = r[3];
                const float s0 = s[0], s1 = s[1], s2 = s[2], s3 = s[3];
                for (unsigned j = 0; j < BN; ++j) {
                    float first = acc[i][j], second = acc[i + 1][j];
                    first = fmaf(r0, Bs[p][j], first);
                    second = fmaf(s0, Bs[p][j], second);
                    first = fmaf(r1, Bs[p + 1][j], first);
                    second = fmaf(s1, Bs[p + 1][j], second);
                    first = fmaf(r2, Bs[p + 2][j], first);
                    second = fmaf(s2, Bs[p + 2][j], second);
                    first = fmaf(r3, Bs[p + 3][j], first);
                    second = fmaf(s3, Bs[p + 3][j], second);
                    acc[i][j] = first;
                    acc[i + 1][j] = second;
                }
            }
        }
        __syncthreads();  // the tile of B may be overwritten
    }

    for (unsigned i = 0; i < TM; ++i)
        for (unsigned j = 0; j < width; ++j)
            if (row0 + i < m) c[(size_t)(row0 + i) * n + col0 + j] = acc[i][j];
}
