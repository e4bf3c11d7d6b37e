// The pool of OS threads that run the blocks of a grid.
#pragma once

#include "fibers.h"

namespace cudalab {

static void run_block(Worker& w, uint64_t block) {
    begin_block(w, block);
    new_context(&w.block_context, w.block_stack, BLOCK_STACK, BLOCK_ENTRY);
    switch_to(&w.main_context, w.block_context);
}

static inline uint64_t now_ns() {
    return (uint64_t)cudalab_clock();
}

// Sets threadIdx of each thread of a block, if the block before had other extents.
static void set_indices(Worker& w, const uint3& b) {
    if (w.indexed.x == b.x && w.indexed.y == b.y && w.indexed.z == b.z) return;
    w.indexed = b;
    for (unsigned t = 0; t < w.threads; ++t) w.index[t] = {t % b.x, t / b.x % b.y, t / (b.x * b.y)};
}

static void work_on(Worker& w) {
    Launch& launch = pool.launch;
    const uint64_t began = now_ns();
    const uint3& b = launch.block;
    w.kernel = launch.kernel;
    w.args = launch.args;
    w.threads = b.x * b.y * b.z;
    w.warps = (w.threads + 31) / 32;
    set_indices(w, b);
    current.block_dim = b;
    current.grid_dim = launch.grid;
    current.tally = {};
    for (uint64_t block; claim_block(&block);) {
        run_block(w, block);
        if (__builtin_expect(w.crashed_in_loops, 0)) pool.on_loops_crash(w, w.block);
    }
    w.block = NO_BLOCK;
    current.block_dim = {};  // a kernel that is called from here on has not been launched
    __atomic_add_fetch(&launch.busy_ns, now_ns() - began, __ATOMIC_RELAXED);
    const uint64_t* const mine = (const uint64_t*)&current.tally;
    for (size_t i = 0; i < sizeof launch.tally / sizeof *mine; ++i)
        __atomic_add_fetch((uint64_t*)&launch.tally + i, mine[i], __ATOMIC_RELAXED);
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

// Makes the calling OS thread able to run blocks; null if there is not enough memory.
static Worker* new_worker(char* signal_stack) {
    Worker* w = (Worker*)calloc(1, sizeof(Worker));
    char *block_stack = map_stacks(BLOCK_STACK + GUARD), *shared = dynamic_shared_memory();
    if (!w || !block_stack || !shared || !signal_stack) return nullptr;
    w->signal_stack = signal_stack;
    w->own_stack = (char*)__builtin_frame_address(0);
    w->block_stack = block_stack;
    mprotect(block_stack, GUARD, PROT_NONE);
    mprotect(block_stack + BLOCK_STACK, GUARD, PROT_NONE);  // for arrays that are too small
    current.dynamic_shared = shared;
    current.static_shared = (char*)&current;  // a variable of the program, as its arrays are
    current.warp_results = w->result;
    w->os_thread = pthread_self();
    w->block = NO_BLOCK;
    return w;
}

static void* worker_main(void* argument) {
    const int number = (int)(intptr_t)argument;
    Worker* w = new_worker((char*)malloc(SIGNAL_STACK));
    const bool ready = w;
    if (ready) {
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
        // Between two launches, nobody: who came late for the last one would be counted in the
        // next.
        while (!pool.running || pool.generation == seen || number >= pool.taking_part)
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
