// Bitonic sort of int32 keys in mapped host memory: the device reads and writes the host's pages,
// nothing is copied. Any n: the network is that of the next power of two, and what would lie beyond
// the end counts as larger than every key, so that it never moves.
//
// stdin: int32 n, n int32 keys. stdout: the sorted keys.

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

typedef int32_t Key;

enum { THREADS = 512, TILE = 2 * THREADS };

#define TRY(call)                                                              \
    if (cudaError_t status = (call)) {                                         \
        fprintf(stderr, "%s failed: %s\n", #call, cudaGetErrorString(status)); \
        return 1;                                                              \
    }

// One comparator a thread. The first step of a merge compares mirror images, so that all
// comparators point the same way; `reach` is the distance, or the size of the part to mirror.
__device__ void compare(Key* keys, long long n, long long comparator, int reach, bool mirrored) {
    const long long within = comparator % reach;
    const long long low = 2 * (comparator - within) + within;
    const long long high =
        mirrored ? 2 * (comparator - within) + 2 * reach - 1 - within : low + reach;
    if (high < n && keys[high] < keys[low]) {
        const Key swap = keys[low];
        keys[low] = keys[high];
        keys[high] = swap;
    }
}

// One step of the network in global memory.
__global__ void step(Key* keys, long long n, int reach, bool mirrored) {
    compare(keys, n, blockIdx.x * (long long)blockDim.x + threadIdx.x, reach, mirrored);
}

// All steps that stay within a tile, in shared memory: whole merges up to its size, or the last
// steps of a longer one.
__device__ __shared__ Key tile[TILE];

__device__ void finish_merge(int count, int reach) {
    for (; reach > 0; reach /= 2) {
        compare(tile, count, threadIdx.x, reach, false);
        __syncthreads();
    }
}
__device__ int load_tile(const Key* keys, long long n) {
    const long long begin = blockIdx.x * (long long)TILE;
    const int count = n - begin < TILE ? (int)(n - begin) : TILE;
    for (int i = threadIdx.x; i < count; i += THREADS) tile[i] = keys[begin + i];
    __syncthreads();
    return count;
}
__device__ void store_tile(Key* keys, int count) {
    for (int i = threadIdx.x; i < count; i += THREADS)
        keys[blockIdx.x * (long long)TILE + i] = tile[i];
}
__global__ void sort_tiles(Key* keys, long long n) {
    const int count = load_tile(keys, n);
    for (int reach = 1; reach < TILE; reach *= 2) {
        compare(tile, count, threadIdx.x, reach, true);
        __syncthreads();
        finish_merge(count, reach / 2);
    }
    store_tile(keys, count);
}
__global__ void finish_tiles(Key* keys, long long n) {
    const int count = load_tile(keys, n);
    finish_merge(count, TILE / 2);
    store_tile(keys, count);
}

int main() {
    Key n;
    if (fread(&n, sizeof n, 1, stdin) != 1 || n < 0) return fputs("bad header\n", stderr), 1;
    if (n == 0) return 0;
    Key *keys, *on_device;
    TRY(cudaSetDeviceFlags(cudaDeviceMapHost));
    TRY(cudaHostAlloc(&keys, sizeof(Key) * n, cudaHostAllocMapped));
    TRY(cudaHostGetDevicePointer(&on_device, keys, 0));
    if (fread(keys, sizeof(Key), n, stdin) != (size_t)n)
        return fputs("keys are missing\n", stderr), 1;

    const int tiles = (int)((n + TILE - 1LL) / TILE);
    sort_tiles<<<tiles, THREADS>>>(on_device, n);
    for (long long size = TILE; size < n; size *= 2) {
        // A key near the end may have its mirror image far in front: all of the last part's
        // comparators, however few keys it has.
        const int parts = (int)((n + 2 * size - 1) / (2 * size));
        step<<<parts*(int)(size / THREADS), THREADS>>>(on_device, n, (int)size, true);
        for (long long reach = size / 2; reach >= TILE; reach /= 2)
            step<<<tiles, THREADS>>>(on_device, n, (int)reach, false);
        finish_tiles<<<tiles, THREADS>>>(on_device, n);
    }
    TRY(cudaGetLastError());
    TRY(cudaDeviceSynchronize());  // the host may read its memory again
    const size_t written = fwrite(keys, sizeof(Key), n, stdout);
    TRY(cudaFreeHost(keys));
    return written == (size_t)n ? 0 : 1;
}
