// Radix sort, one bit a pass: the program of the course's report.
//
// For each bit from the lowest to the highest: b[i] is the bit of key i, s the exclusive scan of b.
// Zeros keep their order and go to i - s[i], ones go behind all zeros, to zeros + s[i].
//
// The scan is recursive: each block scans what it holds and leaves its sum; the sums are scanned
// in the same way and added back. Every kernel is launched as <<<1024, 1024>>> at most, and a block
// takes as many tiles as it must.
//
// stdin: int32 n, n uint32 keys. stdout: the sorted keys. Times go to stderr.

#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_BLOCKS 1024
#define THREADS 1024
#define TILE (2 * THREADS)  // items that a block scans at once

// One unused word behind every 32: without it the tree below has up to 32-way bank conflicts.
#define PADDED(i) ((i) + ((i) >> 5))

#define CHECK(call)                                                       \
    do {                                                                  \
        cudaError_t error = (call);                                       \
        if (error != cudaSuccess) {                                       \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, \
                    cudaGetErrorString(error));                           \
            exit(1);                                                      \
        }                                                                 \
    } while (0)

__global__ void extract_bit(const uint32_t* keys, uint32_t* bits, int n, int bit) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        bits[i] = (keys[i] >> bit) & 1;
}

// Blelloch's scan of each tile, exclusive and in place; the tile's sum goes to sums[tile].
__global__ void scan_tiles(uint32_t* items, uint32_t* sums, int n) {
    __shared__ uint32_t tree[PADDED(TILE)];
    const int t = threadIdx.x;
    for (int tile = blockIdx.x; tile * TILE < n; tile += gridDim.x) {
        const int low = tile * TILE + t, high = low + THREADS;
        tree[PADDED(t)] = low < n ? items[low] : 0;
        tree[PADDED(t + THREADS)] = high < n ? items[high] : 0;
        int stride = 1;
        for (int nodes = THREADS; nodes > 0; nodes >>= 1, stride <<= 1) {
            __syncthreads();  // the level below is complete
            if (t < nodes) {
                const int left = stride * (2 * t + 1) - 1, right = stride * (2 * t + 2) - 1;
                tree[PADDED(right)] += tree[PADDED(left)];
            }
        }
        if (t == 0) {
            sums[tile] = tree[PADDED(TILE - 1)];
            tree[PADDED(TILE - 1)] = 0;
        }
        for (int nodes = 1; nodes < TILE; nodes <<= 1) {
            stride >>= 1;
            __syncthreads();  // the level above is complete
            if (t < nodes) {
                const int left = stride * (2 * t + 1) - 1, right = stride * (2 * t + 2) - 1;
                const uint32_t sum = tree[PADDED(left)];
                tree[PADDED(left)] = tree[PADDED(right)];
                tree[PADDED(right)] += sum;
            }
        }
        __syncthreads();
        if (low < n) items[low] = tree[PADDED(t)];
        if (high < n) items[high] = tree[PADDED(t + THREADS)];
        __syncthreads();  // all have read before the next tile is loaded
    }
}

__global__ void add_sums(uint32_t* items, const uint32_t* sums, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        items[i] += sums[i / TILE];
}

__global__ void split(const uint32_t* keys, uint32_t* sorted, const uint32_t* ones_before, int n,
                      int bit) {
    const uint32_t last_bit = (keys[n - 1] >> bit) & 1;
    const uint32_t zeros = n - ones_before[n - 1] - last_bit;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const uint32_t key = keys[i], before = ones_before[i];
        sorted[(key >> bit) & 1 ? zeros + before : i - before] = key;
    }
}

// Scans n items in place; `sums` has room for the sums of all levels.
void scan(uint32_t* items, uint32_t* sums, int n) {
    const int tiles = (n + TILE - 1) / TILE;
    const int blocks = tiles < MAX_BLOCKS ? tiles : MAX_BLOCKS;
    scan_tiles<<<blocks, THREADS>>>(items, sums, n);
    CHECK(cudaGetLastError());
    if (tiles > 1) {
        scan(sums, sums + tiles, tiles);
        add_sums<<<MAX_BLOCKS, THREADS>>>(items, sums, n);
        CHECK(cudaGetLastError());
    }
}

int main(void) {
    int32_t n;
    if (fread(&n, sizeof n, 1, stdin) != 1) {
        fprintf(stderr, "stdin ends before the number of keys\n");
        return 1;
    }
    if (n < 0) {
        fprintf(stderr, "%d keys are announced\n", n);
        return 1;
    }
    if (n == 0) return 0;
    const size_t bytes = (size_t)n * sizeof(uint32_t);
    uint32_t* keys = (uint32_t*)malloc(bytes);
    if (keys == NULL || fread(keys, sizeof(uint32_t), n, stdin) != (size_t)n) {
        fprintf(stderr, "stdin ends before the %d keys that it announces\n", n);
        return 1;
    }

    size_t num_sums = 0;
    for (int level = n; num_sums == 0 || level > 1;) {
        level = (level + TILE - 1) / TILE;
        num_sums += level;
    }
    uint32_t *d_keys, *d_sorted, *d_bits, *d_sums;
    CHECK(cudaMalloc((void**)&d_keys, bytes));
    CHECK(cudaMalloc((void**)&d_sorted, bytes));
    CHECK(cudaMalloc((void**)&d_bits, bytes));
    CHECK(cudaMalloc((void**)&d_sums, num_sums * sizeof(uint32_t)));
    CHECK(cudaMemcpy(d_keys, keys, bytes, cudaMemcpyHostToDevice));

    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start, 0));
    for (int bit = 0; bit < 32; ++bit) {
        extract_bit<<<MAX_BLOCKS, THREADS>>>(d_keys, d_bits, n, bit);
        CHECK(cudaGetLastError());
        scan(d_bits, d_sums, n);
        split<<<MAX_BLOCKS, THREADS>>>(d_keys, d_sorted, d_bits, n, bit);
        CHECK(cudaGetLastError());
        uint32_t* swap = d_keys;
        d_keys = d_sorted;
        d_sorted = swap;
    }
    CHECK(cudaEventRecord(stop, 0));
    CHECK(cudaEventSynchronize(stop));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    fprintf(stderr, "%d keys sorted in %.3f ms\n", n, ms);

    CHECK(cudaMemcpy(keys, d_keys, bytes, cudaMemcpyDeviceToHost));
    const int written = fwrite(keys, sizeof(uint32_t), n, stdout) == (size_t)n;
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(stop));
    CHECK(cudaFree(d_keys));
    CHECK(cudaFree(d_sorted));
    CHECK(cudaFree(d_bits));
    CHECK(cudaFree(d_sums));
    free(keys);
    return written ? 0 : 1;
}
