// /// cudalab
// summary  = "The tiles come by asynchronous copies, and the wait is for groups that nobody closed"
// order    = 102
// dispatch = "elements"
// defines  = { TILE = 16 }
// applies  = { product = ["ab"] }
// ///
//
// /// expect
// kind    = "not_arrived"
// space   = "shared"
// buffer  = ["As", "Bs"]
// ///
#include <cuda_pipeline.h>

extern "C" __global__ void multiply(const float* a, const float* b, float* c, unsigned m,
                                    unsigned k, unsigned n) {
    __shared__ float As[TILE][TILE], Bs[TILE][TILE];
    const unsigned tx = threadIdx.x, ty = threadIdx.y;
    const unsigned row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
    float sum = 0;
    for (unsigned p0 = 0; p0 < k; p0 += TILE) {
        const bool in_a = row < m && p0 + tx < k, in_b = p0 + ty < k && col < n;
        const float* from_a = a + (in_a ? (size_t)row * k + p0 + tx : 0);
        const float* from_b = b + (in_b ? (size_t)(p0 + ty) * n + col : 0);
        __pipeline_memcpy_async(&As[ty][tx], from_a, 4, in_a ? 0 : 4);
        __pipeline_memcpy_async(&Bs[ty][tx], from_b, 4, in_b ? 0 : 4);
        __pipeline_wait_prior(0);
        __syncthreads();
        for (unsigned p = 0; p < TILE; ++p) sum += As[ty][p] * Bs[p][tx];  // (1)
        __syncthreads();
    }
    if (row < m && col < n) c[(size_t)row * n + col] = sum;
}
