// CUDA graphs: captured and explicit ones, what they compute, and what the API refuses.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>

#define SAY(call) std::printf("%-72s %s\n", #call, cudaGetErrorName(call))
#define LAST() cudaGetErrorName(cudaGetLastError())

struct Large {
    int values[100];
};

__global__ void add(int *data, int value) {
    data[threadIdx.x] += value;
}
__global__ void multiply(int *data, int value) {
    data[threadIdx.x] *= value;
}
__global__ void sum_of(const int *a, const int *b, int *to) {
    to[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x];
}
__global__ void spread(int *data, Large large) {
    data[threadIdx.x] = large.values[threadIdx.x];
}
template <class T>
__global__ void negate(T *data) {
    data[threadIdx.x] = -data[threadIdx.x];
}
__device__ int variable;
__global__ void read_variable(int *data) {
    data[threadIdx.x] += variable;
}
__global__ void decide(const int *data, cudaGraphConditionalHandle handle) {
    cudaGraphSetConditional(handle, (unsigned)data[0]);
}
__global__ void count_down(int *data, cudaGraphConditionalHandle handle) {
    ++data[1];
    cudaGraphSetConditional(handle, (unsigned)--data[0]);
}

static int *d, *e;
static cudaStream_t s, t;

static void show(const char *what, const int *data = d) {
    int host[4] = {};
    const cudaError_t error = cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost);
    std::printf("%s: %d %d %d %d (%s)\n", what, host[0], host[1], host[2], host[3],
                cudaGetErrorName(error));
}
static void call(void *text) {
    std::printf("the host is called: %s\n", (const char *)text);
}
static const char *status_of(cudaStream_t stream) {
    cudaStreamCaptureStatus status;
    if (cudaError_t error = cudaStreamIsCapturing(stream, &status)) return cudaGetErrorName(error);
    return status == cudaStreamCaptureStatusActive        ? "captures"
           : status == cudaStreamCaptureStatusInvalidated ? "invalidated"
                                                          : "none";
}
static cudaGraphExec_t ready(cudaGraph_t graph) {
    cudaGraphExec_t exec = nullptr;
    SAY(cudaGraphInstantiate(&exec, graph, 0));
    return exec;
}
static void launch(cudaGraphExec_t exec) {
    const cudaError_t launched = cudaGraphLaunch(exec, s), done = cudaStreamSynchronize(s);
    if (launched || done)
        std::printf("launch %s, then %s\n", cudaGetErrorName(launched), cudaGetErrorName(done));
}

// Work of one stream, then of two that part and join.
static void captured() {
    cudaGraph_t graph = nullptr;
    cudaMemset(d, 0, 4096);
    SAY(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    std::printf("%s, %s\n", status_of(s), status_of(t));
    static int host[4] = {1, 2, 3, 4}, back[4];
    cudaEvent_t fork, join;
    SAY(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    SAY(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    SAY(cudaMemcpyAsync(d, host, sizeof host, cudaMemcpyHostToDevice, s));
    add<<<1, 4, 0, s>>>(d, 10);
    SAY(cudaEventRecord(fork, s));
    SAY(cudaStreamWaitEvent(t, fork));
    std::printf("%s, %s\n", status_of(s), status_of(t));
    SAY(cudaMemsetAsync(e, 0, 16, t));
    add<<<1, 4, 0, t>>>(e, 100);
    multiply<<<1, 4, 0, s>>>(d, 2);
    negate<<<1, 4, 0, t>>>(e);
    SAY(cudaEventRecord(join, t));
    SAY(cudaStreamWaitEvent(s, join));
    sum_of<<<1, 4, 0, s>>>(d, e, d);
    SAY(cudaMemcpyAsync(back, d, sizeof back, cudaMemcpyDeviceToHost, s));
    SAY(cudaLaunchHostFunc(s, call, (void *)"captured"));
    SAY(cudaStreamEndCapture(s, &graph));
    std::printf("%s, %s\n", status_of(s), status_of(t));
    show("nothing has run");
    size_t nodes = 0, edges = 0, roots = 0;
    SAY(cudaGraphGetNodes(graph, nullptr, &nodes));
    SAY(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
    SAY(cudaGraphGetRootNodes(graph, nullptr, &roots));
    std::printf("%zu nodes, %zu edges, %zu roots\n", nodes, edges, roots);
    cudaGraphExec_t exec = ready(graph);
    launch(exec);
    show("once");
    std::printf("%d %d %d %d\n", back[0], back[1], back[2], back[3]);
    host[0] = 7;
    launch(exec);
    show("from new numbers");
    SAY(cudaGraphDestroy(graph));
    launch(exec);
    SAY(cudaGraphExecDestroy(exec));
    SAY(cudaEventDestroy(fork));
    SAY(cudaEventDestroy(join));
}

// What is refused while a stream is captured, and what ends the capture.
static void misuse() {
    cudaGraph_t graph = nullptr;
    cudaEvent_t event, before;
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    cudaEventCreate(&before);
    cudaEventRecord(before, t);
    void *p = nullptr;
    int host[4] = {};
    SAY(cudaStreamEndCapture(s, &graph));
    SAY(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal));
    SAY(cudaStreamBeginCapture(cudaStreamLegacy, cudaStreamCaptureModeGlobal));
    SAY(cudaStreamBeginCapture(s, (cudaStreamCaptureMode)9));
#define BEGIN(mode)                                                                 \
    std::printf("-- %s\n", #mode);                                                  \
    if (cudaError_t error = cudaStreamBeginCapture(s, cudaStreamCaptureMode##mode)) \
    std::printf("not begun: %s\n", cudaGetErrorName(error))
#define END()                                                                               \
    std::printf("%s; ", status_of(s));                                                      \
    graph = nullptr;                                                                        \
    std::printf("end %s, ", cudaGetErrorName(cudaStreamEndCapture(s, &graph)));             \
    std::printf("%s, %s, last %s\n", graph ? "a graph" : "no graph", status_of(s), LAST()); \
    if (graph) cudaGraphDestroy(graph)
    BEGIN(Global);
    SAY(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    END();
    BEGIN(Global);
    SAY(cudaStreamSynchronize(s));
    SAY(cudaMemsetAsync(d, 0, 16, s));
    END();
    BEGIN(Global);
    SAY(cudaStreamQuery(s));
    END();
    BEGIN(Global);
    SAY(cudaDeviceSynchronize());
    END();
    BEGIN(Global);
    SAY(cudaMalloc(&p, 64));
    END();
    BEGIN(ThreadLocal);
    SAY(cudaMalloc(&p, 64));
    END();
    BEGIN(Relaxed);
    SAY(cudaMalloc(&p, 64));
    SAY(cudaFree(p));
    END();
    BEGIN(Relaxed);
    SAY(cudaMemcpy(host, d, 16, cudaMemcpyDeviceToHost));
    END();
    BEGIN(Global);
    SAY(cudaMemcpy(host, d, 16, cudaMemcpyDeviceToHost));
    END();
    BEGIN(Global);
    SAY(cudaMemcpyAsync(host, d, 16, cudaMemcpyDeviceToHost, t));
    SAY(cudaStreamSynchronize(t));
    END();
    BEGIN(Global);
    SAY(cudaMemset(d, 0, 16));
    END();
    BEGIN(Global);
    add<<<1, 4>>>(d, 1);
    std::printf("launch: %s\n", LAST());
    END();
    BEGIN(Global);
    add<<<1, 2000, 0, s>>>(d, 1);
    std::printf("launch: %s\n", LAST());
    END();
    BEGIN(Global);
    SAY(cudaEventRecord(event, s));
    SAY(cudaEventQuery(event));
    END();
    BEGIN(Global);
    SAY(cudaEventRecord(event, s));
    SAY(cudaEventSynchronize(event));
    END();
    BEGIN(Global);
    SAY(cudaStreamWaitEvent(s, before));
    END();
    BEGIN(Global);
    SAY(cudaEventRecord(event, s));
    SAY(cudaStreamWaitEvent(t, event));
    add<<<1, 4, 0, t>>>(d, 1);
    END();
    std::printf("%s\n", status_of(t));
    BEGIN(Global);
    SAY(cudaEventRecord(event, s));
    SAY(cudaStreamWaitEvent(t, event));
    SAY(cudaStreamEndCapture(t, &graph));
    END();
    std::printf("%s\n", status_of(t));
    BEGIN(Global);
    SAY(cudaEventRecord(event, s));
    SAY(cudaStreamWaitEvent(nullptr, event));
    END();
    BEGIN(Global);
    SAY(cudaEventElapsedTime((float *)host, before, before));
    END();
    BEGIN(Global);
    SAY(cudaStreamBeginCapture(t, cudaStreamCaptureModeGlobal));
    SAY(cudaEventRecord(event, t));
    SAY(cudaStreamWaitEvent(s, event));
    SAY(cudaStreamEndCapture(t, &graph));
    END();
    BEGIN(Global);
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    SAY(cudaThreadExchangeStreamCaptureMode(&mode));
    std::printf("%d\n", (int)mode);
    SAY(cudaMalloc(&p, 64));
    SAY(cudaThreadExchangeStreamCaptureMode(&mode));
    END();
    SAY(cudaFree(p));
    BEGIN(Global);
    unsigned long long id = 0;
    cudaStreamCaptureStatus status;
    size_t dependencies = 99;
    const cudaGraphNode_t *on = nullptr;
    SAY(cudaStreamGetCaptureInfo(s, &status, &id, &graph, &on, nullptr, &dependencies));
    std::printf("%d %d %zu\n", (int)status, id != 0, dependencies);
    add<<<1, 4, 0, s>>>(d, 1);
    SAY(cudaStreamGetCaptureInfo(s, &status, &id, &graph, &on, nullptr, &dependencies));
    std::printf("%d %d %zu\n", (int)status, id != 0, dependencies);
    END();
    SAY(cudaStreamGetCaptureInfo(s, &status, &id, &graph, &on, nullptr, &dependencies));
    std::printf("%d\n", (int)status);
    SAY(cudaEventDestroy(event));
    SAY(cudaEventDestroy(before));
}

// Nodes of every kind, added one by one.
static void explicit_graph() {
    cudaGraph_t graph, child;
    cudaGraphNode_t set, copy, first, second, host, empty, nested, back, node;
    cudaMemset(d, 0, 4096);
    SAY(cudaGraphCreate(&graph, 1));
    SAY(cudaGraphCreate(&graph, 0));
    cudaMemsetParams fill = {};
    fill.dst = d;
    fill.value = 3;
    fill.elementSize = 4;
    fill.width = 4;
    fill.height = 1;
    SAY(cudaGraphAddMemsetNode(&set, graph, nullptr, 0, &fill));
    fill.elementSize = 3;
    SAY(cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &fill));
    SAY(cudaGraphAddMemcpyNode1D(&copy, graph, &set, 1, e, d, 16, cudaMemcpyDeviceToDevice));
    int value = 4;
    void *arguments[] = {&d, &value};
    cudaKernelNodeParams kernel = {};
    kernel.func = (void *)add;
    kernel.gridDim = dim3(1);
    kernel.blockDim = dim3(4);
    kernel.kernelParams = arguments;
    SAY(cudaGraphAddKernelNode(&first, graph, &copy, 1, &kernel));
    value = 1000;  // the node has a copy
    kernel.blockDim = dim3(2000);
    SAY(cudaGraphAddKernelNode(&node, graph, &copy, 1, &kernel));
    kernel.blockDim = dim3(4);
    kernel.func = (void *)call;
    SAY(cudaGraphAddKernelNode(&node, graph, &copy, 1, &kernel));
    Large large;
    for (int i = 0; i < 100; ++i) large.values[i] = i * i;
    void *two[] = {&e, &large};
    kernel.func = (void *)spread;
    kernel.kernelParams = two;
    SAY(cudaGraphAddKernelNode(&second, graph, &copy, 1, &kernel));
    large.values[3] = 0;
    const cudaGraphNode_t both[] = {first, second};
    SAY(cudaGraphAddEmptyNode(&empty, graph, both, 2));
    SAY(cudaGraphAddEmptyNode(&node, graph, nullptr, 1));
    cudaHostNodeParams call_params = {call, (void *)"explicit"};
    SAY(cudaGraphAddHostNode(&host, graph, &empty, 1, &call_params));
    SAY(cudaGraphCreate(&child, 0));
    void *three[] = {&d, &e, &d};
    kernel.func = (void *)sum_of;
    kernel.kernelParams = three;
    cudaGraphNode_t inner;
    SAY(cudaGraphAddKernelNode(&inner, child, nullptr, 0, &kernel));
    SAY(cudaGraphAddChildGraphNode(&nested, graph, &host, 1, child));
    SAY(cudaGraphDestroy(child));
    static int result[4];
    SAY(cudaGraphAddMemcpyNode1D(&back, graph, &nested, 1, result, d, 16, cudaMemcpyDeviceToHost));
    SAY(cudaGraphAddDependencies(graph, &back, &set, nullptr, 1));  // a cycle
    cudaGraphExec_t exec = nullptr;
    SAY(cudaGraphInstantiate(&exec, graph, 0));
    SAY(cudaGraphRemoveDependencies(graph, &back, &set, nullptr, 1));
    SAY(cudaGraphRemoveDependencies(graph, &back, &set, nullptr, 1));
    SAY(cudaGraphAddDependencies(graph, &set, &set, nullptr, 1));
    SAY(cudaGraphAddDependencies(graph, &set, &copy, nullptr, 1));
    exec = ready(graph);
    launch(exec);
    std::printf("%d %d %d %d\n", result[0], result[1], result[2], result[3]);

    size_t count = 0;
    cudaGraphNode_t nodes[16], from[16], to[16];
    cudaGraphEdgeData data[16];
    SAY(cudaGraphGetNodes(graph, nullptr, &count));
    std::printf("%zu\n", count);
    count = 16;
    SAY(cudaGraphGetNodes(graph, nodes, &count));
    for (size_t i = 0; i < count; ++i) {
        cudaGraphNodeType type;
        size_t before = 0, after = 0;
        cudaGraphNodeGetType(nodes[i], &type);
        cudaGraphNodeGetDependencies(nodes[i], nullptr, nullptr, &before);
        cudaGraphNodeGetDependentNodes(nodes[i], nullptr, nullptr, &after);
        std::printf("type %d, after %zu, before %zu\n", (int)type, before, after);
    }
    count = 16;
    SAY(cudaGraphGetEdges(graph, from, to, data, &count));
    std::printf("%zu\n", count);
    count = 16;
    SAY(cudaGraphNodeGetDependencies(empty, nodes, data, &count));
    std::printf("%zu %d\n", count, nodes[0] == first || nodes[1] == first);

    cudaKernelNodeParams read = {};
    SAY(cudaGraphKernelNodeGetParams(first, &read));
    std::printf("%d %u %d\n", read.func == (void *)add, read.blockDim.x,
                *(int *)read.kernelParams[1]);
    SAY(cudaGraphKernelNodeGetParams(set, &read));
    SAY(cudaGraphMemsetNodeGetParams(set, &fill));
    std::printf("%u %u %zu\n", fill.value, fill.elementSize, fill.width);
    SAY(cudaGraphHostNodeGetParams(host, &call_params));
    std::printf("%s\n", (const char *)call_params.userData);
    SAY(cudaGraphChildGraphNodeGetGraph(nested, &child));

    // Parameters of the instance, of the graph, and both at once.
    value = 5;
    kernel.func = (void *)add;
    kernel.kernelParams = arguments;
    SAY(cudaGraphExecKernelNodeSetParams(exec, first, &kernel));
    launch(exec);
    std::printf("%d %d\n", result[0], result[3]);
    value = 6;
    SAY(cudaGraphKernelNodeSetParams(first, &kernel));
    launch(exec);
    std::printf("%d %d\n", result[0], result[3]);
    cudaGraphNode_t at = nullptr;
    cudaGraphExecUpdateResultInfo info = {};
    SAY(cudaGraphExecUpdate(exec, graph, &info));
    std::printf("%d\n", (int)info.result);
    launch(exec);
    std::printf("%d %d\n", result[0], result[3]);
    kernel.func = (void *)multiply;
    SAY(cudaGraphExecKernelNodeSetParams(exec, first, &kernel));
    launch(exec);
    std::printf("%d %d\n", result[0], result[3]);
    fill.elementSize = 4;
    fill.value = 1;
    SAY(cudaGraphExecMemsetNodeSetParams(exec, set, &fill));
    SAY(cudaGraphExecMemcpyNodeSetParams1D(exec, back, result + 1, d, 8, cudaMemcpyDeviceToHost));
    launch(exec);
    std::printf("%d %d %d %d\n", result[0], result[1], result[2], result[3]);
    call_params.userData = (void *)"another text";
    SAY(cudaGraphExecHostNodeSetParams(exec, host, &call_params));
    launch(exec);
    SAY(cudaGraphNodeSetEnabled(exec, host, 0));
    SAY(cudaGraphNodeSetEnabled(exec, first, 0));
    unsigned enabled = 9;
    SAY(cudaGraphNodeGetEnabled(exec, first, &enabled));
    std::printf("%u\n", enabled);
    launch(exec);
    std::printf("%d %d\n", result[1], result[2]);
    SAY(cudaGraphExecKernelNodeSetParams(exec, host, &kernel));

    // An instance cannot follow a graph of another shape.
    cudaGraph_t clone, other;
    SAY(cudaGraphClone(&clone, graph));
    SAY(cudaGraphNodeFindInClone(&node, first, clone));
    SAY(cudaGraphNodeGetType(node, nullptr));
    SAY(cudaGraphDestroyNode(node));
    SAY(cudaGraphExecUpdate(exec, clone, &info));
    std::printf("%d\n", (int)info.result);
    SAY(cudaGraphClone(&other, graph));
    SAY(cudaGraphNodeFindInClone(&node, back, other));
    SAY(cudaGraphDestroyNode(node));
    cudaGraphNode_t parent;
    SAY(cudaGraphNodeFindInClone(&parent, nested, other));
    SAY(cudaGraphAddMemsetNode(&at, other, &parent, 1, &fill));
    SAY(cudaGraphExecUpdate(exec, other, &info));
    std::printf("%d\n", (int)info.result);
    exec = (launch(exec), exec);
    SAY(cudaGraphExecDestroy(exec));
    SAY(cudaGraphDestroy(clone));
    SAY(cudaGraphDestroy(other));
    SAY(cudaGraphDestroy(graph));
    SAY(cudaGraphInstantiate(&exec, nullptr, 0));
    SAY(cudaGraphLaunch(nullptr, s));
    std::printf("the last of them: %s\n", LAST());
}

// Symbols, two-dimensional copies and events in a captured graph.
static void more_nodes() {
    cudaGraph_t graph;
    cudaEvent_t event;
    cudaEventCreate(&event);
    cudaMemset(d, 0, 4096);
    static int value = 40, last;
    SAY(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    SAY(cudaMemcpyToSymbolAsync(variable, &value, 4, 0, cudaMemcpyHostToDevice, s));
    read_variable<<<1, 4, 0, s>>>(d);
    SAY(cudaMemset2DAsync(e, 32, 1, 8, 4, s));
    SAY(cudaMemcpy2DAsync(d, 8, e, 32, 4, 2, cudaMemcpyDeviceToDevice, s));
    SAY(cudaMemcpyFromSymbolAsync(&last, variable, 4, 0, cudaMemcpyDeviceToHost, s));
    SAY(cudaEventRecordWithFlags(event, s, cudaEventRecordExternal));
    SAY(cudaStreamEndCapture(s, &graph));
    size_t count = 16;
    cudaGraphNode_t nodes[16];
    SAY(cudaGraphGetNodes(graph, nodes, &count));
    for (size_t i = 0; i < count; ++i) {
        cudaGraphNodeType type;
        cudaGraphNodeGetType(nodes[i], &type);
        std::printf("type %d\n", (int)type);
    }
    cudaGraphExec_t exec = ready(graph);
    SAY(cudaGraphUpload(exec, s));
    value = 41;
    launch(exec);
    SAY(cudaEventQuery(event));
    show("symbols and rows");
    std::printf("%d\n", last);
    cudaGraphExec_t with_flags;
    SAY(cudaGraphInstantiateWithFlags(&with_flags, graph, 1ull << 40));
    SAY(cudaGraphInstantiateWithFlags(&with_flags, graph,
                                      cudaGraphInstantiateFlagAutoFreeOnLaunch));
    unsigned long long flags = 0;
    SAY(cudaGraphExecGetFlags(with_flags, &flags));
    std::printf("%llu\n", flags);
    SAY(cudaGraphExecDestroy(with_flags));
    SAY(cudaGraphExecDestroy(exec));
    // A graph in a graph: a launch that is captured.
    cudaGraph_t outer;
    cudaGraphExec_t inner = nullptr;
    SAY(cudaGraphInstantiate(&inner, graph, 0));
    SAY(cudaStreamBeginCapture(t, cudaStreamCaptureModeGlobal));
    SAY(cudaGraphLaunch(inner, t));  // not possible with the event
    SAY(cudaStreamEndCapture(t, &outer));
    count = 16;
    SAY(cudaGraphGetNodes(outer, nodes, &count));
    cudaGraphNodeType type;
    SAY(cudaGraphNodeGetType(nodes[0], &type));
    std::printf("%zu, type %d\n", count, (int)type);
    SAY(cudaGraphDestroy(outer));
    SAY(cudaGraphExecDestroy(inner));
    SAY(cudaGraphDestroy(graph));
    SAY(cudaEventDestroy(event));
}

static unsigned long long graph_memory(cudaGraphMemAttributeType attribute) {
    unsigned long long bytes = 99;
    cudaDeviceGetGraphMemAttribute(0, attribute, &bytes);
    return bytes;
}

// Memory that a graph allocates.
static void memory() {
    cudaGraph_t graph;
    SAY(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    int *a = nullptr, *b = nullptr;
    SAY(cudaMallocAsync(&a, 4096, s));
    SAY(cudaMemsetAsync(a, 0, 4096, s));
    add<<<1, 4, 0, s>>>(a, 8);
    SAY(cudaMallocAsync(&b, 4096, s));
    sum_of<<<1, 4, 0, s>>>(a, a, b);
    SAY(cudaFreeAsync(a, s));
    SAY(cudaMemcpyAsync(d, b, 16, cudaMemcpyDeviceToDevice, s));
    SAY(cudaFreeAsync(b, s));
    SAY(cudaFreeAsync(b, s));
    SAY(cudaStreamEndCapture(s, &graph));
    std::printf("last %s\n", LAST());
    SAY(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    SAY(cudaMallocAsync(&a, 4096, s));
    SAY(cudaMemsetAsync(a, 0, 4096, s));
    add<<<1, 4, 0, s>>>(a, 8);
    SAY(cudaMallocAsync(&b, 4096, s));
    sum_of<<<1, 4, 0, s>>>(a, a, b);
    SAY(cudaFreeAsync(a, s));
    SAY(cudaMemcpyAsync(d, b, 16, cudaMemcpyDeviceToDevice, s));
    SAY(cudaFreeAsync(b, s));
    SAY(cudaStreamEndCapture(s, &graph));
    cudaGraphExec_t exec = ready(graph), again = nullptr;
    std::printf("used %llu\n", graph_memory(cudaGraphMemAttrUsedMemCurrent));
    launch(exec);
    show("memory of the graph's own");
    launch(exec);
    std::printf("used %llu\n", graph_memory(cudaGraphMemAttrUsedMemCurrent));
    SAY(cudaGraphInstantiate(&again, graph, 0));
    SAY(cudaGraphClone(&graph, graph));
    SAY(cudaGraphExecDestroy(exec));

    // Memory that outlives the graph.
    cudaMemAllocNodeParams allocation = {};
    cudaGraphNode_t node, next, free_node;
    SAY(cudaGraphCreate(&graph, 0));
    SAY(cudaGraphAddMemAllocNode(&node, graph, nullptr, 0, &allocation));
    allocation.poolProps.allocType = cudaMemAllocationTypePinned;
    allocation.poolProps.location.type = cudaMemLocationTypeDevice;
    allocation.bytesize = 64;
    SAY(cudaGraphAddMemAllocNode(&node, graph, nullptr, 0, &allocation));
    int *kept = (int *)allocation.dptr;
    SAY(cudaGraphAddMemcpyNode1D(&next, graph, &node, 1, kept, e, 16, cudaMemcpyDeviceToDevice));
    SAY(cudaGraphInstantiate(&exec, graph, 0));
    SAY(cudaMemcpy(kept, e, 16, cudaMemcpyDeviceToDevice));
    cudaMemset(e, 0, 64);
    launch(exec);
    show("it lives on", kept);
    SAY(cudaGraphLaunch(exec, s));
    SAY(cudaFree(kept));
    launch(exec);
    SAY(cudaFreeAsync(kept, s));
    SAY(cudaFreeAsync(kept, s));
    SAY(cudaGraphAddMemFreeNode(&free_node, graph, &next, 1, kept));
    SAY(cudaGraphAddMemFreeNode(&free_node, graph, &next, 1, kept));
    SAY(cudaGraphDestroyNode(node));
    SAY(cudaGraphExecDestroy(exec));
    SAY(cudaGraphInstantiate(&exec, graph, 0));
    launch(exec);
    launch(exec);
    std::printf("used %llu\n", graph_memory(cudaGraphMemAttrUsedMemCurrent));
    SAY(cudaGraphExecDestroy(exec));
    SAY(cudaGraphDestroy(graph));
    SAY(cudaDeviceGraphMemTrim(0));
    std::printf("reserved %llu\n", graph_memory(cudaGraphMemAttrReservedMemCurrent));
    cudaFree(kept);
    std::printf("the last of them: %s\n", LAST());
}

static cudaGraphNodeParams kernel_params(void *kernel, void **arguments) {
    cudaGraphNodeParams params = {};
    params.type = cudaGraphNodeTypeKernel;
    params.kernel.func = kernel;
    params.kernel.gridDim.x = params.kernel.gridDim.y = params.kernel.gridDim.z = 1;
    params.kernel.blockDim.x = params.kernel.blockDim.y = params.kernel.blockDim.z = 1;
    params.kernel.kernelParams = arguments;
    return params;
}
static void set_first(int value) {
    int host[4] = {value};
    cudaMemcpy(d, host, sizeof host, cudaMemcpyHostToDevice);
}

// Graphs that run if, while, or as a number says.
static void conditional() {
    cudaGraph_t graph;
    cudaGraphConditionalHandle handle;
    cudaGraphNode_t node, decision, body;
    cudaGraphExec_t exec;
    int ten = 10;
    SAY(cudaGraphCreate(&graph, 0));
    SAY(cudaGraphConditionalHandleCreate(&handle, graph));
    void *decides[] = {&d, &handle}, *adds[] = {&d, &ten};
    cudaGraphNodeParams params = kernel_params((void *)decide, decides);
    SAY(cudaGraphAddNode(&decision, graph, nullptr, nullptr, 0, &params));
    cudaGraphNodeParams choice = {};
    choice.type = cudaGraphNodeTypeConditional;
    choice.conditional.handle = handle;
    choice.conditional.type = cudaGraphCondTypeIf;
    choice.conditional.size = 2;
    SAY(cudaGraphAddNode(&node, graph, &decision, nullptr, 1, &choice));
    params = kernel_params((void *)add, adds);
    SAY(cudaGraphAddNode(&body, choice.conditional.phGraph_out[0], nullptr, nullptr, 0, &params));
    ten = -10;
    SAY(cudaGraphAddNode(&body, choice.conditional.phGraph_out[1], nullptr, nullptr, 0, &params));
    cudaGraphNodeType type;
    SAY(cudaGraphNodeGetType(node, &type));
    std::printf("type %d\n", (int)type);
    SAY(cudaGraphInstantiate(&exec, graph, 0));
    for (int value : {0, 1}) {
        set_first(value);
        launch(exec);
        show("if");
    }
    SAY(cudaGraphExecDestroy(exec));
    SAY(cudaGraphDestroy(graph));

    SAY(cudaGraphCreate(&graph, 0));
    SAY(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
    choice.conditional.handle = handle;
    choice.conditional.type = cudaGraphCondTypeWhile;
    SAY(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &choice));
    choice.conditional.size = 1;
    SAY(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &choice));
    SAY(cudaStreamBeginCaptureToGraph(t, choice.conditional.phGraph_out[0], nullptr, nullptr, 0,
                                      cudaStreamCaptureModeGlobal));
    count_down<<<1, 1, 0, t>>>(d, handle);
    SAY(cudaStreamEndCapture(t, nullptr));
    SAY(cudaGraphInstantiate(&exec, graph, 0));
    for (int value : {5, 1}) {
        set_first(value);
        launch(exec);
        show("while");
    }
    SAY(cudaGraphExecDestroy(exec));
    SAY(cudaGraphDestroy(graph));

    SAY(cudaGraphCreate(&graph, 0));
    SAY(cudaGraphConditionalHandleCreate(&handle, graph));
    params = kernel_params((void *)decide, decides);
    SAY(cudaGraphAddNode(&decision, graph, nullptr, nullptr, 0, &params));
    choice.conditional.handle = handle;
    choice.conditional.type = cudaGraphCondTypeSwitch;
    choice.conditional.size = 3;
    SAY(cudaGraphAddNode(&node, graph, &decision, nullptr, 1, &choice));
    params = kernel_params((void *)add, adds);
    for (int i = 0; i < 3; ++i) {
        ten = 100 * (i + 1);
        SAY(cudaGraphAddNode(&body, choice.conditional.phGraph_out[i], nullptr, nullptr, 0,
                             &params));
    }
    SAY(cudaGraphInstantiate(&exec, graph, 0));
    for (int value : {0, 2, 3}) {
        set_first(value);
        launch(exec);
        show("switch");
    }
    SAY(cudaGraphExecDestroy(exec));
    SAY(cudaGraphDestroy(graph));
    std::printf("the last of them: %s\n", LAST());
}

int main() {
    cudaMalloc(&d, 4096);
    cudaMalloc(&e, 4096);
    cudaStreamCreate(&s);
    cudaStreamCreate(&t);
    captured();
    misuse();
    explicit_graph();
    more_nodes();
    memory();
    conditional();
    cudaFree(d);
    cudaFree(e);
    cudaStreamDestroy(s);
    cudaStreamDestroy(t);
    return cudaDeviceSynchronize() != cudaSuccess;
}
