// Work that is given to streams: copies, fills, kernels and calls of host functions.
//
// All of it comes through `submit`, and streams depend on each other only through `record_event`
// and `wait_for_event` (streams.cpp): these three are where the order of work is known. Work is
// done before `submit` returns, unless its stream is captured (then it becomes a node of a graph),
// a kernel submits it (then it is done when the kernel's grid has ended), or it comes after a grid
// that waits for the host (then the device's own thread does it, background.cpp).
#pragma once

#include "internal.h"
#include "list.h"

namespace cudalab {
struct Capture;
struct CapturedPoint;
}  // namespace cudalab

struct CUstream_st {
    unsigned flags;
    int priority;
    unsigned long long id;
    cudaAccessPolicyWindow window;
    cudalab::Capture* capture;  // captures.cpp: the capture that the stream takes part in
};
struct CUevent_st {
    unsigned flags;
    bool recorded;
    double ms;
    cudalab::CapturedPoint* captured;  // captures.cpp: where a captured stream recorded it
    uint64_t task = 0;                 // background.cpp: that will record it, or has
};

namespace cudalab {

// Rows of bytes.
struct Copy {
    void* target;
    size_t target_pitch;
    const void* source;
    size_t source_pitch, width, height;
    cudaMemcpyKind kind;
    bool of_symbol;  // one side is a device variable, which has been checked
    size_t depth = 1, target_slice = 0, source_slice = 0;  // of a box: slices, the bytes of each
};
// Rows of elements of 1, 2 or 4 bytes.
struct Fill {
    void* target;
    size_t pitch;
    unsigned value, element_bytes;
    size_t width, height;  // width: elements
};
struct HostCall {
    cudaHostFn_t function;
    void* data;
};
struct KernelCall {
    const Config* config;
    const Kernel* kernel;
    const void* address;  // of the function, or null if it is not known
    void* const* args;
};
// Memory that a graph allocates or frees.
struct PoolMemory {
    void* address;
    size_t bytes;
};

struct Work {
    cudaGraphNodeType type;
    union {
        Copy copy;              // cudaGraphNodeTypeMemcpy
        Fill fill;              // cudaGraphNodeTypeMemset
        HostCall host;          // cudaGraphNodeTypeHost
        KernelCall kernel;      // cudaGraphNodeTypeKernel
        PoolMemory memory;      // cudaGraphNodeTypeMemAlloc, cudaGraphNodeTypeMemFree
        cudaGraphExec_t graph;  // cudaGraphNodeTypeGraph
    };
    Work(const Copy& copy_) : type(cudaGraphNodeTypeMemcpy), copy(copy_) {}
    Work(const Fill& fill_) : type(cudaGraphNodeTypeMemset), fill(fill_) {}
    Work(const HostCall& host_) : type(cudaGraphNodeTypeHost), host(host_) {}
    Work(const KernelCall& kernel_) : type(cudaGraphNodeTypeKernel), kernel(kernel_) {}
    Work(cudaGraphNodeType type_, const PoolMemory& memory_) : type(type_), memory(memory_) {}
    Work(cudaGraphExec_t graph_) : type(cudaGraphNodeTypeGraph), graph(graph_) {}
};

// ------------------------------------------------------------------ streams.cpp

bool is_legacy(cudaStream_t stream);          // the default stream, which waits for others
CUstream_st& object_of(cudaStream_t stream);  // the default streams have one, too
cudaError_t submit(Call& call, cudaStream_t stream, Work& work);
cudaError_t record_event(Call& call, cudaEvent_t event, cudaStream_t stream, unsigned flags);
cudaError_t wait_for_event(Call& call, cudaStream_t stream, cudaEvent_t event, unsigned flags);
void record_now(cudaEvent_t event);
// Does the work at once. Host functions are not called: their caller releases the lock before.
cudaError_t perform(Call& call, const Work& work);

// ------------------------------------------------------------------ background.cpp

// Does the work at once if its order allows it; else the device's own thread does it.
cudaError_t do_in_order(Call& call, cudaStream_t stream, const Work& work);
typedef cudaError_t RunGraph(cudaGraphExec_t graph);
cudaError_t launch_graph(Call& call, cudaStream_t stream, cudaGraphExec_t graph, RunGraph run);
bool is_busy(cudaStream_t stream);  // it has work that is not done
// Whether new work of the stream comes after work that is not done; and what else comes after that.
bool has_work(cudaStream_t stream);
void record_later(cudaEvent_t event, cudaStream_t stream);
void wait_later(cudaStream_t stream, cudaEvent_t event);
bool is_done(cudaEvent_t event);
void forget_in_background(cudaEvent_t event);
void wait_for_work(cudaStream_t stream);
void wait_for_event_of_work(cudaEvent_t event);
bool is_device_thread();
// Runs a grid; the device's thread does other work, too, while the grid waits.
class Grid;
void run_to_end(Grid& grid);

// The functions of captures.cpp while streams are captured. A function that has dealt with the call
// returns true and its result.
struct Captures {
    bool (*take)(Call&, cudaStream_t, Work&, cudaError_t* result);
    bool (*record)(Call&, cudaEvent_t, cudaStream_t, unsigned flags, cudaError_t* result);
    bool (*wait)(Call&, cudaStream_t, cudaEvent_t, unsigned flags, cudaError_t* result);
    // Errors for calls that would wait for a captured stream or event, or that need the whole
    // device; and for those that are unsafe while anything is captured, such as cudaMalloc.
    cudaError_t (*forbid_stream)(Call&, cudaStream_t);
    cudaError_t (*forbid_event)(Call&, cudaEvent_t);
    cudaError_t (*forbid_device)(Call&);
    cudaError_t (*forbid_unsafe)(Call&);
    void (*launch_failed)(cudaStream_t);  // what is not possible ends the capture
    void (*forget)(cudaEvent_t);
    void (*forget_stream)(cudaStream_t);
};
extern const Captures* captures;  // null before the first capture

// ------------------------------------------------------------------ children.cpp

// A copy of a launch, with the arguments.
struct OwnLaunch {
    Kernel kernel;
    Config config{1, 1};
    const void* address;  // of the function, or another one that is the kernel's alone
    void** args;          // their addresses and the closure's, and then they themselves; or null

    bool copy(const KernelCall& call);
    KernelCall call() const { return {&config, &kernel, address, args}; }
};
// The work of a running kernel: it is done when the grid has ended.
cudaError_t add_child(Call& call, cudaStream_t stream, const Work& work);
// A grid that runs, and the work that its kernel submits.
struct Child;
extern List<Child*>* children;  // of the running grid
class Grid {
  public:
    Grid(Call& call, const KernelCall& launch);
    Progress go_on(bool host_waits);  // for a moment
    cudaError_t finish(Call& call);   // does the children's work; the result

  private:
    Access access{Access::KERNEL};
    List<Child*> own, *const outer = children;
    cudaError_t error;
};
extern uint64_t grids_begun;
size_t max_depth();  // of launches in launches

// ------------------------------------------------------------------ copies.cpp, functions.cpp

cudaError_t check(Call& call, const Copy& copy);  // whether it is possible now
cudaError_t perform(Call& call, const Copy& copy);
cudaError_t perform(Call& call, const Fill& fill);
cudaError_t check(Call& call, const Fill& fill);
cudaError_t perform(Call& call, const KernelCall& kernel);  // in children.cpp
// Whether a kernel may dereference the pointers that it is given.
cudaError_t check_arguments(Call& call, const KernelCall& kernel);
// Whether the limits of the device allow the launch, before it is submitted.
cudaError_t check_launch(Call& call, const KernelCall& kernel);
void begin_shared_memory(const KernelCall& launch);  // for the functions that kernels ask
uint64_t resident_blocks(const KernelCall& launch);  // so many fit on the device at once

}  // namespace cudalab
