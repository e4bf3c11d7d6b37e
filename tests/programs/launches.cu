// Kernels that launch kernels: their order, their streams, and what the API says about mistakes.
#include <cuda_runtime.h>

#include <cstdio>

#define LAST() cudaGetErrorName(cudaGetLastError())

static __device__ int order[4096], steps;  // the numbers of what ran, in order

__device__ void note(int number) {
    order[atomicAdd(&steps, 1) % 4096] = number;
}
static void begin() {
    const int none = 0;
    cudaMemcpyToSymbol(steps, &none, 4);
}
static void end(const char *what) {
    const cudaError_t launched = cudaGetLastError(), done = cudaDeviceSynchronize();
    static int host[4096];
    int count = 0;
    cudaMemcpyFromSymbol(&count, steps, 4);
    cudaMemcpyFromSymbol(host, order, sizeof host);
    std::printf("%s:", what);
    for (int i = 0; i < count && i < 40; ++i) std::printf(" %d", host[i]);
    std::printf("%s (%s, %s)\n", count > 40 ? " ..." : "", cudaGetErrorName(launched),
                cudaGetErrorName(done));
}

__global__ void say(int number) {
    if (threadIdx.x == 0) note(number);
}
__global__ void in_order() {
    if (threadIdx.x) return;
    note(0);
    for (int i = 1; i < 5; ++i) say<<<1, 32>>>(i);
}

// A child is complete when its own children are.
__global__ void tree(int number, int depth) {
    note(number);
    if (depth == 0) return;
    tree<<<1, 1>>>(10 * number + 1, depth - 1);
    tree<<<1, 1>>>(10 * number + 2, depth - 1);
}

__global__ void tail(int number) {
    note(number);
    if (number > 2) return;
    tail<<<1, 1, 0, cudaStreamTailLaunch>>>(10 * number + 3);
    tail<<<1, 1>>>(10 * number + 4);
    tail<<<1, 1, 0, cudaStreamTailLaunch>>>(10 * number + 5);
}

__global__ void fill(int *data, int n, int value) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] = value + i;
}
__global__ void double_all(int *data, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] *= 2;
}
template <int FACTOR>
__global__ void scale(int *data, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] *= FACTOR;
}
// Copies, streams and events of a kernel.
__global__ void with_streams(int *data, int *copy, int n) {
    if (threadIdx.x) return;
    cudaStream_t a, b;
    cudaEvent_t event;
    cudaError_t bad = cudaStreamCreateWithFlags(&a, cudaStreamDefault);
    printf("a blocking stream: %s\n", cudaGetErrorName(bad));
    cudaGetLastError();
    cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    fill<<<(n + 63) / 64, 64, 0, a>>>(data, n, 7);
    double_all<<<(n + 63) / 64, 64, 0, a>>>(data, n);
    cudaEventRecord(event, a);
    cudaStreamWaitEvent(b, event, 0);
    scale<3><<<(n + 63) / 64, 64, 0, b>>>(data, n);
    cudaMemcpyAsync(copy, data, n * sizeof(int), cudaMemcpyDeviceToDevice, b);
    cudaMemsetAsync(copy, 0, 8, b);
    cudaStreamDestroy(a);
    cudaStreamDestroy(b);
    cudaEventDestroy(event);
    printf("all of it: %s\n", cudaGetErrorName(cudaGetLastError()));
}

// Each thread has its own last error.
__global__ void mistakes() {
    if (threadIdx.x == 0) say<<<1, 2000>>>(1);
    __syncthreads();
    if (threadIdx.x < 2)
        printf("thread %d: %s\n", (int)threadIdx.x, cudaGetErrorName(cudaGetLastError()));
    __syncthreads();
    if (threadIdx.x) return;
    say<<<0, 1>>>(1);
    printf("no blocks: %s\n", cudaGetErrorName(cudaPeekAtLastError()));
    printf("again: %s, ", cudaGetErrorName(cudaGetLastError()));
    printf("then %s\n", cudaGetErrorName(cudaGetLastError()));
    say<<<1, 1, 100 << 10>>>(1);
    printf("shared memory: %s\n", cudaGetErrorName(cudaGetLastError()));
    int device = 99, value = 99;
    printf("cudaGetDevice: %s", cudaGetErrorName(cudaGetDevice(&device)));
    printf(" %d\n", device);
    printf("cudaDeviceGetAttribute: %s",
           cudaGetErrorName(cudaDeviceGetAttribute(&value, cudaDevAttrMaxThreadsPerBlock, 0)));
    printf(" %d\n", value);
    cudaFuncAttributes attributes;
    printf("cudaFuncGetAttributes: %s", cudaGetErrorName(cudaFuncGetAttributes(&attributes, say)));
    printf(" %d\n", attributes.maxThreadsPerBlock);
    int *memory = nullptr;
    printf("cudaMalloc: %s", cudaGetErrorName(cudaMalloc(&memory, 64)));
    memory[0] = 1;
    printf(" %d", memory[0]);
    printf(" %s\n", cudaGetErrorName(cudaFree(memory)));
}

__global__ void deeper(int depth) {
    atomicMax(&steps, depth);
    deeper<<<1, 1>>>(depth + 1);
    const cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess) printf("at depth %d: %s\n", depth, cudaGetErrorName(error));
}
__global__ void many(int n) {
    int failed = 0;
    cudaError_t first = cudaSuccess;
    for (int i = 0; i < n; ++i) {
        say<<<1, 1, 0, cudaStreamFireAndForget>>>(i);
        const cudaError_t error = cudaGetLastError();
        if (error != cudaSuccess) {
            if (!failed++) first = error;
        }
    }
    printf("failed: %s (%s)\n", failed ? "some" : "none", cudaGetErrorName(first));
}

__global__ void crash(int *data) {
    data[threadIdx.x] = 1;
}
__global__ void parent_of_crash() {
    crash<<<1, 1>>>(nullptr);
    say<<<1, 1>>>(99);
}

int main() {
    begin();
    in_order<<<1, 32>>>();
    end("in order");
    begin();
    tree<<<1, 1>>>(1, 3);
    end("a tree");
    begin();
    tail<<<1, 1>>>(1);
    say<<<1, 1>>>(9);
    end("tails");
    int *data, *copy;
    const int n = 1000;
    cudaMallocManaged(&data, n * sizeof(int));
    cudaMallocManaged(&copy, n * sizeof(int));
    begin();
    with_streams<<<1, 32>>>(data, copy, n);
    end("streams");
    std::printf("%d %d %d %d\n", copy[0], copy[1], copy[2], copy[n - 1]);
    mistakes<<<1, 32>>>();
    std::printf("mistakes: %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    begin();
    deeper<<<1, 1>>>(0);
    std::printf("deep: %s", cudaGetErrorName(cudaDeviceSynchronize()));
    int deepest = 0;
    cudaMemcpyFromSymbol(&deepest, steps, 4);
    std::printf(", down to %d\n", deepest);
    begin();
    many<<<1, 1>>>(5000);
    std::printf("5000 launches: %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    cudaFree(data);
    cudaFree(copy);
    begin();
    parent_of_crash<<<1, 1>>>();
    std::printf("a child crashes: %s", cudaGetErrorName(cudaDeviceSynchronize()));
    std::printf(", %s\n", LAST());
    return 0;
}
