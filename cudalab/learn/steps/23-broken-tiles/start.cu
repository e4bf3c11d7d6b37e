// /// cudalab
// summary  = "Repair: the second barrier"
// order    = 100
// dispatch = "elements"
// defines  = { TILE = 16 }
// applies  = { product = ["ab"] }
// ///

extern "C" __global__ void multiply(const float* a, const float* b, float* c, unsigned m,
                                    unsigned k, unsigned n) {
    __shared__ float As[TILE][TILE], Bs[TILE][TILE];
    const unsigned tx = threadIdx.x, ty = threadIdx.y;
    const unsigned row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
    float sum = 0;
    for (unsigned p0 = 0; p0 < k; p0 += TILE) {
        As[ty][tx] = row < m && p0 + tx < k ? a[(size_t)row * k + p0 + tx] : 0;  
        Bs[ty][tx] = p0 + ty < k && col < n ? b[(size_t)(p0 + ty) * n + col] : 0;
        __syncthreads();
        for (unsigned p = 0; p < TILE; ++p) sum += As[ty][p] * Bs[p][tx];
    }
    if (row < m && col < n) c[(size_t)row * n + col] = sum;
}
