// The order of a program's work: what waits for what. Check mode computes it (order.cpp); in an
// ordinary run these functions do nothing (launch.cpp).
//
// Here all work is done before its call returns. On a GPU it is done later, and only what CUDA
// promises is certain, so the order is computed from the calls, and never observed:
//
// * The work of a stream is done in order. What waits for an event comes after what its stream had
//   been given when the event was recorded. Nodes of a graph wait for those that they depend on.
// * Work of the legacy default stream waits for all blocking streams, and they wait for it.
// * The host gives a stream its work when all that the host has waited for is done.
// * The host waits in cudaDeviceSynchronize, cudaStreamSynchronize, cudaEventSynchronize, queries
//   that succeed, cudaFree, and copies and fills as "API synchronization behavior" in CUDA's manual
//   says: without Async if they involve pinned or managed memory, or lead to the host; with Async
//   only if they lead to pageable memory, or from the host to the host.
//
// Where CUDA allows more than one reading, the one is taken that blames less: a host function in a
// stream may talk to any thread of the host, so the host counts as having waited for it; all
// threads of the host count as one; libraries wait for everything.
#pragma once

#include "work.h"

namespace cudalab {

// A piece of work in its stream, as long as the object exists.
class Ordered {
  public:
    Ordered(const char* name, Place place, cudaStream_t stream, const Work& work);
    ~Ordered();
    Ordered(const Ordered&) = delete;
    Ordered& operator=(const Ordered&) = delete;

  private:
    const bool waits;         // the host
    const void* const graph;  // the instance, or null
};
// The nodes of a graph that is such a piece of work, or a part of one.
class OrderedNodes {
  public:
    OrderedNodes();
    ~OrderedNodes();
    OrderedNodes(const OrderedNodes&) = delete;
    OrderedNodes& operator=(const OrderedNodes&) = delete;
    void begin(cudaGraphNode_t node);
    void end(cudaGraphNode_t node);

  private:
    struct Inside;
    Inside* const inside;
};

void stream_made(cudaStream_t stream, Place place);
void stream_destroyed(cudaStream_t stream);
void event_recorded(cudaEvent_t event, cudaStream_t stream);
void event_awaited(cudaStream_t stream, cudaEvent_t event);
void event_destroyed(cudaEvent_t event);
void host_waits(cudaStream_t stream);
void host_waits(cudaEvent_t event);
void host_waits();  // for all work
// What copies and fills use. Writing is memory_written, too.
void memory_read(const void* address, size_t bytes);
struct Copy;
void copied_to_host(const Call& call, const Copy& copy);
// Memory of a pool, which comes and goes in the order of a stream.
void pool_gives(const void* memory, Place place, cudaStream_t stream);
void pool_takes(const void* memory, Place place, cudaStream_t stream);
void time_is_read(const Call& call, cudaEvent_t event);
void program_ends();
void kernel_has_printed();
void library_works();  // device memory becomes accessible outside of all ordered work

// For observe.cpp: memory comes and goes, is written, and the kernel of this thread's work has run.
void order_begins(const Allocation& memory, unsigned region);
void order_ends(const Allocation& memory);
void order_write(const void* address, size_t bytes);
void order_kernel();
void order_copied_to_host(const void* target, size_t bytes);
// A copy that has brought the host what nobody has written.
struct UnwrittenCopy {
    uintptr_t to;
    size_t bytes;
    bool* has_none;     // of each byte, as long as the host stores nothing there
    bool reads_others;  // the host has read bytes that have been written
    Place call;
    char* text;
};
void order_unwritten(const UnwrittenCopy& copy);

}  // namespace cudalab
