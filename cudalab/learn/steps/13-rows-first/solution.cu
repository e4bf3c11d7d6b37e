// /// cudalab
// summary  = "Who reads which row"
// order    = 100
// dispatch = "elements"
// defines  = { TILE = 16 }
// ///

extern "C" __global__ void multiply(const float* a, const float* b, float* c, unsigned m,
                                    unsigned k, unsigned n) {
    // gridDim.y is at most 65 535: further rows of tiles are counted in z.
    const unsigned tile_row = blockIdx.z * gridDim.y + blockIdx.y;
    const unsigned row = tile_row * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
    if (row >= m || col >= n) return;

    float sum = 0;
    for (unsigned p = 0; p < k; ++p) {
        // With B transposed its columns are stored as rows. size_t: a matrix may exceed 2^32 bytes.
        const size_t at = B_TRANSPOSED ? (size_t)col * k + p : (size_t)p * n + col;
        sum += a[(size_t)row * k + p] * b[at];
    }
    c[(size_t)row * n + col] = sum;
}
