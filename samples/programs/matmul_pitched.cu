// C = A B with tiles in shared memory; the matrices lie in pitched memory, so that every row begins
// at an aligned address whatever n is.
//
// stdin: int32 n, A and B, n x n float32 each. stdout: C.

#include <iostream>
#include <vector>

#include "cuda_runtime.h"
#include "device_launch_parameters.h"

const int TILE = 16;

struct Matrix {
    float* elements;
    size_t pitch;  // bytes from one row to the next

    __device__ float& at(int row, int column) const {
        return ((float*)((char*)elements + row * pitch))[column];
    }
};

// Each element of a tile is read from global memory once a block, and TILE times from shared.
__global__ void multiply(Matrix a, Matrix b, Matrix c, int n) {
    __shared__ float as[TILE][TILE], bs[TILE][TILE];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * TILE + ty, column = blockIdx.x * TILE + tx;
    float sum = 0;
    for (int begin = 0; begin < n; begin += TILE) {
        as[ty][tx] = row < n && begin + tx < n ? a.at(row, begin + tx) : 0;
        bs[ty][tx] = begin + ty < n && column < n ? b.at(begin + ty, column) : 0;
        __syncthreads();  // both tiles are there
        for (int k = 0; k < TILE && begin + k < n; ++k) sum += as[ty][k] * bs[k][tx];
        __syncthreads();  // nobody reads them any more
    }
    if (row < n && column < n) c.at(row, column) = sum;
}

static bool ok(cudaError_t status, const char* what) {
    if (status != cudaSuccess)
        std::cerr << "error: " << what << ": " << cudaGetErrorString(status) << std::endl;
    return status == cudaSuccess;
}

static bool multiply_on_device(const float* a, const float* b, float* c, int n) {
    const size_t width = n * sizeof(float);
    Matrix matrices[3] = {};
    bool good = true;
    for (Matrix& matrix : matrices)
        good = good && ok(cudaMallocPitch(&matrix.elements, &matrix.pitch, width, n), "no memory");
    good = good && ok(cudaMemcpy2D(matrices[0].elements, matrices[0].pitch, a, width, width, n,
                                   cudaMemcpyHostToDevice),
                      "copying A");
    good = good && ok(cudaMemcpy2D(matrices[1].elements, matrices[1].pitch, b, width, width, n,
                                   cudaMemcpyHostToDevice),
                      "copying B");
    if (good) {
        dim3 blockDim(TILE, TILE);
        dim3 gridDim((n + TILE - 1) / TILE, (n + TILE - 1) / TILE);
        multiply<<<gridDim, blockDim>>>(matrices[0], matrices[1], matrices[2], n);
        good = ok(cudaGetLastError(), "launching") && ok(cudaDeviceSynchronize(), "multiplying");
    }
    good = good && ok(cudaMemcpy2D(c, width, matrices[2].elements, matrices[2].pitch, width, n,
                                   cudaMemcpyDeviceToHost),
                      "copying C");
    for (Matrix& matrix : matrices) cudaFree(matrix.elements);
    return good;
}

int main() {
    int n = 0;
    std::cin.read(reinterpret_cast<char*>(&n), sizeof n);
    if (!std::cin || n < 0) {
        std::cerr << "error: no order of the matrices" << std::endl;
        return 1;
    }
    // Orders beyond this are no matrices but text that was taken for one.
    const size_t elements = static_cast<size_t>(n) * n;
    if (n > 1 << 16) {
        std::cerr << "error: matrices of order " << n << std::endl;
        return 1;
    }
    std::vector<float> a(elements), b(elements), c(elements);
    for (std::vector<float>* matrix : {&a, &b})
        if (!std::cin.read(reinterpret_cast<char*>(matrix->data()), elements * sizeof(float))) {
            std::cerr << "error: the input is too short for order " << n << std::endl;
            return 1;
        }
    if (n > 0 && !multiply_on_device(a.data(), b.data(), c.data(), n)) return 1;
    std::cout.write(reinterpret_cast<const char*>(c.data()), elements * sizeof(float));
    return std::cout.flush() ? 0 : 1;
}
