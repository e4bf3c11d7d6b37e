// Runs the blocks of a grid on OS threads, and the threads of a block as fibers.
//
// A block starts as a plain loop over its threads, on one stack. The first thread that has to wait
// turns the block into fibers: it keeps that stack, and every later thread gets one of its own. A
// kernel without barriers therefore costs one function call per thread.
//
// 32-bit masks, with one bit per lane, decide which thread runs next: live, waiting at the block
// barrier, waiting at a warp operation. A warp operation completes when every live lane of its mask
// has arrived; the last one computes the results for all of them. The block barrier opens when all
// live threads wait at it. If no thread can run, the kernel is deadlocked, and the message says
// which thread waits where, and for which other one.
//
// A kernel whose threads are loops (regions.h) has no fibers: one call runs the whole block.
//
// Blocks start in the order of their index and a started block keeps its OS thread until it ends,
// so a block may wait for any earlier one, with any number of OS threads.

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "async_copies.h"
#include "cudalab_cpu.h"
#undef threadIdx
#undef blockIdx
#undef blockDim
#undef gridDim
#include "pages.h"
#include "switch.h"
#include "warp_ops.h"

namespace cudalab {

__thread Current current __attribute__((tls_model("initial-exec")));

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
const unsigned CLOCK_READS = 8;           // in succession: a wait
const long long WORK_NS = 200;            // between two reads of the clock: no wait
const uint64_t NO_BLOCK = ~0ull;
const int REPEAT_MS = 10000;         // to find out which thread of a block crashes
const int MAX_GUARDED_WORKERS = 16;  // guard pages count against the kernel's limit of mappings

// ------------------------------------------------------------------ state

struct Site {  // where a thread waits
    const char* file;
    int place;  // the line, and above it a barrier's number
    int line() const { return place & 0xfffff; }
};

struct Stay;  // what is known about threads that wait in loops (host/waits.h)

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
    uint64_t blocks;  // where they end
    uint64_t next;    // block to start
    int failed, cancelled;
    char error[1024];
};

static struct Pool {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t work, done;
    pthread_cond_t spare;  // for workers that few launches need
    Worker* first;
    int workers, always;       // always: how many take part in every launch
    int taking_part, running;  // in this launch
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
} pool;

static __thread Worker* worker __attribute__((tls_model("initial-exec")));

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

// ------------------------------------------------------------------ failures

// Drops the block's stacks.
static void abandon(Worker& w) {
    w.prepared = 0;
    leave_to(w.main_context);
}

// Records the first error of a launch.
static void record(const char* format, va_list values) {
    pthread_mutex_lock(&pool.mutex);
    Launch& launch = pool.launch;
    if (!launch.failed) {
        const uint3& b = current.block_idx;
        int used = snprintf(launch.error, sizeof launch.error,
                            "kernel %s, block (%u,%u,%u): ", launch.kernel->name, b.x, b.y, b.z);
        vsnprintf(launch.error + used, sizeof launch.error - used, format, values);
        __atomic_store_n(&launch.failed, 1, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&pool.mutex);
}

// Records it and abandons the block.
static void fail(Worker& w, const char* format, ...) {
    va_list values;
    va_start(values, format);
    record(format, values);
    va_end(values);
    abandon(w);
}

static const char* describe(Worker& w, unsigned thread, char* text, size_t size) {
    const uint3& i = w.index[thread];
    bool at_barrier = w.at_barrier[thread >> 5] & bit(thread);
    const Site& site = at_barrier ? w.block_site : w.site[thread];
    const char* what = at_barrier                  ? "__syncthreads"
                       : w.op[thread] == SYNC      ? "__syncwarp"
                       : w.op[thread] == TILE      ? "the barrier of a tile"
                       : w.op[thread] == SHUFFLE   ? "a shuffle"
                       : w.op[thread] == VOTE      ? "a vote"
                       : w.op[thread] <= MATCH_ALL ? "a match"
                                                   : "a warp reduction";
    int used = snprintf(text, size, "thread (%u,%u,%u) waits at %s (%s:%d)", i.x, i.y, i.z, what,
                        site.file, site.line());
    if (w.at_warp_op[thread >> 5] & bit(thread))
        snprintf(text + used, size - used, " with mask 0x%08x", w.mask[thread]);
    return text;
}

static void fail_deadlock(Worker& w) {
    unsigned first = NOBODY, other = NOBODY;
    for (unsigned t = 0; t < w.threads; ++t) {
        if (!(w.live[t >> 5] & bit(t))) continue;
        if (first == NOBODY && (w.at_warp_op[t >> 5] & bit(t))) first = t;
    }
    // Prefer the lane that the first one waits for.
    for (unsigned t = first & ~31u; t < w.threads && t < (first & ~31u) + 32; ++t)
        if (other == NOBODY && t != first && (w.mask[first] & bit(t)) &&
            (w.live[t >> 5] & bit(t)) &&
            (!(w.at_warp_op[t >> 5] & bit(t)) || w.mask[t] != w.mask[first] ||
             w.op[t] != w.op[first]))
            other = t;
    for (unsigned t = 0; t < w.threads && other == NOBODY; ++t)
        if (w.at_barrier[t >> 5] & bit(t)) other = t;
    char one[300], two[300] = "";
    describe(w, first, one, sizeof one);
    if (other != NOBODY) describe(w, other, two, sizeof two);
    fail(w, "deadlock: %s%s%s", one, *two ? ", while " : "", two);
}

// ------------------------------------------------------------------ warp operations

// Releases the lanes that wait for others to arrive at the same line.
static bool converge(Worker& w, unsigned thread) {
    const unsigned warp = thread >> 5, base = warp << 5;
    const Site& site = w.site[thread];
    unsigned group = 0;
    for (unsigned left = w.at_warp_op[warp]; left; left &= left - 1) {
        unsigned other = base + __builtin_ctz(left);
        if (w.op[other] == CONVERGE && w.site[other].place == site.place &&
            strcmp(w.site[other].file, site.file) == 0)
            group |= bit(other);
    }
    for (unsigned left = group; left; left &= left - 1)
        w.result[base + __builtin_ctz(left)] = group;
    w.at_warp_op[warp] &= ~group;
    ++w.steps;
    return true;
}

// Opens the barrier of a tile of several warps if no live thread of it is missing.
static bool open_tile(Worker& w, unsigned thread) {
    const unsigned count = (unsigned)w.value[thread], first = (thread >> 5) / count * count;
    const unsigned end = first + count < w.warps ? first + count : w.warps;
    for (unsigned warp = first; warp < end; ++warp) {
        if (w.live[warp] & ~w.at_warp_op[warp]) return false;
        for (unsigned left = w.live[warp]; left; left &= left - 1) {
            const unsigned other = (warp << 5) | __builtin_ctz(left);
            if (w.op[other] != TILE || w.value[other] != count) return false;
        }
    }
    for (unsigned warp = first; warp < end; ++warp) w.at_warp_op[warp] = 0;
    ++w.steps;
    return true;
}

// Completes the operation that `thread` waits at if no live lane of its mask is missing.
static bool try_complete(Worker& w, unsigned thread) {
    if (w.op[thread] == CONVERGE) return converge(w, thread);
    if (w.op[thread] == TILE) return open_tile(w, thread);
    unsigned warp = thread >> 5, group = w.mask[thread] & w.live[warp];
    if (group & ~w.at_warp_op[warp]) return false;
    WarpOp op = w.op[thread];
    const unsigned base = warp << 5;
    for (unsigned left = group; left; left &= left - 1) {
        unsigned other = base + __builtin_ctz(left);
        if (w.mask[other] != w.mask[thread] || w.op[other] != op) return false;
    }
    complete(op, group, w.value + base, w.source + base, w.result + base);
    w.at_warp_op[warp] &= ~group;
    ++w.steps;
    return true;
}

// ------------------------------------------------------------------ scheduling

static inline void set_current(Worker& w, unsigned thread) {
    set_thread(w.index[thread], thread);
}

static void open_barrier(Worker& w) {
    for (unsigned warp = 0; warp < w.warps; ++warp) w.at_barrier[warp] = 0;
    if (w.block_op == COUNT) current.block_vote = w.predicates;
    if (w.block_op == ALL) current.block_vote = w.predicates == w.voters;
    if (w.block_op == ANY) current.block_vote = w.predicates != 0;
    w.block_op = NONE;
    w.predicates = w.voters = 0;
    w.block_site.file = nullptr;
    ++w.steps;
}

// Called when no thread of the block is ready: completes what finished or arrived threads allow.
static unsigned wake(Worker& w) {
    bool alive = false, at_warp_op = false;
    for (unsigned warp = 0; warp < w.warps; ++warp) {
        for (unsigned waiting = w.at_warp_op[warp]; waiting; waiting &= waiting - 1) {
            unsigned thread = (warp << 5) | __builtin_ctz(waiting);
            if (try_complete(w, thread)) return thread;
            at_warp_op = true;
        }
        alive |= w.live[warp] != 0;
    }
    if (!alive) return NOBODY;
    if (at_warp_op) fail_deadlock(w);
    open_barrier(w);
    for (unsigned warp = 0;; ++warp)
        if (w.live[warp]) return (warp << 5) | __builtin_ctz(w.live[warp]);
}

static inline unsigned ready(const Worker& w, unsigned warp) {
    return w.live[warp] & ~(w.at_barrier[warp] | w.at_warp_op[warp]);
}

// The thread to run after `thread`, which waits or has finished; NOBODY when the block has ended.
static inline unsigned next_thread(Worker& w, unsigned thread) {
    unsigned warp = thread >> 5, lanes = ready(w, warp);
    if (__builtin_expect(lanes != 0, 1)) {
        unsigned later = lanes & (unsigned)(~0ull << ((thread & 31) + 1));
        return (warp << 5) | __builtin_ctz(later ? later : lanes);
    }
    for (unsigned i = 1; i < w.warps; ++i) {
        unsigned other = warp + i < w.warps ? warp + i : warp + i - w.warps;
        lanes = ready(w, other);
        if (lanes) return (other << 5) | __builtin_ctz(lanes);
    }
    return wake(w);
}

static inline void run_next(Worker& w, unsigned thread, unsigned next) {
    if (next == thread) return;
    set_current(w, next);
    // 1024 stacks are more than the first-level cache and TLB hold: fetch the one after next.
    __builtin_prefetch(w.context[(next + 2) % MAX_THREADS]);
    switch_to(&w.context[thread], w.context[next]);
}

// Makes sure that each thread of the block can have a stack.
static void map_fiber_stacks(Worker& w) {
    if (w.num_stacks >= w.threads) return;
    if (w.stacks) munmap(w.stacks, w.num_stacks * FIBER_STACK);
    w.prepared = w.num_stacks = 0;
    w.stacks = map_stacks(w.threads * FIBER_STACK);
    if (!w.stacks) fail(w, "not enough memory for the stacks of %u threads", w.threads);
    w.num_stacks = w.threads;
}

// The running thread has to wait: from here on the block's threads are fibers.
static __attribute__((noinline)) void promote(Worker& w) {
    unsigned thread = current.thread;  // all earlier threads have finished
    if (!w.kernel->thread) fail(w, "a function waits for other threads, which are loops here");
    map_fiber_stacks(w);
    for (; w.prepared < w.threads; ++w.prepared) {
        // Different offsets, or the hot ends of all stacks would share a few cache sets.
        size_t bytes = FIBER_STACK - w.prepared % 64 * 64;
        char* stack = fiber_stack(w, w.prepared);
        if (pool.workers <= MAX_GUARDED_WORKERS) mprotect(stack, GUARD, PROT_NONE);
        new_context(&w.context[w.prepared], stack, bytes, FIBER_ENTRY);
    }
    for (unsigned warp = 0; warp < w.warps; ++warp) {
        unsigned first = warp << 5, in_warp = w.threads - first;
        unsigned all = in_warp >= 32 ? ~0u : (1u << in_warp) - 1;
        unsigned ended = first + 32 <= thread ? ~0u : first >= thread ? 0u : bit(thread) - 1;
        w.live[warp] = all & ~ended;
        w.at_barrier[warp] = w.at_warp_op[warp] = 0;
    }
    w.fibers = true;
    w.promoted = thread;
    w.parked = w.context[thread];
    w.context[thread] = w.block_context;
    w.block_op = NONE;
    w.predicates = w.voters = 0;
    w.block_site.file = nullptr;
}

static void thread_finished(Worker& w) {
    unsigned thread = current.thread;
    w.live[thread >> 5] &= ~bit(thread);
    ++w.steps;
    unsigned next = next_thread(w, thread);
    if (next != NOBODY) set_current(w, next);
    Context to = next == NOBODY ? w.main_context : w.context[next];
    if (thread == w.promoted) {  // its own fiber stays as it was; the block's stack is left
        w.context[thread] = w.parked;
        leave_to(to);
    }
    switch_to(&w.context[thread], to);
}

extern "C" void cudalab_fiber_main() {
    for (;;) {  // one turn per block
        Worker& w = *worker;
        w.kernel->thread(w.args);
        thread_finished(w);
    }
}

extern "C" void cudalab_block_main() {
    Worker& w = *worker;
    w.kernel->block(w.args, w.threads, w.index, &w.fibers);
    if (w.fibers) thread_finished(w);
    leave_to(w.main_context);
}

// ------------------------------------------------------------------ called by kernels

static const char* describe_parting(const Worker& w, unsigned thread, const Site& here, char* text,
                                    size_t size) {
    const Site& site = w.block_site;
    const bool same_line = site.line() == here.line() && strcmp(site.file, here.file) == 0;
    const uint3 &a = w.index[w.block_first], &b = w.index[thread];
    snprintf(text, size,
             "thread (%u,%u,%u) waits at __syncthreads in %s:%d, thread (%u,%u,%u) at %s in %s:%d",
             a.x, a.y, a.z, site.file, site.line(), b.x, b.y, b.z,
             same_line ? "another" : "the one", here.file, here.line());
    return text;
}

static __attribute__((noinline)) void check_site(Worker& w, unsigned thread, BlockOp op,
                                                 const char* file, int place) {
    const Site& site = w.block_site;
    if (site.place == place && strcmp(site.file, file) == 0) return;
    const Site here{file, place};
    if (pool.on_parting && pool.on_parting(w, thread, here, op == w.block_op)) return;
    char text[600];
    fail(w, "divergent barrier: %s", describe_parting(w, thread, here, text, sizeof text));
}

static inline void arrive(Worker& w, unsigned thread, BlockOp op, const char* file, int place) {
    w.spins = 0;
    w.at_barrier[thread >> 5] |= bit(thread);
    if (__builtin_expect(w.block_site.file == file && w.block_site.place == place, 1)) return;
    if (w.block_site.file) return check_site(w, thread, op, file, place);
    w.block_site = {file, place};
    w.block_first = thread;
}

extern "C" void cudalab_block_barrier(const char* file, int place) {
    Worker& w = *worker;
    if (__builtin_expect(!w.fibers, 0)) promote(w);
    unsigned thread = current.thread;
    arrive(w, thread, NONE, file, place);
    run_next(w, thread, next_thread(w, thread));
}

extern "C" void cudalab_block_vote(BlockOp op, int predicate, const char* file, int place) {
    Worker& w = *worker;
    if (__builtin_expect(!w.fibers, 0)) promote(w);
    unsigned thread = current.thread;
    arrive(w, thread, op, file, place);
    w.block_op = op;
    w.predicates += predicate != 0;
    ++w.voters;
    run_next(w, thread, next_thread(w, thread));
}

extern "C" void cudalab_warp_op(WarpOp op, unsigned mask, uint64_t value, unsigned source,
                                const char* file, int line) {
    Worker& w = *worker;
    if (__builtin_expect(!w.fibers, 0)) promote(w);
    unsigned thread = current.thread, warp = thread >> 5;
    w.spins = 0;
    w.site[thread] = {file, line};
    w.mask[thread] = mask;
    w.op[thread] = op;
    w.value[thread] = value;
    w.source[thread] = source;
    if (__builtin_expect(!(mask & bit(thread)), 0)) {
        const uint3& i = w.index[thread];
        fail(w,
             "thread (%u,%u,%u) is not in the mask 0x%08x of the warp operation it calls (%s:%d)",
             i.x, i.y, i.z, mask, file, line);
    }
    w.at_warp_op[warp] |= bit(thread);
    unsigned group = mask & w.live[warp];
    if (!(group & ~w.at_warp_op[warp]) && try_complete(w, thread)) return;
    run_next(w, thread, next_thread(w, thread));
}

// All threads of the block have had a turn: perhaps they wait for another block.
static void let_others_run(const Worker& w) {
    const timespec nap = {0, 4000000};
    if (w.stuck)
        nanosleep(&nap, nullptr);
    else
        sched_yield();
}

// The running thread waits in a loop, `at` an instruction: the block's other threads get a turn.
static __attribute__((noinline)) void give_way(Worker& w, const void* at) {
    if (has_failed()) abandon(w);                       // what it waits for may never come
    if (!w.kernel->thread) return (void)sched_yield();  // loops wait for other blocks alone
    if (!w.fibers) promote(w);
    if (pool.on_wait) pool.on_wait(w, at);
    unsigned thread = current.thread;
    // In turn over the whole block, since two polling lanes would otherwise starve all other warps.
    for (unsigned i = 1; i < w.threads; ++i) {
        unsigned other = thread + i < w.threads ? thread + i : thread + i - w.threads;
        if (ready(w, other >> 5) & bit(other)) {
            const bool by_clock = at == w.clock.waits_at;  // no other block can end that
            if (other < thread && !by_clock) let_others_run(w);
            run_next(w, thread, other);
            return;
        }
    }
    for (unsigned warp = 0; warp < w.warps; ++warp)  // lanes that only wait for others to join them
        for (unsigned waiting = w.at_warp_op[warp]; waiting; waiting &= waiting - 1) {
            unsigned other = (warp << 5) | __builtin_ctz(waiting);
            if (w.op[other] != CONVERGE) continue;
            converge(w, other);
            run_next(w, thread, other);
            return;
        }
    let_others_run(w);
}

extern "C" void cudalab_yield() {
    Worker& w = *worker;
    w.spins += PATIENCE - w.spins % PATIENCE;
    give_way(w, __builtin_return_address(0));
}

extern "C" void cudalab_spinning() {
    Worker* w = worker;
    if (!w) return;  // a library's host code
    if (__builtin_expect(++w->spins % PATIENCE == 0, 0)) give_way(*w, __builtin_return_address(0));
}

extern "C" void cudalab_copy_async(void* to, const void* from, size_t bytes, size_t zeros) {
    worker->any_copies = true;
    worker->copies[current.thread].add(to, from, bytes, zeros);
}

extern "C" void cudalab_close_copies() {
    worker->copies[current.thread].close();
}

extern "C" void cudalab_wait_for_copies(unsigned under_way) {
    worker->copies[current.thread].wait(under_way, [](const AsyncCopy&) {});
}

extern "C" long long cudalab_clock() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

// A thread that does nothing but read the clock, some times in succession, waits until it is late
// enough. It gives way, so that all threads of a block wait at once.
extern "C" long long cudalab_read_clock(const void* at) {
    if (!at) at = __builtin_return_address(0);
    Worker* const w = worker;
    if (!w) return cudalab_clock();
    ClockReads& reads = w->clock;
    if (at != reads.waits_at) {
        const long long now = cudalab_clock();
        const bool again = reads.at == at && reads.thread == current.thread;
        reads.count = again && now - reads.last < WORK_NS ? reads.count + 1 : 0;
        reads.at = at;
        reads.thread = current.thread;
        reads.last = now;
        if (reads.count == CLOCK_READS)
            reads.waits_at = at;
        else if (++w->spins % PATIENCE != 0)
            return now;
    }
    ++reads.turns;
    w->spins += PATIENCE - w->spins % PATIENCE;
    give_way(*w, at);
    return cudalab_clock();
}

}  // namespace cudalab

#include "loops.h"

namespace cudalab {

// ------------------------------------------------------------------ the pool of OS threads

static void run_block(Worker& w, uint64_t block) {
    const uint3& grid = pool.launch.grid;
    current.block_idx = {(unsigned)(block % grid.x), (unsigned)(block / grid.x % grid.y),
                         (unsigned)(block / ((uint64_t)grid.x * grid.y))};
    w.block = block;
    w.fibers = false;
    w.spins = 0;
    ++w.steps;
    if (w.any_copies)
        for (unsigned t = 0; t < w.threads; ++t) w.copies[t].forget();
    w.any_copies = false;
    w.num_lent = 0;
    if (!w.kernel->thread) set_current(w, 0);
    new_context(&w.block_context, w.block_stack, BLOCK_STACK, BLOCK_ENTRY);
    switch_to(&w.main_context, w.block_context);
}

static void work_on(Worker& w) {
    const Launch& launch = pool.launch;
    const uint3& b = launch.block;
    w.kernel = launch.kernel;
    w.args = launch.args;
    w.threads = b.x * b.y * b.z;
    w.warps = (w.threads + 31) / 32;
    for (unsigned t = 0; t < w.threads; ++t) w.index[t] = {t % b.x, t / b.x % b.y, t / (b.x * b.y)};
    current.block_dim = b;
    current.grid_dim = launch.grid;
    for (;;) {
        if (__atomic_load_n(&launch.failed, __ATOMIC_RELAXED) ||
            __atomic_load_n(&launch.cancelled, __ATOMIC_RELAXED))
            break;
        uint64_t block = claim(&pool.launch.next);
        if (block >= launch.blocks) break;
        run_block(w, block);
        if (__builtin_expect(w.crashed_in_loops, 0)) pool.on_loops_crash(w, block);
    }
    w.block = NO_BLOCK;
}

// assert() in a kernel of a lab; whole programs have a function of their own.
extern "C" void cudalab_fail_assertion(const char* condition, const char* file, unsigned line) {
    fail(*worker, "assertion `%s` failed at %s:%u", condition, file, line);
    __builtin_unreachable();
}

const int CRASHES[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
#if defined(SIGRTMAX)
static int look_signal() {  // these two are for whole programs: host/waits.h
    return SIGRTMAX - 2;
}
static int give_way_signal() {
    return SIGRTMAX - 3;
}
#endif

static void end_by(int signal, const char* text) {
    if (write(pool.crash_fd, text, strlen(text)) < 0) signal = SIGABRT;
    struct sigaction standard;
    memset(&standard, 0, sizeof standard);
    standard.sa_handler = SIG_DFL;
    sigaction(signal, &standard, nullptr);
    raise(signal);
}

static void describe_crash(const Worker& w, int signal, void* address, bool overflow, char* text,
                           size_t size) {
    const uint3 &b = current.block_idx, &t = current.thread_idx;
    char thread[50] = "";
    if (w.kernel->thread) snprintf(thread, sizeof thread, ", thread (%u,%u,%u)", t.x, t.y, t.z);
    const int used = snprintf(text, size, "kernel %s, block (%u,%u,%u)%s: ", w.kernel->name, b.x,
                              b.y, b.z, thread);
    if (overflow)
        snprintf(text + used, size - used,
                 "stack overflow (local variables and recursion have %zu KB per thread)\n",
                 LOCAL_MEMORY >> 10);
    else
        snprintf(text + used, size - used, "%s%p\n",
                 signal == SIGFPE                        ? "division by zero at "
                 : signal == SIGILL || signal == SIGTRAP ? "illegal instruction or __trap() at "
                                                         : "invalid memory access at address ",
                 address);
}

// The first crash of loops only ends the launch: cudalab_crash_again finds out which thread it was.
static void report_crash(int signal, siginfo_t* info, void*) {
    auto& first = pool.crash;
    Worker* w = worker;
    if (!w || !w->kernel) return end_by(signal, "");
    void* address = info->si_addr;
    const bool overflow = signal == SIGSEGV && is_in_stacks(*w, (uintptr_t)address);
    char text[sizeof first.text];
    describe_crash(*w, signal, address, overflow, text, sizeof text);
    if (!w->kernel->thread) {
        int none = 0;
        if (__atomic_compare_exchange_n(&first.signal, &none, signal, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
            first.address = address;
            first.overflow = overflow;
            first.block = w->block;
            memcpy(first.text, text, sizeof text);
        }
        __atomic_store_n(&pool.launch.failed, 1, __ATOMIC_RELAXED);
        abandon(*w);
    }
    const bool at_code = signal == SIGFPE || signal == SIGILL || signal == SIGTRAP;
    const bool same = signal == first.signal && overflow == first.overflow &&
                      (overflow || at_code || address == first.address);
    if (!first.signal || same) return end_by(signal, text);
    end_by(first.signal, first.text);
}

// Where `extern __shared__` arrays are, for this OS thread.
#ifdef CUDALAB_PART
char* dynamic_shared_memory();  // of a program: dynamic_shared.cpp
#else
static char* dynamic_shared_memory() {
    void* memory;
    return posix_memalign(&memory, 256, DYNAMIC_SHARED) ? nullptr : (char*)memory;
}
#endif

static void* worker_main(void* argument) {
    const int number = (int)(intptr_t)argument;
    Worker* w = (Worker*)calloc(1, sizeof(Worker));
    char *block_stack = map_stacks(BLOCK_STACK + GUARD), *shared = dynamic_shared_memory();
    char* signal_stack = (char*)malloc(SIGNAL_STACK);
    bool ready = w && block_stack && shared && signal_stack;
    if (ready) {
        w->signal_stack = signal_stack;
        w->own_stack = (char*)__builtin_frame_address(0);
        w->block_stack = block_stack;
        mprotect(block_stack, GUARD, PROT_NONE);
        mprotect(block_stack + BLOCK_STACK, GUARD, PROT_NONE);  // for arrays that are too small
        current.dynamic_shared = shared;
        current.warp_results = w->result;
        w->os_thread = pthread_self();
        w->block = NO_BLOCK;
        worker = w;
        stack_t alternate;
        memset(&alternate, 0, sizeof alternate);
        alternate.ss_size = SIGNAL_STACK;
        alternate.ss_sp = w->signal_stack;
        sigaltstack(&alternate, nullptr);
    }
    pthread_mutex_lock(&pool.mutex);
    uint64_t seen = pool.running ? pool.generation - 1 : pool.generation;
    if (ready) w->next = pool.first, pool.first = w;
    for (;;) {
        while (pool.generation == seen || number >= pool.taking_part)
            pthread_cond_wait(number < pool.always ? &pool.work : &pool.spare, &pool.mutex);
        seen = pool.generation;
        if (!ready && !pool.launch.failed) {
            pool.launch.failed = 1;
            snprintf(pool.launch.error, sizeof pool.launch.error,
                     "not enough memory for the stacks of a block");
        }
        pthread_mutex_unlock(&pool.mutex);
        if (ready) work_on(*w);
        pthread_mutex_lock(&pool.mutex);
        if (ready) w->kernel = nullptr;
        if (--pool.running == 0) pthread_cond_broadcast(&pool.done);
    }
}

// For OS threads that are started: signals such as SIGINT belong to the thread that runs Python.
static void keep_signals_for_others(sigset_t* before) {
    sigset_t all;
    sigfillset(&all);
    for (int signal : CRASHES) sigdelset(&all, signal);
#if defined(SIGRTMAX)
    sigdelset(&all, look_signal());
    sigdelset(&all, give_way_signal());
#endif
    pthread_sigmask(SIG_SETMASK, &all, before);
}

// Starts OS threads until there are `workers`, as far as the system allows. The caller has the
// mutex.
static void add_workers(int workers) {
    sigset_t before;
    keep_signals_for_others(&before);
    for (; pool.workers < workers; ++pool.workers) {
        pthread_t thread;
        if (pthread_create(&thread, nullptr, worker_main, (void*)(intptr_t)pool.workers) != 0)
            break;
        pthread_detach(thread);
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

static void prepare_waiting() {
    pool.mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
#if !defined(__APPLE__)
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
#endif
    pthread_cond_init(&pool.work, nullptr);
    pthread_cond_init(&pool.spare, nullptr);
    pthread_cond_init(&pool.done, &clock);
}

// A forked child has none of the OS threads: it starts its own when it launches something.
static void leave_threads_to_parent() {
    prepare_waiting();
    pool.workers = pool.running = 0;
    pool.first = nullptr;
}

}  // namespace cudalab

using namespace cudalab;

#define EXPORT extern "C" __attribute__((visibility("default")))

// Starts `workers` OS threads. Crashes inside kernels are described on `crash_fd`. 0 when done.
EXPORT int cudalab_start(int workers, int crash_fd) {
    prepare_waiting();
    pthread_atfork(nullptr, nullptr, leave_threads_to_parent);
    pool.crash_fd = crash_fd;
#ifndef CUDALAB_PART  // programs have handlers of their own
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = report_crash;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;  // for loops it returns elsewhere
    for (int signal : CRASHES) sigaction(signal, &action, nullptr);
#endif
    pthread_mutex_lock(&pool.mutex);
    add_workers(workers);
    pool.taking_part = pool.always = pool.workers;
    pthread_mutex_unlock(&pool.mutex);
    return pool.workers > 0 ? 0 : errno ? errno : EAGAIN;
}

// Starts the blocks `first` to `end` - 1 of a grid; the caller has checked its limits and keeps
// `args` until cudalab_wait says done.
EXPORT void cudalab_launch_blocks(const Kernel* kernel, const unsigned* grid, const unsigned* block,
                                  void* const* args, uint64_t first, uint64_t end) {
    pthread_mutex_lock(&pool.mutex);
    Launch& launch = pool.launch;
    launch.kernel = kernel;
    launch.args = args;
    launch.grid = {grid[0], grid[1], grid[2]};
    launch.block = {block[0], block[1], block[2]};
    launch.blocks = end;
    launch.next = first;
    launch.failed = launch.cancelled = 0;
    if (pool.workers == 0) {  // a forked child
        add_workers(pool.always);
        pool.taking_part = pool.workers;
        if (pool.workers == 0) {
            launch.failed = 1;
            snprintf(launch.error, sizeof launch.error, "no OS threads in this forked process");
        }
    }
    pool.running = pool.taking_part;
    ++pool.generation;
    pthread_cond_broadcast(&pool.work);
    if (pool.taking_part > pool.always) pthread_cond_broadcast(&pool.spare);
    pthread_mutex_unlock(&pool.mutex);
}

// Starts a whole grid.
EXPORT void cudalab_launch(const Kernel* kernel, const unsigned* grid, const unsigned* block,
                           void* const* args) {
    cudalab_launch_blocks(kernel, grid, block, args, 0, (uint64_t)grid[0] * grid[1] * grid[2]);
}

// Waits at most `ms` milliseconds. 1: the grid has ended, -1: with an error, 0: it still runs.
EXPORT int cudalab_wait(int ms) {
    timespec until;
#if defined(__APPLE__)
    clock_gettime(CLOCK_REALTIME, &until);
#else
    clock_gettime(CLOCK_MONOTONIC, &until);
#endif
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000l;
    if (until.tv_nsec >= 1000000000l) until.tv_nsec -= 1000000000l, ++until.tv_sec;
    pthread_mutex_lock(&pool.mutex);
    while (pool.running > 0 && pthread_cond_timedwait(&pool.done, &pool.mutex, &until) == 0) {
    }
    int state = pool.running > 0 ? 0 : pool.launch.failed ? -1 : 1;
    pthread_mutex_unlock(&pool.mutex);
    if (state != 0) fflush(stdout);  // printf in kernels
    return state;
}

// Prevents blocks that have not started from starting.
EXPORT void cudalab_cancel() {
    __atomic_store_n(&pool.launch.cancelled, 1, __ATOMIC_RELAXED);
}

EXPORT const char* cudalab_error() {
    return pool.launch.error;
}

// Whether the grid has ended with a crash of a kernel whose threads are loops.
EXPORT int cudalab_crashed() {
    return pool.crash.signal != 0;
}

// Runs the block that has crashed once more, with `kernel`'s fibers, which know their thread; null:
// there are none. The process ends here, by the signal of the crash.
EXPORT void cudalab_crash_again(const Kernel* kernel, const unsigned* grid, const unsigned* block,
                                void* const* args) {
    const uint64_t crashed = pool.crash.block;
    if (kernel) {
        cudalab_launch_blocks(kernel, grid, block, args, crashed, crashed + 1);
        cudalab_wait(REPEAT_MS);
    }
    end_by(pool.crash.signal, pool.crash.text);
}
