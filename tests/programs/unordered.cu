// Work that nothing orders: what `run --sanitize` must find, and nothing else. Lines that it names
// are marked with the number of their case, the earlier piece of work before the later one.
#include <cstdio>
#include <cstring>

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

static int *a, *b, *managed, *pinned, *mapped, pageable[N], sum;
static cudaStream_t one, two, alone;  // the last one does not wait for the default stream
static cudaEvent_t event;

static void host_and_kernels() {
    fill<<<GRID, BLOCK>>>(managed, 1, N);  // case 1
    sum += managed[5];                     // case 1
    cudaDeviceSynchronize();

    copy<<<GRID, BLOCK, 0, one>>>(a, managed, N);  // case 2
    cudaStreamSynchronize(two);
    managed[7] = 1;  // case 2
    cudaDeviceSynchronize();

    fill<<<GRID, BLOCK, 0, one>>>(mapped, 1, N);  // case 3
    memcpy(pageable, pinned, BYTES);              // case 3
    cudaDeviceSynchronize();
}
static void host_and_atomics() {
    count<<<GRID, BLOCK>>>(managed);  // case 19
    sum += managed[0];                // case 19
    sum += managed[N - 1];
    __sync_val_compare_and_swap(&managed[N - 1], sum, 0);
    cudaDeviceSynchronize();

    count<<<GRID, BLOCK>>>(managed + 1);  // case 20
    sum += managed[1];                    // case 20
}
static void host_and_copies() {
    cudaMemcpyAsync(pinned, a, BYTES, cudaMemcpyDeviceToHost, one);  // case 4
    sum += pinned[N - 1];                                            // case 4
    cudaDeviceSynchronize();

    cudaMemcpyAsync(a, pinned, BYTES, cudaMemcpyHostToDevice, one);  // case 5
    pinned[0] = 1;                                                   // case 5
    cudaDeviceSynchronize();

    cudaMemsetAsync(managed, 0, BYTES);  // case 6
    sum += managed[0];                   // case 6
    cudaDeviceSynchronize();

    FILE* nowhere = fopen("/dev/null", "w");
    fill<<<GRID, BLOCK>>>(managed, 1, N);          // case 18
    fwrite(managed, sizeof *managed, N, nowhere);  // case 18
    fclose(nowhere);
    cudaDeviceSynchronize();
}
static void streams() {
    fill<<<GRID, BLOCK, 0, one>>>(a, 1, N);  // case 7
    copy<<<GRID, BLOCK, 0, two>>>(b, a, N);  // case 7
    cudaDeviceSynchronize();

    fill<<<GRID, BLOCK, 0, one>>>(a, 2, N);                          // case 8
    cudaMemcpyAsync(pinned, a, BYTES, cudaMemcpyDeviceToHost, two);  // case 8
    cudaDeviceSynchronize();

    cudaEventRecord(event, one);
    fill<<<GRID, BLOCK, 0, one>>>(a, 3, N);  // case 9: behind the event
    cudaStreamWaitEvent(two, event);
    fill<<<GRID, BLOCK, 0, two>>>(a, 4, N);  // case 9
    cudaDeviceSynchronize();

    fill<<<GRID, BLOCK, 0, one>>>(a, 5, N / 2 + 1);          // case 10: one too many
    fill<<<GRID, BLOCK, 0, two>>>(a + N / 2, 6, N - N / 2);  // case 10
    cudaDeviceSynchronize();

    count<<<1, 32, 0, one>>>(a);      // case 11: atomic operations,
    fill<<<1, 1, 0, two>>>(a, 0, 1);  // case 11: and a store
    cudaDeviceSynchronize();
}
static void default_stream() {
    fill<<<GRID, BLOCK>>>(a, 1, N);            // case 12
    copy<<<GRID, BLOCK, 0, alone>>>(b, a, N);  // case 12
    cudaDeviceSynchronize();

    cudaMemset(a, 0, BYTES);                   // case 13: the host does not wait
    copy<<<GRID, BLOCK, 0, alone>>>(b, a, N);  // case 13
    cudaDeviceSynchronize();

    cudaMemcpy(a, pageable, BYTES, cudaMemcpyHostToDevice);  // case 14: a note
    copy<<<GRID, BLOCK, 0, alone>>>(b, a, N);                // case 14
    cudaDeviceSynchronize();
}
static void pools() {
    int* memory;
    cudaMallocAsync(&memory, BYTES, one);         // case 15
    fill<<<GRID, BLOCK, 0, two>>>(memory, 1, N);  // case 15
    cudaDeviceSynchronize();

    fill<<<GRID, BLOCK, 0, two>>>(memory, 2, N);  // case 16
    cudaFreeAsync(memory, one);                   // case 16
    cudaDeviceSynchronize();
}
static void graphs() {
    cudaGraph_t graph;
    cudaGraphExec_t instance;
    cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal);
    cudaEventRecord(event, one);
    cudaStreamWaitEvent(two, event);
    fill<<<GRID, BLOCK, 0, one>>>(a, 1, N);  // case 17
    fill<<<GRID, BLOCK, 0, two>>>(a, 2, N);  // case 17
    cudaEventRecord(event, two);
    cudaStreamWaitEvent(one, event);
    cudaStreamEndCapture(one, &graph);
    cudaGraphInstantiate(&instance, graph);
    cudaGraphLaunch(instance, one);
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
    cudaMemset(a, 0, BYTES);
    cudaDeviceSynchronize();
    host_and_kernels();
    host_and_copies();
    streams();
    default_stream();
    pools();
    graphs();
    host_and_atomics();
    cudaEventDestroy(event);
    for (cudaStream_t stream : {one, two, alone}) cudaStreamDestroy(stream);
    for (int* memory : {a, b, managed}) cudaFree(memory);
    cudaFreeHost(pinned);
    return sum == 0x7fffffff;
}
