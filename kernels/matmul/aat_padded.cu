// /// cudalab
// summary  = "A by its transpose: one word of padding per row"
// order    = 5
// ladder   = "A by its transpose"
// adds     = "a word of padding per row"
// dispatch = "elements"
// defines  = { TILE = 16 }
// applies  = { product = ["aat"] }
// ///
//
// As `aat_conflict`, with rows of 17 words: Ts[tx][p] lies in bank (17 tx + p) mod 32, and the 16
// values of tx give 16 different banks. Column reads are free of conflicts: the fix that the course
// measured on 16 banks. (Rows of 17 words do not begin at multiples of 16 bytes, so the reads of Ts
// cannot be joined any more: one wavefront for each p.)
//
// Limits: the price on 32 banks. A warp stores two rows, 17 words apart, so the last word of the
// second meets the bank of the first word of the first: a 2-way conflict per store. There is one
// store per 16 reads. `aat_padded_32` has no conflicts: there a warp is one row.
//
// Macros from outside: TILE.

extern "C" __global__ void __launch_bounds__(TILE* TILE) multiply(const float* a, const float* b,
                                                                  float* c, unsigned m, unsigned k,
                                                                  unsigned n) {
    __shared__ float As[TILE][TILE];      // rows of A that belong to the tile's rows
    __shared__ float Ts[TILE][TILE + 1];  // rows of A that belong to the tile's columns
    const unsigned tx = threadIdx.x, ty = threadIdx.y;
    // gridDim.y is at most 65 535: further rows of tiles are counted in z.
    const unsigned tile_row = blockIdx.z * gridDim.y + blockIdx.y;
    const unsigned row = tile_row * TILE + ty, col = blockIdx.x * TILE + tx;
    const unsigned row_of_b = blockIdx.x * TILE + ty;  // loaded by this thread: coalesced along k

    float sum = 0;
    for (unsigned p0 = 0; p0 < k; p0 += TILE) {
        As[ty][tx] = row < m && p0 + tx < k ? a[(size_t)row * k + p0 + tx] : 0;
        Ts[ty][tx] = row_of_b < n && p0 + tx < k ? b[(size_t)row_of_b * k + p0 + tx] : 0;
        __syncthreads();  // the tiles are complete before anyone multiplies

#pragma unroll
        for (unsigned p = 0; p < TILE; ++p) sum += As[ty][p] * Ts[tx][p];
        __syncthreads();  // everyone has multiplied before the next tiles overwrite these
    }
    if (row < m && col < n) c[(size_t)row * n + col] = sum;
}

// Source: Ruetsch and Micikevicius, Optimizing Matrix Transpose in CUDA. NVIDIA, 2009.
