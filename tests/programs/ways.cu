// Kernels of many forms, each printed line the same with loops over threads and with fibers.
#include <cooperative_groups.h>

#include <cassert>
#include <cstdio>
#include <vector>

namespace cg = cooperative_groups;

// Macros with names that the text put into a program has had.
#define ANY 7
#define ALL 8
#define COUNT 9
#define Block 10
#define by blockIdx.y
#define Config(x) (x + 1)
#define cast(x) (x + 1)
#define enlisted(x) (x + 1)
#define fit(x) (x + 1)
#define into(x) (x + 1)
#define launch(x) (x + 1)
#define launch_any(x) (x + 1)
#define make(x) (x + 1)
#define two_ways(x) (x + 1)

#define THREADS 96
#ifndef TURNS
#define TURNS 3
#endif

static int* numbers;
static int* results;
const int N = 4 * THREADS;

static void show(const char* what) {
    const cudaError_t error = cudaDeviceSynchronize();
    long long sum = 0;
    for (int i = 0; i < N; ++i) sum = sum * 31 + results[i] * (i + 1), results[i] = -1;
    printf("%s: %lld %s\n", what, sum, cudaGetErrorName(error));
}

// A barrier, dynamic shared memory and an early return.
__global__ void reverse(const int* in, int* out, int n) {
    extern __shared__ int block[];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    block[threadIdx.x] = i < n ? in[i] : 0;
    if (i >= n) return;
    __syncthreads();
    for (unsigned stride = blockDim.x / 2; stride > 0; stride >>= 1) {
        if (threadIdx.x < stride) block[threadIdx.x] += block[threadIdx.x + stride];
        __syncthreads();
    }
    out[i] = block[blockDim.x - 1 - threadIdx.x] + block[0];
}

// A template with defaults, whose arguments are said or deduced.
template <class T, int TILE = 8>
__global__ void transpose(const T* in, T* out, int turns = TURNS) {
    __shared__ T tile[TILE][TILE + 1];
    const int at = blockIdx.x * TILE * TILE;
    T kept = 0;
    for (int turn = 0; turn < turns; ++turn) {
        tile[threadIdx.y][threadIdx.x] = in[at + threadIdx.y * TILE + threadIdx.x] + kept;
        __syncthreads();
        kept += tile[threadIdx.x][threadIdx.y];
        __syncthreads();
    }
    out[at + threadIdx.y * TILE + threadIdx.x] = kept;
}

namespace outer {
namespace {
__device__ int above(int value) {
    return __shfl_down_sync(0xffffffffu, value, 1);
}
__global__ void neighbours(const int* in, int* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = above(in[i]) - in[i];
}
}  // namespace
}  // namespace outer

__device__ int sum_of(cg::thread_block group, int* shared, int value) {
    shared[group.thread_rank()] = value;
    cg::sync(group);
    int sum = 0;
    for (unsigned i = 0; i < group.size(); ++i) sum += shared[i] * (int)(i % 5);
    group.sync();
    return sum;
}
__global__ void groups(const int* in, int* out) {
    cg::thread_block group = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(group);
    __shared__ int shared[THREADS];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    int value = in[i];
    for (int step = warp.size() / 2; step > 0; step /= 2) value += warp.shfl_xor(value, step);
    const int sum = sum_of(group, shared, value + warp.meta_group_rank());
    out[i] = sum + warp.thread_rank() + warp.any(value == 7);
}

// A parameter and a structure that each thread changes for itself.
struct Walk {
    int at;
    __device__ int next() { return at = at * 5 + 1 & 255; }
};
__global__ void walks(Walk walk, int* out, int steps) {
    Walk other{7};
    while (steps-- > 0) walk.next();
    __syncthreads();
    for (int i = 0; i < threadIdx.x % 4; ++i) other.next();
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = walk.next() + other.next() + steps;
}

// Conditions that are read from memory, the same for all threads; a member that is named like a
// parameter; a function that stands behind its call.
__device__ int halved(int* shared, int last, int x);
__global__ void rounds(const int* in, int* out) {
    __shared__ int __align__(8) shared[THREADS];
    __shared__ int __align__(16) left;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    shared[threadIdx.x] = in[i];
    if (threadIdx.x == 0) left = 3 + in[blockIdx.x] % 4;
    __syncthreads();
    int value = 0;
    while (true) {
        value += halved(shared, left, value);
        __syncthreads();
        if (threadIdx.x == 0) --left;
        __syncthreads();
        if (left == 0) break;
        if (in[left] % 2) __syncthreads();
    }
    out[i] = value;
}
__device__ int halved(int* shared, int last, int x) {
    for (int width = last * blockDim.x / 16; width > 0; width /= 2) {
        if (threadIdx.x < width) shared[threadIdx.x] += shared[threadIdx.x + width] + x % 3;
        __syncthreads();
    }
    return shared[last];
}

// Shuffles of some lanes, the others of whose warp wait at a barrier or have nothing more to do.
__global__ void some_lanes(const int* in, int* out) {
    __shared__ int sums[32];
    const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    if (threadIdx.x < 32) sums[lane] = in[i];
    __syncthreads();
    int value = sums[lane];
    __syncthreads();
    if (threadIdx.x < 6) {
        int sum = value;
        for (int step = 1; step < 6; step *= 2) {
            const int below = __shfl_up_sync(0x3f, sum, step);
            if (lane >= step) sum += below;
        }
        sums[lane] = sum;
    }
    __syncthreads();
    value += sums[lane % 6];
    out[i] = value;
    if (threadIdx.x < 40 && threadIdx.x % 2) {
        for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffff, value, step);
        out[i] = value;
    }
}

// A template with a specialization, both with warp operations.
template <class T>
__device__ T total(T value) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffff, value, step);
    return value;
}
template <>
__device__ __forceinline__ int total<int>(int value) {
    return __reduce_add_sync(0xffffffff, value);
}
__global__ void totals(const int* in, int* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = total<int>(in[i]) + (int)total(in[i] / 2.0f);
}

// Volatile shared memory, for which no thread waits.
__device__ void add_halves(volatile int* shared) {
    for (int width = THREADS / 2; width > 0; width /= 2) {
        const int other = threadIdx.x < width ? shared[threadIdx.x + width] : 0;
        __syncthreads();
        if (threadIdx.x < width) shared[threadIdx.x] += other;
        __syncthreads();
    }
}
__global__ void halves(const int* in, int* out) {
    __shared__ volatile int shared[THREADS];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    shared[threadIdx.x] = in[i];
    __syncthreads();
    add_halves(shared); __syncwarp();
    shared[threadIdx.x] += shared[threadIdx.x ^ 5]; __syncwarp();
    out[i] = shared[0] + shared[threadIdx.x];
}

// A lambda that is used behind a barrier, tiles of a block that is no row, and large values.
__global__ void lambdas(const int* in, int* out) {
    const auto block = cg::this_thread_block();
    const auto warp = cg::tiled_partition<32>(block);
    const int i = blockIdx.x * THREADS + block.thread_rank();
    int4 four = {in[i], i, 2, 3};
    auto picked = [&four](int k) {
        switch (k % 3) {
            case 0:
                return four.x;
            case 1:
                return four.y;
        }
        return four.z + four.w;
    };
    four = warp.shfl_xor(four, 5);
    if (warp.meta_group_rank() == 1) four.z += warp.shfl(four.x, 3);
    block.sync();
    out[i] = picked(threadIdx.x) * 7 + picked(threadIdx.y + warp.thread_rank());
}

// What has no barriers: one thread runs after another.
__global__ void lanes(int* out) {
    int lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    out[blockIdx.x * blockDim.x + threadIdx.x] = lane;
}
__global__ void checked(int* out) {
    assert(threadIdx.x < THREADS);
    out[blockIdx.x * blockDim.x + threadIdx.x] = 5;
}

// Rounds that need the ones before, as many as a thread's own data say.
__global__ void chains(const int* in, int* out, int n) {
    __shared__ float pivots[THREADS];
    const int t = threadIdx.x, at = blockIdx.x * THREADS + t;
    pivots[t] = in[at] * 0.25f;
    __syncthreads();
    float chain = 1;
    int below = 0;
    if (t % 7 != 3) {
        for (int k = 0; k < n; ++k) {
            chain = pivots[k] - t * 0.1f - pivots[k] * pivots[k] / chain;
            below += chain < 0 ? 1 : 0;
        }
    }
    int halvings = 0;
    while (chain > 0.001f || chain < -0.001f) {
        chain /= 2 + pivots[t] * pivots[t];
        if (++halvings > 12) break;
        if (halvings & 1) continue;
        chain += pivots[t] * 1e-4f;
    }
    out[at] = below * 100 + halvings;
}

// Launched in so many places that its numbers are arguments of its loops.
template <class T, unsigned WIDTH, bool TWICE>
__global__ void folds(const T* in, T* out) {
    __shared__ T sums[THREADS];
    const unsigned t = threadIdx.x, at = blockIdx.x * blockDim.x + t;
    sums[t] = in[at];
    __syncthreads();
    for (unsigned d = WIDTH / 2; d > 0; d /= 2) {
        if (t % WIDTH < d) sums[t] += sums[t + d];
        __syncthreads();
    }
    out[at] = out[at] * 3 + sums[t - t % WIDTH] * (TWICE ? 2 : 1);
}

static void fold_all() {
    folds<int, 2, false><<<4, THREADS>>>(numbers, results);
    folds<int, 4, false><<<4, THREADS>>>(numbers, results);
    folds<int, 8, false><<<4, THREADS>>>(numbers, results);
    folds<int, 16, false><<<4, THREADS>>>(numbers, results);
    folds<int, 32, false><<<4, THREADS>>>(numbers, results);
    folds<int, 2, true><<<4, THREADS>>>(numbers, results);
    folds<int, 4, true><<<4, THREADS>>>(numbers, results);
    folds<int, 8, true><<<4, THREADS>>>(numbers, results);
    folds<unsigned, 4, true><<<4, THREADS>>>((unsigned*)numbers, (unsigned*)results);
}

// A loop of a thread that begins with a vote, in one of the block. Threads have left before.
__global__ void begins(const int* in, int* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const bool leaves = threadIdx.x == 40;
    const unsigned here = __ballot_sync(0xffffffffu, !leaves);
    if (leaves) return;
    int sum = in[i] + __syncthreads_count(i & 1) - (int)(1.5f * by) + (in[i] >> (in[i] & 63));
    sum += __syncthreads_or(i == 5) + 2 * __syncthreads_and(i < 90), sum *= 1.5f;
    for (int round = 0; round < 3; ++round) {
        for (unsigned left = __ballot_sync(here, sum & 1); left; left &= left - 1)
            sum += __shfl_sync(here, sum, __ffs(left) - 1);
        if (round == 2) break;
    }
    out[i] = sum;
}

// Loops with one counter: those of the block, of one thread, and of what the block does once.
__global__ void counters(const int* in, int* out, int n) {
    __shared__ int sums[THREADS];
    const int t = threadIdx.x, begin = blockIdx.x * blockDim.x, rest = n - begin;
    int whole = 1, last = 0, *at = out, i, k, kept;
    sums[t] = t < rest ? in[begin + t] : 0;
    __syncthreads();
    for (i = 2; i <= THREADS; i = 2 * i) {
        if (rest >= i) whole = i;
    }
    for (i = 2; i <= whole; i = 2 * i) {
        if ((t + 1) % i == 0 && t < whole) sums[t] += sums[t - i / 2];
        __syncthreads();
    }
    if (t == whole - 1) {
        for (i = whole; i < rest && i < THREADS; ++i) last += in[begin + i];
        sums[t] += last;
    }
    for (kept = 0; kept < 2; ++kept) at = &kept;
    __syncthreads();
    for (k = 0; k < t % 3; ++k) last += sums[whole - 1] ^ k;
    for (kept = 5; kept < 7 + t % 2; ++kept) last ^= kept;
    out[begin + t] = last + *at;
}

// The host has functions of the same name.
__global__ void called_alike(int* out) {
    __shared__ int all[THREADS];
    all[threadIdx.x] = threadIdx.x * 3;
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = all[THREADS - 1 - threadIdx.x];
}
static void called_alike() {
    called_alike<<<4, THREADS>>>(results);
}
static void called_alike(int* out, int blocks) {
    called_alike<<<blocks, THREADS>>>(out);
}

// What keeps its fibers.
__device__ volatile int flag;
__global__ void waits(int* out) {
    if (threadIdx.x == 0) flag = blockIdx.x + 1;
    while (flag == 0) {
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x;
}
__global__ void grid_wide(int* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = i;
    cg::this_grid().sync();
    const int other = out[N - 1 - i];
    cg::this_grid().sync();
    out[i] = other;
}
__global__ void crashes(int* out, int n) {
    __shared__ int last;
    if (threadIdx.x == 0) last = n;
    __syncthreads();
    if (threadIdx.x == 33) ((int*)nullptr)[last] = 1;
    __syncthreads();
    out[threadIdx.x] = last;
}

int main() {
    cudaMallocManaged(&numbers, N * sizeof(int));
    cudaMallocManaged(&results, N * sizeof(int));
    for (int i = 0; i < N; ++i) numbers[i] = i * 7919 % 101, results[i] = -1;

    reverse<<<4, THREADS, THREADS * sizeof(int)>>>(numbers, results, N - 20);
    show("reverse");
    void (*pointer)(const int*, int*, int) = reverse;
    pointer<<<4, THREADS, THREADS * sizeof(int)>>>(numbers, results, N);
    show("through a pointer");
    int n = N;
    void* arguments[] = {&numbers, &results, &n};
    cudaLaunchKernel((void*)reverse, dim3(4), dim3(THREADS), arguments, THREADS * sizeof(int));
    show("cudaLaunchKernel");
    transpose<int, 8><<<6, dim3(8, 8)>>>(numbers, results, 2);
    show("a template");
    transpose<<<6, dim3(8, 8)>>>(numbers, results, 5);
    show("a deduced template");
    transpose<int, 4><<<24, dim3(4, 4)>>>(numbers, results);
    show("a default argument");
    outer::neighbours<<<4, THREADS>>>(numbers, results);
    show("a namespace");
    groups<<<4, THREADS>>>(numbers, results);
    show("groups");
    walks<<<4, THREADS>>>(Walk{3}, results, 4);
    show("walks");
    rounds<<<4, THREADS>>>(numbers, results);
    show("conditions from memory");
    some_lanes<<<4, THREADS>>>(numbers, results);
    show("some lanes");
    totals<<<4, THREADS>>>(numbers, results);
    show("totals");
    halves<<<4, THREADS>>>(numbers, results);
    show("halves");
    lambdas<<<4, dim3(12, 8)>>>(numbers, results);
    show("lambdas");
    lanes<<<4, THREADS>>>(results);
    show("lanes");
    checked<<<4, THREADS>>>(results);
    show("checked");
    waits<<<4, THREADS>>>(results);
    show("waits");
    fold_all();
    show("folds");
    chains<<<4, THREADS>>>(numbers, results, THREADS);
    show("chains");
    begins<<<4, THREADS>>>(numbers, results);
    show("begins");
    counters<<<4, THREADS>>>(numbers, results, N - 30);
    show("counters");
    called_alike();
    show("called alike");
    called_alike(results, 3);
    show("called alike, with arguments");
    void* only[] = {&results};
    cudaLaunchCooperativeKernel((void*)grid_wide, dim3(4), dim3(THREADS), only);
    show("a whole grid");
    cudaFuncAttributes attributes;
    cudaFuncGetAttributes(&attributes, groups);
    printf("%zu bytes of shared memory\n", attributes.sharedSizeBytes);
    crashes<<<1, THREADS>>>(results, 5);
    printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
