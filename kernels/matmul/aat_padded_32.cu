// /// cudalab
// summary  = "A by its transpose: 32-wide tiles with padding, no conflicts on 32 banks"
// order    = 6
// ladder   = "A by its transpose"
// adds     = "tiles as wide as a warp and as the number of banks"
// dispatch = "elements"
// defines  = { TILE = 32 }
// applies  = { product = ["aat"] }
// ///
//
// Like `aat_padded`, with tiles as wide as a warp and as the number of banks: [32][33]. A store is
// one row, 32 neighbours; a column read Ts[tx][p] is in bank (33 tx + p) mod 32 = (tx + p) mod 32,
// 32 lanes in 32 banks: no conflict anywhere. Tiles twice as wide also halve the reads from global
// memory.
// Limits: blocks of 1024 threads; the edge tiles of a matrix whose order is not a multiple of 32
// waste more.
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
