// What short grids, and loops of the older style, cost on the CPU device: processor time, in all
// threads. `cudalab run tools/studies/short_programs.cu`
#include <cstdio>
#include <ctime>

const int SIZE = 2048, STEPS = 10000, LAUNCHES = 200000;

__global__ void count(int* total) {
    if (threadIdx.x == 0) *total += 1;
}

// Neighbours read neighbouring elements, by an index that is declared before the loop.
__global__ void sum_columns(const float* matrix, const float* weights, float* sums) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column < SIZE) {
        int row;
        for (row = 0; row < SIZE; row++) sums[column] += matrix[row * SIZE + column] * weights[row];
    }
}

// In blocks of two dimensions, all of whose rows do the same.
__global__ void smooth(const float* from, float* to) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < SIZE - 1) to[i] = (from[i - 1] + from[i] + from[i + 1]) / 3;
}

static double processor_seconds() {
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

template <class Work>
static double measure(Work work) {
    work(1);  // compiled, and known to be short
    const double begun = processor_seconds();
    work(0);
    cudaDeviceSynchronize();
    return processor_seconds() - begun;
}

int main() {
    float *matrix, *one, *other;
    cudaMalloc(&matrix, SIZE * SIZE * sizeof(float));
    cudaMalloc(&one, SIZE * sizeof(float));
    cudaMalloc(&other, SIZE * sizeof(float));
    cudaMemset(matrix, 0, SIZE * SIZE * sizeof(float));
    cudaMemset(one, 0, SIZE * sizeof(float));
    cudaMemset(other, 0, SIZE * sizeof(float));
    const double launches = measure([&](int times) {
        for (int i = 0; i < (times ? times : LAUNCHES); ++i) count<<<1, 32>>>((int*)one);
    });
    const double columns =
        measure([&](int) { sum_columns<<<SIZE / 256, 256>>>(matrix, one, other); });
    const double steps = measure([&](int times) {
        for (int i = 0; i < (times ? times : STEPS); ++i) {
            smooth<<<SIZE / 32, dim3(32, 8)>>>(one, other);
            smooth<<<SIZE / 32, dim3(32, 8)>>>(other, one);
        }
    });
    printf("a launch: %.2f us\nsums of columns: %.2f ms\n%d steps in blocks of 32 x 8: %.3f s\n",
           launches / LAUNCHES * 1e6, columns * 1e3, STEPS, steps);
}
