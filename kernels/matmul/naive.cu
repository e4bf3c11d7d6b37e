// /// cudalab
// summary  = "One thread per element of C: neighbouring threads read neighbouring elements of B"
// order    = 1
// dispatch = "elements"
// defines  = { TILE = 16 }
// ///
//
// The course's first kernel. c[row][col] is the product of a row of A and a column of B: a thread
// computes one element and reads 2k numbers from global memory for 2k operations, so memory decides
// the time.
//
// threadIdx.x counts columns, and a warp is two rows of 16 threads: its lanes read 16 neighbouring
// elements of a row of B, 2 sectors of 32 bytes, and write 16 neighbours in each of two rows of C,
// 4 sectors; of A they read one element per row, which all lanes of the row get in one broadcast.
// `uncoalesced` swaps the two indices and nothing else. Limits: each row of A is read by n threads,
// each column of B by m: the `tiled` variant reads them once per block instead. A transposed B is
// read in strides.
//
// Macros from outside: B_TRANSPOSED (1: B is stored n x k), TILE.

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

// Source: NVIDIA, CUDA C++ Programming Guide, Shared Memory.
