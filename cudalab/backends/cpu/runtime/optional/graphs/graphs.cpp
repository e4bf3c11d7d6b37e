// CUDA graphs: what they consist of, their nodes and edges as a program asks for them.
// captures.cpp turns the work of streams into nodes.

#include <stdio.h>

#include "nodes.h"

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

bool sort_nodes(cudaGraph_t graph) {
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
        if (node->content.child && !sort_nodes(node->content.child)) return false;
        for (unsigned i = 0; i < node->content.num_bodies; ++i)
            if (!sort_nodes(node->content.bodies[i])) return false;
    }
    return true;
}

bool has_memory_nodes(cudaGraph_t graph) {
    for (cudaGraphNode_t node : graph->nodes)
        if (node->content.type == cudaGraphNodeTypeMemAlloc ||
            node->content.type == cudaGraphNodeTypeMemFree)
            return true;
    return false;
}

cudaError_t give(Call& call, const List<cudaGraphNode_t>& list, cudaGraphNode_t* nodes,
                 size_t* count) {
    if (!count) return call.fail(cudaErrorInvalidValue, "the pointer to the count is null");
    for (size_t i = 0; nodes && i < *count; ++i) nodes[i] = i < list.size() ? list[i] : nullptr;
    if (!nodes || *count > list.size()) *count = list.size();
    return cudaSuccess;
}

cudaError_t check(Call& call, const void* graph_or_node) {
    if (cudaError_t error = call.pending()) return error;
    if (!graph_or_node) return call.fail(cudaErrorInvalidValue, "the graph or node is null");
    return cudaSuccess;
}

size_t position(cudaGraph_t graph, cudaGraphNode_t node) {
    for (size_t i = 0; i < graph->nodes.size(); ++i)
        if (graph->nodes[i] == node) return i;
    return graph->nodes.size();
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
