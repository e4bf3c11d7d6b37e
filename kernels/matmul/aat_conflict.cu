// /// cudalab
// summary  = "A by its transpose: columns of a 16-wide tile, one bank for many lanes"
// order    = 4
// ladder   = "A by its transpose"
// adds     = "`tiled` with a tile read along its columns"
// dispatch = "elements"
// defines  = { TILE = 16 }
// applies  = { product = ["aat"] }
// ///
//
// C = A * transpose(A), tiled: c[row][col] is the product of two rows of A, so both tiles are
// loaded along rows (b is the same matrix as a here), and the second is read along its columns:
// Ts[tx][p].
//
// Limits: banks. Consecutive tx are 16 words apart. On the 16 banks of the course that was one bank
// for all 16 threads of a half-warp. On 32 banks 16 lanes use two banks, 8 lanes each, and the two
// rows of a warp read the same words: 8 wavefronts for each p instead of one. nvcc joins the reads
// of four neighbours along p into one of 16 bytes, which takes 16 wavefronts: 4 for each p. Stores
// have no conflicts. `aat_padded` fixes the reads with one unused word per row.
//
// Macros from outside: TILE.

extern "C" __global__ void __launch_bounds__(TILE* TILE) multiply(const float* a, const float* b,
                                                                  float* c, unsigned m, unsigned k,
                                                                  unsigned n) {
    __shared__ float As[TILE][TILE];  // rows of A that belong to the tile's rows
    __shared__ float Ts[TILE][TILE];  // rows of A that belong to the tile's columns
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
