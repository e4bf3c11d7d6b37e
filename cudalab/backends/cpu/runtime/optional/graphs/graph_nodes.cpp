// Nodes of CUDA graphs, of each type: programs add them, and change and read their parameters.

#include "node_parameters.h"

namespace cudalab {

// Adds a node after `count` others; `read` gives its content.
template <class Read>
static cudaError_t add(Call& call, cudaGraphNode_t* node, cudaGraph_t graph,
                       const cudaGraphNode_t* before, size_t count, Read read) {
    if (cudaError_t error = call.pending()) return error;
    if (!node || !graph || (count && !before))
        return call.fail(cudaErrorInvalidValue, "a pointer is null");
    for (size_t i = 0; i < count; ++i)
        if (!before[i] || before[i]->graph != graph)
            return call.fail(cudaErrorInvalidValue, "it depends on a node of another graph");
    Content content = {};
    if (cudaError_t error = read(content)) return error;
    *node = new_node(graph, content, call.place);
    if (!*node) return call.fail(cudaErrorMemoryAllocation, "no memory for a node");
    for (size_t i = 0; i < count; ++i) connect(before[i], *node);
    if (content.type == cudaGraphNodeTypeMemAlloc) return place_memory(call, *node);
    return cudaSuccess;
}

cudaGraphNode_t node_in(cudaGraphExec_t exec, cudaGraphNode_t node) {
    if (!exec) return node;
    wait_for_all_work();  // an instance that runs does not change
    for (cudaGraphNode_t each : exec->graph->nodes)
        if (each->original == node) return each;
    return nullptr;
}
// Changes the content of a node of one type.
template <class Read>
static cudaError_t change(Call& call, cudaGraphExec_t exec, cudaGraphNode_t node,
                          cudaGraphNodeType type, Read read) {
    if (cudaError_t error = call.pending()) return error;
    cudaGraphNode_t own = node ? node_in(exec, node) : nullptr;
    if (!own || own->content.type != type)
        return call.fail(cudaErrorInvalidValue, "this is not such a node");
    return read(own->content);
}
// Reads the content of a node of one type.
template <class T, class Read>
static cudaError_t get(Call& call, cudaGraphNode_t node, cudaGraphNodeType type, T* value,
                       Read read) {
    if (cudaError_t error = call.pending()) return error;
    if (!node || !value || node->content.type != type)
        return call.fail(cudaErrorInvalidValue, "this is not such a node");
    read(node->content, *value);
    return cudaSuccess;
}

cudaError_t add_copy_node(const char* name, cudaGraphNode_t* node, cudaGraph_t graph,
                          const cudaGraphNode_t* after, size_t count, const NodeCopy& copy,
                          const char* file, int line) {
    Call call(name, {file, line});
    return add(call, node, graph, after, count,
               [&](Content& content) { return read_params(call, copy, content); });
}
cudaError_t set_copy_node(const char* name, cudaGraphExec_t exec, cudaGraphNode_t node,
                          const NodeCopy& copy, const char* file, int line) {
    Call call(name, {file, line});
    return change(call, exec, node, cudaGraphNodeTypeMemcpy,
                  [&](Content& content) { return read_params(call, copy, content); });
}

}  // namespace cudalab

using namespace cudalab;

// ------------------------------------------------------------------ nodes

cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                             const cudaGraphEdgeData*, size_t count, cudaGraphNodeParams* params,
                             const char* file, int line) {
    Call call("cudaGraphAddNode", {file, line});
    if (cudaError_t error = check(call, params)) return error;
    const cudaError_t error = add(call, node, graph, after, count, [&](Content& content) {
        return read_any(call, graph, *params, content);
    });
    if (!error && params->type == cudaGraphNodeTypeMemAlloc)
        params->alloc.dptr = (*node)->content.memory.address;
    return error;
}
static cudaError_t set_any(const char* name, cudaGraphExec_t exec, cudaGraphNode_t node,
                           cudaGraphNodeParams* params, const char* file, int line) {
    Call call(name, {file, line});
    if (cudaError_t error = check(call, params)) return error;
    const cudaGraphNodeType type = params->type;
    if (type == cudaGraphNodeTypeMemAlloc || type == cudaGraphNodeTypeMemFree ||
        type == cudaGraphNodeTypeConditional || type == cudaGraphNodeTypeGraph)
        return call.fail(cudaErrorNotSupported, "such nodes cannot be changed");
    return change(call, exec, node, type,
                  [&](Content& content) { return read_any(call, node->graph, *params, content); });
}
cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams* params,
                                   const char* file, int line) {
    return set_any("cudaGraphNodeSetParams", nullptr, node, params, file, line);
}
cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                       cudaGraphNodeParams* params, const char* file, int line) {
    return set_any("cudaGraphExecNodeSetParams", exec, node, params, file, line);
}
cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node, const char* file, int line) {
    Call call("cudaGraphDestroyNode", {file, line});
    if (cudaError_t error = check(call, node)) return error;
    if (node->content.type == cudaGraphNodeTypeMemAlloc ||
        node->content.type == cudaGraphNodeTypeMemFree)
        return call.fail(cudaErrorNotSupported, "nodes of memory cannot be destroyed");
    for (cudaGraphNode_t earlier : node->before) earlier->after.remove(node);
    for (cudaGraphNode_t later : node->after) later->before.remove(node);
    node->graph->nodes.remove(node);
    node->content.drop();
    node->~CUgraphNode_st();
    free(node);
    return cudaSuccess;
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type, const char* file,
                                 int line) {
    Call call("cudaGraphNodeGetType", {file, line});
    if (cudaError_t error = check(call, node)) return error;
    if (!type) return call.fail(cudaErrorInvalidValue, "the pointer is null");
    *type = node->content.type;
    return cudaSuccess;
}
cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* found, cudaGraphNode_t original,
                                     cudaGraph_t clone, const char* file, int line) {
    Call call("cudaGraphNodeFindInClone", {file, line});
    if (cudaError_t error = check(call, clone)) return error;
    if (!found) return call.fail(cudaErrorInvalidValue, "the pointer is null");
    for (cudaGraphNode_t node : clone->nodes)
        if (node->original == original) return *found = node, cudaSuccess;
    return call.fail(cudaErrorInvalidValue, "the node has no copy in this graph");
}
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                         cudaGraphEdgeData* data, size_t* count, const char* file,
                                         int line) {
    Call call("cudaGraphNodeGetDependencies", {file, line});
    if (cudaError_t error = check(call, node)) return error;
    for (size_t i = 0; data && count && i < *count; ++i) data[i] = {};
    return give(call, node->before, nodes, count);
}
cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                           cudaGraphEdgeData* data, size_t* count, const char* file,
                                           int line) {
    Call call("cudaGraphNodeGetDependentNodes", {file, line});
    if (cudaError_t error = check(call, node)) return error;
    for (size_t i = 0; data && count && i < *count; ++i) data[i] = {};
    return give(call, node->after, nodes, count);
}

// Adding, reading and changing nodes of one type.
#define CUDALAB_ADD(name, type, params)                                                      \
    cudaError_t name(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, \
                     size_t count, const type* params, const char* file, int line) {         \
        Call call(#name, {file, line});                                                      \
        if (cudaError_t error = check(call, params)) return error;                           \
        return add(call, node, graph, after, count,                                          \
                   [&](Content& content) { return read_params(call, *params, content); });   \
    }
#define CUDALAB_SET(name, type, kind)                                                         \
    cudaError_t cudaGraph##name(cudaGraphNode_t node, const type* params, const char* file,   \
                                int line) {                                                   \
        Call call("cudaGraph" #name, {file, line});                                           \
        if (cudaError_t error = check(call, params)) return error;                            \
        return change(call, nullptr, node, kind,                                              \
                      [&](Content& content) { return read_params(call, *params, content); }); \
    }                                                                                         \
    cudaError_t cudaGraphExec##name(cudaGraphExec_t exec, cudaGraphNode_t node,               \
                                    const type* params, const char* file, int line) {         \
        Call call("cudaGraphExec" #name, {file, line});                                       \
        if (cudaError_t error = check(call, params)) return error;                            \
        if (cudaError_t error = check(call, exec)) return error;                              \
        return change(call, exec, node, kind,                                                 \
                      [&](Content& content) { return read_params(call, *params, content); }); \
    }
CUDALAB_ADD(cudaGraphAddKernelNode, cudaKernelNodeParams, params)
CUDALAB_ADD(cudaGraphAddMemcpyNode, cudaMemcpy3DParms, params)
CUDALAB_ADD(cudaGraphAddMemsetNode, cudaMemsetParams, params)
CUDALAB_ADD(cudaGraphAddHostNode, cudaHostNodeParams, params)
CUDALAB_SET(KernelNodeSetParams, cudaKernelNodeParams, cudaGraphNodeTypeKernel)
CUDALAB_SET(MemcpyNodeSetParams, cudaMemcpy3DParms, cudaGraphNodeTypeMemcpy)
CUDALAB_SET(MemsetNodeSetParams, cudaMemsetParams, cudaGraphNodeTypeMemset)
CUDALAB_SET(HostNodeSetParams, cudaHostNodeParams, cudaGraphNodeTypeHost)

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                       const cudaGraphNode_t* after, size_t count,
                                       cudaGraph_t child, const char* file, int line) {
    Call call("cudaGraphAddChildGraphNode", {file, line});
    return add(call, node, graph, after, count, [&](Content& content) {
        return read_params(call, cudaChildGraphNodeParams{child}, content);
    });
}
cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                  const cudaGraphNode_t* after, size_t count, const char* file,
                                  int line) {
    Call call("cudaGraphAddEmptyNode", {file, line});
    return add(call, node, graph, after, count, [](Content& content) {
        content.type = cudaGraphNodeTypeEmpty;
        return cudaSuccess;
    });
}
cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                     const cudaGraphNode_t* after, size_t count,
                                     cudaMemAllocNodeParams* params, const char* file, int line) {
    Call call("cudaGraphAddMemAllocNode", {file, line});
    if (cudaError_t error = check(call, params)) return error;
    const cudaError_t error = add(call, node, graph, after, count, [&](Content& content) {
        return read_params(call, *params, content);
    });
    if (!error) params->dptr = (*node)->content.memory.address;
    return error;
}
cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                    const cudaGraphNode_t* after, size_t count, void* pointer,
                                    const char* file, int line) {
    Call call("cudaGraphAddMemFreeNode", {file, line});
    return add(call, node, graph, after, count, [&](Content& content) {
        content.type = cudaGraphNodeTypeMemFree;
        content.memory = {pointer, 0};
        return check_free(call, graph, content.memory);
    });
}
#define CUDALAB_EVENT_NODE(Record, kind)                                                          \
    cudaError_t cudaGraphAddEvent##Record##Node(cudaGraphNode_t* node, cudaGraph_t graph,         \
                                                const cudaGraphNode_t* after, size_t count,       \
                                                cudaEvent_t event, const char* file, int line) {  \
        Call call("cudaGraphAddEvent" #Record "Node", {file, line});                              \
        return add(call, node, graph, after, count,                                               \
                   [&](Content& content) { return read_params(call, kind, event, content); });    \
    }                                                                                             \
    cudaError_t cudaGraphEvent##Record##NodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event,    \
                                                     const char* file, int line) {                \
        Call call("cudaGraphEvent" #Record "NodeGetEvent", {file, line});                         \
        return get(call, node, kind, event,                                                       \
                   [](const Content& content, cudaEvent_t& to) { to = content.event; });          \
    }                                                                                             \
    cudaError_t cudaGraphEvent##Record##NodeSetEvent(cudaGraphNode_t node, cudaEvent_t event,     \
                                                     const char* file, int line) {                \
        Call call("cudaGraphEvent" #Record "NodeSetEvent", {file, line});                         \
        return change(call, nullptr, node, kind,                                                  \
                      [&](Content& content) { return read_params(call, kind, event, content); }); \
    }                                                                                             \
    cudaError_t cudaGraphExecEvent##Record##NodeSetEvent(cudaGraphExec_t exec,                    \
                                                         cudaGraphNode_t node, cudaEvent_t event, \
                                                         const char* file, int line) {            \
        Call call("cudaGraphExecEvent" #Record "NodeSetEvent", {file, line});                     \
        if (cudaError_t error = check(call, exec)) return error;                                  \
        return change(call, exec, node, kind,                                                     \
                      [&](Content& content) { return read_params(call, kind, event, content); }); \
    }
CUDALAB_EVENT_NODE(Record, cudaGraphNodeTypeEventRecord)
CUDALAB_EVENT_NODE(Wait, cudaGraphNodeTypeWaitEvent)

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* params,
                                         const char* file, int line) {
    Call call("cudaGraphKernelNodeGetParams", {file, line});
    return get(call, node, cudaGraphNodeTypeKernel, params,
               [](const Content& content, cudaKernelNodeParams& to) {
                   to.func = (void*)content.launch.address;
                   to.gridDim = content.launch.config.grid;
                   to.blockDim = content.launch.config.block;
                   to.sharedMemBytes = (unsigned)content.launch.config.shared;
                   to.kernelParams = content.launch.args;
                   to.extra = nullptr;
               });
}
cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms* params,
                                         const char* file, int line) {
    Call call("cudaGraphMemcpyNodeGetParams", {file, line});
    return get(call, node, cudaGraphNodeTypeMemcpy, params,
               [](const Content& content, cudaMemcpy3DParms& to) { to = content.copy_params; });
}
cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams* params,
                                         const char* file, int line) {
    Call call("cudaGraphMemsetNodeGetParams", {file, line});
    return get(call, node, cudaGraphNodeTypeMemset, params,
               [](const Content& content, cudaMemsetParams& to) {
                   const Fill& fill = content.fill;
                   to = {fill.target,        fill.pitch, fill.value,
                         fill.element_bytes, fill.width, fill.height};
               });
}
cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, cudaHostNodeParams* params,
                                       const char* file, int line) {
    Call call("cudaGraphHostNodeGetParams", {file, line});
    return get(call, node, cudaGraphNodeTypeHost, params,
               [](const Content& content, cudaHostNodeParams& to) {
                   to = {content.host.function, content.host.data};
               });
}
cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t* graph,
                                            const char* file, int line) {
    Call call("cudaGraphChildGraphNodeGetGraph", {file, line});
    return get(call, node, cudaGraphNodeTypeGraph, graph,
               [](const Content& content, cudaGraph_t& to) { to = content.child; });
}
cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, cudaMemAllocNodeParams* params,
                                           const char* file, int line) {
    Call call("cudaGraphMemAllocNodeGetParams", {file, line});
    return get(call, node, cudaGraphNodeTypeMemAlloc, params,
               [](const Content& content, cudaMemAllocNodeParams& to) {
                   to = {};
                   to.poolProps.allocType = cudaMemAllocationTypePinned;
                   to.poolProps.location.type = cudaMemLocationTypeDevice;
                   to.bytesize = content.memory.bytes;
                   to.dptr = content.memory.address;
               });
}
cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void* pointer, const char* file,
                                          int line) {
    Call call("cudaGraphMemFreeNodeGetParams", {file, line});
    return get(call, node, cudaGraphNodeTypeMemFree, (void**)pointer,
               [](const Content& content, void*& to) { to = content.memory.address; });
}

// Attributes are hints, but for the one that makes a launch cooperative.
cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaKernelNodeAttrID attribute,
                                            const cudaKernelNodeAttrValue* value, const char* file,
                                            int line) {
    Call call("cudaGraphKernelNodeSetAttribute", {file, line});
    if (cudaError_t error = check(call, value)) return error;
    return change(call, nullptr, node, cudaGraphNodeTypeKernel, [&](Content& content) {
        if (attribute == cudaLaunchAttributeCooperative)
            content.launch.config.cooperative = value->cooperative != 0;
        return cudaSuccess;
    });
}
cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, cudaKernelNodeAttrID attribute,
                                            cudaKernelNodeAttrValue* value, const char* file,
                                            int line) {
    Call call("cudaGraphKernelNodeGetAttribute", {file, line});
    return get(call, node, cudaGraphNodeTypeKernel, value,
               [&](const Content& content, cudaKernelNodeAttrValue& to) {
                   to = {};
                   if (attribute == cudaLaunchAttributeCooperative)
                       to.cooperative = content.launch.config.cooperative;
               });
}
cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t target, cudaGraphNode_t source,
                                              const char* file, int line) {
    cudaKernelNodeAttrValue value = {};
    if (cudaError_t error = cudaGraphKernelNodeGetAttribute(source, cudaLaunchAttributeCooperative,
                                                            &value, file, line))
        return error;
    return cudaGraphKernelNodeSetAttribute(target, cudaLaunchAttributeCooperative, &value, file,
                                           line);
}

cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                 cudaGraph_t graph, const char* file, int line) {
    Call call("cudaGraphExecChildGraphNodeSetParams", {file, line});
    if (cudaError_t error = check(call, exec)) return error;
    if (cudaError_t error = check(call, graph)) return error;
    return change(call, exec, node, cudaGraphNodeTypeGraph, [&](Content& content) {
        cudaGraphNode_t at = nullptr;
        return update(content.child, graph, &at)
                   ? call.fail(cudaErrorGraphExecUpdateFailure, "the graphs differ in their nodes")
                   : cudaSuccess;
    });
}
