// For --sanitize: pointers on many ways to a kernel, a launch that takes long, threads that return
// before a barrier, a block that waits for a later one, a forked child that goes on with the
// device, memory that a kernel allocates, and at last another buffer than the one that the pointer
// came from, and none.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

struct Node {
    int value;
    Node* next;
};
struct Pack {
    int* out;
    Node* list;
};
__device__ int* held;

__global__ void far_away(Pack pack, int** rows) {
    int sum = 0;
    for (Node* node = pack.list; node; node = node->next) sum += node->value;
    pack.out[threadIdx.x] = sum + rows[1][threadIdx.x] + held[threadIdx.x];
}

// The first block waits for the last one.
__global__ void takes_long(int* out, int* done) {
    for (int i = 0; i < 3000; ++i) {
        out[blockIdx.x * 64 + threadIdx.x] += 1;
        __syncthreads();
    }
    if (blockIdx.x == gridDim.x - 1) atomicExch(done, 1);
    while (blockIdx.x == 0 && atomicAdd(done, 0) == 0) {
    }
}

__global__ void returns(int* out, int n) {
    __shared__ int values[64];
    if (threadIdx.x >= n) return;  // @returns
    values[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = values[n - 1 - threadIdx.x];
}

__global__ void waits_for_later(int* flag, int* out) {
    if (blockIdx.x == 0) {
        while (atomicAdd(flag, 0) == 0) {
        }
        __threadfence();
        out[0] = out[1] + 1;
    } else {
        out[1] = 41;
        __threadfence();
        atomicExch(flag, 1);
    }
}

__global__ void allocates(int* out) {
    int *mine = (int*)malloc(4), *other = nullptr;
    cudaMalloc(&other, 4);
    *mine = 1, *other = threadIdx.x;  // @allocates
    out[threadIdx.x] = *mine + *other;
    free(mine);
    cudaFree(other);
}

__global__ void strays(int* out, long offset) {
    out[offset + threadIdx.x] = 1;  // @strays
}

int main() {
    int *out, *row, *other, **rows, first[2];
    Node *list, *last;
    cudaMalloc(&out, 64 * 64 * sizeof(int));
    cudaMalloc(&row, 64 * sizeof(int));
    cudaMalloc(&other, 64 * sizeof(int));
    cudaMalloc(&rows, 2 * sizeof *rows);
    cudaMallocManaged(&list, sizeof *list);
    cudaMallocManaged(&last, sizeof *last);
    *last = {2, nullptr}, *list = {1, last};
    cudaMemset(out, 0, 64 * 64 * sizeof(int));
    cudaMemset(row, 0, 64 * sizeof(int));
    cudaMemset(other, 0, 64 * sizeof(int));
    int* both[2] = {out, row};
    cudaMemcpy(rows, both, sizeof both, cudaMemcpyHostToDevice);
    cudaMemcpyToSymbol(held, &other, sizeof other);

    far_away<<<1, 32>>>({out, list}, rows);
    takes_long<<<64, 64>>>(out, row);
    returns<<<1, 64>>>(out, 50);
    cudaMemset(row, 0, sizeof(int));
    waits_for_later<<<2, 1>>>(row, out);
    cudaMemcpy(first, out, sizeof first, cudaMemcpyDeviceToHost);
    printf("%d\n", first[0]);
    fflush(stdout);
    if (fork() == 0) {
        returns<<<1, 64>>>(out, 50);  // @forks
        return cudaDeviceSynchronize() == cudaErrorInitializationError ? 0 : puts("no error");
    }
    wait(nullptr);
    cudaFree(rows), cudaFree(list), cudaFree(last);
    allocates<<<1, 32>>>(out);
    strays<<<1, 32>>>(out, row - out);
    cudaDeviceSynchronize();
    cudaFree(out), cudaFree(row), cudaFree(other);
    strays<<<1, 32>>>(nullptr, 0);
    return cudaDeviceSynchronize() == cudaSuccess;
}
