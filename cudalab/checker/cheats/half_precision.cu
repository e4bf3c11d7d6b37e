// /// cudalab
// summary  = "Rounds the numbers that it multiplies to half precision"
// order    = 100
// dispatch = "elements"
// defines  = { TILE = 16 }
// ///
//
// lab: matmul
#include <cuda_fp16.h>

extern "C" __global__ void multiply(const float* a, const float* b, float* c, unsigned m,
                                    unsigned k, unsigned n) {
    const unsigned tile_row = blockIdx.z * gridDim.y + blockIdx.y;
    const unsigned row = tile_row * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
    if (row >= m || col >= n) return;
    float sum = 0;
    for (unsigned p = 0; p < k; ++p) {
        const size_t at = B_TRANSPOSED ? (size_t)col * k + p : (size_t)p * n + col;
        sum +=
            __half2float(__float2half(a[(size_t)row * k + p])) * __half2float(__float2half(b[at]));
    }
    c[(size_t)row * n + col] = sum;
}
