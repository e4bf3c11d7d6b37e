// Work that is ordered, or needs no order: `run --sanitize` must find nothing. Where the host waits
// for everything, cases are apart.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

const int N = 2000, BYTES = N * sizeof(int);
const dim3 GRID(8), BLOCK(256);

__global__ void fill(int* to, int value, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = value;
}
__global__ void copy(int* to, const int* from, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[i];
}
__global__ void count(int* counter) {
    atomicAdd(counter, 1);
}
__global__ void odd_or_even(unsigned char* to, int first, int n) {
    int i = 2 * threadIdx.x + first;
    if (i < n) to[i] = 1;
}

static int *a, *b, *managed, *pinned, *mapped, pageable[N], sum;
static cudaStream_t one, two, alone;
static cudaEvent_t event;

static void host() {
    fill<<<GRID, BLOCK>>>(managed, 1, N);
    cudaDeviceSynchronize();
    sum += std::accumulate(managed, managed + N, 0);

    fill<<<GRID, BLOCK, 0, one>>>(managed, 2, N / 2);
    managed[N / 2] = 3;  // others than the kernel's
    cudaStreamSynchronize(one);
    sum += managed[0];

    copy<<<GRID, BLOCK, 0, one>>>(a, managed, N);
    sum += managed[1];  // both read
    while (cudaStreamQuery(one) != cudaSuccess) {
    }
    managed[1] = 5;

    fill<<<GRID, BLOCK, 0, alone>>>(mapped, 1, N);
    cudaEventRecord(event, alone);
    cudaEventSynchronize(event);
    memcpy(pageable, pinned, BYTES);

    fill<<<GRID, BLOCK, 0, one>>>(managed, 1, N);
    cudaStreamSynchronize(nullptr);  // the default stream waits for the other
    sum += managed[0];

    fill<<<GRID, BLOCK, 0, one>>>(managed, 2, N);
    int* other;
    cudaMalloc(&other, BYTES);
    cudaFree(other);  // waits
    sum += managed[0];
    cudaMemset(managed, 0, BYTES);  // the host waits, for the memory is managed
    sum += managed[0];
}
static void copies() {
    fill<<<GRID, BLOCK>>>(a, 1, N);
    cudaMemcpy(pinned, a, BYTES, cudaMemcpyDeviceToHost);
    sum += pinned[0];
    cudaMemcpy(a, pinned, BYTES, cudaMemcpyHostToDevice);
    pinned[0] = 1;
    copy<<<GRID, BLOCK, 0, alone>>>(b, a, N);  // the host has waited for the copy
    cudaDeviceSynchronize();

    cudaMemcpyAsync(pageable, a, BYTES, cudaMemcpyDeviceToHost, one);
    sum += pageable[0];  // memory that is not pinned: the call waits
    cudaMemcpyAsync(a, pageable, BYTES, cudaMemcpyHostToDevice, one);
    pageable[0] = 1;  // has been read

    cudaMemcpyAsync(pinned, a, BYTES / 2, cudaMemcpyDeviceToHost, one);
    pinned[N / 2] = 1;
    cudaDeviceSynchronize();
}
static void streams() {
    fill<<<GRID, BLOCK, 0, one>>>(a, 1, N);
    cudaEventRecord(event, one);
    fill<<<GRID, BLOCK, 0, one>>>(b, 1, N);  // behind the event
    cudaStreamWaitEvent(two, event);
    copy<<<GRID, BLOCK, 0, two>>>(mapped, a, N);
    cudaDeviceSynchronize();

    fill<<<GRID, BLOCK, 0, one>>>(a, 5, N / 2);
    fill<<<GRID, BLOCK, 0, two>>>(a + N / 2, 6, N - N / 2);
    copy<<<GRID, BLOCK>>>(b, a, N);  // the default stream waits for both
    fill<<<GRID, BLOCK, 0, one>>>(b, 1, N);
    cudaDeviceSynchronize();

    cudaMemset(a, 0, BYTES);
    count<<<1, 32, 0, one>>>(a);
    count<<<1, 32, 0, two>>>(a);
    odd_or_even<<<1, 32, 0, one>>>((unsigned char*)b, 0, 64);
    odd_or_even<<<1, 32, 0, two>>>((unsigned char*)b, 1, 64);
    cudaDeviceSynchronize();

    for (int i = 0; i < 40; ++i) {  // streams that are destroyed before their work is done
        cudaStream_t brief;
        cudaStreamCreate(&brief);
        fill<<<1, 32, 0, brief>>>(a + 32 * i, i, 32);
        cudaStreamDestroy(brief);
    }
    copy<<<GRID, BLOCK>>>(b, a, N);
    cudaDeviceSynchronize();
}
static void host_functions() {
    static int seen;
    cudaMemcpyAsync(pinned, a, BYTES, cudaMemcpyDeviceToHost, one);
    cudaLaunchHostFunc(one, [](void* data) { seen = ((int*)data)[0]; }, pinned);
    cudaMemcpyAsync(a, pinned, BYTES, cudaMemcpyHostToDevice, one);
    cudaStreamSynchronize(one);
    sum += seen;
}
static void host_and_atomics() {
    count<<<GRID, BLOCK>>>(managed);
    int seen;  // the swap checks what is read
    do seen = managed[0];
    while (__sync_val_compare_and_swap(managed, seen, seen + 1) != seen);
    cudaDeviceSynchronize();
}
static void pools() {
    int* memory;
    cudaMallocAsync(&memory, BYTES, one);
    cudaEventRecord(event, one);
    cudaStreamWaitEvent(two, event);
    fill<<<GRID, BLOCK, 0, two>>>(memory, 1, N);
    cudaEventRecord(event, two);
    cudaStreamWaitEvent(one, event);
    cudaFreeAsync(memory, one);
    cudaMallocAsync(&memory, BYTES, two);  // the pool takes care of memory that is used again
    fill<<<GRID, BLOCK, 0, two>>>(memory, 1, N);
    cudaFreeAsync(memory, two);
    cudaDeviceSynchronize();
}
static void graphs() {
    cudaGraph_t graph;
    cudaGraphExec_t instance;
    cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal);
    fill<<<GRID, BLOCK, 0, one>>>(a, 1, N);
    cudaEventRecord(event, one);
    cudaStreamWaitEvent(two, event);
    copy<<<GRID, BLOCK, 0, one>>>(b, a, N / 2);
    copy<<<GRID, BLOCK, 0, two>>>(b + N / 2, a + N / 2, N - N / 2);
    cudaEventRecord(event, two);
    cudaStreamWaitEvent(one, event);
    cudaMemcpyAsync(pinned, b, BYTES, cudaMemcpyDeviceToHost, one);
    cudaStreamEndCapture(one, &graph);
    cudaGraphInstantiate(&instance, graph);
    for (cudaStream_t stream : {one, one, two, alone})  // an instance runs once at a time
        cudaGraphLaunch(instance, stream);
    fill<<<GRID, BLOCK, 0, alone>>>(a, 1, N);
    cudaStreamSynchronize(alone);
    sum += pinned[0];
    cudaDeviceSynchronize();
    cudaGraphExecDestroy(instance);
    cudaGraphDestroy(graph);
}

int main() {
    cudaMalloc(&a, BYTES);
    cudaMalloc(&b, BYTES);
    cudaMallocManaged(&managed, BYTES);
    cudaMallocHost(&pinned, BYTES);
    cudaHostGetDevicePointer(&mapped, pinned, 0);
    cudaStreamCreate(&one);
    cudaStreamCreate(&two);
    cudaStreamCreateWithFlags(&alone, cudaStreamNonBlocking);
    cudaEventCreate(&event);
    host();
    copies();
    streams();
    host_functions();
    host_and_atomics();
    pools();
    graphs();
    cudaEventDestroy(event);
    for (cudaStream_t stream : {one, two, alone}) cudaStreamDestroy(stream);
    for (int* memory : {a, b, managed}) cudaFree(memory);
    cudaFreeHost(pinned);
    return sum == 0x7fffffff;
}
