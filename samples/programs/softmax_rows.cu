// Each row of a matrix becomes probabilities: a block for each row, which reads it three times, for
// its maximum, for its sum and for the answer. Threads meet twice a step of a tree in shared
// memory.
//
// stdin: int32 rows, int32 cols, rows x cols float32. stdout: as many float32.

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace cg = cooperative_groups;

constexpr int THREADS = 128;

#define CU(call)                                                                       \
    do {                                                                               \
        if (cudaError_t status = (call)) {                                             \
            std::fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorName(status)); \
            std::exit(2);                                                              \
        }                                                                              \
    } while (false)

// Combines a value of each thread; all threads get the result.
template <class Operation>
__device__ float over_block(cg::thread_block block, float value, Operation combine) {
    __shared__ float values[THREADS];
    const unsigned t = block.thread_rank();
    values[t] = value;
    for (unsigned half = THREADS / 2; half > 0; half /= 2) {
        block.sync();
        if (t < half) values[t] = combine(values[t], values[t + half]);
    }
    block.sync();
    const float result = values[0];
    block.sync();  // all have read it, and the array may be used again
    return result;
}

__global__ void softmax(const float* x, float* y, int cols) {
    const cg::thread_block block = cg::this_thread_block();
    const float* row = x + (std::size_t)blockIdx.x * cols;
    float* answer = y + (std::size_t)blockIdx.x * cols;

    float most = -INFINITY, sum = 0;
    for (int c = threadIdx.x; c < cols; c += THREADS) most = fmaxf(most, row[c]);
    most = over_block(block, most, [](float a, float b) { return fmaxf(a, b); });
    for (int c = threadIdx.x; c < cols; c += THREADS) sum += expf(row[c] - most);
    sum = over_block(block, sum, [](float a, float b) { return a + b; });
    for (int c = threadIdx.x; c < cols; c += THREADS) answer[c] = expf(row[c] - most) / sum;
}

int main() {
    int shape[2];
    if (std::fread(shape, sizeof(int), 2, stdin) != 2 || shape[0] < 0 || shape[1] < 0) {
        std::fputs("no shape\n", stderr);
        return 2;
    }
    const std::size_t elements = (std::size_t)shape[0] * shape[1];
    float *x = nullptr, *y = nullptr;
    if (elements > 0) {
        CU(cudaMallocManaged(&x, elements * sizeof(float)));
        CU(cudaMallocManaged(&y, elements * sizeof(float)));
        if (std::fread(x, sizeof(float), elements, stdin) != elements) {
            std::fputs("too few elements\n", stderr);
            return 2;
        }
        softmax<<<shape[0], THREADS>>>(x, y, shape[1]);
        CU(cudaGetLastError());
        CU(cudaDeviceSynchronize());
        if (std::fwrite(y, sizeof(float), elements, stdout) != elements) return 2;
    }
    CU(cudaFree(x));
    CU(cudaFree(y));
    return std::fflush(stdout) ? 2 : 0;
}
