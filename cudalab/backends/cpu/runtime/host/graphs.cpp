// CUDA graphs: nodes and their order, instances, and the memory that graphs allocate.
// captures.cpp turns the work of streams into nodes.

#include <stdio.h>

#include "nodes.h"
#include "order.h"

namespace cudalab {

// ------------------------------------------------------------------ contents of nodes

void Content::drop() {
    free(launch.args);
    launch.args = nullptr;
    if (child) destroy(child);
    child = nullptr;
    for (unsigned i = 0; bodies && i < num_bodies; ++i) destroy(bodies[i]);
    free(bodies);
    bodies = nullptr;
}

bool Content::copy_from(const Content& other) {
    drop();
    memcpy((void*)this, (const void*)&other, sizeof other);
    launch.args = nullptr;
    child = nullptr;
    bodies = nullptr;
    if (other.launch.args && !launch.copy(other.launch.call())) return false;
    if (other.child) child = copy_of(other.child);
    if (other.bodies) {
        bodies = (cudaGraph_t*)calloc(num_bodies, sizeof *bodies);
        for (unsigned i = 0; i < num_bodies; ++i) bodies[i] = copy_of(other.bodies[i]);
    }
    return true;
}

// ------------------------------------------------------------------ graphs

cudaGraph_t new_graph() {
    cudaGraph_t graph = (cudaGraph_t)calloc(1, sizeof *graph);
    if (graph) graph->memory = new_memory();
    return graph;
}
void destroy(cudaGraph_t graph) {
    for (cudaGraphNode_t node : graph->nodes) {
        node->content.drop();
        node->~CUgraphNode_st();
        free(node);
    }
    drop(graph->memory);
    graph->~CUgraph_st();
    free(graph);
}
cudaGraphNode_t new_node(cudaGraph_t graph, const Content& content, Place place) {
    cudaGraphNode_t node = (cudaGraphNode_t)calloc(1, sizeof *node);
    if (!node) return nullptr;
    memcpy((void*)&node->content, (const void*)&content, sizeof content);
    node->graph = graph;
    node->place = place;
    node->enabled = true;
    node->number = graph->last_number++;
    graph->nodes.add(node);
    return node;
}
void connect(cudaGraphNode_t from, cudaGraphNode_t to) {
    from->after.add(to);
    to->before.add(from);
}

// A copy whose nodes know their originals.
cudaGraph_t copy_of(cudaGraph_t graph) {
    cudaGraph_t copy = (cudaGraph_t)calloc(1, sizeof *copy);
    if (!copy) return nullptr;
    copy->memory = graph->memory;
    ++copy->memory->users;
    copy->last_number = graph->last_number;
    for (cudaGraphNode_t node : graph->nodes) {
        cudaGraphNode_t made = (cudaGraphNode_t)calloc(1, sizeof *made);
        if (!made) return nullptr;
        made->content.copy_from(node->content);
        made->graph = copy;
        made->place = node->place;
        made->enabled = node->enabled;
        made->number = node->number;
        made->original = node;
        node->last_copy = made;
        copy->nodes.add(made);
    }
    for (cudaGraphNode_t node : graph->nodes)
        for (cudaGraphNode_t earlier : node->before) connect(earlier->last_copy, node->last_copy);
    return copy;
}

// Sorts the nodes: each comes after those that it depends on, and otherwise in the order in which
// the program made them. False if there is a cycle.
static bool sort(cudaGraph_t graph) {
    List<cudaGraphNode_t> sorted;
    for (cudaGraphNode_t node : graph->nodes) node->is_sorted = false;
    while (sorted.size() < graph->nodes.size()) {
        const size_t before = sorted.size();
        for (cudaGraphNode_t node : graph->nodes) {
            bool ready = !node->is_sorted;
            for (cudaGraphNode_t earlier : node->before) ready &= earlier->is_sorted;
            if (!ready) continue;
            node->is_sorted = true;
            sorted.add(node);
        }
        if (sorted.size() == before) return false;
    }
    graph->nodes.clear();
    graph->nodes.append(sorted);
    for (cudaGraphNode_t node : graph->nodes) {
        if (node->content.child && !sort(node->content.child)) return false;
        for (unsigned i = 0; i < node->content.num_bodies; ++i)
            if (!sort(node->content.bodies[i])) return false;
    }
    return true;
}

static bool has_memory_nodes(cudaGraph_t graph) {
    for (cudaGraphNode_t node : graph->nodes)
        if (node->content.type == cudaGraphNodeTypeMemAlloc ||
            node->content.type == cudaGraphNodeTypeMemFree)
            return true;
    return false;
}

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

// ------------------------------------------------------------------ the API's parameters

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

// The node of an instance, or of a graph if there is no instance.
static cudaGraphNode_t node_in(cudaGraphExec_t exec, cudaGraphNode_t node) {
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

// Hands over a list: its length if there is no room for it.
static cudaError_t give(Call& call, const List<cudaGraphNode_t>& list, cudaGraphNode_t* nodes,
                        size_t* count) {
    if (!count) return call.fail(cudaErrorInvalidValue, "the pointer to the count is null");
    for (size_t i = 0; nodes && i < *count; ++i) nodes[i] = i < list.size() ? list[i] : nullptr;
    if (!nodes || *count > list.size()) *count = list.size();
    return cudaSuccess;
}
static cudaError_t check(Call& call, const void* graph_or_node) {
    if (cudaError_t error = call.pending()) return error;
    if (!graph_or_node) return call.fail(cudaErrorInvalidValue, "the graph or node is null");
    return cudaSuccess;
}

static cudaGraphExecUpdateResult update(cudaGraph_t own, cudaGraph_t from, cudaGraphNode_t* at);

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
size_t position(cudaGraph_t graph, cudaGraphNode_t node) {
    for (size_t i = 0; i < graph->nodes.size(); ++i)
        if (graph->nodes[i] == node) return i;
    return graph->nodes.size();
}
static cudaGraphExecUpdateResult update(cudaGraph_t own, cudaGraph_t from, cudaGraphNode_t* at) {
    if (!sort(from)) return cudaGraphExecUpdateErrorTopologyChanged;
    const cudaGraphExecUpdateResult result = compare(own, from, at);
    if (result) return result;
    for (size_t i = 0; i < own->nodes.size(); ++i)
        own->nodes[i]->content.copy_from(from->nodes[i]->content);
    return cudaGraphExecUpdateSuccess;
}

static const char* const TYPES[] = {
    "KERNEL",       "MEMCPY", "MEMSET", "HOST",      "GRAPH",    "EMPTY", "WAIT_EVENT",
    "EVENT_RECORD", "",       "",       "MEM_ALLOC", "MEM_FREE", "",      "CONDITIONAL"};

}  // namespace cudalab

using namespace cudalab;

// ------------------------------------------------------------------ graphs

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags, const char* file, int line) {
    Call call("cudaGraphCreate", {file, line});
    if (cudaError_t error = check(call, graph)) return error;
    if (flags) return call.fail(cudaErrorInvalidValue, "flags %#x are not known", flags);
    *graph = new_graph();
    return *graph ? cudaSuccess : call.fail(cudaErrorMemoryAllocation, "no memory for a graph");
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph, const char* file, int line) {
    Call call("cudaGraphDestroy", {file, line});
    if (cudaError_t error = check(call, graph)) return error;
    destroy(graph);
    return cudaSuccess;
}
cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph, const char* file, int line) {
    Call call("cudaGraphClone", {file, line});
    if (cudaError_t error = check(call, graph)) return error;
    if (!clone) return call.fail(cudaErrorInvalidValue, "the pointer is null");
    if (has_memory_nodes(graph))
        return call.fail(cudaErrorNotSupported, "the graph allocates memory");
    *clone = copy_of(graph);
    return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count,
                              const char* file, int line) {
    Call call("cudaGraphGetNodes", {file, line});
    if (cudaError_t error = check(call, graph)) return error;
    return give(call, graph->nodes, nodes, count);
}
cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count,
                                  const char* file, int line) {
    Call call("cudaGraphGetRootNodes", {file, line});
    if (cudaError_t error = check(call, graph)) return error;
    List<cudaGraphNode_t> roots;
    for (cudaGraphNode_t node : graph->nodes)
        if (!node->before.size()) roots.add(node);
    return give(call, roots, nodes, count);
}
cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                              cudaGraphEdgeData* data, size_t* count, const char* file, int line) {
    Call call("cudaGraphGetEdges", {file, line});
    if (cudaError_t error = check(call, graph)) return error;
    List<cudaGraphNode_t> sources, targets;
    for (cudaGraphNode_t node : graph->nodes)
        for (cudaGraphNode_t later : node->after) sources.add(node), targets.add(later);
    if (!count) return call.fail(cudaErrorInvalidValue, "the pointer to the count is null");
    for (size_t i = 0; data && i < *count; ++i) data[i] = {};
    size_t room = *count;
    if (cudaError_t error = give(call, sources, from, &room)) return error;
    return give(call, targets, to, count);
}

// The edges that a call names: all of them are checked before one is changed.
template <class Check, class Apply>
static cudaError_t for_edges(Call& call, cudaGraph_t graph, const cudaGraphNode_t* from,
                             const cudaGraphNode_t* to, size_t count, Check allowed, Apply apply) {
    if (cudaError_t error = check(call, graph)) return error;
    if (count && (!from || !to)) return call.fail(cudaErrorInvalidValue, "a pointer is null");
    for (size_t i = 0; i < count; ++i)
        if (!from[i] || !to[i] || from[i]->graph != graph || to[i]->graph != graph ||
            from[i] == to[i] || !allowed(from[i], to[i]))
            return call.fail(cudaErrorInvalidValue, "edge %zu is not possible", i);
    for (size_t i = 0; i < count; ++i) apply(from[i], to[i]);
    return cudaSuccess;
}
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, const cudaGraphEdgeData*,
                                     size_t count, const char* file, int line) {
    Call call("cudaGraphAddDependencies", {file, line});
    return for_edges(
        call, graph, from, to, count,
        [](cudaGraphNode_t a, cudaGraphNode_t b) { return !a->after.has(b); }, connect);
}
cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                        const cudaGraphNode_t* to, const cudaGraphEdgeData*,
                                        size_t count, const char* file, int line) {
    Call call("cudaGraphRemoveDependencies", {file, line});
    return for_edges(
        call, graph, from, to, count,
        [](cudaGraphNode_t a, cudaGraphNode_t b) { return a->after.has(b); },
        [](cudaGraphNode_t a, cudaGraphNode_t b) {
            a->after.remove(b);
            b->before.remove(a);
        });
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned, const char* file,
                                   int line) {
    Call call("cudaGraphDebugDotPrint", {file, line});
    if (cudaError_t error = check(call, graph)) return error;
    FILE* out = path ? fopen(path, "w") : nullptr;
    if (!out) return call.fail(cudaErrorOperatingSystem, "%s cannot be written", path);
    fprintf(out,
            "digraph dot {\nsubgraph cluster_1 {\nlabel=\"graph_1\" graph[style=\"dashed\"];\n");
    for (size_t i = 0; i < graph->nodes.size(); ++i) {
        const Content& content = graph->nodes[i]->content;
        const bool is_kernel = content.type == cudaGraphNodeTypeKernel;
        fprintf(
            out,
            "\"graph_1_node_%zu\"[style=\"solid\" shape=\"rectangle\" label=\"%zu\n%s\n\"];\n\n", i,
            i, is_kernel ? content.launch.kernel.name : TYPES[content.type]);
    }
    for (cudaGraphNode_t node : graph->nodes)
        for (cudaGraphNode_t later : node->after)
            fprintf(out, "\"graph_1_node_%zu\" -> \"graph_1_node_%zu\";\n", position(graph, node),
                    position(graph, later));
    fprintf(out, "}\n}\n");
    return fclose(out) == 0 ? cudaSuccess
                            : call.fail(cudaErrorOperatingSystem, "%s cannot be written", path);
}

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
    if (!copy || !sort(copy)) {
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
