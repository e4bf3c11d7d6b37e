// /// cudalab
// summary  = "More work for each thread"
// order    = 100
// dispatch = "elements"
// defines  = { TILE = 16 }
// applies  = { product = ["ab"] }
// ///

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
