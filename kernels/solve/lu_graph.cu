// /// cudalab
// summary  = "LU factors: the launches of lu_blocked_panel, repeated as one CUDA graph"
// order    = 8.2
// ladder   = "direct methods"
// adds     = "all launches up to the first answer as one graph, recorded once"
// dispatch = "lu_graph"
// default  = ["cuda"]
//
// [defines]
// PANEL                 = 32    # columns whose pivots one launch finds
// BLOCK                 = 256   # columns after which the rest is updated, in float; half in double
// MAX_THREADS_PER_BLOCK = 640   # of choose_pivots, in float; half in double
// TILE                  = 128   # of update_trailing, in float; half in double
// ///
//
// The kernels of `lu_blocked_panel`, launched in another way. A launch costs the host some 13
// microseconds in Python; a panel of a small matrix takes the GPU no longer, so the GPU waits for
// the host, and how long depends on the host. But nothing that is launched depends on anything that
// the GPU has computed: kernels, grids and arguments are the same for each matrix of this size. So
// the host records them: in a stream that captures (cuStreamBeginCapture), launches do not run but
// become nodes of a graph, each with an edge from the one before. A single call (cuGraphLaunch)
// then hands the whole graph to the GPU, which starts each node as soon as the one before has
// ended.
//
// Recording is not free. So the first solution is launched as in `lu_blocked_panel`, the second is
// recorded, and the third and later ones are one call each: who solves one system has no graph.
// Measurements are those of a graph that exists. The GPU's answer decides about more refinements,
// so they are no part of the graph: the host reads the residual behind it.
//
// Limits: while a panel is eliminated, most of the GPU is idle. A graph of another size is another
// graph.
//
// Macros from outside: T (element type), PANEL, BLOCK, MAX_THREADS_PER_BLOCK, TILE.
#include "solve/lu_blocked_panel.cu"

// Source: Gray, Getting Started with CUDA Graphs. NVIDIA Developer Blog, 2019.
