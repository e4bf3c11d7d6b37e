// Runs grids, and handles kernels that crash.
//
// runtime.cpp runs a grid; it is part of this file's translation unit, because an error in a
// program's kernel must end the block, not the process.

// clang-format off
#include "internal.h"
#include "runtime.cpp"
#include "divisions.h"
#include "builtin_names.h"
// clang-format on

#include "crashes.h"
#include "cudalab/judged_run.h"
#include "order.h"

namespace cudalab {

// ------------------------------------------------------------------ the pool

static unsigned os_threads() {  // CUDALAB_THREADS, or every core
    if (const char* asked = getenv("CUDALAB_THREADS"))
        if (int threads = atoi(asked)) return (unsigned)(threads > 0 ? threads : 1);
    cpu_set_t cores;
    return sched_getaffinity(0, sizeof cores, &cores) == 0 ? (unsigned)CPU_COUNT(&cores) : 1;
}

static bool start_workers() {
    static bool started = [] {
        if (cudalab_start((int)os_threads(), 2) != 0) return false;
        watch_for_crashes();  // replaces the handlers of cudalab_start
        pool.on_parting = goes_on_parted;
        pool.on_loops_crash = repeat_with_fibers;
        return true;
    }();
    return started;
}

}  // namespace cudalab

#include "watch.h"

namespace cudalab {

// ------------------------------------------------------------------ barriers of a whole grid

static struct GridBarrier {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
    uint64_t blocks, arrived, round, launch;
    bool cooperative;
} grid_barrier;

static thread_local bool block_has_arrived, block_has_passed;
static thread_local uint64_t round_of_block;
static thread_local uint64_t last_launch;  // a failed launch may have left the others set

// The round in which this block has arrived.
static uint64_t arrive_at_grid() {
    GridBarrier& barrier = grid_barrier;
    pthread_mutex_lock(&barrier.mutex);
    const uint64_t round = barrier.round;
    if (++barrier.arrived == barrier.blocks) {
        barrier.arrived = 0;
        ++barrier.round;
        pthread_cond_broadcast(&barrier.opened);
    }
    pthread_mutex_unlock(&barrier.mutex);
    return round;
}
static void wait_for_grid(Worker& w, uint64_t round, const char* file, int line) {
    GridBarrier& barrier = grid_barrier;
    pthread_mutex_lock(&barrier.mutex);
    bool hopeless = false;
    w.at_grid_barrier = true;
    while (barrier.round == round && !hopeless) {
        timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 50000000;
        if (until.tv_nsec >= 1000000000) until.tv_nsec -= 1000000000, ++until.tv_sec;
        if (pthread_cond_timedwait(&barrier.opened, &barrier.mutex, &until) == 0) continue;
        // OS threads that have left will not arrive: their blocks have ended.
        hopeless = __atomic_load_n(&pool.launch.failed, __ATOMIC_RELAXED) ||
                   (uint64_t)__atomic_load_n(&pool.running, __ATOMIC_RELAXED) <= barrier.arrived;
    }
    w.at_grid_barrier = false;
    ++w.steps;
    uint64_t waiting = barrier.arrived;
    pthread_mutex_unlock(&barrier.mutex);
    if (hopeless)
        fail(w, "deadlock: %llu of %llu blocks wait at grid.sync() (%s:%d), the others have ended",
             (unsigned long long)waiting, (unsigned long long)barrier.blocks, file, line);
}

bool cudalab_in_kernel() {
    return worker && worker->kernel;
}
bool in_cooperative_launch() {
    return grid_barrier.cooperative;
}
static void check_cooperative(const char* file, int line) {
    if (!grid_barrier.cooperative)
        fail(*worker, "grid.sync() (%s:%d) needs cudaLaunchCooperativeKernel", file, line);
}
void sync_grid_of_loops(const char* file, int line) {
    check_cooperative(file, line);
    wait_for_grid(*worker, arrive_at_grid(), file, line);
}
// The first thread of a block arrives and waits for all of it.
void arrive_at_grid(const char* file, int line) {
    check_cooperative(file, line);
    if (last_launch != grid_barrier.launch) {
        last_launch = grid_barrier.launch;
        block_has_arrived = block_has_passed = false;
    }
    cudalab_block_barrier(file, line);
    if (!block_has_arrived) {
        block_has_arrived = true;
        if (!kernel_is_silent) round_of_block = arrive_at_grid();
    }
}
void wait_for_grid(const char* file, int line) {
    cudalab_block_barrier(file, line);
    if (!block_has_passed) {
        block_has_passed = true;
        if (!kernel_is_silent) wait_for_grid(*worker, round_of_block, file, line);
    }
    cudalab_block_barrier(file, line);
    block_has_arrived = block_has_passed = false;
}
void sync_grid(const char* file, int line) {
    arrive_at_grid(file, line);
    wait_for_grid(file, line);
}

// The lanes of the warp that arrive at this line together.
unsigned converged_lanes(const char* file, int line) {
    Worker& w = *worker;
    if (!w.fibers) promote(w);
    const unsigned thread = current.thread;
    w.spins = 0;
    w.site[thread] = {file, line};
    w.op[thread] = CONVERGE;
    w.mask[thread] = bit(thread);
    w.at_warp_op[thread >> 5] |= bit(thread);
    run_next(w, thread, next_thread(w, thread));
    return (unsigned)w.result[thread];
}

void tell_of_division(const char* file, int line) {
    char place[300];
    snprintf(place, sizeof place, "%s:%d: ", file, line);
    if (worker && worker->kernel && is_news(hash(place)))
        tell(*worker, place,
             "integer division by zero, which gives a number with all bits set on a GPU");
}

static void refuse(const char* place, const char* why) {
    fflush(stdout);
    fprintf(stderr, "Error: %s: not supported on the CPU device: %s\n", place, why);
    _exit(125);
}

void tell_of_steps(const char* file, int line) {
    if (worker && worker->kernel && is_news((uintptr_t)file + (uintptr_t)line))
        fprintf(stderr,
                "cudalab: %s:%d: the lanes of a warp pass values through shared memory without "
                "__syncwarp(): since Volta they need not move in step, as they do here\n",
                file, line);
}

void tell_of_host_address(Place place, const char* kernel, unsigned argument, const void* address) {
    if (is_news((uintptr_t)place.file + (uintptr_t)place.line))
        fprintf(stderr,
                "cudalab: %s:%d: kernel %s: argument %u has a pointer to host memory (%p): a GPU "
                "ends a kernel that follows it\n",
                place.file, place.line, kernel, argument, address);
}

// ------------------------------------------------------------------ short grids

// A kernel whose threads are loops waits neither for the host nor for other blocks of its grid, so
// the main thread can run it as well as the pool, which takes tens of microseconds to wake. It does
// where the last launch of the kernel says that the grid takes no longer than that.
const uint64_t SHORT_NS = 20000;

// How long the last launches of kernels took.
static class Paces {
  public:
    // Whether a launch of the kernel is likely to be short.
    bool promise(BlockFn kernel, uint64_t threads) {
        const Pace& pace = of(kernel);
        return pace.kernel == kernel && pace.busy_ns * threads <= SHORT_NS * pace.threads;
    }
    void note(BlockFn kernel, uint64_t threads, uint64_t busy_ns) {
        of(kernel) = {kernel, threads, busy_ns};
    }

  private:
    struct Pace {
        BlockFn kernel;
        uint64_t threads, busy_ns;
    } paces[256] = {};
    Pace& of(BlockFn kernel) { return paces[(uintptr_t)kernel / 16 % 256]; }
} paces;

// Whether the calling OS thread can run blocks: the main thread, whose stack for signals is known.
static bool can_run_here() {
    if (is_main_thread && !of_main) of_main = new_worker(main_signal_stack);
    return is_main_thread && of_main;
}

static void run_here(const Kernel& kernel, const unsigned* grid, const unsigned* block,
                     void* const* args, uint64_t blocks) {
    Worker& w = *of_main;
    begin(&kernel, grid, block, args, 0, blocks);
    pool.launch.alone = true;
    w.own_stack = (char*)__builtin_frame_address(0);
    worker = &w;
    work_on(w);
    worker = nullptr;
    w.kernel = nullptr;
    fflush(stdout);
}

// ------------------------------------------------------------------ launches

// What only check mode has: the use of memory, and the order of work (order.h).
void watch_memory(const Allocation&, size_t) {}
void unwatch_memory(const Allocation&) {}
void memory_written(const void*, size_t) {}
void library_writes(bool) {}

Ordered::Ordered(const char*, Place, cudaStream_t, const Work&) : waits(false), graph(nullptr) {}
Ordered::~Ordered() {}
OrderedNodes::OrderedNodes() : inside(nullptr) {}
OrderedNodes::~OrderedNodes() {}
void OrderedNodes::begin(cudaGraphNode_t) {}
void OrderedNodes::end(cudaGraphNode_t) {}
void stream_made(cudaStream_t, Place) {}
void stream_destroyed(cudaStream_t) {}
void event_recorded(cudaEvent_t, cudaStream_t) {}
void event_awaited(cudaStream_t, cudaEvent_t) {}
void event_destroyed(cudaEvent_t) {}
void host_waits(cudaStream_t) {}
void host_waits(cudaEvent_t) {}
void host_waits() {}
void memory_read(const void*, size_t) {}
void copied_to_host(const Call&, const Copy&) {}
void pool_gives(const void*, Place, cudaStream_t) {}
void pool_takes(const void*, Place, cudaStream_t) {}
void time_is_read(const Call&, cudaEvent_t) {}
void program_ends() {}
void kernel_has_printed() {}
void library_works() {}

// Leaks, and failed calls whose result the program can check, are reported only on request; what a
// GPU survives is reported by an instrumented run.
void report(MessageKind what, const char* text) {
    if (what == MessageKind::OVERRUN || what == MessageKind::ERRORS_READ) return;
    if (what == MessageKind::LEAK && !getenv("CUDALAB_LEAKS")) return;
    if (what == MessageKind::FAILED_CALL && !getenv("CUDALAB_ERRORS")) return;
    if (what == MessageKind::UNREAD_CALL && getenv("CUDALAB_ERRORS")) return;
    fprintf(stderr, "cudalab: %s\n", text);
}

void stop_kernel(const char* why) {
    fail(*worker, "%s", why);
    __builtin_unreachable();
}

// A course's judge runs a program without its kernels, too: an answer that is right then was
// computed elsewhere.
static struct LeftOut {
    const bool wanted = judged_run() == JudgedRun::WITHOUT_KERNELS;
    unsigned long long launches = 0;
    ~LeftOut() {
        if (wanted) fprintf(stderr, "cudalab: %llu launches left out\n", launches);
    }
} left_out CUDALAB_MADE_BEFORE_PROGRAM;

static Watch* watch;  // over the grid that runs; null if it is left out, or has run at once

// Loops count on small indices of threads, and on blocks that are rows if no kernel asks for more.
static bool fits_loops(const Config& config, const Kernel& kernel) {
    static const bool wanted = !getenv("CUDALAB_LOOPS") || strcmp(getenv("CUDALAB_LOOPS"), "0");
    if (!wanted || !kernel.loops) return false;
    const dim3 &g = config.grid, &b = config.block;
    const uint64_t most = INT_MAX - MAX_THREADS;
    const bool small =
        (uint64_t)g.x * b.x <= most && (uint64_t)g.y * b.y <= most && (uint64_t)g.z * b.z <= most;
    return small && (!kernel.flat || kernel.alike || (b.y == 1 && b.z == 1));
}

cudaError_t start_grid(Call& call, const Config& config, const Kernel& kernel, void* const* args,
                       uint64_t resident) {
    if (left_out.wanted) return ++left_out.launches, cudaSuccess;
    change_shared_data();
    const uint64_t blocks = (uint64_t)config.grid.x * config.grid.y * config.grid.z;
    if (!start_workers()) return call.fail(cudaErrorLaunchOutOfResources, "no OS threads");
    pool.taking_part = pool.always;
    if (config.cooperative && !widen(blocks))
        return call.fail(cudaErrorLaunchOutOfResources, "no OS threads for the blocks");
    if (waiting_kernels.has(kernel)) widen(blocks < resident ? blocks : resident);
    grid_barrier.cooperative = config.cooperative;
    grid_barrier.blocks = blocks;
    grid_barrier.arrived = 0;
    ++grid_barrier.launch;
    crash_error = cudaErrorLaunchFailure;
    const unsigned grid[] = {config.grid.x, config.grid.y, config.grid.z};
    const bool alike = kernel.alike;
    const unsigned block[] = {config.block.x, alike ? 1 : config.block.y,
                              alike ? 1 : config.block.z};
    static Kernel in_loops;
    watch = nullptr;
    fibers_of_loops = nullptr;
    if (fits_loops(config, kernel)) {
        in_loops = kernel;
        in_loops.thread = nullptr;
        in_loops.block = kernel.loops;
        fibers_of_loops = &kernel;
        const bool is_short = paces.promise(kernel.loops, blocks * block[0] * block[1] * block[2]);
        if (is_short && !config.cooperative && can_run_here())
            return run_here(in_loops, grid, block, args, blocks), cudaSuccess;
    }
    alignas(Watch) static char memory[sizeof(Watch)];
    watch = new (memory) Watch(config, kernel, resident);
    cudalab_launch(fibers_of_loops ? &in_loops : &kernel, grid, block, args);
    return cudaSuccess;
}
Progress continue_grid(bool host_waits) {
    if (!watch || cudalab_wait(watch->interval_ms()) != 0) return Progress::ENDED;
    return watch->look(host_waits) ? Progress::WAITS : Progress::RUNS;
}
void leave_grid() {
    watch->leave();
}
cudaError_t end_grid(Call& call) {
    const Launch& launch = pool.launch;
    const uint3& b = launch.block;
    if (fibers_of_loops)
        paces.note(fibers_of_loops->loops, launch.blocks * b.x * b.y * b.z, launch.busy_ns);
    return has_failed() ? call.fail_for_good(crash_error, cudalab_error()) : cudaSuccess;
}

bool start_os_thread(void* (*main)(void*)) {
    sigset_t before;
    keep_signals_for_others(&before);
    pthread_t thread;
    const bool started = pthread_create(&thread, nullptr, main, nullptr) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (!started) return false;
    pthread_detach(thread);
    ++os_threads_of_device;
    return true;
}

}  // namespace cudalab

// assert() in a kernel ends the kernel; in host code it ends the program, as the C library does.
extern "C" void __assert_fail(const char* condition, const char* file, unsigned line,
                              const char* function) __THROW {
    if (worker && worker->kernel) {
        crash_error = cudaErrorAssert;
        if (!worker->kernel->thread) {  // fibers name the thread and this function
            snprintf(loops_crash, sizeof loops_crash, "assertion `%s` failed at %s:%u", condition,
                     file, line);
            worker->crashed_in_loops = true;
            abandon(*worker);
        }
        const uint3 &b = current.block_idx, &t = worker->index[current.thread];
        fprintf(stderr, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n",
                file, line, function, b.x, b.y, b.z, t.x, t.y, t.z, condition);
        fail(*worker, "assertion `%s` failed at %s:%u", condition, file, line);
    }
    fail_host_assertion(condition, file, line, function);
}

#include "unfitting.h"
