// Kernels that wait for what the host does after their launch, and the work that follows them: in
// streams, by events, copies, fills, host functions, graphs and memory pools.
#include <cstdio>
#include <cstdlib>
#include <thread>

#define CHECK(call)                                                      \
    do {                                                                 \
        cudaError_t error_ = (call);                                     \
        if (error_ != cudaSuccess) {                                     \
            printf("line %d: %s\n", __LINE__, cudaGetErrorName(error_)); \
            exit(1);                                                     \
        }                                                                \
    } while (0)

__global__ void wait_for(volatile int* flag) {
    while (*flag == 0) {
    }
}
__global__ void append(int* number, int digit) {
    *number = *number * 10 + digit;
}
__global__ void fail() {
    *(volatile int*)16 = 1;
}

static volatile int* flag;  // of the host
static int *number, *host, *managed;
static cudaStream_t one, other, free_one;  // the last one does not wait for the default stream
static cudaEvent_t before, after;

static const char* name(cudaError_t error) {
    return cudaGetErrorName(error);
}
static void append_seven(void* p) {
    *(int*)p = *(int*)p * 10 + 7;
}
static void CUDART_CB append_status(cudaStream_t, cudaError_t status, void* p) {
    *(int*)p = *(int*)p * 10 + 5 + (int)status;
}
static int fetch() {
    int result;
    CHECK(cudaMemcpy(&result, number, sizeof result, cudaMemcpyDeviceToHost));
    return result;
}
static void begin() {
    CHECK(cudaMemset(number, 0, 4));
    CHECK(cudaDeviceSynchronize());
    *host = *managed = *flag = 0;
}
static void wait_in(cudaStream_t stream) {
    wait_for<<<1, 1, 0, stream>>>(flag);
}

static void one_stream() {
    begin();
    CHECK(cudaEventRecord(before, one));
    wait_in(one);
    CHECK(cudaGetLastError());
    printf("query: %s", name(cudaStreamQuery(one)));
    printf(", last error: %s\n", name(cudaPeekAtLastError()));
    CHECK(cudaEventRecord(after, one));
    float ms = -1;
    CHECK(cudaEventSynchronize(before));
    printf("events: %s %s", name(cudaEventQuery(before)), name(cudaEventQuery(after)));
    printf(" %s\n", name(cudaEventElapsedTime(&ms, before, after)));
    append<<<1, 1, 0, one>>>(number, 3);
    CHECK(cudaMemcpyAsync(host, number, 4, cudaMemcpyDeviceToHost, one));
    CHECK(cudaLaunchHostFunc(one, append_seven, host));
    CHECK(cudaStreamAddCallback(one, append_status, host, 0));
    printf("other streams: %s %s", name(cudaStreamQuery(other)), name(cudaStreamQuery(free_one)));
    printf(", the default one: %s; %d\n", name(cudaStreamQuery(0)), *host);
    *flag = 1;
    CHECK(cudaStreamSynchronize(one));
    CHECK(cudaEventQuery(after));
    CHECK(cudaEventElapsedTime(&ms, before, after));
    printf("synchronized: %d %d\n", *host, ms >= 0);
}

static void copies() {  // another stream's copies and fills end the wait
    static int pageable;
    for (int way = 0; way < 3; ++way) {
        begin();
        wait_for<<<1, 1, 0, one>>>(number);
        *host = pageable = 1;
        const int* source = way ? &pageable : host;
        if (way == 2)
            CHECK(cudaMemsetAsync(number, 1, 4, other));
        else
            CHECK(cudaMemcpyAsync(number, source, 4, cudaMemcpyHostToDevice, other));
        printf("released: %s\n", name(cudaDeviceSynchronize()));
    }
    begin();  // a copy behind the wait takes what the memory holds now
    wait_in(one);
    pageable = 6;
    CHECK(cudaMemcpyAsync(number, &pageable, 4, cudaMemcpyHostToDevice, one));
    pageable = 0;
    CHECK(cudaMemset2DAsync(number + 2, 8, 1, 4, 2, one));
    *flag = 1;
    CHECK(cudaStreamSynchronize(one));
    printf("behind: %d\n", fetch());
}

static void default_stream() {  // waits for streams, and they for it
    begin();
    wait_in(one);
    append<<<1, 1>>>(number, 4);
    printf("%s %s", name(cudaStreamQuery(0)), name(cudaStreamQuery(other)));
    printf(" %s\n", name(cudaStreamQuery(free_one)));
    append<<<1, 1, 0, other>>>(number, 6);
    printf("%s\n", name(cudaStreamQuery(other)));
    CHECK(cudaMemcpyAsync(host, number, 4, cudaMemcpyDeviceToHost, free_one));
    CHECK(cudaStreamSynchronize(free_one));
    printf("%d", *host);
    *flag = 1;
    CHECK(cudaDeviceSynchronize());
    printf(" %d\n", fetch());
}

static void events() {
    begin();
    wait_in(one);
    CHECK(cudaEventRecord(after, one));
    CHECK(cudaStreamWaitEvent(free_one, after, 0));
    append<<<1, 1, 0, free_one>>>(number, 8);
    printf("%s\n", name(cudaStreamQuery(free_one)));
    *flag = 1;
    CHECK(cudaEventSynchronize(after));
    CHECK(cudaStreamSynchronize(free_one));
    printf("%d\n", fetch());
}

static void host_waits() {  // for a kernel behind the one that waits for it
    begin();
    wait_in(one);
    append<<<1, 1, 0, one>>>(managed, 9);
    *flag = 1;
    while (*(volatile int*)managed != 9) {
    }
    CHECK(cudaDeviceSynchronize());
    printf("%d\n", *managed);
}

static void memory() {  // what does not wait; cudaFree does, as it always has
    begin();
    wait_in(one);
    void *p, *q, *r;
    cudaStream_t stream;
    cudaEvent_t event;
    CHECK(cudaMalloc(&p, 1 << 20));
    CHECK(cudaMallocHost(&q, 1 << 20));
    CHECK(cudaMallocAsync(&r, 64, one));
    append<<<1, 1, 0, one>>>((int*)r, 2);
    CHECK(cudaFreeAsync(r, one));
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreate(&event));
    CHECK(cudaEventRecord(event, one));
    CHECK(cudaEventDestroy(event));
    append<<<1, 1, 0, stream>>>(number, 1);
    CHECK(cudaStreamDestroy(stream));
    std::thread later([] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        *flag = 1;
    });
    CHECK(cudaFree(p));
    printf("%d", *flag);
    printf(" %d\n", fetch());
    later.join();
    CHECK(cudaFreeHost(q));
}

static void graph() {  // a kernel in it waits
    begin();
    cudaGraph_t captured;
    cudaGraphExec_t instance;
    CHECK(cudaStreamBeginCapture(free_one, cudaStreamCaptureModeRelaxed));
    append<<<1, 1, 0, free_one>>>(number, 1);
    wait_in(free_one);
    append<<<1, 1, 0, free_one>>>(number, 2);
    CHECK(cudaStreamEndCapture(free_one, &captured));
    CHECK(cudaGraphInstantiate(&instance, captured, 0));
    CHECK(cudaGraphLaunch(instance, one));
    append<<<1, 1, 0, one>>>(number, 3);
    CHECK(cudaGraphLaunch(instance, one));
    printf("%s\n", name(cudaStreamQuery(one)));
    *flag = 1;
    CHECK(cudaStreamSynchronize(one));
    CHECK(cudaGraphExecDestroy(instance));
    CHECK(cudaGraphDestroy(captured));
    printf("%d\n", fetch());
}

static void failure() {  // of a kernel that follows
    begin();
    wait_in(one);
    fail<<<1, 1, 0, one>>>();
    append<<<1, 1, 0, one>>>(number, 5);
    printf("launched: %s\n", name(cudaGetLastError()));
    *flag = 1;
    printf("failed: %s", name(cudaStreamSynchronize(one)));
    printf(", and for good: %s\n", name(cudaDeviceSynchronize()));
}

int main() {
    CHECK(cudaMallocHost((void**)&flag, 4));
    CHECK(cudaMallocHost((void**)&host, 64));
    CHECK(cudaMallocManaged(&managed, 64));
    CHECK(cudaMalloc(&number, 64));
    CHECK(cudaStreamCreate(&one));
    CHECK(cudaStreamCreate(&other));
    CHECK(cudaStreamCreateWithFlags(&free_one, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&before));
    CHECK(cudaEventCreate(&after));
    *flag = 1;  // every kernel is loaded now, which may wait for others
    wait_in(0);
    append<<<1, 1>>>(number, 0);
    one_stream();
    copies();
    default_stream();
    events();
    host_waits();
    memory();
    graph();
    failure();
}
