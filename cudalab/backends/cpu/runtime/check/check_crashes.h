// Check mode: a signal that a thread of a block raises ends the launch with an error.
#pragma once

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <ucontext.h>

#include "check_blocks.h"
#include "divisions.h"

namespace cudalab {

static pthread_t worker;  // runs the blocks

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

// A library that the kernel has called has failed: the line is that of the block which has called
// it, unless an access of that block came later.
static void fail_in_block() {
    unsigned& site = run.event[current.thread].site;
    const unsigned block = last_block ? *last_block : 0;
    if (block && (!site || run.module->sites[site].head != block)) site = block;
}

static const int CRASHES[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
static struct sigaction before_us[65];

static void on_crash(int signal, siginfo_t* info, void* context) {
    if (in_block && pthread_equal(pthread_self(), worker)) {
        Division division;
        if (signal == SIGFPE && read_division(context, division)) {
            if (!division.divisor)
                divides_by_zero(site_of_instruction(failed_instruction(context)));
            return complete(division, context);
        }
        in_block = false;
        run.reached_outside = signal == SIGSEGV || signal == SIGBUS;
        char* address = (char*)info->si_addr;
        bool overflow = signal == SIGSEGV && address >= run.stacks &&
                        address < run.stacks + MAX_THREADS * FIBER_STACK;
        sigset_t these;
        sigemptyset(&these);
        sigaddset(&these, signal);
        pthread_sigmask(SIG_UNBLOCK, &these, nullptr);
        const uintptr_t instruction = overflow ? 0 : failed_instruction(context);
        if (!overflow && !site_of_instruction(instruction)) fail_in_block();
        const char* cause = (const char*)dlsym(RTLD_DEFAULT, "cudalab_crash_cause");
        crash(overflow             ? "stack overflow"
              : cause && *cause    ? cause
              : signal == SIGFPE   ? "division by zero"
              : signal == SIGILL   ? "illegal instruction or __trap()"
              : signal == SIGTRAP  ? "a trap"
              : address == nullptr ? "access through a null pointer"
                                   : "invalid memory access",
              instruction);
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

}  // namespace cudalab
