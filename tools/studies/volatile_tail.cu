// One reduction with several tails: with __syncwarp, with shuffles, of volatile shared memory in a
// function and in a template's kernel.
#include <time.h>

#include <cstdio>
#include <cstdlib>

const int THREADS = 256, N = 1 << 22, BLOCKS = N / (2 * THREADS), TIMES = 20;

__device__ void of_volatile(volatile int* s, int t) {
    s[t] += s[t + 32];
    s[t] += s[t + 16];
    s[t] += s[t + 8];
    s[t] += s[t + 4];
    s[t] += s[t + 2];
    s[t] += s[t + 1];
}

__device__ void with_syncwarp(int* s, int t) {
    for (int step = 32; step > 0; step /= 2) {
        const int other = s[t + step];
        __syncwarp();
        s[t] += other;
        __syncwarp();
    }
}

__device__ int with_shuffles(int* s, int t) {
    int sum = s[t] + s[t + 32];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
    return sum;
}

__device__ void halve(const int* a, int* s, int t) {
    const int i = blockIdx.x * 2 * THREADS + t;
    s[t] = a[i] + a[i + THREADS];
    __syncthreads();
    for (int step = THREADS / 2; step > 32; step /= 2) {
        if (t < step) s[t] += s[t + step];
        __syncthreads();
    }
}

__global__ void volatile_tail(const int* a, int* sums) {
    __shared__ int s[THREADS];
    halve(a, s, threadIdx.x);
    if (threadIdx.x < 32) of_volatile(s, threadIdx.x);
    if (threadIdx.x == 0) sums[blockIdx.x] = s[0];
}

__global__ void syncwarp_tail(const int* a, int* sums) {
    __shared__ int s[THREADS];
    halve(a, s, threadIdx.x);
    if (threadIdx.x < 32) with_syncwarp(s, threadIdx.x);
    if (threadIdx.x == 0) sums[blockIdx.x] = s[0];
}

__global__ void shuffle_tail(const int* a, int* sums) {
    __shared__ int s[THREADS];
    halve(a, s, threadIdx.x);
    int sum = 0;
    if (threadIdx.x < 32) sum = with_shuffles(s, threadIdx.x);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

template <int SIZE>
__global__ void template_tail(const int* a, int* sums) {
    __shared__ int shared[THREADS];
    const int t = threadIdx.x;
    halve(a, shared, t);
    if (t < 32) {
        volatile int* s = shared;
        if (SIZE >= 64) s[t] += s[t + 32];
        if (SIZE >= 32) s[t] += s[t + 16];
        if (SIZE >= 16) s[t] += s[t + 8];
        if (SIZE >= 8) s[t] += s[t + 4];
        if (SIZE >= 4) s[t] += s[t + 2];
        if (SIZE >= 2) s[t] += s[t + 1];
    }
    if (t == 0) sums[blockIdx.x] = shared[0];
}

static double now_ms() {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}

// The CPU time of a launch, in ms, after one that is not counted. Ends the program at a wrong sum.
template <class Launch>
static void measure(const int* b, Launch launch) {
    launch();
    const double begin = now_ms();
    for (int i = 0; i < TIMES; i++) launch();
    cudaDeviceSynchronize();
    printf("%g ", (now_ms() - begin) / TIMES);
    static int sums[BLOCKS];
    cudaMemcpy(sums, b, sizeof sums, cudaMemcpyDeviceToHost);
    for (int i = 0; i < BLOCKS; i++)
        if (sums[i] != 2 * THREADS * (i % 1000)) exit(2);
}

int main() {
    static int values[N];
    for (int i = 0; i < N; i++) values[i] = i / (2 * THREADS) % 1000;
    int *a, *b;
    if (cudaMalloc(&a, sizeof values) || cudaMalloc(&b, BLOCKS * sizeof(int))) return 1;
    cudaMemcpy(a, values, sizeof values, cudaMemcpyHostToDevice);
    measure(b, [=] { syncwarp_tail<<<BLOCKS, THREADS>>>(a, b); });
    measure(b, [=] { shuffle_tail<<<BLOCKS, THREADS>>>(a, b); });
    measure(b, [=] { volatile_tail<<<BLOCKS, THREADS>>>(a, b); });
    measure(b, [=] { template_tail<THREADS><<<BLOCKS, THREADS>>>(a, b); });
    auto pointer = template_tail<THREADS>;
    measure(b, [=] { pointer<<<BLOCKS, THREADS>>>(a, b); });
}
