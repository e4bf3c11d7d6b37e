// A x = f by Gauss-Jordan elimination with complete pivoting, in managed memory: host and device
// use the same pointers. The numbers are read as float32 and computed with in double, so that the
// answer is right to the last digit of a float for any system that is not nearly singular.
//
// stdin: int32 n, A n x n float32, f n float32. stdout: x, n float32.

#include <cuda_runtime.h>

#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

struct Pivot {
    double size;
    int row, column;
};

// What the kernels found last; the host reads it after it has waited for them.
__managed__ Pivot pivot;

constexpr int THREADS = 256;

// The system as the kernels see it: [A | f] row by row, and what was used as a pivot already.
struct System {
    double* elements;
    bool *used_row, *used_column;
    int n;

    __host__ __device__ double& at(int row, int column) const {
        return elements[(size_t)row * (n + 1) + column];
    }
};

// The largest element among unused rows and columns. One block.
__global__ void find_pivot(System s) {
    __shared__ Pivot best[THREADS];
    Pivot own = {-1, 0, 0};
    for (size_t i = threadIdx.x; i < (size_t)s.n * s.n; i += THREADS) {
        const int row = (int)(i / s.n), column = (int)(i % s.n);
        const double size = fabs(s.at(row, column));
        if (!s.used_row[row] && !s.used_column[column] && size > own.size)
            own = {size, row, column};
    }
    best[threadIdx.x] = own;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half && best[threadIdx.x + half].size > best[threadIdx.x].size)
            best[threadIdx.x] = best[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        pivot = best[0];
        s.used_row[pivot.row] = s.used_column[pivot.column] = true;
    }
}

// Each row keeps what it must be multiplied with, before the pivot's column is changed.
__global__ void keep_factors(System s, double* factors) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < s.n)
        factors[row] =
            row == pivot.row ? 0 : s.at(row, pivot.column) / s.at(pivot.row, pivot.column);
}

__global__ void eliminate(System s, const double* factors) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (column <= s.n && row != pivot.row)
        s.at(row, column) -= factors[row] * s.at(pivot.row, column);
}

static void check(cudaError_t status) {
    if (status == cudaSuccess) return;
    fprintf(stderr, "CUDA error %d: %s\n", status, cudaGetErrorString(status));
    exit(2);
}

int main() {
    int n;
    if (fread(&n, sizeof n, 1, stdin) != 1 || n < 0 || n > 30000) {
        fprintf(stderr, "no order of the system, or one that is too large\n");
        return 1;
    }
    if (n == 0) return 0;
    std::vector<float> input((size_t)n * n + n);
    if (fread(input.data(), sizeof(float), input.size(), stdin) != input.size()) {
        fprintf(stderr, "the input ends within the system\n");
        return 1;
    }

    System s = {nullptr, nullptr, nullptr, n};
    double* factors;
    check(cudaMallocManaged(&s.elements, (size_t)n * (n + 1) * sizeof(double)));
    check(cudaMallocManaged(&s.used_row, n * sizeof(bool)));
    check(cudaMallocManaged(&s.used_column, n * sizeof(bool)));
    check(cudaMallocManaged(&factors, n * sizeof(double)));
    for (int row = 0; row < n; ++row) {
        s.used_row[row] = s.used_column[row] = false;
        double scale = 0;  // of the row: equations in other units are the same equations
        for (int column = 0; column < n; ++column)
            scale = fmax(scale, fabs(input[(size_t)row * n + column]));
        if (scale == 0 || !std::isfinite(scale)) {
            fprintf(stderr, "row %d is zero or not finite\n", row);
            return 1;
        }
        for (int column = 0; column < n; ++column)
            s.at(row, column) = input[(size_t)row * n + column] / scale;
        s.at(row, n) = input[(size_t)n * n + row] / scale;
    }

    std::vector<Pivot> pivots;
    const dim3 threads(THREADS), grid((n + THREADS) / THREADS, n);
    for (int step = 0; step < n; ++step) {
        find_pivot<<<1, threads>>>(s);
        keep_factors<<<(n + THREADS - 1) / THREADS, threads>>>(s, factors);
        eliminate<<<grid, threads>>>(s, factors);
        check(cudaGetLastError());
        check(cudaDeviceSynchronize());  // from here on the host may read `pivot`
        if (!(pivot.size > sqrt((double)n) * FLT_EPSILON)) {
            fprintf(stderr, "the matrix is singular: pivot %d is %g\n", step, pivot.size);
            return 1;
        }
        pivots.push_back(pivot);
    }

    std::vector<float> x(n);
    for (const Pivot& p : pivots) x[p.column] = (float)(s.at(p.row, n) / s.at(p.row, p.column));
    check(cudaFree(s.elements));
    check(cudaFree(s.used_row));
    check(cudaFree(s.used_column));
    check(cudaFree(factors));
    return fwrite(x.data(), sizeof(float), n, stdout) == (size_t)n ? 0 : 1;
}
