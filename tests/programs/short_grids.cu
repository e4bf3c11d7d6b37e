// Short grids, which run on the OS thread that launches them once a launch has shown that they are
// short: the same results, and the same words where one fails.
#include <sys/resource.h>

#include <cassert>
#include <cstdio>
#include <thread>

const int TIMES = 100, THREADS = 64;

__global__ void add(int* to, int value) {
    to[blockIdx.x * blockDim.x + threadIdx.x] += value;
}

__global__ void sum(const int* in, int* out) {
    __shared__ int block[THREADS];
    block[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    for (unsigned stride = THREADS / 2; stride > 0; stride /= 2) {
        if (threadIdx.x < stride) block[threadIdx.x] += block[threadIdx.x + stride];
        __syncthreads();
    }
    if (threadIdx.x == 0) *out += block[0];
}

__global__ void say(int number) {
    if (number >= TIMES - 2 && threadIdx.x == 7) printf("launch %d\n", number);
}

__global__ void divide(int* to, int by) {
    to[threadIdx.x] = (int)threadIdx.x / by;
}

__device__ int deep(int* to, int left) {
    volatile int frame[256];
    frame[left % 256] = left;
    return left == 0 ? to[0] : deep(to, left - 1) + frame[left % 256];
}
__global__ void nest(int* to, int depth) {
    to[threadIdx.x + 1] = deep(to, depth);
}

__global__ void claim(const int* in, int least) {
    assert(in[threadIdx.x] >= least);
}

static int* numbers;

static long times_asleep() {  // all threads of the process
    rusage use;
    getrusage(RUSAGE_SELF, &use);
    return use.ru_nvcsw;
}

static void show(const char* what) {
    const cudaError_t error = cudaDeviceSynchronize();
    printf("%s: %s\n", what, cudaGetErrorName(error));
    cudaGetLastError();
}

// A kernel in its last launch fails as in its first.
template <class Launch>
static void fails_at_last(const char* what, Launch launch) {
    for (int i = 0; i < TIMES; ++i) launch(false);
    show(what);
    launch(true);
    show(what);
}

int main(int argc, char** argv) {
    cudaMalloc(&numbers, 4 * THREADS * sizeof(int));
    cudaMemset(numbers, 0, 4 * THREADS * sizeof(int));
    int* total;
    cudaMalloc(&total, sizeof(int));
    cudaMemset(total, 0, sizeof(int));
    for (int i = 0; i < TIMES; ++i) {
        add<<<4, THREADS>>>(numbers, i);
        sum<<<1, THREADS>>>(numbers, total);
        say<<<1, 32>>>(i);
    }
    std::thread([] {
        for (int i = 0; i < TIMES; ++i) add<<<4, THREADS>>>(numbers, 1);
    }).join();
    sum<<<1, THREADS>>>(numbers, total);
    int result;
    cudaMemcpy(&result, total, sizeof result, cudaMemcpyDeviceToHost);
    printf("%d\n", result);
    switch (argc > 1 ? argv[1][0] : ' ') {
        case 'a':
            fails_at_last("access",
                          [](bool bad) { add<<<1, THREADS>>>(bad ? nullptr : numbers, 1); });
            break;
        case 'd':
            fails_at_last("division", [](bool bad) { divide<<<1, 32>>>(numbers, bad ? 0 : 3); });
            break;
        case 's':
            fails_at_last("stack", [](bool bad) { nest<<<1, 2>>>(numbers, bad ? 10000 : 3); });
            break;
        case 'c':
            fails_at_last("claim", [](bool bad) { claim<<<1, 32>>>(numbers, bad ? 1 << 30 : 0); });
            break;
        case 'w': {
            const long before = times_asleep();
            for (int i = 0; i < 1000; ++i) add<<<1, THREADS>>>(numbers, 1);
            printf("asleep: %s\n", times_asleep() - before < 500 ? "seldom" : "at each launch");
            break;
        }
        case 'h':  // the host's own mistake, after a grid that ran on its OS thread
            add<<<4, THREADS>>>(numbers, 1);
            return numbers[3];
    }
}
