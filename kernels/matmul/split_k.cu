// /// cudalab
// summary  = "Sums split into pieces along k, for products with few tiles"
// order    = 14
// ladder   = "small products"
// adds     = "`double_buffered` with k in pieces: several blocks share a tile"
// dispatch = "split_k"
//
// [defines]
// BM                = 128
// BN                = 128
// BK                = 8
// TM                = 8
// TN                = 8
// THREADS_PER_BLOCK = 256
// BLOCKS            = "2 * MULTIPROCESSORS"  # the target
// MIN_PIECE         = 64    # along k
// ///
//
// A product with fewer tiles than the GPU has places for blocks leaves multiprocessors idle. Here
// several blocks share a tile of C: each sums a piece of k, as `double_buffered` sums all of it,
// into an array of its own; add_partials then adds the pieces up, always in the same order, so that
// the result does not depend on which block finishes first (atomic additions would).
//
// It is faster than `double_buffered` and `async_copy` where those have few blocks, as at n = 1024.
// Limits: the partial sums are written and read once more, m * n numbers for each piece. If there
// are enough tiles, that is a loss: n = 2048 takes 0.415 ms on an H100, and 0.407 ms with
// `double_buffered`.
//
// Macros from outside: B_TRANSPOSED (1: B is stored n x k), BM, BN, BK, TM, TN, THREADS_PER_BLOCK.
#include "matmul/double_buffered.cu"

// Computes piece blockIdx.y of the sums of tile blockIdx.x: piece_k numbers along k, a multiple of
// BK.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, 2) multiply_piece(
    const float* a, const float* b, float* partials, unsigned m, unsigned k, unsigned n,
    unsigned piece_k) {
    const unsigned k_begin = blockIdx.y * piece_k;
    const unsigned k_end = k - k_begin < piece_k ? k : k_begin + piece_k;
    float* piece = partials + (size_t)blockIdx.y * m * n;
    multiply_tile(a, b, piece, m, k, n, k_begin, k_end);
}

// One thread per element of C: a grid-stride loop, since there may be more of them than threads.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) add_partials(
    const float* partials, float* c, unsigned long long num_elements, unsigned pieces) {
    const size_t threads = (size_t)gridDim.x * THREADS_PER_BLOCK;
    for (size_t i = (size_t)blockIdx.x * THREADS_PER_BLOCK + threadIdx.x; i < num_elements;
         i += threads) {
        float sum = partials[i];
        for (unsigned piece = 1; piece < pieces; ++piece) sum += partials[piece * num_elements + i];
        c[i] = sum;
    }
}

// Source: NVIDIA, Efficient GEMM in CUDA, Split K. Documentation of CUTLASS.
