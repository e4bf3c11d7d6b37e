// /// cudalab
// summary  = "One thread an element, neighbours below each other"
// order    = 1
// dispatch = "elements"
// defines  = { TILE = 16 }
// ///
//
// c[row][col] is the product of a row of A and a column of B: a thread computes one element and
// reads 2k numbers from global memory for 2k operations, so memory decides the time.
//
// Here threadIdx.x counts rows. The lanes of a warp read a[row * k + p] for 16 different rows: 16
// places far from each other, of which each fetch brings 32 bytes and uses 4. They write c in the
// same way. `coalesced` swaps the two indices and nothing else.
// Limits: the caches save most of the repeated reads today; on the course's GPUs nothing did.

extern "C" __global__ void multiply(const float* a, const float* b, float* c, unsigned m,
                                    unsigned k, unsigned n) {
    const unsigned tile_row = blockIdx.z * gridDim.y + blockIdx.y;
    const unsigned row = tile_row * TILE + threadIdx.x, col = blockIdx.x * TILE + threadIdx.y;
    if (row >= m || col >= n) return;

    float sum = 0;
    for (unsigned p = 0; p < k; ++p) {
        // With B transposed its columns are stored as rows. size_t: a matrix may exceed 2^32 bytes.
        const size_t at = B_TRANSPOSED ? (size_t)col * k + p : (size_t)p * n + col;
        sum += a[(size_t)row * k + p] * b[at];
    }
    c[(size_t)row * n + col] = sum;
}
