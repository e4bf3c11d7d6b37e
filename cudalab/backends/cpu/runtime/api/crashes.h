// Crashes: the signal handlers that name the kernel, the thread and the line. Part of launch.cpp.
#pragma once

#include "callers.h"

namespace cudalab {

static cudaError_t crash_error;             // the error of the kernel that failed
static const Kernel* fibers_of_loops;       // the kernel that runs, if its threads are loops
static thread_local char loops_crash[800];  // why the block of this OS thread has crashed

// Whether the user has not been told yet of what happens at a place in the code, which `key`
// identifies. Only the first few places are told of.
static bool is_news(uintptr_t key) {
    static uintptr_t told[64];
    static unsigned count;
    pthread_mutex_lock(&pool.mutex);
    bool is_new = count < sizeof told / sizeof *told;
    for (unsigned i = 0; i < count; ++i) is_new &= told[i] != key;
    if (is_new) told[count++] = key;
    pthread_mutex_unlock(&pool.mutex);
    return is_new;
}
static uintptr_t hash(const char* text) {
    uintptr_t sum = 0;
    while (*text) sum = sum * 31 + (unsigned char)*text++;
    return sum;
}

// Tells what the running thread of a kernel does that C++ does not define.
static void tell(Worker& w, const char* place, const char* what) {
    const uint3 &b = current.block_idx, &t = w.index[current.thread];
    char thread[50] = "";  // loops do not know theirs
    if (w.kernel->thread) snprintf(thread, sizeof thread, ", thread (%u,%u,%u)", t.x, t.y, t.z);
    fprintf(stderr, "cudalab: %skernel %s, block (%u,%u,%u)%s: %s\n", place, w.kernel->name, b.x,
            b.y, b.z, thread, what);
}

// Threads of a block wait at different barriers, which CUDA does not define. An H200 counts who has
// arrived, wherever, and stops a kernel where only some of them vote.
static bool goes_on_parted(Worker& w, unsigned thread, const Site& here, bool same_kind) {
    if (!same_kind) {
        crash_error = cudaErrorIllegalInstruction;
        return false;
    }
    if (!is_news((uintptr_t)here.file * 31 + (uintptr_t)here.place)) return true;
    char text[600];
    fprintf(stderr,
            "cudalab: kernel %s: %s: CUDA does not define this; they pass as at one barrier, "
            "as they mostly do on an H200\n",
            w.kernel->name, describe_parting(w, thread, here, text, sizeof text));
    return true;
}

// Whether the kernel can go on behind a division that the processor has refused.
static bool divide(Worker& w, void* context) {
    Division division;
    if (!read_division(context, division)) return false;
    if (!division.divisor && is_news((uintptr_t)interrupted_at(context))) {
        char place[300], what[100];
        where_crashed(context, place, sizeof place);
        const uint64_t bits = ~0ull >> (64 - 8 * division.bytes);
        snprintf(what, sizeof what, "integer division by zero, which gives %#llx on a GPU",
                 (unsigned long long)(division.quotient & bits));
        if (is_news(hash(*place ? place : w.kernel->name))) tell(w, place, what);
    }
    complete(division, context);
    return true;
}

// The end of the stack that an address is on and the room below it, or null for any other stack.
static const char* end_of_stack(const Worker& w, const char* sp, size_t* room) {
    const size_t in_block = (size_t)(sp - w.block_stack), in_fibers = (size_t)(sp - w.stacks);
    if (in_block < BLOCK_STACK) {
        *room = in_block < GUARD ? 0 : in_block - GUARD;
        return w.block_stack + BLOCK_STACK;
    }
    if (in_fibers >= w.num_stacks * FIBER_STACK) return nullptr;
    const size_t in_fiber = in_fibers % FIBER_STACK;
    *room = in_fiber < GUARD ? 0 : in_fiber - GUARD;
    return sp - in_fiber + FIBER_STACK;
}

static void unblock(int signal) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

// Describes why a kernel was stopped, and returns CUDA's error for it.
static cudaError_t describe_crash(const Worker& w, int signal, const siginfo_t* info,
                                  const void* context, bool lost, char* what, size_t size) {
    const char* const address = (const char*)info->si_addr;
    size_t room;
    const char* const end = end_of_stack(w, stack_pointer(*(const ucontext_t*)context), &room);
    if (lost) {
        snprintf(what, size, "its stack is overwritten, as by a local array that is too small");
        return cudaErrorIllegalAddress;
    }
    if (signal == SIGFPE) {
        snprintf(what, size, "an arithmetic instruction failed");
        return cudaErrorLaunchFailure;
    }
    if (signal == SIGILL || signal == SIGTRAP) {
        snprintf(what, size, "__trap(), or unreachable code");
        return cudaErrorLaunchFailure;
    }
    if (is_in_stacks(w, (uintptr_t)address) && !(end && address >= end)) {
        snprintf(what, size, "stack overflow: local variables and recursion have %zu KB per thread",
                 LOCAL_MEMORY >> 10);
        return cudaErrorIllegalAddress;
    }
    if (is_constant(address)) {
        snprintf(what, size, "a kernel writes to a __constant__ variable");
        return cudaErrorLaunchFailure;
    }
    if (!address) {  // the processor gives no address for a misaligned access
        const bool is_null = info->si_code == SEGV_MAPERR;
        snprintf(what, size,
                 is_null ? "a null pointer is dereferenced"
                         : "a misaligned or invalid address is dereferenced");
        return is_null ? cudaErrorIllegalAddress : cudaErrorMisalignedAddress;
    }
    const int used = snprintf(what, size, "access to address %p", address);
    if (is_device_address(address)) {
        memcpy(what + used, ": ", 3);
        describe_device_address(address, what + used + 2, size - (size_t)used - 2);
    }
    return cudaErrorIllegalAddress;
}

static void kernel_crashed(Worker& w, int signal, siginfo_t* info, const void* context) {
    char place[300] = "", what[400];
    const bool again = w.crashes++ > 0;  // where_crashed may itself crash
    if (!again) where_crashed(context, place, sizeof place);
    const char* const pc = interrupted_at(context);
    const bool lost = again || (!*place && pc && !is_code(pc));
    crash_error = describe_crash(w, signal, info, context, lost, what, sizeof what);
    const char* const advice =
        crash_error == cudaErrorLaunchFailure
            ? ""
            : "\n         `cudalab run --sanitize` finds the first access outside an array";
    const uint3& t = w.index[current.thread];
    unblock(signal);
    if (kernel_prints) funlockfile(stdout);
    kernel_prints = false;
    w.crashes = 0;
    if (!w.kernel->thread) {
        snprintf(loops_crash, sizeof loops_crash, "%s%s%s", place, what, advice);
        w.crashed_in_loops = true;
        abandon(w);
    }
    fail(w, "thread (%u,%u,%u): %s%s%s", t.x, t.y, t.z, place, what, advice);
}

static void record_loops_crash(const char* format, ...) {
    va_list values;
    va_start(values, format);
    record(format, values);
    va_end(values);
}

// Runs a block of loops that has crashed once more, with fibers, which know their thread. What it
// has printed is not printed again, and it waits for no other blocks. If it does not crash now, the
// message names the block only.
static void repeat_with_fibers(Worker& w, uint64_t block) {
    w.crashed_in_loops = false;
    if (has_failed()) return;
    const Kernel* const loops = w.kernel;
    w.kernel = fibers_of_loops;
    kernel_is_silent = true;
    run_block(w, block);
    kernel_is_silent = false;
    w.kernel = loops;
    if (!has_failed()) record_loops_crash("%s", loops_crash);
}

static char main_signal_stack[SIGNAL_STACK];
static __thread bool is_main_thread;
static Worker* of_main;  // what the main thread runs blocks with, if it does

// The worker whose stack for signals this is: a wild store may have changed `worker`.
static Worker* interrupted_worker() {
    const char* const here = (const char*)__builtin_frame_address(0);
    if ((size_t)(here - main_signal_stack) < SIGNAL_STACK) return of_main;
    for (Worker* w = pool.first; w; w = w->next)
        if ((size_t)(here - w->signal_stack) < SIGNAL_STACK) return w;
    return nullptr;
}

// For a kernel that has overwritten what this runtime and the C library keep for the OS thread.
static void kernel_crashed_badly(const Worker& w) {
    const uint3& grid = pool.launch.grid;
    const uint64_t rows = w.block / grid.x;
    char text[400];
    const int length = snprintf(
        text, sizeof text,
        "cudalab: kernel %s, block (%u,%u,%u) writes far outside of its arrays, and the program "
        "cannot go on\n         `cudalab run --sanitize` names the line\n",
        w.kernel->name, (unsigned)(w.block % grid.x), (unsigned)(rows % grid.y),
        (unsigned)(rows / grid.y));
    if (write(2, text, (size_t)length) < 0) return;
}

// What other code, such as the program, does about a signal.
static struct sigaction before[NSIG];

static void on_crash(int signal, siginfo_t* info, void* context) {
    Worker* const w = interrupted_worker();
    if (w && w->kernel) {
        const char* const sp = stack_pointer(*(const ucontext_t*)context);
        const bool damaged = worker != w || !pthread_equal(pthread_self(), w->os_thread) ||
                             (size_t)(w->own_stack - sp + (64 << 10)) < (1 << 20);
        if (signal == SIGFPE && !damaged && divide(*w, context)) return;
        if (!damaged && w->crashes < 2) kernel_crashed(*w, signal, info, context);
        if (w->crashes++ < 4) kernel_crashed_badly(*w);
    } else if (before[signal].sa_handler == SIG_DFL) {
        static int crashes;
        if (__atomic_fetch_add(&crashes, 1, __ATOMIC_RELAXED) == 0) {
            alarm(20);  // if a lock is held for ever
            host_crashed(2, signal, info, context);
        }
    }
    sigaction(signal, &before[signal], nullptr);
    unblock(signal);
    if (info->si_code <= 0) raise(signal);  // else the instruction is executed again
}

void watch_for_crashes() {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_crash;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (int signal : CRASHES) {
        struct sigaction other;
        sigaction(signal, &action, &other);
        if (other.sa_sigaction != on_crash) before[signal] = other;
    }
}

// For the OS thread that runs main(), on a stack for signals.
CUDALAB_BEFORE_PROGRAM static void watch_from_the_start() {
    is_main_thread = true;
    void* frame;
    backtrace(&frame, 1);  // loads its library now: a signal handler must not
    stack_t alternate;
    memset(&alternate, 0, sizeof alternate);
    alternate.ss_sp = main_signal_stack;
    alternate.ss_size = SIGNAL_STACK;
    sigaltstack(&alternate, nullptr);
    watch_for_crashes();
}

}  // namespace cudalab
