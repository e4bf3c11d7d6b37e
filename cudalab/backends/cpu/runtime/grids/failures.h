// How a launch fails: an error ends the block, and a crash the process. Messages say which thread
// it was, and where it waits. In whole programs a crash ends only the launch: api/crashes.h.
#pragma once

#include <signal.h>
#include <stdarg.h>
#include <unistd.h>

#include "workers.h"

namespace cudalab {

// ------------------------------------------------------------------ errors

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

// ------------------------------------------------------------------ crashes

const int CRASHES[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
#if defined(SIGRTMAX)
static int look_signal() {  // these two are for whole programs: api/waits.h
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

}  // namespace cudalab
