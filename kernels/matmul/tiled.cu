// /// cudalab
// summary  = "Tiles of A and B in shared memory"
// order    = 3
// adds     = "tiles in shared memory: each number is read once per block"
// dispatch = "elements"
// defines  = { TILE = 16 }
// applies  = { product = ["ab"] }
// ///
//
// A block computes a 16 x 16 tile of C. Step by step it fetches a tile of A and one of B into
// shared memory, each thread one element of both, and every thread multiplies a row of the one by a
// column of the other: 2k / 16 reads from global memory per thread instead of 2k.
//
// Banks: a warp is two rows of 16 threads. It reads As[ty][p], two words that are broadcast, and
// Bs[p][tx], 16 neighbours that both rows share: no conflicts. The stores are 32 neighbours.
// Limits: two numbers from shared memory for each multiplication. nvcc joins the reads of four
// neighbours of As into one of 16 bytes, so it is 1.25 reads. Later rungs, with tiles in registers,
// use a number more often.
//
// Macros from outside: TILE.

extern "C" __global__ void __launch_bounds__(TILE* TILE) multiply(const float* a, const float* b,
                                                                  float* c, unsigned m, unsigned k,
                                                                  unsigned n) {
    __shared__ float As[TILE][TILE], Bs[TILE][TILE];
    const unsigned tx = threadIdx.x, ty = threadIdx.y;
    // gridDim.y is at most 65 535: further rows of tiles are counted in z.
    const unsigned tile_row = blockIdx.z * gridDim.y + blockIdx.y;
    const unsigned row = tile_row * TILE + ty, col = blockIdx.x * TILE + tx;

    float sum = 0;
    for (unsigned p0 = 0; p0 < k; p0 += TILE) {
        // Zeros past the edges add nothing, so the sum below has no special cases.
        As[ty][tx] = row < m && p0 + tx < k ? a[(size_t)row * k + p0 + tx] : 0;
        Bs[ty][tx] = p0 + ty < k && col < n ? b[(size_t)(p0 + ty) * n + col] : 0;
        __syncthreads();  // the tiles are complete before anyone multiplies

#pragma unroll
        for (unsigned p = 0; p < TILE; ++p) sum += As[ty][p] * Bs[p][tx];
        __syncthreads();  // everyone has multiplied before the next tiles overwrite these
    }
    if (row < m && col < n) c[(size_t)row * n + col] = sum;
}

// Source: NVIDIA, CUDA C++ Programming Guide, Shared Memory.
