// Work that kernels submit: launches, copies and fills. It is done when the grid has ended.
//
// A grid is complete when its children are. They are done in the order of the blocks that have
// submitted them, and of one block in the order in which it did: this is an order that a GPU may
// choose, whatever the streams, for it promises none between blocks and between streams. Work for
// cudaStreamTailLaunch comes when all the rest is complete, with the children's own children.

#include "work.h"

namespace cudalab {

bool OwnLaunch::copy(const KernelCall& call) {
    const unsigned count = call.kernel->num_params + 1;  // with the closure
    const size_t slot = 64;                              // no type needs a greater alignment
    size_t bytes = count * sizeof(void*);
    for (unsigned i = 0; i < count; ++i)
        bytes = (bytes + slot - 1) / slot * slot + call.kernel->arg_bytes[i];
    void* memory = nullptr;
    if (posix_memalign(&memory, slot, bytes) != 0) return false;
    void** own = (void**)memory;
    size_t at = count * sizeof(void*);
    for (unsigned i = 0; i < count; ++i) {
        at = (at + slot - 1) / slot * slot;
        own[i] = (char*)memory + at;
        memcpy(own[i], call.args[i], call.kernel->arg_bytes[i]);
        at += call.kernel->arg_bytes[i];
    }
    kernel = *call.kernel;
    config = *call.config;
    address = call.address ? call.address : (const void*)kernel.thread;
    args = own;
    return true;
}

struct Child {
    uint64_t block;  // that has submitted it
    bool is_tail;
    Place place;
    Work work;  // of a launch without its arguments, which are in `launch`
    OwnLaunch launch;
};

uint64_t grids_begun;
List<Child*>* children;
static unsigned depth;  // of the running grid: 0 if the host has launched it

cudaError_t add_child(Call& call, cudaStream_t stream, const Work& work) {
    if ((uintptr_t)stream > (uintptr_t)cudaStreamFireAndForget && (uintptr_t)stream < 4096)
        return call.fail(cudaErrorInvalidValue, "%p is not a stream", (void*)stream);
    if (work.type == cudaGraphNodeTypeMemcpy && work.copy.kind != cudaMemcpyDeviceToDevice &&
        work.copy.kind != cudaMemcpyDefault)
        return call.fail(cudaErrorInvalidMemcpyDirection, "a kernel copies from device to device");
    if (work.type == cudaGraphNodeTypeKernel && depth >= max_depth())
        return call.fail(cudaErrorLaunchPendingCountExceeded,
                         "%u launches wait for their children: the limit "
                         "cudaLimitDevRuntimePendingLaunchCount",
                         depth);
    Child* child = (Child*)malloc(sizeof *child);
    const uint3 &at = current.block_idx, &grid = current.grid_dim;
    const uint64_t block = at.x + (uint64_t)grid.x * (at.y + (uint64_t)grid.y * at.z);
    if (child) *child = {block, stream == cudaStreamTailLaunch, call.place, work, {}};
    if (!child || (work.type == cudaGraphNodeTypeKernel && !child->launch.copy(work.kernel))) {
        free(child);
        return call.fail(cudaErrorMemoryAllocation, "no memory for a launch");
    }
    children->add(child);
    return cudaSuccess;
}

static int by_block(const void* a, const void* b) {
    const Child &one = **(Child* const*)a, &other = **(Child* const*)b;
    return one.block < other.block ? -1 : one.block > other.block;
}
// Sorts by block and keeps the order of each block's own. (glibc's qsort does if it has memory.)
static void sort(List<Child*>& list) {
    bool sorted = true;
    for (size_t i = 1; i < list.size(); ++i) sorted &= list[i - 1]->block <= list[i]->block;
    if (!sorted) qsort(list.begin(), list.size(), sizeof(Child*), by_block);
}

static cudaError_t run_child(Child& child) {
    Call call("launch", child.place);
    if (child.work.type != cudaGraphNodeTypeKernel) return perform(call, child.work);
    return perform(call, child.launch.call());
}

Grid::Grid(Call& call, const KernelCall& launch) {
    children = &own;
    ++grids_begun;
    error = check_arguments(call, launch);
    begin_shared_memory(launch);
    if (!error)
        error =
            start_grid(call, *launch.config, *launch.kernel, launch.args, resident_blocks(launch));
}
Progress Grid::go_on(bool host_waits) {
    if (error) return Progress::ENDED;
    if (!is_device_thread()) return continue_grid(host_waits);
    Unlocked unlocked;
    return continue_grid(host_waits);
}
cudaError_t Grid::finish(Call& call) {
    if (!error) error = end_grid(call);
    sort(own);
    ++depth;
    for (int tails = 0; tails < 2; ++tails)
        for (Child* child : own)
            if (child->is_tail == (tails == 1) && !error) error = run_child(*child);
    --depth;
    for (Child* child : own) {
        free(child->launch.args);
        free(child);
    }
    children = outer;
    return error;
}
cudaError_t perform(Call& call, const KernelCall& launch) {
    wait_for_all_work();
    Grid grid(call, launch);
    run_to_end(grid);
    return grid.finish(call);
}

}  // namespace cudalab
