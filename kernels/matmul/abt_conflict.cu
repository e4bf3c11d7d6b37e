// /// cudalab
// summary  = "A by the transpose of B: columns of a 16-wide tile, one bank for many lanes"
// order    = 7
// ladder   = "A by the transpose of B"
// adds     = "`tiled` with a tile read along its columns"
// dispatch = "elements"
// defines  = { TILE = 16 }
// applies  = { product = ["abt"] }
// ///
//
// C = A * transpose(B) for two matrices, tiled: both are read along their rows, and the tile of B
// is then read along its columns: Ts[tx][p].
//
// Limits: banks. Consecutive tx are 16 words apart. On the 16 banks of the course that was one bank
// for a half-warp. On 32 banks 16 lanes use two banks, 8 lanes each: 8 wavefronts for each p, or 4
// as nvcc reads four neighbours along p at a time. Stores have no conflicts.
//
// Macros from outside: TILE.

extern "C" __global__ void __launch_bounds__(TILE* TILE) multiply(const float* a, const float* b,
                                                                  float* c, unsigned m, unsigned k,
                                                                  unsigned n) {
    __shared__ float As[TILE][TILE];  // rows of A
    __shared__ float Ts[TILE][TILE];  // rows of B: the columns of its transpose
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
