// Blocks that read what others have written: behind the grid's barrier, and without it.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdio>

namespace cg = cooperative_groups;

const int BLOCKS = 4, THREADS = 64, ROUNDS = 3;

// Each block adds its neighbour's numbers to its own, which it keeps in shared memory.
__global__ void pass_on(int* numbers, int waits) {
    __shared__ int mine[THREADS];
    extern __shared__ int before[];
    const int t = threadIdx.x, next = (blockIdx.x + 1) % gridDim.x;
    int rounds[ROUNDS];  // on the stack
    mine[t] = before[t] = 10 * blockIdx.x;
    numbers[blockIdx.x * THREADS + t] = mine[t];
    for (int round = 0; round < ROUNDS; ++round) {
        if (waits) cg::this_grid().sync();
        const int theirs = numbers[next * THREADS + t];
        if (waits) cg::this_grid().sync();
        rounds[round] = theirs;
        mine[t] += theirs;
        numbers[blockIdx.x * THREADS + t] = mine[t];
    }
    int sum = before[t];
    for (int round = 0; round < ROUNDS; ++round) sum += rounds[round];
    if (sum != mine[t]) numbers[blockIdx.x * THREADS + t] = -1;
}

int main(int argc, char**) {
    int *d, h[BLOCKS * THREADS], waits = argc == 1;
    cudaMalloc(&d, sizeof h);
    void* arguments[] = {&d, &waits};
    cudaLaunchCooperativeKernel((void*)pass_on, dim3(BLOCKS), dim3(THREADS), arguments,
                                THREADS * sizeof(int), 0);
    cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
    if (waits)
        for (int block = 0; block < BLOCKS; ++block)
            printf("%d %d\n", h[block * THREADS], h[block * THREADS + THREADS - 1]);
    cudaFree(d);
    return 0;
}
