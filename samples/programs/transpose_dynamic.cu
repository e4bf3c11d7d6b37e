// The transpose of a matrix, through tiles in dynamic shared memory whose size is chosen when the
// program runs: rows are read and rows are written, and the tile's columns have no bank conflicts.
//
// stdin: int32 rows, int32 columns, rows x columns float32. stdout: columns x rows float32.

#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

#define SAFE(x) safe((x), #x, __FILE__, __LINE__)
static inline void safe(cudaError_t e, const char* what, const char* file, int line) {
    if (e == cudaSuccess) return;
    fprintf(stderr, "%s:%d: %s -> %s\n", file, line, what, cudaGetErrorString(e));
    exit(EXIT_FAILURE);
}

extern __shared__ float tile[]; /* side rows of side + 1 words: the last one is padding */

template <class Element>
__global__ void transpose(const Element* __restrict__ from, Element* __restrict__ to, int rows,
                          int columns) {
    const int side = blockDim.x, width = side + 1;
    int column = blockIdx.x * side + threadIdx.x;
    int row = blockIdx.y * side + threadIdx.y;
    if (row < rows && column < columns)
        tile[threadIdx.y * width + threadIdx.x] = from[(size_t)row * columns + column];
    __syncthreads();
    /* the tile lies at (x, y) in the input and at (y, x) in the output */
    column = blockIdx.y * side + threadIdx.x;
    row = blockIdx.x * side + threadIdx.y;
    if (row < columns && column < rows)
        to[(size_t)row * rows + column] = tile[threadIdx.x * width + threadIdx.y];
}

int main(int argc, char** argv) {
    int shape[2], side = argc > 1 ? atoi(argv[1]) : 32;
    if (fread(shape, sizeof(int), 2, stdin) != 2 || shape[0] < 0 || shape[1] < 0) {
        fputs("no shape in front of the matrix\n", stderr);
        return EXIT_FAILURE;
    }
    const int rows = shape[0], columns = shape[1];
    const size_t count = (size_t)rows * columns, bytes = count * sizeof(float);
    if (count == 0) return EXIT_SUCCESS;

    float* host = (float*)malloc(bytes);
    if (!host || fread(host, sizeof(float), count, stdin) != count) {
        fprintf(stderr, "not all of the %d x %d elements are there\n", rows, columns);
        return EXIT_FAILURE;
    }
    float *from, *to;
    SAFE(cudaMalloc((void**)&from, bytes));
    SAFE(cudaMalloc((void**)&to, bytes));
    SAFE(cudaMemcpy(from, host, bytes, cudaMemcpyHostToDevice));

    dim3 threads(side, side);
    dim3 blocks((columns + side - 1) / side, (rows + side - 1) / side);
    transpose<<<blocks, threads, side*(side + 1) * sizeof(float)>>>(from, to, rows, columns);
    SAFE(cudaGetLastError());
    SAFE(cudaMemcpy(host, to, bytes, cudaMemcpyDeviceToHost));
    SAFE(cudaFree(from));
    SAFE(cudaFree(to));
    size_t written = fwrite(host, sizeof(float), count, stdout);
    free(host);
    return written == count ? EXIT_SUCCESS : EXIT_FAILURE;
}
