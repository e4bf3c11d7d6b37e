// Check mode: the current launch and block, and how they end if they cannot continue.
#pragma once

#include <unistd.h>

#define CUDALAB_RUNTIME
#include "cudalab_cpu.h"
#undef threadIdx
#undef blockIdx
#undef blockDim
#undef gridDim
#include "async_copies.h"
#include "builtin_names.h"  // names of the fields of `current` for whole programs
#include "check_detect.h"
#include "pages.h"
#include "switch.h"

namespace cudalab {

__thread Current current __attribute__((tls_model("initial-exec")));

const unsigned MAX_THREADS = 1024, NOBODY = ~0u;
// 512 KB of local memory, as on a GPU, and the large frames of unoptimized code.
const size_t FIBER_STACK = 704 << 10, GUARD = PAGE;
const size_t DYNAMIC_SHARED = 227 << 10;
const size_t ZONE = 4096, ARRAY_ZONE = 128;  // around dynamic shared memory, shared arrays
const unsigned PATIENCE = 64;                // polls by a thread before others get a turn
const unsigned MAX_PARKED = 4096;            // blocks that wait
const unsigned MAX_IDLE = 100;               // rounds of polls before other blocks get a turn

// The reason why a thread has stopped.
struct Event {
    unsigned site, depth;  // bytes of stack in use
    unsigned kind;         // AccessKind
    unsigned bytes;
    char* address;
    unsigned char flags;   // of MarkFlags
    bool is_direct;        // not by a library or a built-in function
    bool is_object;        // which may have padding
    unsigned short turns;  // of Turns
};

// The warp operations in which lanes of a warp wait: whether they are not all the same.
struct WarpCalls {
    unsigned mask;
    WarpOp op;
    bool differ;
};

struct SharedArray {
    uint64_t offset, bytes;     // in the library's thread-local memory
    uint64_t is_guard, is_own;  // no array: the compiler's, or cudalab's
};

struct Module {
    Sites sites;
    uintptr_t inside;  // some address in the library
    const SharedArray* arrays;
    size_t num_arrays;
    size_t tls_bytes, tls_module;
    char *image_low, *image_high, *data_low;  // behind data_low is what may change
};

static struct {
    // The launch.
    Module* module;
    const Kernel* kernel;
    void* const* args;
    uint3 grid, block_dim;
    unsigned threads, warps;
    const uint64_t* blocks;  // to run, in this order; null: first_block and following
    uint64_t first_block, num_blocks;
    size_t shared_bytes;
    bool detects, counts, in_step, shuffles, cooperative;
    bool began_to_detect;  // before it has looked away
    uint64_t random;
    int failed, stopping, looking_away;
    int attention;                   // there is something to do at each basic block
    uint64_t blocks_done, progress;  // threads that have ended, and barriers of blocks
    Tally tally;                     // of the launch
    char error[400];
    bool reached_outside;  // the error: an address that is none

    // The block.
    uint64_t launches;
    uint64_t block;  // linear index
    bool observing, with_steps;
    unsigned interval;
    unsigned live[32], ready[32], yielded[32], at_barrier[32], at_warp_op[32];
    unsigned warp, first;    // the place of the warp in `order`, and its first thread
    unsigned group, active;  // its lanes that still have to be resumed; all of them
    unsigned order[32];      // of warps
    Event event[MAX_THREADS];
    uint64_t behind[MAX_THREADS];  // a thread that is further behind has a smaller number
    unsigned polls[MAX_THREADS];
    int barrier[MAX_THREADS];  // the place of the one where a thread waits
    unsigned mask[MAX_THREADS], source[MAX_THREADS];
    WarpOp op[MAX_THREADS];
    WarpCalls calls[32];  // of each warp
    uint64_t value[MAX_THREADS], result[MAX_THREADS];
    BlockOp block_op;
    unsigned predicates, voters;
    unsigned at_grid;  // threads at the grid's barrier
    bool parked;       // the other blocks run first: all wait there, or for what others write
    unsigned idle;     // rounds in which threads only polled
    bool may_park;     // other blocks can run meanwhile

    AsyncCopies copies[MAX_THREADS];

    // The machine.
    uint3 index[MAX_THREADS];
    Context context[MAX_THREADS], main_context;
    char *stacks, *stack_top[MAX_THREADS];
    bool prepared;
    char *dynamic_shared, *tls;
    Shadow shared_shadow, dynamic_shadow;
    List<Region> regions;         // buffers and variables
    List<Freed> freed;            // by a kernel of this launch
    List<void*> kept;             // of it what is given back when the next launch begins
    List<Region> shared_regions;  // arrays of the module, then dynamic shared memory
    unsigned* region_of_site;
} run;

static Counts counts;
static Forks forks;
static Detector detector;

const unsigned FIRST_SHARED_REGION = 1u << 20;

static inline uint64_t how_far(unsigned depth, unsigned site) {
    return (uint64_t)~depth << 32 | site;
}
static inline unsigned bit(unsigned thread) {
    return 1u << (thread & 31);
}
static char* stack_low(unsigned thread) {
    return run.stacks + thread * FIBER_STACK;
}
static uint64_t random_number() {
    run.random ^= run.random << 13;
    run.random ^= run.random >> 7;
    return run.random ^= run.random << 17;
}
static uint3 block_index(uint64_t block) {
    return {(unsigned)(block % run.grid.x), (unsigned)(block / run.grid.x % run.grid.y),
            (unsigned)(block / ((uint64_t)run.grid.x * run.grid.y))};
}
static Place place_of_event(unsigned thread) {
    return run.module->sites.place(run.event[thread].site);
}

// ------------------------------------------------------------------ ends of a launch

// The launch has failed. The first reason is recorded.
static void fail(const char* format, va_list values) {
    if (run.failed) return;
    const uint3& b = current.block_idx;
    int used = snprintf(run.error, sizeof run.error,
                        "kernel %s, block (%u,%u,%u): ", run.kernel->name, b.x, b.y, b.z);
    vsnprintf(run.error + used, sizeof run.error - used, format, values);
    run.failed = 1;
}
static void fail_launch(const char* format, ...) {
    va_list values;
    va_start(values, format);
    fail(format, values);
    va_end(values);
}

// The launch cannot continue: the block's stacks are dropped.
static void give_up(const char* format, ...) {
    va_list values;
    va_start(values, format);
    fail(format, values);
    va_end(values);
    run.prepared = false;
    leave_to(run.main_context);
}

static FindingRow& report_here(FindingKind kind, unsigned thread, Place other, bool& fresh) {
    FindingRow& row = findings.report(kind, place_of_event(thread), other, NO_REGION, fresh);
    if (fresh) row.thread = thread, row.block = run.block;
    return row;
}

// The line of an instruction, taken from the next call after it in its function: most lines have a
// call where they store their result.
static unsigned site_of_instruction(uintptr_t address) {
    const Sites& sites = run.module->sites;
    unsigned before = 0, behind = 0;
    for (unsigned i = 1; i <= sites.count; ++i) {
        uintptr_t at = sites[i].return_address;
        if (at <= address && (!before || at > sites[before].return_address)) before = i;
        if (at > address && (!behind || at < sites[behind].return_address)) behind = i;
    }
    if (!before || !behind) return 0;
    const Site& next = sites[behind];
    return next.function == sites[before].function && !(next.flags & IS_HEADER) ? behind : 0;
}

// A GPU goes on with a number of which all bits are set.
static void divides_by_zero(unsigned site) {
    if (!run.observing || !run.detects) return;
    bool fresh;
    if (site) run.event[current.thread].site = site;
    report_here(ZERO_DIVISION, current.thread, 0, fresh);
}

// `address` is that of the failed instruction, if known.
static void crash(const char* what, uintptr_t address = 0) {
    bool fresh;
    unsigned thread = current.thread, site = site_of_instruction(address);
    if (site) run.event[thread].site = site;
    FindingRow& row = report_here(CRASH, thread, 0, fresh);
    snprintf(row.detail, sizeof row.detail, "%s", what);
    const uint3& t = run.index[thread];
    give_up("thread (%u,%u,%u): %s", t.x, t.y, t.z, what);
}

// The rest of the launch runs without the instrument: what it writes is taken for written.
static void look_away() {
    for (Region& r : run.regions)
        if (r.used) mark_written(r.shadow, (size_t)(r.high - r.low), true);
    run.observing = run.detects = run.counts = false;
    run.looking_away = 0;
}
static __attribute__((noinline)) void time_is_over() {
    if (run.looking_away) look_away();
    if (!run.stopping) return;
    bool fresh;
    report_here(INFINITE_LOOP, current.thread, 0, fresh);
    give_up(
        "did not end in time; while an instrument looks, a launch ends before the host goes on");
}
static inline void check_time() {
    if (__builtin_expect(run.stopping | run.looking_away, 0)) time_is_over();
}

}  // namespace cudalab
