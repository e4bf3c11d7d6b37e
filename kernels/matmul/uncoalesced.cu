// /// cudalab
// summary  = "The same with rows and columns swapped: neighbours read far apart, and it is slower"
// order    = 2
// ladder   = "coalescing"
// adds     = "`naive` with row and column swapped: what coalescing is worth"
// dispatch = "elements"
// defines  = { TILE = 16 }
// ///
//
// `naive` with threadIdx.x counting rows, to see what coalescing is worth. It computes the same
// sums, and is slower than the rung before: n = 2048 takes 17.7 ms on an H100, and 3.16 ms with
// `naive`.
//
// The lanes of a warp read a[row * k + p] for 16 different rows: 16 distant places, each of which
// costs a sector of 32 bytes for the sake of 4. They write c in the same way. Of B they read
// one element per column, in one broadcast. Limits: caches absorb much of the wasted traffic;
// without them it would be even slower.
//
// Macros from outside: B_TRANSPOSED (1: B is stored n x k), TILE.

extern "C" __global__ void multiply(const float* a, const float* b, float* c, unsigned m,
                                    unsigned k, unsigned n) {
    // gridDim.y is at most 65 535: further rows of tiles are counted in z.
    const unsigned tile_row = blockIdx.z * gridDim.y + blockIdx.y;
    const unsigned row = tile_row * TILE + threadIdx.x, col = blockIdx.x * TILE + threadIdx.y;
    if (row >= m || col >= n) return;

    float sum = 0;
    for (unsigned p = 0; p < k; ++p) {
        const size_t at = B_TRANSPOSED ? (size_t)col * k + p : (size_t)p * n + col;
        sum += a[(size_t)row * k + p] * b[at];
    }
    c[(size_t)row * n + col] = sum;
}
