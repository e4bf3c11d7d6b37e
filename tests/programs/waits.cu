// Threads that wait for each other in loops: within a warp, across warps and across blocks, by
// volatile and plain accesses, atomics and fences. Each test prints its name when it has ended.
#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                        \
    do {                                                                   \
        cudaError_t error_ = (call);                                       \
        if (error_ != cudaSuccess) {                                       \
            printf("line %d: %s\n", __LINE__, cudaGetErrorString(error_)); \
            exit(1);                                                       \
        }                                                                  \
    } while (0)

__device__ int arrived, lock;
__device__ volatile int flag, rounds[2048];

// A lane waits for another one of its warp, or a warp for another one.
__global__ void wait_in_block(int waits, int sets, int* sum) {
    __shared__ volatile int go;
    if (threadIdx.x == 0) go = 0;
    __syncthreads();
    if (threadIdx.x == waits) {
        while (go == 0) {
        }
    } else if (threadIdx.x == sets) {
        go = 1;
    }
    atomicAdd(sum, 1);
}

// Threads hand a token round the block; each counts how long it has waited.
__global__ void pass_token(int* sum) {
    __shared__ volatile int turn;
    if (threadIdx.x == 0) turn = 0;
    __syncthreads();
    long long waited = 0;
    while (turn != threadIdx.x) ++waited;
    *sum += 1;
    turn = threadIdx.x + 1;
    if (waited < 0) *sum = 0;
}

// A wait inside a device function that a compiler keeps, with a limit on the number of polls.
__device__ __noinline__ bool wait_for(volatile int* p, int value) {
    for (long long polls = 0; polls < (1ll << 60); ++polls)
        if (*p == value) return true;
    return false;
}
__global__ void wait_for_the_last(int* sum) {
    if (threadIdx.x + 1 < blockDim.x) {
        if (!wait_for(&flag, 7)) return;
    } else {
        flag = 7;
    }
    atomicAdd(sum, 1);
}

// A load that is atomic but not volatile, in the middle of floating-point work.
__global__ void wait_for_a_plain_load(int* word, float* x, int* sum) {
    float kept = x[threadIdx.x];
    if (threadIdx.x < 32) {
        while (__ldcv(word) == 0) {
        }
    } else if (threadIdx.x == 32) {
        atomicExch(word, 1);
    }
    if (kept == x[threadIdx.x]) atomicAdd(sum, 1);
}

// Each block waits for the next one, which starts later.
__global__ void wait_for_the_next_block(int* sum) {
    rounds[blockIdx.x] = 1;
    __threadfence();
    while (rounds[(blockIdx.x + 1) % gridDim.x] == 0) {
    }
    atomicAdd(sum, 1);
}

// A barrier of the whole grid made of an atomic counter.
__device__ void grid_barrier(int round) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(&arrived, 1);
        while (atomicAdd(&arrived, 0) < (int)gridDim.x * round) {
        }
    }
    __syncthreads();
}
// The same with a volatile counter, as in many textbooks.
__device__ void volatile_grid_barrier(int round) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(&arrived, 1);
        while (*(volatile int*)&arrived < (int)gridDim.x * round) {
        }
    }
    __syncthreads();
}
template <bool is_volatile>
__global__ void rotate(int steps, int* sum) {
    __shared__ int before;  // differs by block
    for (int step = 0; step < steps; ++step) {
        if (threadIdx.x == 0) before = rounds[(blockIdx.x + 1) % gridDim.x];
        if (is_volatile)
            volatile_grid_barrier(2 * step + 1);
        else
            grid_barrier(2 * step + 1);
        if (threadIdx.x == 0) rounds[blockIdx.x] = before;
        if (is_volatile)
            volatile_grid_barrier(2 * step + 2);
        else
            grid_barrier(2 * step + 2);
    }
    if (threadIdx.x == 0 && rounds[blockIdx.x] == (int)(blockIdx.x + steps) % (int)gridDim.x)
        atomicAdd(sum, 1);
}

// A lock that every thread takes.
__global__ void take_a_lock(int* sum) {
    bool done = false;
    while (!done) {
        if (atomicCAS(&lock, 0, 1) == 0) {
            *(volatile int*)sum = *(volatile int*)sum + 1;
            __threadfence();
            atomicExch(&lock, 0);
            done = true;
        }
    }
}

// One thread polls while the others ask who is active.
__global__ void poll_while_others_vote(int* sum) {
    __shared__ volatile int lanes;
    if (threadIdx.x == 0) lanes = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        while (lanes == 0) {
        }
    } else {
        const unsigned mask = __activemask();
        if (mask & (1u << threadIdx.x)) lanes = 1;
    }
    atomicAdd(sum, 1);
}

static void reset(int* sum) {
    const int zero = 0;
    static int order[2048];
    for (int i = 0; i < 2048; ++i) order[i] = i;
    CHECK(cudaMemset(sum, 0, sizeof *sum));
    CHECK(cudaMemcpyToSymbol(arrived, &zero, sizeof zero));
    CHECK(cudaMemcpyToSymbol(flag, &zero, sizeof zero));
    CHECK(cudaMemcpyToSymbol(rounds, order, sizeof order));
}
static void print(const char* name, int* sum) {
    int threads;
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(&threads, sum, sizeof threads, cudaMemcpyDeviceToHost));
    printf("%s: %d\n", name, threads);
    reset(sum);
}

int main() {
    int *sum, *word;
    float* x;
    CHECK(cudaMalloc(&sum, sizeof *sum));
    CHECK(cudaMalloc(&word, sizeof *word));
    CHECK(cudaMalloc(&x, 1024 * sizeof *x));
    CHECK(cudaMemset(word, 0, sizeof *word));
    CHECK(cudaMemset(x, 0, 1024 * sizeof *x));
    reset(sum);

    wait_in_block<<<1, 32>>>(0, 1, sum);
    print("a lane waits for the next one", sum);
    wait_in_block<<<1, 32>>>(31, 30, sum);
    print("a lane waits for the one before", sum);
    wait_in_block<<<1, 64>>>(0, 32, sum);
    print("a warp waits for the next one", sum);
    pass_token<<<1, 48>>>(sum);
    print("a token passes through two warps", sum);
    wait_for_the_last<<<1, 64>>>(sum);
    print("all wait for the last thread", sum);
    wait_for_a_plain_load<<<1, 64>>>(word, x, sum);
    print("a warp waits by uncached loads", sum);
    poll_while_others_vote<<<1, 32>>>(sum);
    print("a lane waits for those of a mask", sum);
    take_a_lock<<<4, 128>>>(sum);
    print("a lock", sum);

    const int zeros[2048] = {};
    CHECK(cudaMemcpyToSymbol(rounds, zeros, sizeof zeros));
    wait_for_the_next_block<<<16, 1>>>(sum);
    print("blocks wait for later ones", sum);
    rotate<false><<<16, 64>>>(10, sum);
    print("a barrier of 16 blocks", sum);
    rotate<true><<<16, 64>>>(2, sum);
    print("a volatile barrier of 16 blocks", sum);

    // As many blocks as the device holds at once; the number differs between devices.
    cudaDeviceProp device;
    int blocks;
    CHECK(cudaGetDeviceProperties(&device, 0));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, rotate<false>, 256, 0));
    blocks = blocks * device.multiProcessorCount;
    if (blocks > 2048) blocks = 2048;
    rotate<false><<<blocks, 256>>>(2, sum);
    int passed;
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(&passed, sum, sizeof passed, cudaMemcpyDeviceToHost));
    printf("a barrier of all blocks that fit: %s\n", passed == blocks ? "right" : "wrong");
}
