// /// cudalab
// summary  = "One thread an element, neighbours beside each other"
// order    = 2
// dispatch = "elements"
// defines  = { TILE = 16 }
// ///
//
// As `naive`, with threadIdx.x counting columns: the lanes of a warp read neighbouring elements of
// a row of B and write neighbours of C, one transaction for 16 lanes; of A they read one element a
// row, which all lanes of the row get in one broadcast.
// Limits: still 2k reads a thread. Each row of A is read by n threads, each column of B by m: the
// `tiled` variant reads them once a block instead. A transposed B is read in strides, as A was.

extern "C" __global__ void multiply(const float* a, const float* b, float* c, unsigned m,
                                    unsigned k, unsigned n) {
    const unsigned tile_row = blockIdx.z * gridDim.y + blockIdx.y;
    const unsigned row = tile_row * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
    if (row >= m || col >= n) return;

    float sum = 0;
    for (unsigned p = 0; p < k; ++p) {
        const size_t at = B_TRANSPOSED ? (size_t)col * k + p : (size_t)p * n + col;
        sum += a[(size_t)row * k + p] * b[at];
    }
    c[(size_t)row * n + col] = sum;
}
