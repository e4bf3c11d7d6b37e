// Check mode: runs blocks one after another on one OS thread, with the lanes of each warp in step,
// and observes every memory access, every basic block and every barrier.
//
// Every thread of a block is a fiber. A hook of the instrumented kernel (check_hooks.h) stops its
// thread before an access and at the start of a basic block. Lanes that stop at the same place form
// a group (check_schedule.h). A group at an access is a request, as on a GPU: it is counted
// (check_count.h), checked (check_detect.h), and then carried out.

#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <ucontext.h>

#include "check_grid.h"
#include "check_hooks.h"
#include "divisions.h"

namespace cudalab {

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work, done;
static pthread_t worker;
static int running;
static bool in_block;

static int find_library(dl_phdr_info* info, size_t, void* argument) {
    Module& m = *(Module*)argument;
    char *low = nullptr, *high = nullptr;
    size_t tls_bytes = 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& header = info->dlpi_phdr[i];
        char* begin = (char*)info->dlpi_addr + header.p_vaddr;
        if (header.p_type == PT_TLS) tls_bytes = header.p_memsz;
        if (header.p_type != PT_LOAD) continue;
        if (!low || begin < low) low = begin;
        if (begin + header.p_memsz > high) high = begin + header.p_memsz;
    }
    if ((char*)m.inside < low || (char*)m.inside >= high) return 0;
    m.image_low = low, m.image_high = high, m.tls_bytes = tls_bytes;
    m.tls_module = info->dlpi_tls_modid;
    return 1;
}

extern "C" void* __tls_get_addr(size_t*);

// The shared arrays of the module as regions of this thread's memory.
static void place_shared_arrays() {
    Module& m = *run.module;
    dl_iterate_phdr(find_library, &m);
    size_t where[2] = {m.tls_module, 0};
    run.tls = m.tls_bytes ? (char*)__tls_get_addr(where) : nullptr;
    if (run.detects && m.tls_bytes / 4 + 2 > run.shared_shadow.words) {
        delete_shadow(run.shared_shadow);
        run.shared_shadow = new_shadow(m.tls_bytes);
    }
    if (run.detects && !run.dynamic_shadow.cells) run.dynamic_shadow = new_shadow(DYNAMIC_SHARED);
    const Shadow none = {};
    run.shared_regions.clear();
    for (size_t i = 0; i < m.num_arrays; ++i) {
        const SharedArray& a = m.arrays[i];
        char* low = run.tls + a.offset;
        Shadow shadow = run.detects ? part_of(run.shared_shadow, a.offset) : none;
        run.shared_regions.add({low, low + a.bytes, ARRAY_ZONE, SHARED, true, shadow, {}});
    }
    char* low = run.dynamic_shared;
    run.shared_regions.add({low,
                            low + run.shared_bytes,
                            ZONE,
                            SHARED,
                            true,
                            run.detects ? run.dynamic_shadow : none,
                            {}});
}

// Shared memory starts with garbage, so that no kernel relies on its contents, and what it holds is
// never constructed: its guards say that it has been.
static void poison_shared_memory() {
    const Module& m = *run.module;
    for (size_t i = 0; i < run.shared_regions.count; ++i) {
        Region& r = run.shared_regions[i];
        const size_t bytes = (size_t)(r.high - r.low);
        const bool is_array = i >= m.num_arrays || !(m.arrays[i].is_guard || m.arrays[i].is_own);
        if (is_array || m.arrays[i].is_guard) memset(r.low, 0xff, bytes);
        mark_written(r.shadow, bytes, !is_array);
    }
}

static void prepare_fibers() {
    for (unsigned t = 0; t < MAX_THREADS; ++t) {
        // Different offsets, or the hot ends of all stacks would share a few cache sets.
        size_t bytes = FIBER_STACK - t % 64 * 64;
        run.stack_top[t] = stack_low(t) + bytes;
        new_context(&run.context[t], stack_low(t), bytes, FIBER_ENTRY);
    }
    run.prepared = true;
}

// Runs the threads that are ready until the block has ended, or waits for others.
static void run_threads() {
    run.group = run.warp = run.at_grid = run.idle = 0;
    run.parked = false;
    shuffle_warps();
    in_block = true;
    __atomic_store_n(&run.attention, run.counts, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&run.stopping, __ATOMIC_SEQ_CST) ||
        __atomic_load_n(&run.looking_away, __ATOMIC_SEQ_CST))
        run.attention = true;
    unsigned first = next_thread();
    set_thread(run.index[first], first);
    last_block = run.observing && run.detects ? paths.last[first] : nullptr;
    switch_to(&run.main_context, run.context[first]);
    in_block = false;
    detector.end_part(run.threads);
    run.blocks_done += !run.parked;
}

// A block that was put aside at the grid's barrier begins anew as far as order is concerned.
static void go_on(Parked& parked) {
    const bool at_grid = parked.at_grid;
    put_back(parked);
    if (at_grid)
        detector.begin_block((unsigned)run.block, run.threads);
    else
        detector.ordering.resume_block((unsigned)run.block), detector.begin_part(run.threads);
    if (run.observing && run.detects)
        at_grid ? paths.begin_block(run.threads) : paths.resume_block(run.threads);
    run_threads();
}

static void run_block(uint64_t block) {
    run.block = block;
    current.block_idx = block_index(block);
    if (!run.prepared) prepare_fibers();
    if (run.observing) poison_shared_memory();
    for (unsigned warp = 0; warp < run.warps; ++warp) {
        unsigned in_warp = run.threads - warp * 32;
        run.live[warp] = run.ready[warp] = in_warp >= 32 ? ~0u : (1u << in_warp) - 1;
        run.at_barrier[warp] = run.at_warp_op[warp] = run.yielded[warp] = 0;
    }
    memset((void*)run.event, 0, run.threads * sizeof *run.event);
    memset(run.behind, 0, run.threads * sizeof *run.behind);
    memset(run.polls, 0, run.threads * sizeof *run.polls);
    for (unsigned t = 0; t < run.threads; ++t) run.copies[t].forget();
    run.block_op = NONE;
    run.predicates = run.voters = 0;
    run.interval = 0;
    if (run.observing && run.counts) forks.begin_block(run.threads);
    detector.begin_block((unsigned)run.block, run.threads);
    if (run.observing && run.detects) paths.begin_block(run.threads);
    run_threads();
}

// Runs all blocks of a grid; each reaches the grid's barrier before any continues after it.
static void run_cooperative() {
    if (!CUDALAB_FAST_SWITCH)  // POSIX contexts do not say how much of a stack is in use
        return fail_launch("cooperative grids cannot be observed on this processor");
    List<Parked> waiting, before;
    for (uint64_t i = 0; i < run.num_blocks && !run.failed && !run.stopping; ++i) {
        run.prepared = false;  // the stacks still have the contents of the previous block
        run_block(i);
        if (run.parked) waiting.add(put_aside());
        run.with_steps = false;
    }
    while (waiting.count && !run.failed && !run.stopping && pass_grid_barrier(waiting)) {
        List<Parked> next = before;
        before = waiting, waiting = next;
        waiting.clear();
        for (Parked& parked : before) {
            if (run.failed || run.stopping) break;
            go_on(parked);
            if (run.parked) waiting.add(put_aside());
        }
    }
    drop(waiting);
    drop(before);
    run.prepared = false;
}

// Runs all blocks of a grid in turn; those that wait for later ones go on behind them.
static void run_in_turn() {
    List<Parked> waiting, before;
    run.may_park = CUDALAB_FAST_SWITCH && run.num_blocks > 1;
    for (uint64_t i = 0; i < run.num_blocks && !run.failed && !run.stopping; ++i) {
        run_block(run.blocks ? run.blocks[i] : run.first_block + i);
        run.with_steps = false;
        if (!run.parked) continue;
        waiting.add(put_aside());
        run.prepared = false;  // the stacks still have its contents
        run.may_park = waiting.count < MAX_PARKED;
    }
    while (waiting.count && !run.failed && !run.stopping) {
        List<Parked> next = before;
        before = waiting, waiting = next;
        waiting.clear();
        run.may_park = before.count > 1;
        for (Parked& parked : before) {
            if (run.failed || run.stopping) break;
            go_on(parked);
            run.prepared = false;
            if (run.parked) waiting.add(put_aside());
        }
    }
    run.may_park = false;
    drop(waiting), drop(before);
}

static void run_blocks() {
    run.warps = (run.threads + 31) / 32;
    current.grid_dim = run.grid;
    current.block_dim = run.block_dim;
    current.warp_results = run.result;
    run.observing = run.detects || run.counts;
    free(run.region_of_site);
    size_t sites = run.module->sites.count + 1;
    run.region_of_site = (unsigned*)malloc(sites * sizeof *run.region_of_site);
    memset(run.region_of_site, 0xff, sites * sizeof *run.region_of_site);
    place_shared_arrays();
    current.dynamic_shared = run.dynamic_shared;
    current.static_shared = run.tls;
    if (run.cooperative)
        run_cooperative();
    else
        run_in_turn();
    run.observing = false;
}

static uintptr_t failed_instruction(void* context) {
#if defined(__x86_64__)
    return (uintptr_t)((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (uintptr_t)((ucontext_t*)context)->uc_mcontext.pc;
#else
    (void)context;
    return 0;
#endif
}

static const int CRASHES[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
static struct sigaction before_us[65];

static void on_crash(int signal, siginfo_t* info, void* context) {
    if (in_block && pthread_equal(pthread_self(), worker)) {
        Division division;
        if (signal == SIGFPE && read_division(context, division) && division.divisor)
            return complete(division, context);
        in_block = false;
        char* address = (char*)info->si_addr;
        bool overflow = signal == SIGSEGV && address >= run.stacks &&
                        address < run.stacks + MAX_THREADS * FIBER_STACK;
        sigset_t these;
        sigemptyset(&these);
        sigaddset(&these, signal);
        pthread_sigmask(SIG_UNBLOCK, &these, nullptr);
        crash(overflow             ? "stack overflow"
              : signal == SIGFPE   ? "division by zero"
              : signal == SIGILL   ? "illegal instruction or __trap()"
              : signal == SIGTRAP  ? "a trap"
              : address == nullptr ? "access through a null pointer"
                                   : "invalid memory access",
              overflow ? 0 : failed_instruction(context));
    }
    // Not in an instrumented block: restore the previous handler.
    sigaction(signal, &before_us[signal], nullptr);
    if (info->si_code <= 0) raise(signal);  // otherwise the instruction fails again
}

// The fast build's scheduler sets its handlers when it is loaded, so set these for each launch.
static void catch_crashes() {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_crash;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (int signal : CRASHES) {
        struct sigaction before;
        sigaction(signal, &action, &before);
        if (before.sa_sigaction != on_crash) before_us[signal] = before;
    }
}

static void* worker_main(void*) {
    runs_kernels = true;
    stack_t alternate;
    memset(&alternate, 0, sizeof alternate);
    alternate.ss_size = 64 << 10;  // a crashed fiber may have no stack left
    alternate.ss_sp = malloc(alternate.ss_size);
    if (alternate.ss_sp) sigaltstack(&alternate, nullptr);
    pthread_mutex_lock(&mutex);
    for (;;) {
        while (!running) pthread_cond_wait(&work, &mutex);
        pthread_mutex_unlock(&mutex);
        run_blocks();
        pthread_mutex_lock(&mutex);
        running = run.stopping = 0;  // or the next library would be stopped in its constructors
        pthread_cond_broadcast(&done);
    }
}

}  // namespace cudalab

using namespace cudalab;

// ------------------------------------------------------------------ called from Python

// Starts the OS thread. 0 when done.
EXPORT int cudalab_check_start() {
    size_t bytes = MAX_THREADS * FIBER_STACK;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void* stacks = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    void* shared = mmap(nullptr, DYNAMIC_SHARED + 2 * ZONE, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (stacks == MAP_FAILED || shared == MAP_FAILED) return ENOMEM;
    run.stacks = (char*)stacks;
    run.dynamic_shared = (char*)shared + ZONE;
    for (unsigned t = 0; t < MAX_THREADS; ++t) mprotect(stack_low(t), GUARD, PROT_NONE);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&work, nullptr);
    pthread_cond_init(&done, &clock);
    sigset_t all, before;
    sigfillset(&all);
    for (int signal : CRASHES) sigdelset(&all, signal);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&worker, nullptr, worker_main, nullptr);
    if (!error) pthread_detach(worker);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return error;
}

// A library: its table of sites and the locations of its shared arrays.
EXPORT Module* cudalab_check_module(const Site* sites, size_t count, const SharedArray* arrays,
                                    size_t num_arrays) {
    Module* m = (Module*)calloc(1, sizeof(Module));
    m->sites.index(sites, count);
    m->inside = (uintptr_t)sites;
    host_module = m;
    m->arrays = arrays, m->num_arrays = num_arrays;
    return m;
}

// Memory that kernels may use; `space` is one of Space. Its number names it in rows and findings.
EXPORT unsigned cudalab_check_add(char* low, size_t bytes, size_t guard, unsigned space,
                                  int with_shadow) {
    Region region = {
        low, low + bytes, guard, space, true, with_shadow ? new_shadow(bytes) : Shadow{}, {}};
    if (with_shadow && watches_uses) region.used_bytes.watch(bytes, new_pages);
    unsigned number = 0;
    while (number < run.regions.count && run.regions[number].used) ++number;
    if (number == run.regions.count)
        run.regions.add(region);
    else
        run.regions[number] = region;
    if (runs_kernels) reach.allocated(number);
    return number;
}

EXPORT void cudalab_check_remove(unsigned number) {
    Region& r = run.regions[number];
    delete_shadow(r.shadow);
    r.used_bytes.drop();
    r.used = false;
}

// Gives back the memory that the last launch's accesses have taken.
EXPORT void cudalab_check_release() {
    for (Region& r : run.regions) forget_cells(r.shadow);
}

// From now on the uses of new regions are recorded, and the host's accesses that `watch` names.
EXPORT void cudalab_check_watch_uses(const HostWatch* watch) {
    watches_uses = true;
    host_watch = watch;
}
// Calls `visit` for each piece that the last launch has used, and forgets the uses.
EXPORT void cudalab_check_take_uses(void (*visit)(unsigned region, unsigned piece, const Use* words,
                                                  const UsePlaces& places)) {
    for (unsigned i = 0; i < run.regions.count; ++i)
        if (run.regions[i].used)
            run.regions[i].used_bytes.take(
                [=](unsigned piece, const Use* words, const UsePlaces& places) {
                    visit(i, piece, words, places);
                });
}

// The whole region has been written.
EXPORT void cudalab_check_written(unsigned number) {
    Region& r = run.regions[number];
    mark_written(r.shadow, (size_t)(r.high - r.low), true);
}

EXPORT void cudalab_check_part_written(unsigned number, size_t offset, size_t bytes) {
    mark_part_written(run.regions[number].shadow, offset, bytes);
}

// From now on the written bytes of `to` are those of `from`.
EXPORT void cudalab_check_copied(unsigned from, unsigned to) {
    Shadow &a = run.regions[from].shadow, &b = run.regions[to].shadow;
    if (a.cells && b.cells) memcpy(b.written, a.written, a.words < b.words ? a.words : b.words);
}

struct Options {
    Module* module;
    const Kernel* kernel;
    void* const* args;
    unsigned grid[3], block[3];
    const uint64_t* blocks;
    uint64_t first_block, num_blocks, shared_bytes, seed;
    unsigned detects, counts, in_step, banks, fresh, cooperative;
};

// Runs blocks of a grid. `fresh`: they are the first of the launch.
EXPORT void cudalab_check_launch(const Options* o) {
    pthread_mutex_lock(&mutex);
    run.module = o->module, run.kernel = o->kernel, run.args = o->args;
    run.grid = {o->grid[0], o->grid[1], o->grid[2]};
    run.threads = o->block[0] * o->block[1] * o->block[2];
    run.blocks = o->blocks, run.first_block = o->first_block, run.num_blocks = o->num_blocks;
    run.shared_bytes = o->shared_bytes;
    run.detects = run.began_to_detect = o->detects, run.counts = o->counts,
    run.in_step = o->in_step;
    run.cooperative = o->cooperative;
    run.block_dim = {o->block[0], o->block[1], o->block[2]};
    for (unsigned t = 0; t < run.threads; ++t)
        run.index[t] = {t % o->block[0], t / o->block[0] % o->block[1],
                        t / (o->block[0] * o->block[1])};
    run.failed = run.stopping = run.looking_away = 0;
    run.blocks_done = 0;
    catch_crashes();
    if (o->fresh) {
        run.shuffles = o->seed != 0;
        run.random = o->seed * 0x9e3779b97f4a7c15ull | 1;
        run.with_steps = true;
        counts.banks = o->banks;
        counts.begin(run.module->sites.count);
        detector.ordering.begin_launch();
        ++run.launches;
    }
    running = 1;
    pthread_cond_broadcast(&work);
    pthread_mutex_unlock(&mutex);
}

// Waits at most `ms` milliseconds. 1: the blocks have ended, -1: with an error, 0: they still run.
EXPORT int cudalab_check_wait(int ms) {
    timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000l;
    if (until.tv_nsec >= 1000000000l) until.tv_nsec -= 1000000000l, ++until.tv_sec;
    pthread_mutex_lock(&mutex);
    while (running && pthread_cond_timedwait(&done, &mutex, &until) == 0) {
    }
    int state = running ? 0 : run.failed ? -1 : 1;
    pthread_mutex_unlock(&mutex);
    if (state != 0) fflush(stdout);  // printf in kernels
    return state;
}

// Ends the launch at the next basic block, as an endless loop.
EXPORT void cudalab_check_stop() {
    pthread_mutex_lock(&mutex);
    __atomic_store_n(&run.stopping, running, __ATOMIC_SEQ_CST);
    __atomic_store_n(&run.attention, true, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&mutex);
}

// Runs the rest of the launch without the instrument.
EXPORT void cudalab_check_look_away() {
    pthread_mutex_lock(&mutex);
    __atomic_store_n(&run.looking_away, running, __ATOMIC_SEQ_CST);
    __atomic_store_n(&run.attention, true, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&mutex);
}

// How far the launch has come: blocks, and a number that grows while threads end and pass barriers.
// Returns the processor time of all launches in nanoseconds.
EXPORT uint64_t cudalab_check_progress(uint64_t* blocks, uint64_t* progress) {
    *blocks = run.blocks_done, *progress = run.progress;
    clockid_t clock;
    timespec used;
    if (pthread_getcpuclockid(worker, &clock) || clock_gettime(clock, &used)) return 0;
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

EXPORT const char* cudalab_check_error() {
    return run.error;
}

EXPORT const AccessRow* cudalab_check_rows(size_t* count) {
    *count = counts.rows.count;
    return counts.rows.items;
}
EXPORT const StepRow* cudalab_check_steps(size_t* count) {
    *count = counts.steps.count;
    return counts.steps.items;
}
// Each by site, from number 1.
EXPORT const BranchRow* cudalab_check_branches() {
    return counts.branches + 1;
}
EXPORT const uint64_t* cudalab_check_barriers() {
    return counts.barriers + 1;
}
EXPORT const uint64_t* cudalab_check_warp_ops() {
    return counts.warp_ops + 1;
}
EXPORT void cudalab_check_operations(uint64_t* floats, uint64_t* doubles) {
    *floats = counts.floats, *doubles = counts.doubles;
}
EXPORT const FindingRow* cudalab_check_findings(size_t* count) {
    *count = findings.rows.count;
    return findings.rows.items;
}
EXPORT void cudalab_check_forget() {
    findings.forget();
}
