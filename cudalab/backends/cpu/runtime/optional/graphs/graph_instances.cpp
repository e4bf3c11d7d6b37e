// Instances of CUDA graphs: how they run, are updated, and use the memory that graphs allocate.

#include "nodes.h"
#include "order.h"

namespace cudalab {

// ------------------------------------------------------------------ memory of graphs

static struct Footprint {  // of all graphs, in pieces as large as a GPU's
    unsigned long long used, used_high, reserved, reserved_high;
    void set(unsigned long long bytes) {
        used = reserved = bytes;
        if (used_high < used) used_high = used;
        if (reserved_high < reserved) reserved_high = reserved;
    }
} footprint;

static size_t pieces(size_t bytes) {
    const size_t piece = 32 << 20;
    return (bytes + piece - 1) / piece * piece;
}
GraphMemory* new_memory() {
    GraphMemory* memory = (GraphMemory*)calloc(1, sizeof *memory);
    if (memory) memory->users = 1;
    return memory;
}
void drop(GraphMemory* memory) {
    if (--memory->users) return;
    for (const PoolMemory& range : memory->ranges) unreserve(range.address, range.bytes);
    memory->~GraphMemory();
    free(memory);
}

// All nodes that `node` depends on.
static void find_earlier(cudaGraphNode_t node, List<cudaGraphNode_t>& earlier) {
    for (cudaGraphNode_t each : node->before) {
        if (earlier.has(each)) continue;
        earlier.add(each);
        find_earlier(each, earlier);
    }
}
// An address for memory: that of a range which the graph has freed before, or a new one.
static void* address_for(cudaGraph_t graph, cudaGraphNode_t node, size_t bytes) {
    List<cudaGraphNode_t> earlier;
    find_earlier(node, earlier);
    for (cudaGraphNode_t freed : earlier) {
        if (freed->content.type != cudaGraphNodeTypeMemFree) continue;
        const PoolMemory& memory = freed->content.memory;
        bool used_again = false;
        for (cudaGraphNode_t other : graph->nodes)
            used_again |= other->content.type == cudaGraphNodeTypeMemAlloc && other != node &&
                          other->content.memory.address == memory.address &&
                          other->number > freed->number;
        if (memory.bytes >= bytes && !used_again) return memory.address;
    }
    void* address = reserve(bytes);
    if (address) graph->memory->ranges.add({address, bytes});
    return address;
}
cudaError_t place_memory(Call& call, cudaGraphNode_t node) {
    PoolMemory& memory = node->content.memory;
    memory.address = address_for(node->graph, node, memory.bytes);
    if (memory.address) return cudaSuccess;
    return call.fail(cudaErrorMemoryAllocation, "no addresses for %zu bytes", memory.bytes);
}
// Whether a node may free this memory of a graph; finds its size.
cudaError_t check_free(Call& call, cudaGraph_t graph, PoolMemory& memory) {
    for (cudaGraphNode_t node : graph->nodes)
        if (node->content.type == cudaGraphNodeTypeMemFree &&
            node->content.memory.address == memory.address) {
            bool allocated_again = false;
            for (cudaGraphNode_t other : graph->nodes)
                allocated_again |= other->content.type == cudaGraphNodeTypeMemAlloc &&
                                   other->content.memory.address == memory.address &&
                                   other->number > node->number;
            if (!allocated_again)
                return call.fail(cudaErrorInvalidValue, "the graph frees %p already",
                                 memory.address);
        }
    for (const PoolMemory& range : graph->memory->ranges) {
        if (range.address != memory.address) continue;
        if (graph->memory->instances)
            return call.fail(cudaErrorInvalidValue, "the graph has an instance");
        memory.bytes = range.bytes;
        return cudaSuccess;
    }
    if (!is_reserved(memory.address))
        return call.fail(cudaErrorInvalidValue, "%p is not memory of a graph", memory.address);
    return cudaSuccess;
}

// What the instance needs at once, and what is left of other graphs.
static size_t needed_bytes(cudaGraph_t graph) {
    size_t now = 0, most = 0;
    for (cudaGraphNode_t node : graph->nodes) {
        if (node->content.type == cudaGraphNodeTypeMemAlloc) now += node->content.memory.bytes;
        if (node->content.type == cudaGraphNodeTypeMemFree && now >= node->content.memory.bytes)
            now -= node->content.memory.bytes;
        if (most < now) most = now;
    }
    return most;
}
static cudaError_t check_memory(Call& call, cudaGraphExec_t exec) {
    if (!has_memory_nodes(exec->graph)) return cudaSuccess;
    const size_t left = live_of_graphs();
    for (cudaGraphNode_t node : exec->graph->nodes) {
        void* address = node->content.memory.address;
        if (node->content.type != cudaGraphNodeTypeMemAlloc || !is_live(address)) continue;
        if (!(exec->flags & cudaGraphInstantiateFlagAutoFreeOnLaunch))
            return call.fail(cudaErrorInvalidValue, "memory of the graph is still allocated: %p",
                             address);
        if (cudaError_t error = release(call, address, false)) return error;
    }
    const size_t needed = pieces(needed_bytes(exec->graph)) + pieces(left);
    if (footprint.reserved < needed) footprint.set(needed);
    return cudaSuccess;
}

// ------------------------------------------------------------------ running

static cudaError_t run(cudaGraph_t graph);

static cudaError_t run_conditional(const Content& content) {
    const Condition& condition = *content.condition;
    switch (content.condition_type) {
        case cudaGraphCondTypeIf:
            if (condition.value) return run(content.bodies[0]);
            return content.num_bodies > 1 ? run(content.bodies[1]) : cudaSuccess;
        case cudaGraphCondTypeWhile:
            while (condition.value)
                if (cudaError_t error = run(content.bodies[0])) return error;
            return cudaSuccess;
        default:
            return condition.value < content.num_bodies ? run(content.bodies[condition.value])
                                                        : cudaSuccess;
    }
}

// Each node with a lock of its own: host functions may wait for threads that call the API.
static cudaError_t run(cudaGraphNode_t node) {
    const Content& content = node->content;
    if (!node->enabled) return cudaSuccess;
    if (content.type == cudaGraphNodeTypeHost) {
        content.host.function(content.host.data);
        return cudaSuccess;
    }
    if (content.child) return run(content.child);
    if (content.type == cudaGraphNodeTypeConditional) return run_conditional(content);
    Call call("launch", node->place);
    if (cudaError_t error = call.pending()) return error;
    switch (content.type) {
        case cudaGraphNodeTypeKernel:
            return perform(call, content.launch.call());
        case cudaGraphNodeTypeMemcpy:
            return perform(call, content.copy);
        case cudaGraphNodeTypeMemset:
            return perform(call, content.fill);
        case cudaGraphNodeTypeEventRecord:
            return record_event(call, content.event, nullptr, 0);
        case cudaGraphNodeTypeWaitEvent:
            return wait_for_event(call, nullptr, content.event, 0);
        case cudaGraphNodeTypeMemAlloc:
            return allocate_reserved(call, content.memory.address, content.memory.bytes);
        case cudaGraphNodeTypeMemFree:
            return release(call, content.memory.address, false);
        default:
            return cudaSuccess;
    }
}
static cudaError_t run(cudaGraph_t graph) {
    OrderedNodes ordered;
    cudaError_t error = cudaSuccess;
    for (cudaGraphNode_t node : graph->nodes) {
        ordered.begin(node);
        error = run(node);
        ordered.end(node);
        if (error) break;
    }
    return error;
}
static void set_defaults(cudaGraph_t graph) {
    for (cudaGraphNode_t node : graph->nodes) {
        const Content& content = node->content;
        if (content.child) set_defaults(content.child);
        if (content.condition && content.condition->has_default)
            content.condition->value = content.condition->default_value;
        for (unsigned i = 0; i < content.num_bodies; ++i) set_defaults(content.bodies[i]);
    }
}

static cudaError_t run(cudaGraphExec_t exec) {
    set_defaults(exec->graph);
    return run(exec->graph);
}

// Whether the nodes of two graphs agree but for their parameters.
static cudaGraphExecUpdateResult compare(cudaGraph_t own, cudaGraph_t from, cudaGraphNode_t* at) {
    if (own->nodes.size() != from->nodes.size()) return cudaGraphExecUpdateErrorTopologyChanged;
    for (size_t i = 0; i < own->nodes.size(); ++i) {
        cudaGraphNode_t a = own->nodes[i], b = from->nodes[i];
        *at = b;
        if (a->content.type != b->content.type) return cudaGraphExecUpdateErrorNodeTypeChanged;
        if (a->before.size() != b->before.size()) return cudaGraphExecUpdateErrorTopologyChanged;
        for (size_t k = 0; k < a->before.size(); ++k) {
            bool same = false;
            for (cudaGraphNode_t other : b->before)
                same |= position(own, a->before[k]) == position(from, other);
            if (!same) return cudaGraphExecUpdateErrorTopologyChanged;
        }
        const bool has_memory = a->content.type == cudaGraphNodeTypeMemAlloc ||
                                a->content.type == cudaGraphNodeTypeMemFree;
        if (has_memory && a->content.memory.address != b->content.memory.address)
            return cudaGraphExecUpdateErrorParametersChanged;
        if (a->content.num_bodies != b->content.num_bodies)
            return cudaGraphExecUpdateErrorParametersChanged;
    }
    *at = nullptr;
    return cudaGraphExecUpdateSuccess;
}

cudaGraphExecUpdateResult update(cudaGraph_t own, cudaGraph_t from, cudaGraphNode_t* at) {
    if (!sort_nodes(from)) return cudaGraphExecUpdateErrorTopologyChanged;
    const cudaGraphExecUpdateResult result = compare(own, from, at);
    if (result) return result;
    for (size_t i = 0; i < own->nodes.size(); ++i)
        own->nodes[i]->content.copy_from(from->nodes[i]->content);
    return cudaGraphExecUpdateSuccess;
}

}  // namespace cudalab

using namespace cudalab;

// ------------------------------------------------------------------ instances

static cudaError_t instantiate(Call& call, cudaGraphExec_t* exec, cudaGraph_t graph,
                               unsigned long long flags) {
    const unsigned long long known = cudaGraphInstantiateFlagAutoFreeOnLaunch |
                                     cudaGraphInstantiateFlagUpload |
                                     cudaGraphInstantiateFlagUseNodePriority;
    if (cudaError_t error = check(call, graph)) return error;
    if (!exec) return call.fail(cudaErrorInvalidValue, "the pointer is null");
    if (flags & ~known) return call.fail(cudaErrorInvalidValue, "flags %#llx are not known", flags);
    if (has_memory_nodes(graph) && graph->memory->instances)
        return call.fail(cudaErrorNotSupported,
                         "the graph allocates memory, and has an instance already");
    cudaGraph_t copy = copy_of(graph);
    if (!copy || !sort_nodes(copy)) {
        if (copy) destroy(copy);
        return call.fail(cudaErrorInvalidValue, "the graph has a cycle");
    }
    *exec = (cudaGraphExec_t)calloc(1, sizeof **exec);
    if (!*exec) return call.fail(cudaErrorMemoryAllocation, "no memory for an instance");
    (*exec)->graph = copy;
    (*exec)->flags = flags;
    ++copy->memory->instances;
    return cudaSuccess;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                          unsigned long long flags, const char* file, int line) {
    Call call("cudaGraphInstantiate", {file, line});
    return instantiate(call, exec, graph, flags);
}
cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* exec, cudaGraph_t graph,
                                           cudaGraphInstantiateParams* params, const char* file,
                                           int line) {
    Call call("cudaGraphInstantiateWithParams", {file, line});
    if (cudaError_t error = check(call, params)) return error;
    const cudaError_t error = instantiate(call, exec, graph, params->flags);
    params->errNode_out = nullptr;
    params->result_out = error ? cudaGraphInstantiateError : cudaGraphInstantiateSuccess;
    return error;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec, const char* file, int line) {
    Call call("cudaGraphExecDestroy", {file, line});
    if (cudaError_t error = check(call, exec)) return error;
    wait_for_all_work();
    --exec->graph->memory->instances;
    destroy(exec->graph);
    free(exec);
    return cudaSuccess;
}
cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long* flags, const char* file,
                                  int line) {
    Call call("cudaGraphExecGetFlags", {file, line});
    if (cudaError_t error = check(call, exec)) return error;
    if (!flags) return call.fail(cudaErrorInvalidValue, "the pointer is null");
    *flags = exec->flags;
    return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream, const char* file, int line) {
    Call call("cudaGraphLaunch", {file, line});
    if (cudaError_t error = check(call, exec)) return error;
    Work work(exec);
    cudaError_t result;
    if (captures && captures->take(call, stream, work, &result)) return result;
    if (cudaError_t error = check_memory(call, exec)) return error;
    const Ordered ordered(call.name, call.place, stream, work);
    return launch_graph(call, stream, exec, run);
}
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t, const char* file, int line) {
    Call call("cudaGraphUpload", {file, line});
    return check(call, exec);
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* info, const char* file, int line) {
    Call call("cudaGraphExecUpdate", {file, line});
    if (cudaError_t error = check(call, exec)) return error;
    if (cudaError_t error = check(call, graph)) return error;
    wait_for_all_work();
    cudaGraphNode_t at = nullptr;
    const cudaGraphExecUpdateResult result = update(exec->graph, graph, &at);
    if (info) *info = {result, at, nullptr};
    return result ? call.fail(cudaErrorGraphExecUpdateFailure, "the graphs differ in their nodes")
                  : cudaSuccess;
}
static cudaError_t find_switch(Call& call, cudaGraphExec_t exec, cudaGraphNode_t node,
                               cudaGraphNode_t* own) {
    if (cudaError_t error = check(call, exec)) return error;
    *own = node ? node_in(exec, node) : nullptr;
    if (!*own || (*own)->content.type > cudaGraphNodeTypeMemset)
        return call.fail(cudaErrorInvalidValue, "only kernels, copies and fills can be disabled");
    return cudaSuccess;
}
cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned enabled,
                                    const char* file, int line) {
    Call call("cudaGraphNodeSetEnabled", {file, line});
    cudaGraphNode_t own;
    if (cudaError_t error = find_switch(call, exec, node, &own)) return error;
    own->enabled = enabled != 0;
    return cudaSuccess;
}
cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned* enabled,
                                    const char* file, int line) {
    Call call("cudaGraphNodeGetEnabled", {file, line});
    cudaGraphNode_t own;
    if (cudaError_t error = find_switch(call, exec, node, &own)) return error;
    if (!enabled) return call.fail(cudaErrorInvalidValue, "the pointer is null");
    *enabled = own->enabled;
    return cudaSuccess;
}

// ------------------------------------------------------------------ memory and conditions

static unsigned long long* footprint_of(cudaGraphMemAttributeType attribute) {
    switch (attribute) {
        case cudaGraphMemAttrUsedMemCurrent:
            return &footprint.used;
        case cudaGraphMemAttrUsedMemHigh:
            return &footprint.used_high;
        case cudaGraphMemAttrReservedMemCurrent:
            return &footprint.reserved;
        case cudaGraphMemAttrReservedMemHigh:
            return &footprint.reserved_high;
    }
    return nullptr;
}
static cudaError_t check_attribute(Call& call, int device, const void* attribute,
                                   const void* value) {
    if (cudaError_t error = call.pending()) return error;
    if (device != 0)
        return call.fail(cudaErrorInvalidDevice, "there is only device 0, not %d", device);
    if (!attribute || !value) return call.fail(cudaErrorInvalidValue, "no such attribute");
    return cudaSuccess;
}
cudaError_t cudaDeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute,
                                           void* value, const char* file, int line) {
    Call call("cudaDeviceGetGraphMemAttribute", {file, line});
    const unsigned long long* counter = footprint_of(attribute);
    if (cudaError_t error = check_attribute(call, device, counter, value)) return error;
    *(unsigned long long*)value = *counter;
    return cudaSuccess;
}
cudaError_t cudaDeviceSetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute,
                                           void* value, const char* file, int line) {
    Call call("cudaDeviceSetGraphMemAttribute", {file, line});
    unsigned long long* counter = footprint_of(attribute);
    if (cudaError_t error = check_attribute(call, device, counter, value)) return error;
    const bool is_high =
        attribute == cudaGraphMemAttrUsedMemHigh || attribute == cudaGraphMemAttrReservedMemHigh;
    if (!is_high || *(unsigned long long*)value != 0)
        return call.fail(cudaErrorInvalidValue, "only a maximum can be set, and only to 0");
    *counter = attribute == cudaGraphMemAttrUsedMemHigh ? footprint.used : footprint.reserved;
    return cudaSuccess;
}
cudaError_t cudaDeviceGraphMemTrim(int device, const char* file, int line) {
    Call call("cudaDeviceGraphMemTrim", {file, line});
    if (cudaError_t error = check_attribute(call, device, &footprint, &footprint)) return error;
    footprint.set(pieces(live_of_graphs()));
    return cudaSuccess;
}

// Conditions live as long as the program: instances outlive their graph.
cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* handle, cudaGraph_t graph,
                                             unsigned value, unsigned flags, const char* file,
                                             int line) {
    Call call("cudaGraphConditionalHandleCreate", {file, line});
    if (cudaError_t error = check(call, graph)) return error;
    if (!handle || flags & ~cudaGraphCondAssignDefault)
        return call.fail(cudaErrorInvalidValue, "flags %#x", flags);
    Condition* condition = (Condition*)malloc(sizeof *condition);
    if (!condition) return call.fail(cudaErrorMemoryAllocation, "no memory for a condition");
    *condition = {value, value, flags == cudaGraphCondAssignDefault};
    *handle = (cudaGraphConditionalHandle)condition;
    return cudaSuccess;
}
void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned value) {
    __atomic_store_n(&((Condition*)handle)->value, value, __ATOMIC_RELAXED);
}
