// The inside of CUDA graphs, for graphs.cpp, graph_nodes.cpp, graph_instances.cpp and captures.cpp.
#pragma once

#include "work.h"

namespace cudalab {

struct Condition {  // of nodes that run other graphs
    unsigned value, default_value;
    bool has_default;
};

// What a node does. Lists of nodes and contents are kept in zeroed memory, and copied explicitly.
struct Content {
    cudaGraphNodeType type;
    Copy copy;
    cudaMemcpy3DParms copy_params;  // as the program gave them
    Fill fill;
    HostCall host;
    cudaEvent_t event;
    PoolMemory memory;
    cudaGraph_t child;
    Condition* condition;
    cudaGraphConditionalNodeType condition_type;
    unsigned num_bodies;
    cudaGraph_t* bodies;
    OwnLaunch launch;

    bool copy_from(const Content& other);
    void drop();
};

// Addresses of memory that a graph allocates. The graph, its copies and instances share them.
struct GraphMemory {
    unsigned users, instances;
    List<PoolMemory> ranges;
};
GraphMemory* new_memory();
void drop(GraphMemory* memory);

}  // namespace cudalab

struct CUgraphNode_st {
    cudaGraph_t graph;
    cudalab::Content content;
    cudalab::Place place;  // the line that made it
    cudalab::List<cudaGraphNode_t> before, after;
    cudaGraphNode_t original, last_copy;
    unsigned number;  // in the order in which the program made the nodes
    bool enabled, is_sorted;
};
struct CUgraph_st {
    cudalab::List<cudaGraphNode_t> nodes;
    cudalab::GraphMemory* memory;
    unsigned last_number;
};
struct CUgraphExec_st {
    cudaGraph_t graph;  // a copy, its nodes in the order in which they run
    unsigned long long flags;
};

namespace cudalab {

// graphs.cpp
cudaGraph_t new_graph();
cudaGraph_t copy_of(cudaGraph_t graph);  // its nodes know their originals
void destroy(cudaGraph_t graph);
cudaGraphNode_t new_node(cudaGraph_t graph, const Content& content, Place place);
void connect(cudaGraphNode_t from, cudaGraphNode_t to);
size_t position(cudaGraph_t graph, cudaGraphNode_t node);
bool has_memory_nodes(cudaGraph_t graph);
// Sorts the nodes: each comes after those that it depends on, and otherwise in the order in which
// the program made them. False if there is a cycle.
bool sort_nodes(cudaGraph_t graph);
// Hands over a list: its length if there is no room for it.
cudaError_t give(Call& call, const List<cudaGraphNode_t>& list, cudaGraphNode_t* nodes,
                 size_t* count);
cudaError_t check(Call& call, const void* graph_or_node);

// graph_nodes.cpp
cudaGraphNode_t node_in(cudaGraphExec_t exec, cudaGraphNode_t node);  // of a graph, without exec

// graph_instances.cpp
cudaError_t place_memory(Call& call, cudaGraphNode_t node);
cudaError_t check_free(Call& call, cudaGraph_t graph, PoolMemory& memory);
// Takes the parameters of another graph's nodes; `at`: the node that forbids it.
cudaGraphExecUpdateResult update(cudaGraph_t own, cudaGraph_t from, cudaGraphNode_t* at);

}  // namespace cudalab
