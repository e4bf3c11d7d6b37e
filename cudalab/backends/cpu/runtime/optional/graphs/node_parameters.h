// What a node of a graph does, read from the parameters that the API takes for each type of node.
#pragma once

#include "nodes.h"

namespace cudalab {

// The content of a kernel node.
static cudaError_t read_params(Call& call, const cudaKernelNodeParams& params, Content& content) {
    Function* function = find_function(params.func);
    const bool same = content.launch.args && params.func == content.launch.address;
    if (!function && !same)
        return call.fail(cudaErrorInvalidResourceHandle, "%p is not a kernel", params.func);
    const Kernel kernel = function ? function->kernel : content.launch.kernel;
    const Config config(params.gridDim, params.blockDim, params.sharedMemBytes, nullptr,
                        call.place.file, call.place.line);
    if (params.extra || (kernel.num_params && !params.kernelParams))
        return call.fail(cudaErrorInvalidValue, "the arguments are missing");
    List<void*> args;
    for (unsigned i = 0; i < kernel.num_params; ++i) args.add(params.kernelParams[i]);
    args.add(function ? (void*)&function->address : content.launch.args[kernel.num_params]);
    const KernelCall made = {&config, &kernel, params.func, args.begin()};
    if (cudaError_t error = check_launch(call, made)) return error;
    content.type = cudaGraphNodeTypeKernel;
    void** const before = content.launch.args;
    if (!content.launch.copy(made))
        return call.fail(cudaErrorMemoryAllocation, "no memory for a node");
    free(before);
    return cudaSuccess;
}
static cudaError_t read_params(Call& call, const cudaMemsetParams& params, Content& content) {
    const unsigned element = params.elementSize;
    if (element != 1 && element != 2 && element != 4)
        return call.fail(cudaErrorInvalidValue, "elements of %u bytes", element);
    if (params.height > 1 && params.pitch < params.width * element)
        return call.fail(cudaErrorInvalidValue, "rows of %zu bytes, a pitch of %zu",
                         params.width * element, params.pitch);
    content.type = cudaGraphNodeTypeMemset;
    content.fill = {params.dst, params.pitch, params.value, element, params.width, params.height};
    return cudaSuccess;
}
static cudaError_t read_params(Call& call, const cudaMemcpy3DParms& params, Content& content) {
    if (params.srcArray || params.dstArray)
        return call.fail(cudaErrorNotSupported, "nodes do not copy arrays");
    const cudaPitchedPtr &from = params.srcPtr, &to = params.dstPtr;
    const cudaPos &first = params.srcPos, &target = params.dstPos;
    Copy copy = {
        (char*)to.ptr + target.z * to.pitch * to.ysize + target.y * to.pitch + target.x,
        to.pitch,
        (char*)from.ptr + first.z * from.pitch * from.ysize + first.y * from.pitch + first.x,
        from.pitch,
        params.extent.width,
        params.extent.height,
        params.kind,
        false,
        params.extent.depth,
        to.pitch * to.ysize,
        from.pitch * from.ysize};
    content.type = cudaGraphNodeTypeMemcpy;
    content.copy = copy;
    content.copy_params = params;
    return cudaSuccess;
}
static cudaError_t read_params(Call& call, const NodeCopy& params, Content& content) {
    cudaMemcpyKind kind = params.kind;
    if ((unsigned)kind > cudaMemcpyDefault)
        return call.fail(cudaErrorInvalidMemcpyDirection, "%d is not a kind of copy", (int)kind);
    if (params.symbol && !is_symbol(params.symbol))
        return call.fail(cudaErrorInvalidSymbol,
                         "this is not a __device__ or __constant__ variable");
    const char* part = (const char*)(is_symbol(params.target) ? params.target : params.source);
    if (params.symbol &&
        (size_t)(part - (const char*)params.symbol) + params.bytes > params.symbol_bytes)
        return call.fail(cudaErrorInvalidValue, "more than the variable's %zu bytes",
                         params.symbol_bytes);
    content.type = cudaGraphNodeTypeMemcpy;
    content.copy = {
        params.target,           params.bytes, params.source, params.bytes, params.bytes, 1, kind,
        params.symbol != nullptr};
    content.copy_params = {};
    content.copy_params.srcPtr = {(void*)params.source, params.bytes, params.bytes, 1};
    content.copy_params.dstPtr = {params.target, params.bytes, params.bytes, 1};
    content.copy_params.extent = {params.bytes, 1, 1};
    content.copy_params.kind = kind;
    return cudaSuccess;
}
static cudaError_t read_params(Call& call, const cudaHostNodeParams& params, Content& content) {
    if (!params.fn) return call.fail(cudaErrorInvalidValue, "the function is null");
    content.type = cudaGraphNodeTypeHost;
    content.host = {params.fn, params.userData};
    return cudaSuccess;
}
static cudaError_t read_params(Call& call, const cudaMemAllocNodeParams& params, Content& content) {
    const cudaMemPoolProps& properties = params.poolProps;
    if (properties.allocType != cudaMemAllocationTypePinned || properties.location.id != 0 ||
        properties.location.type != cudaMemLocationTypeDevice || !params.bytesize)
        return call.fail(cudaErrorInvalidValue, "the memory's properties are not valid");
    content.type = cudaGraphNodeTypeMemAlloc;
    content.memory = {nullptr, params.bytesize};
    return cudaSuccess;
}
static cudaError_t read_params(Call& call, cudaGraphNodeType type, cudaEvent_t event,
                               Content& content) {
    if (!event) return call.fail(cudaErrorInvalidValue, "the event is null");
    content.type = type;
    content.event = event;
    return cudaSuccess;
}
static cudaError_t read_params(Call& call, const cudaChildGraphNodeParams& params,
                               Content& content) {
    if (!params.graph) return call.fail(cudaErrorInvalidValue, "the graph is null");
    if (has_memory_nodes(params.graph))
        return call.fail(cudaErrorNotSupported, "the graph allocates memory");
    content.type = cudaGraphNodeTypeGraph;
    content.child = copy_of(params.graph);
    return cudaSuccess;
}
static cudaError_t read_params(Call& call, cudaConditionalNodeParams& params, Content& content) {
    const unsigned max = params.type == cudaGraphCondTypeIf      ? 2
                         : params.type == cudaGraphCondTypeWhile ? 1
                                                                 : ~0u;
    if (!params.handle || !params.size || params.size > max)
        return call.fail(cudaErrorInvalidValue, "%u bodies", params.size);
    content.type = cudaGraphNodeTypeConditional;
    content.condition = (Condition*)params.handle;
    content.condition_type = params.type;
    content.num_bodies = params.size;
    content.bodies = (cudaGraph_t*)calloc(params.size, sizeof(cudaGraph_t));
    for (unsigned i = 0; i < params.size; ++i) content.bodies[i] = new_graph();
    params.phGraph_out = content.bodies;
    return cudaSuccess;
}

// Reads the parameters of any node.
static cudaError_t read_any(Call& call, cudaGraph_t graph, cudaGraphNodeParams& params,
                            Content& content) {
    switch (params.type) {
        case cudaGraphNodeTypeKernel:
            return read_params(call, params.kernel, content);
        case cudaGraphNodeTypeMemcpy:
            return read_params(call, params.memcpy.copyParams, content);
        case cudaGraphNodeTypeMemset:
            return read_params(call, params.memset, content);
        case cudaGraphNodeTypeHost:
            return read_params(call, params.host, content);
        case cudaGraphNodeTypeGraph:
            return read_params(call, params.graph, content);
        case cudaGraphNodeTypeWaitEvent:
            return read_params(call, params.type, params.eventWait.event, content);
        case cudaGraphNodeTypeEventRecord:
            return read_params(call, params.type, params.eventRecord.event, content);
        case cudaGraphNodeTypeMemAlloc:
            return read_params(call, params.alloc, content);
        case cudaGraphNodeTypeMemFree:
            content.type = params.type;
            content.memory = {params.free.dptr, 0};
            return check_free(call, graph, content.memory);
        case cudaGraphNodeTypeConditional:
            return read_params(call, params.conditional, content);
        case cudaGraphNodeTypeEmpty:
            content.type = params.type;
            return cudaSuccess;
    }
    return call.fail(cudaErrorInvalidValue, "%d is not a type of nodes", (int)params.type);
}

}  // namespace cudalab
