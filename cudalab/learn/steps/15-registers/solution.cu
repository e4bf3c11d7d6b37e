// /// cudalab
// summary  = "More work for each thread"
// order    = 100
// dispatch = "tiles"
// defines  = { BM = 64, BN = 64, BK = 8, TM = 8, THREADS_PER_BLOCK = 512 }
// ///

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
