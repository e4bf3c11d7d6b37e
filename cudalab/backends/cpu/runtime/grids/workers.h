// The OS threads that run blocks, the block that each runs, and the launch that they share.
#pragma once

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "async_copies.h"
#include "cudalab_cpu.h"
#undef threadIdx
#undef blockIdx
#undef blockDim
#undef gridDim
#include "pages.h"
#include "switch.h"

namespace cudalab {

__thread Current current CUDALAB_OF_OS_THREAD;

const unsigned MAX_THREADS = 1024, MAX_WARPS = 32, NOBODY = ~0u;
// A thread of a GPU may have 512 KB of local memory; pages that it never touches take no memory.
const size_t LOCAL_MEMORY = 512 << 10, BLOCK_STACK = 4 << 20;
const size_t GUARD = 64 << 10;  // below each stack: a large frame must not step over it
// With room for what the compiler keeps on a stack. An odd number of pages: the tops of the stacks
// would else share a few sets of the TLB.
const size_t FIBER_STACK = LOCAL_MEMORY + GUARD + (PAGE < GUARD ? 5 : 1) * PAGE;
const size_t SIGNAL_STACK = 64 << 10;
const size_t DYNAMIC_SHARED = 227 << 10;  // what a block may have on the largest devices
const unsigned PATIENCE = 64;             // polls by a block before its other threads get a turn
const uint64_t NO_BLOCK = ~0ull;

struct Site {  // where a thread waits
    const char* file;
    int place;  // the line, and above it a barrier's number
    int line() const { return place & 0xfffff; }
};

struct Stay;  // what is known about threads that wait in loops (api/waits.h)

struct ClockReads {             // by one thread at one place, with nothing much between them
    const void *at, *waits_at;  // waits_at: a place where threads wait by the clock
    unsigned thread, count;
    long long last;
    uint64_t turns;  // how often a thread gave way
};

struct Worker {  // an OS thread and the block it runs
    pthread_t os_thread;
    Worker* next;    // in the pool
    uint64_t block;  // its linear index, or NO_BLOCK
    unsigned threads, warps;
    bool fibers;        // the block's threads have stacks of their own
    unsigned promoted;  // the thread that runs on the block's stack
    uint64_t spins;     // polls since a thread arrived at a barrier or at a warp operation
    uint64_t steps;     // of the block: threads that ended, barriers and warp operations
    ClockReads clock;
    char* own_stack;     // of the OS thread
    char* signal_stack;  // a crashed fiber may have no stack left
    int crashes;
    bool crashed_in_loops;  // which do not know their thread: pool.on_loops_crash
    char* lent;             // memory for the large local variables of loops (regions.h)
    size_t num_lent;        // bytes of it in use
    bool at_grid_barrier;
    volatile bool stuck;  // no step for long
    Stay* stay;
    const Kernel* kernel;
    void* const* args;

    unsigned live[MAX_WARPS], at_barrier[MAX_WARPS], at_warp_op[MAX_WARPS];
    Site block_site;       // of the barrier at which threads are arriving
    unsigned block_first;  // the thread that came first
    BlockOp block_op;
    unsigned predicates, voters;

    unsigned mask[MAX_THREADS];  // of the warp operation a thread waits at
    WarpOp op[MAX_THREADS];
    uint64_t value[MAX_THREADS], result[MAX_THREADS];
    unsigned source[MAX_THREADS];
    Site site[MAX_THREADS];  // of that warp operation

    AsyncCopies copies[MAX_THREADS];
    bool any_copies;  // since they were last cleared

    uint3 index[MAX_THREADS];  // threadIdx by linear index
    uint3 indexed;             // the extents of the block that they are of
    Context context[MAX_THREADS], parked, main_context, block_context;
    unsigned prepared;  // fibers that have a context
    char* block_stack;
    char* stacks;         // of the fibers
    unsigned num_stacks;  // as many as the largest block so far has needed
};

struct Launch {  // the one launch in progress
    const Kernel* kernel;
    void* const* args;
    uint3 grid, block;
    uint64_t blocks;   // where they end
    uint64_t next;     // block to start
    bool alone;        // one OS thread runs all blocks
    uint64_t busy_ns;  // of all OS threads together
    Tally tally;       // likewise
    int failed, cancelled;
    char error[1024];
};

static struct Pool {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t work, done;
    pthread_cond_t spare;  // for workers that few launches need
    Worker* first;
    int workers, always;       // always: how many take part in every launch
    int taking_part, running;  // in this launch; none is running when it has ended
    uint64_t generation;
    Launch launch;
    // Called for a thread that gives way because it waits in a loop, if set.
    void (*on_wait)(Worker& w, const void* at);
    // Called where threads of a block wait at different barriers, if set: whether the block goes
    // on.
    bool (*on_parting)(Worker& w, unsigned thread, const Site& here, bool same_kind);
    // Called for a block whose threads are loops, when it has crashed.
    void (*on_loops_crash)(Worker& w, uint64_t block);
    int crash_fd = 2;
    struct {  // of a kernel whose threads are loops, which do not say where they are
        int signal;
        void* address;
        bool overflow;
        uint64_t block;
        char text[400];
    } crash;
} pool = {};

static __thread Worker* worker CUDALAB_OF_OS_THREAD;

static inline unsigned bit(unsigned thread) {
    return 1u << (thread & 31);
}
static char* fiber_stack(Worker& w, unsigned thread) {
    return w.stacks + thread * FIBER_STACK;
}
static bool is_in_stacks(const Worker& w, uintptr_t address) {
    return address - (uintptr_t)w.stacks < w.num_stacks * FIBER_STACK ||
           address - (uintptr_t)w.block_stack < BLOCK_STACK;
}
static char* map_stacks(size_t bytes) {
    void* stacks = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stacks == MAP_FAILED) return nullptr;
#ifdef MADV_NOHUGEPAGE
    madvise(stacks, bytes, MADV_NOHUGEPAGE);
#endif
    return (char*)stacks;
}
static inline bool has_failed() {
    return __atomic_load_n(&pool.launch.failed, __ATOMIC_RELAXED);
}
static inline uint64_t claim(uint64_t* counter) {
    return __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

}  // namespace cudalab
