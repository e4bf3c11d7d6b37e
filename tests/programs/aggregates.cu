// Lanes that a branch has separated count together: whether an instrument looks at their block, has
// stopped looking, or was never there, they are the same lanes.

#include <cooperative_groups.h>

#include <cstdio>

namespace cg = cooperative_groups;

const int BLOCKS = 500, THREADS = 64, THIRD = 22;  // in each block every third thread counts

__global__ void count(int* total, int* seen, int* work) {
    for (int i = 0; i < 100; ++i) work[blockIdx.x * THREADS + threadIdx.x] += i;
    if (threadIdx.x % 3 == 0) {
        const cg::coalesced_group together = cg::coalesced_threads();
        unsigned first;
        if (together.thread_rank() == 0) first = atomicAdd(total, (int)together.size());
        first = together.shfl((int)first, 0);
        atomicAdd(&seen[first + together.thread_rank()], 1);
    }
}

int main() {
    int *total, *seen, *work, *host = new int[BLOCKS * THREADS];
    cudaMalloc(&total, sizeof(int)), cudaMemset(total, 0, sizeof(int));
    cudaMalloc(&seen, sizeof(int) * BLOCKS * THREADS);
    cudaMemset(seen, 0, sizeof(int) * BLOCKS * THREADS);
    cudaMalloc(&work, sizeof(int) * BLOCKS * THREADS);
    cudaMemset(work, 0, sizeof(int) * BLOCKS * THREADS);
    count<<<BLOCKS, THREADS>>>(total, seen, work);
    cudaMemcpy(host, seen, sizeof(int) * BLOCKS * THREADS, cudaMemcpyDeviceToHost);
    int once = 0;
    for (int i = 0; i < BLOCKS * THREADS; ++i) once += host[i] == (i < BLOCKS * THIRD);
    cudaMemcpy(host, total, sizeof(int), cudaMemcpyDeviceToHost);
    std::printf("%d of %d counted, %d of %d as expected\n", *host, BLOCKS * THIRD, once,
                BLOCKS * THREADS);
    cudaFree(total), cudaFree(seen), cudaFree(work);
    delete[] host;
}
