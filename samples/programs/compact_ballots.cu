// The items that are not zero move to the front, in their order; zeros fill the rest.
//
// A block counts its items by a vote. The host adds the counts up, and a warp's ballots say how
// many items of the block go before each thread's.
//
// stdin: int32 n, n int32. stdout: n int32.

#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 256, WARPS = THREADS / 32 };

static void check(cudaError_t status, const char* what) {
    if (status != cudaSuccess) {
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
        exit(EXIT_FAILURE);
    }
}
#define CHECK(call) check((call), #call)

__global__ void count_items(const int* items, int n, int* counts) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    const int count = __syncthreads_count(i < n && items[i] != 0);

    if (threadIdx.x == 0) counts[blockIdx.x] = count;
}

__global__ void move_items(const int* items, int n, const int* first, int* moved) {
    __shared__ int before[WARPS];  // items of the warps before
    const int i = blockIdx.x * THREADS + threadIdx.x;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int item = i < n ? items[i] : 0;
    const unsigned kept = __ballot_sync(0xffffffffu, item != 0);

    if (lane == 0) before[warp] = __popc(kept);
    __syncthreads();  // the counts of all warps are there
    if (threadIdx.x == 0) {
        int sum = 0;
        for (int w = 0; w < WARPS; w++) {
            const int own = before[w];
            before[w] = sum;
            sum += own;
        }
    }
    __syncthreads();  // they are sums now
    if (item != 0)
        moved[first[blockIdx.x] + before[warp] + __popc(kept & ((1u << lane) - 1))] = item;
}

int main(void) {
    int n;

    if (fread(&n, sizeof n, 1, stdin) != 1 || n < 0) {
        fprintf(stderr, "no number of items\n");
        return EXIT_FAILURE;
    }
    int* items = (int*)malloc((size_t)n * sizeof *items + 1);
    if (!items || fread(items, sizeof *items, n, stdin) != (size_t)n) {
        fprintf(stderr, "too few items\n");
        return EXIT_FAILURE;
    }
    if (n > 0) {
        const int blocks = (n - 1) / THREADS + 1;
        int *given, *moved, *first, sum = 0;
        int* counts = (int*)malloc(blocks * sizeof *counts);

        CHECK(cudaMalloc(&given, n * sizeof *given));
        CHECK(cudaMalloc(&moved, n * sizeof *moved));
        CHECK(cudaMalloc(&first, blocks * sizeof *first));
        CHECK(cudaMemcpy(given, items, n * sizeof *given, cudaMemcpyHostToDevice));
        CHECK(cudaMemset(moved, 0, n * sizeof *moved));
        count_items<<<blocks, THREADS>>>(given, n, first);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(counts, first, blocks * sizeof *first, cudaMemcpyDeviceToHost));
        for (int b = 0; b < blocks; b++) {
            const int own = counts[b];
            counts[b] = sum;
            sum += own;
        }
        CHECK(cudaMemcpy(first, counts, blocks * sizeof *first, cudaMemcpyHostToDevice));
        move_items<<<blocks, THREADS>>>(given, n, first, moved);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(items, moved, n * sizeof *moved, cudaMemcpyDeviceToHost));
        CHECK(cudaFree(given));
        CHECK(cudaFree(moved));
        CHECK(cudaFree(first));
        free(counts);
    }
    const int written = fwrite(items, sizeof *items, n, stdout) == (size_t)n && !fflush(stdout);
    free(items);
    return written ? EXIT_SUCCESS : EXIT_FAILURE;
}
