// Check mode: runs blocks one after another on one OS thread, with the lanes of each warp in step,
// and observes every memory access, every basic block and every barrier.
//
// Every thread of a block is a fiber. A hook of the instrumented kernel (check_hooks.h) stops its
// thread before an access and at the start of a basic block. Lanes that stop at the same place form
// a group (check_schedule.h). A group at an access is a request, as on a GPU: it is counted
// (check_count.h), checked (check_detect.h), and then carried out.

#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include "check_atomics.h"
#include "check_crashes.h"
#include "check_hooks.h"
#include "kernel_layout.h"

namespace cudalab {

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work, done;
static int running;

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
        end_index();
        pthread_mutex_lock(&mutex);
        running = run.stopping = 0;  // or the next library would be stopped in its constructors
        pthread_cond_broadcast(&done);
    }
}

static bool cudalab_in_kernel() {
    return runs_kernels && run.kernel;
}
// How a whole program ends where a lab's launch does: observe.cpp sets it.
EXPORT void (*cudalab_program_refuses)(const char* place, const char* why) = nullptr;
EXPORT bool (*cudalab_program_keeps)(const void* address) = nullptr;  // set as above
static void refuse(const char* place, const char* why) {
    if (cudalab_program_refuses) cudalab_program_refuses(place, why);
    char what[sizeof(FindingRow::detail)];
    snprintf(what, sizeof what, "%s: %.*s", place, (int)strcspn(why, "\n"), why);
    crash(what);
}

}  // namespace cudalab
#include "unfitting.h"

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
    begin_locals();
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

// How many of `bytes` bytes from `offset` on have no value; the first of them is `first`, and
// `has_none` tells of each.
EXPORT size_t cudalab_check_unwritten(unsigned number, size_t offset, size_t bytes, size_t* first,
                                      bool* has_none) {
    const Shadow& shadow = run.regions[number].shadow;
    size_t count = 0;
    for (size_t at = offset; shadow.cells && at < offset + bytes; ++at) {
        const unsigned written = shadow.written[at / 4] & 15;
        if (written == 15)
            at |= 3;  // the word has a value
        else if (!(written >> at % 4 & 1)) {
            if (!count++) *first = at;
            has_none[at - offset] = true;
        }
    }
    return count;
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

EXPORT const unsigned* cudalab_layout(unsigned* count) {
    static Layout layout;
    if (layout.count == 0) {
        add_kernels(layout);
        layout.add(&Site::return_address, &Site::file, &Site::line, &Site::flags,
                   &Site::branch_file, &Site::branch_line, &Site::floats, &Site::doubles,
                   &Site::function, &Site::head);
        layout.add(&SharedArray::offset, &SharedArray::bytes, &SharedArray::is_guard,
                   &SharedArray::is_own);
        typedef AccessRow A;
        layout.add(&A::place, &A::region, &A::kind, &A::space, &A::bytes, &A::degree_max,
                   &A::same_max, &A::unused, &A::requests, &A::lanes, &A::sectors,
                   &A::ideal_sectors, &A::wavefronts, &A::ideal_wavefronts, &A::degree_sum,
                   &A::same_sum, &A::lines, &A::partial);
        layout.add(&StepRow::row, &StepRow::interval, &StepRow::requests, &StepRow::wavefronts,
                   &StepRow::ideal, &StepRow::sectors, &StepRow::lanes, &StepRow::unused,
                   &StepRow::address);
        layout.add(&WaysRow::site, &WaysRow::lanes, &WaysRow::successor);
        layout.add(&BranchRow::executions, &BranchRow::divergent, &BranchRow::lanes_first,
                   &BranchRow::lanes_second);
        typedef FindingRow F;
        layout.add(&F::kind, &F::place, &F::other_place, &F::thread, &F::other_thread, &F::access,
                   &F::other_access, &F::space, &F::region, &F::bytes, &F::missing, &F::has_index,
                   &F::by, &F::block, &F::other_block, &F::offset, &F::beyond, &F::count,
                   &F::detail);
        typedef Options O;
        layout.add(&O::module, &O::kernel, &O::args, &O::grid, &O::block, &O::blocks,
                   &O::first_block, &O::num_blocks, &O::shared_bytes, &O::seed, &O::detects,
                   &O::counts, &O::in_step, &O::banks, &O::fresh, &O::cooperative);
    }
    *count = layout.count;
    return layout.values;
}

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
    run.reached_outside = false;
    if (o->fresh) forget_freed();
    run.blocks_done = 0;
    catch_crashes();
    if (o->fresh) {
        run.shuffles = o->seed != 0;
        run.random = o->seed * 0x9e3779b97f4a7c15ull | 1;
        run.with_steps = true;
        counts.banks = o->banks;
        counts.begin(run.module->sites.count);
        detector.begin_launch();
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

// What the threads have done, as cudalab_tally() says of other builds.
EXPORT const Tally* cudalab_check_tally() {
    return &run.tally;
}

EXPORT const char* cudalab_check_error() {
    return run.error;
}

EXPORT bool cudalab_check_reached_outside() {
    return run.reached_outside;
}

EXPORT const AccessRow* cudalab_check_rows(size_t* count) {
    *count = counts.rows.count;
    return counts.rows.items;
}
EXPORT const StepRow* cudalab_check_steps(size_t* count) {
    *count = counts.steps.count;
    return counts.steps.items;
}
EXPORT const WaysRow* cudalab_check_ways(size_t* count) {
    *count = counts.ways.count;
    return counts.ways.items;
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
// What is known of the accesses at each site, from number 1.
EXPORT const unsigned char* cudalab_check_looks(const Module* module) {
    return module->sites.looks + 1;
}
EXPORT void cudalab_check_forget() {
    findings.forget();
}
