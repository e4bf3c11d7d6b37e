// Runs grids: what the host calls.
//
// The blocks run on OS threads (pool.h), the threads of a block as fibers (fibers.h). A kernel
// whose threads are loops (regions.h) has no fibers: one call runs the whole block.
//
// Blocks start in the order of their index and a started block keeps its OS thread until it ends,
// so a block may wait for any earlier one, with any number of OS threads.

#include <errno.h>

#include "kernel_calls.h"
#include "kernel_layout.h"
#include "loops.h"
#include "pool.h"

using namespace cudalab;

#define EXPORT extern "C" __attribute__((visibility("default")))

#ifndef CUDALAB_PART  // programs have functions of their own
namespace cudalab {

static bool cudalab_in_kernel() {
    return worker && worker->kernel;
}
static void refuse(const char* place, const char* why) {
    fail(*worker, "%s: %.*s", place, (int)strcspn(why, "\n"), why);
}

}  // namespace cudalab
#include "unfitting.h"
#endif

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

static void begin(const Kernel* kernel, const unsigned* grid, const unsigned* block,
                  void* const* args, uint64_t first, uint64_t end) {
    Launch& launch = pool.launch;
    launch.kernel = kernel;
    launch.args = args;
    launch.grid = {grid[0], grid[1], grid[2]};
    launch.block = {block[0], block[1], block[2]};
    launch.blocks = end;
    launch.next = first;
    launch.alone = false;
    launch.busy_ns = 0;
    launch.tally = {};
    launch.failed = launch.cancelled = 0;
}

// Starts the blocks `first` to `end` - 1 of a grid; the caller has checked its limits and keeps
// `args` until cudalab_wait says done.
EXPORT void cudalab_launch_blocks(const Kernel* kernel, const unsigned* grid, const unsigned* block,
                                  void* const* args, uint64_t first, uint64_t end) {
    pthread_mutex_lock(&pool.mutex);
    begin(kernel, grid, block, args, first, end);
    Launch& launch = pool.launch;
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

EXPORT const unsigned* cudalab_layout(unsigned* count) {
    static Layout layout;
    if (layout.count == 0) add_kernels(layout);
    *count = layout.count;
    return layout.values;
}

// What the threads of the last launch have done.
EXPORT const Tally* cudalab_tally() {
    return &pool.launch.tally;
}

EXPORT const char* cudalab_error() {
    return pool.launch.error;
}

// Whether the grid has ended with a crash of a kernel whose threads are loops.
EXPORT int cudalab_crashed() {
    return pool.crash.signal != 0;
}

const int REPEAT_MS = 10000;  // to find out which thread of a block crashes

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
