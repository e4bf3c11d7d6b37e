// CUDA graphs: their nodes, their instances, and the capture of streams.
#pragma once

#include "cudalab/pools.h"
#include "cudalab/streams.h"

typedef struct CUgraph_st* cudaGraph_t;
typedef struct CUgraphNode_st* cudaGraphNode_t;
typedef struct CUgraphExec_st* cudaGraphExec_t;
typedef unsigned long long cudaGraphConditionalHandle;

enum cudaGraphNodeType {
    cudaGraphNodeTypeKernel = 0,
    cudaGraphNodeTypeMemcpy = 1,
    cudaGraphNodeTypeMemset = 2,
    cudaGraphNodeTypeHost = 3,
    cudaGraphNodeTypeGraph = 4,
    cudaGraphNodeTypeEmpty = 5,
    cudaGraphNodeTypeWaitEvent = 6,
    cudaGraphNodeTypeEventRecord = 7,
    cudaGraphNodeTypeMemAlloc = 10,
    cudaGraphNodeTypeMemFree = 11,
    cudaGraphNodeTypeConditional = 13,
};
enum cudaGraphConditionalNodeType {
    cudaGraphCondTypeIf = 0,
    cudaGraphCondTypeWhile = 1,
    cudaGraphCondTypeSwitch = 2,
};
enum cudaGraphMemAttributeType {
    cudaGraphMemAttrUsedMemCurrent = 0,
    cudaGraphMemAttrUsedMemHigh = 1,
    cudaGraphMemAttrReservedMemCurrent = 2,
    cudaGraphMemAttrReservedMemHigh = 3,
};
enum cudaStreamCaptureStatus {
    cudaStreamCaptureStatusNone = 0,
    cudaStreamCaptureStatusActive = 1,
    cudaStreamCaptureStatusInvalidated = 2,
};
enum cudaStreamCaptureMode {
    cudaStreamCaptureModeGlobal = 0,
    cudaStreamCaptureModeThreadLocal = 1,
    cudaStreamCaptureModeRelaxed = 2,
};
enum cudaStreamUpdateCaptureDependenciesFlags {
    cudaStreamAddCaptureDependencies = 0,
    cudaStreamSetCaptureDependencies = 1,
};
enum cudaGraphExecUpdateResult {
    cudaGraphExecUpdateSuccess = 0,
    cudaGraphExecUpdateError = 1,
    cudaGraphExecUpdateErrorTopologyChanged = 2,
    cudaGraphExecUpdateErrorNodeTypeChanged = 3,
    cudaGraphExecUpdateErrorFunctionChanged = 4,
    cudaGraphExecUpdateErrorParametersChanged = 5,
    cudaGraphExecUpdateErrorNotSupported = 6,
    cudaGraphExecUpdateErrorUnsupportedFunctionChange = 7,
    cudaGraphExecUpdateErrorAttributesChanged = 8,
};
enum cudaGraphInstantiateResult {
    cudaGraphInstantiateSuccess = 0,
    cudaGraphInstantiateError = 1,
    cudaGraphInstantiateInvalidStructure = 2,
    cudaGraphInstantiateNodeOperationNotSupported = 3,
};
enum cudaGraphDependencyType {
    cudaGraphDependencyTypeDefault = 0,
    cudaGraphDependencyTypeProgrammatic = 1,
};
enum {
    cudaGraphCondAssignDefault = 1,
    cudaGraphInstantiateFlagAutoFreeOnLaunch = 1,
    cudaGraphInstantiateFlagUpload = 2,
    cudaGraphInstantiateFlagUseNodePriority = 8,
    cudaGraphDebugDotFlagsVerbose = 1,
    cudaGraphDebugDotFlagsKernelNodeParams = 4,
    cudaGraphDebugDotFlagsMemcpyNodeParams = 8,
    cudaGraphDebugDotFlagsMemsetNodeParams = 16,
    cudaGraphDebugDotFlagsHostNodeParams = 32,
    cudaGraphDebugDotFlagsEventNodeParams = 64,
    cudaGraphDebugDotFlagsKernelNodeAttributes = 512,
    cudaGraphDebugDotFlagsHandles = 1024,
    cudaGraphDebugDotFlagsConditionalNodeParams = 32768,
};

// ------------------------------------------------------------------ parameters of nodes

struct cudaKernelNodeParams {
    void* func;
    dim3 gridDim, blockDim;
    unsigned sharedMemBytes;
    void** kernelParams;
    void** extra;
};
typedef cudaKernelNodeParams cudaKernelNodeParamsV2;
struct cudaMemsetParams {
    void* dst;
    size_t pitch;
    unsigned value, elementSize;
    size_t width, height;
};
typedef cudaMemsetParams cudaMemsetParamsV2;
struct cudaMemcpyNodeParams {
    int flags;
    int reserved[3];
    cudaMemcpy3DParms copyParams;
};
struct cudaHostNodeParams {
    cudaHostFn_t fn;
    void* userData;
};
typedef cudaHostNodeParams cudaHostNodeParamsV2;
struct cudaChildGraphNodeParams {
    cudaGraph_t graph;
};
struct cudaEventRecordNodeParams {
    cudaEvent_t event;
};
struct cudaEventWaitNodeParams {
    cudaEvent_t event;
};
struct cudaMemAllocNodeParams {
    cudaMemPoolProps poolProps;
    const cudaMemAccessDesc* accessDescs;
    size_t accessDescCount, bytesize;
    void* dptr;  // the result
};
typedef cudaMemAllocNodeParams cudaMemAllocNodeParamsV2;
struct cudaMemFreeNodeParams {
    void* dptr;
};
struct cudaConditionalNodeParams {
    cudaGraphConditionalHandle handle;
    cudaGraphConditionalNodeType type;
    unsigned size;
    cudaGraph_t* phGraph_out;  // the result
};
struct cudaGraphNodeParams {
    cudaGraphNodeType type;
    int reserved0[3];
    union {
        long long reserved1[29];
        cudaKernelNodeParams kernel;
        cudaMemcpyNodeParams memcpy;
        cudaMemsetParams memset;
        cudaHostNodeParams host;
        cudaChildGraphNodeParams graph;
        cudaEventWaitNodeParams eventWait;
        cudaEventRecordNodeParams eventRecord;
        cudaMemAllocNodeParams alloc;
        cudaMemFreeNodeParams free;
        cudaConditionalNodeParams conditional;
    };
    long long reserved2;
};

struct cudaGraphEdgeData {
    unsigned char from_port, to_port, type, reserved[5];
};
struct cudaGraphExecUpdateResultInfo {
    cudaGraphExecUpdateResult result;
    cudaGraphNode_t errorNode, errorFromNode;
};
struct cudaGraphInstantiateParams {
    unsigned long long flags;
    cudaStream_t uploadStream;
    cudaGraphNode_t errNode_out;
    cudaGraphInstantiateResult result_out;
};

#pragma GCC visibility push(default)

namespace cudalab {
struct NodeCopy {  // a copy of bytes, by a node; `symbol` is a device variable on one side, or null
    void* target;
    const void* source;
    size_t bytes;
    cudaMemcpyKind kind;
    const void* symbol;
    size_t symbol_bytes;
};
cudaError_t add_copy_node(const char* name, cudaGraphNode_t* node, cudaGraph_t graph,
                          const cudaGraphNode_t* after, size_t count, const NodeCopy& copy,
                          const char* file, int line);
// Sets it in the instance, or in the graph if that is null.
cudaError_t set_copy_node(const char* name, cudaGraphExec_t exec, cudaGraphNode_t node,
                          const NodeCopy& copy, const char* file, int line);
}  // namespace cudalab

// ------------------------------------------------------------------ graphs

#define CUDALAB_NODES cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags, CUDALAB_HERE);
cudaError_t cudaGraphDestroy(cudaGraph_t graph, CUDALAB_HERE);
cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph, CUDALAB_HERE);
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count,
                              CUDALAB_HERE);
cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count,
                                  CUDALAB_HERE);
cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                              cudaGraphEdgeData* data, size_t* count, CUDALAB_HERE);
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, const cudaGraphEdgeData* data,
                                     size_t count, CUDALAB_HERE);
cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                        const cudaGraphNode_t* to, const cudaGraphEdgeData* data,
                                        size_t count, CUDALAB_HERE);
cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned flags,
                                   CUDALAB_HERE);

// ------------------------------------------------------------------ nodes

cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                             const cudaGraphEdgeData* data, size_t count,
                             cudaGraphNodeParams* params, CUDALAB_HERE);
cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams* params, CUDALAB_HERE);
cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                       cudaGraphNodeParams* params, CUDALAB_HERE);
cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node, CUDALAB_HERE);
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type, CUDALAB_HERE);
cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* found, cudaGraphNode_t original,
                                     cudaGraph_t clone, CUDALAB_HERE);
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                         cudaGraphEdgeData* data, size_t* count, CUDALAB_HERE);
cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                           cudaGraphEdgeData* data, size_t* count, CUDALAB_HERE);

cudaError_t cudaGraphAddKernelNode(CUDALAB_NODES count, const cudaKernelNodeParams* params,
                                   CUDALAB_HERE);
cudaError_t cudaGraphAddMemcpyNode(CUDALAB_NODES count, const cudaMemcpy3DParms* params,
                                   CUDALAB_HERE);
cudaError_t cudaGraphAddMemsetNode(CUDALAB_NODES count, const cudaMemsetParams* params,
                                   CUDALAB_HERE);
cudaError_t cudaGraphAddHostNode(CUDALAB_NODES count, const cudaHostNodeParams* params,
                                 CUDALAB_HERE);
cudaError_t cudaGraphAddChildGraphNode(CUDALAB_NODES count, cudaGraph_t child, CUDALAB_HERE);
cudaError_t cudaGraphAddEmptyNode(CUDALAB_NODES count, CUDALAB_HERE);
cudaError_t cudaGraphAddEventRecordNode(CUDALAB_NODES count, cudaEvent_t event, CUDALAB_HERE);
cudaError_t cudaGraphAddEventWaitNode(CUDALAB_NODES count, cudaEvent_t event, CUDALAB_HERE);
cudaError_t cudaGraphAddMemAllocNode(CUDALAB_NODES count, cudaMemAllocNodeParams* params,
                                     CUDALAB_HERE);
cudaError_t cudaGraphAddMemFreeNode(CUDALAB_NODES count, void* pointer, CUDALAB_HERE);
inline cudaError_t cudaGraphAddMemcpyNode1D(CUDALAB_NODES count, void* target, const void* source,
                                            size_t bytes, cudaMemcpyKind kind, CUDALAB_HERE) {
    return cudalab::add_copy_node("cudaGraphAddMemcpyNode1D", node, graph, after, count,
                                  {target, source, bytes, kind, nullptr, 0}, file, line);
}
template <class T>
inline cudaError_t cudaGraphAddMemcpyNodeToSymbol(CUDALAB_NODES count, const T& symbol,
                                                  const void* source, size_t bytes, size_t offset,
                                                  cudaMemcpyKind kind, CUDALAB_HERE) {
    return cudalab::add_copy_node(
        "cudaGraphAddMemcpyNodeToSymbol", node, graph, after, count,
        {(char*)&symbol + offset, source, bytes, kind, &symbol, sizeof(T)}, file, line);
}
template <class T>
inline cudaError_t cudaGraphAddMemcpyNodeFromSymbol(CUDALAB_NODES count, void* target,
                                                    const T& symbol, size_t bytes, size_t offset,
                                                    cudaMemcpyKind kind, CUDALAB_HERE) {
    return cudalab::add_copy_node(
        "cudaGraphAddMemcpyNodeFromSymbol", node, graph, after, count,
        {target, (char*)&symbol + offset, bytes, kind, &symbol, sizeof(T)}, file, line);
}
#undef CUDALAB_NODES

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* params,
                                         CUDALAB_HERE);
cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms* params,
                                         CUDALAB_HERE);
cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams* params,
                                         CUDALAB_HERE);
cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, cudaHostNodeParams* params,
                                       CUDALAB_HERE);
cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t* graph, CUDALAB_HERE);
cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event,
                                             CUDALAB_HERE);
cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event, CUDALAB_HERE);
cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, cudaMemAllocNodeParams* params,
                                           CUDALAB_HERE);
cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void* pointer, CUDALAB_HERE);

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* params,
                                         CUDALAB_HERE);
cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* params,
                                         CUDALAB_HERE);
cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams* params,
                                         CUDALAB_HERE);
cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams* params,
                                       CUDALAB_HERE);
cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event, CUDALAB_HERE);
cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event, CUDALAB_HERE);
inline cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* target,
                                                  const void* source, size_t bytes,
                                                  cudaMemcpyKind kind, CUDALAB_HERE) {
    return cudalab::set_copy_node("cudaGraphMemcpyNodeSetParams1D", nullptr, node,
                                  {target, source, bytes, kind, nullptr, 0}, file, line);
}
cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaKernelNodeAttrID attribute,
                                            const cudaKernelNodeAttrValue* value, CUDALAB_HERE);
cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, cudaKernelNodeAttrID attribute,
                                            cudaKernelNodeAttrValue* value, CUDALAB_HERE);
cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t target, cudaGraphNode_t source,
                                              CUDALAB_HERE);

// ------------------------------------------------------------------ instances

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                          unsigned long long flags, CUDALAB_HERE);
cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* exec, cudaGraph_t graph,
                                           cudaGraphInstantiateParams* params, CUDALAB_HERE);
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                        unsigned long long flags = 0, CUDALAB_HERE) {
    return cudaGraphInstantiateWithFlags(exec, graph, flags, file, line);
}
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, cudaGraphNode_t*,
                                        char*, size_t, CUDALAB_HERE) {
    return cudaGraphInstantiateWithFlags(exec, graph, 0, file, line);
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec, CUDALAB_HERE);
cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long* flags, CUDALAB_HERE);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream, CUDALAB_HERE);
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream, CUDALAB_HERE);
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* result, CUDALAB_HERE);
inline cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                       cudaGraphNode_t* node, cudaGraphExecUpdateResult* result,
                                       CUDALAB_HERE) {
    cudaGraphExecUpdateResultInfo info = {};
    const cudaError_t error = cudaGraphExecUpdate(exec, graph, &info, file, line);
    if (node) *node = info.errorNode;
    if (result) *result = info.result;
    return error;
}
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* params, CUDALAB_HERE);
cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemcpy3DParms* params, CUDALAB_HERE);
cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemsetParams* params, CUDALAB_HERE);
cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                           const cudaHostNodeParams* params, CUDALAB_HERE);
cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                 cudaGraph_t graph, CUDALAB_HERE);
cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                 cudaEvent_t event, CUDALAB_HERE);
cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,
                                               cudaEvent_t event, CUDALAB_HERE);
inline cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                      void* target, const void* source,
                                                      size_t bytes, cudaMemcpyKind kind,
                                                      CUDALAB_HERE) {
    return cudalab::set_copy_node("cudaGraphExecMemcpyNodeSetParams1D", exec, node,
                                  {target, source, bytes, kind, nullptr, 0}, file, line);
}
template <class T>
inline cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec,
                                                            cudaGraphNode_t node, const T& symbol,
                                                            const void* source, size_t bytes,
                                                            size_t offset, cudaMemcpyKind kind,
                                                            CUDALAB_HERE) {
    return cudalab::set_copy_node(
        "cudaGraphExecMemcpyNodeSetParamsToSymbol", exec, node,
        {(char*)&symbol + offset, source, bytes, kind, &symbol, sizeof(T)}, file, line);
}
template <class T>
inline cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec,
                                                              cudaGraphNode_t node, void* target,
                                                              const T& symbol, size_t bytes,
                                                              size_t offset, cudaMemcpyKind kind,
                                                              CUDALAB_HERE) {
    return cudalab::set_copy_node(
        "cudaGraphExecMemcpyNodeSetParamsFromSymbol", exec, node,
        {target, (char*)&symbol + offset, bytes, kind, &symbol, sizeof(T)}, file, line);
}
cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned enabled,
                                    CUDALAB_HERE);
cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned* enabled,
                                    CUDALAB_HERE);

// ------------------------------------------------------------------ memory and conditions

cudaError_t cudaDeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute,
                                           void* value, CUDALAB_HERE);
cudaError_t cudaDeviceSetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute,
                                           void* value, CUDALAB_HERE);
cudaError_t cudaDeviceGraphMemTrim(int device, CUDALAB_HERE);
cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* handle, cudaGraph_t graph,
                                             unsigned value = 0, unsigned flags = 0, CUDALAB_HERE);
void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned value);  // in kernels

// ------------------------------------------------------------------ the capture of streams

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode, CUDALAB_HERE);
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                          const cudaGraphNode_t* after,
                                          const cudaGraphEdgeData* data, size_t count,
                                          cudaStreamCaptureMode mode, CUDALAB_HERE);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph, CUDALAB_HERE);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                  CUDALAB_HERE);
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id = nullptr, cudaGraph_t* graph = nullptr,
                                     const cudaGraphNode_t** after = nullptr,
                                     const cudaGraphEdgeData** data = nullptr,
                                     size_t* count = nullptr, CUDALAB_HERE);
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* nodes,
                                                const cudaGraphEdgeData* data, size_t count,
                                                unsigned flags = 0, CUDALAB_HERE);
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode, CUDALAB_HERE);

// The forms of CUDA 12 and earlier, without the data of edges.
inline cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                                     size_t* count, CUDALAB_HERE) {
    return cudaGraphGetEdges(graph, from, to, nullptr, count, file, line);
}
inline cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                            const cudaGraphNode_t* to, size_t count, CUDALAB_HERE) {
    return cudaGraphAddDependencies(graph, from, to, nullptr, count, file, line);
}
inline cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                               const cudaGraphNode_t* to, size_t count,
                                               CUDALAB_HERE) {
    return cudaGraphRemoveDependencies(graph, from, to, nullptr, count, file, line);
}
inline cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                                size_t* count, CUDALAB_HERE) {
    return cudaGraphNodeGetDependencies(node, nodes, nullptr, count, file, line);
}
inline cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                                  size_t* count, CUDALAB_HERE) {
    return cudaGraphNodeGetDependentNodes(node, nodes, nullptr, count, file, line);
}
inline cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                    const cudaGraphNode_t* after, size_t count,
                                    cudaGraphNodeParams* params, CUDALAB_HERE) {
    return cudaGraphAddNode(node, graph, after, nullptr, count, params, file, line);
}
inline cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                            unsigned long long* id, cudaGraph_t* graph,
                                            const cudaGraphNode_t** after, size_t* count,
                                            CUDALAB_HERE) {
    return cudaStreamGetCaptureInfo(stream, status, id, graph, after, nullptr, count, file, line);
}
inline cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* nodes,
                                                       size_t count, unsigned flags = 0,
                                                       CUDALAB_HERE) {
    return cudaStreamUpdateCaptureDependencies(stream, nodes, nullptr, count, flags, file, line);
}

#pragma GCC visibility pop
