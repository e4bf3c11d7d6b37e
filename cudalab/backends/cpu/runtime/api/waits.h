// Threads that wait in loops. Part of launch.cpp.
//
// Threads give way to others at barriers, atomics and fences. One that reads a flag in a loop does
// not, so the host thread that has launched a grid looks after it (watch.h). Every few milliseconds
// each worker gets a signal, and its handler notes where the running thread is. A thread that is
// again at an instruction, with the same values in all registers and on its stack, waits in a loop:
// only another thread can end it. A second signal, handled on the thread's own stack, then makes it
// give way; it continues when it has its turn again and that handler returns.
//
// A thread that computes is not interrupted for its first second, so the threads of a program
// that does not wait run in the same order in each run. A signal arrives only in a program's own
// code, never in the C library or in this runtime, where a thread may hold a lock.
#pragma once

#include <setjmp.h>
#include <sys/auxv.h>

#include "crashes.h"

namespace cudalab {

const uint64_t MS = 1000000, LONG_NS = 1000 * MS, SLICE_NS = 4 * MS;
const unsigned SAMPLES = 16, PROOF = 3;  // so many equal samples show that a thread waits

struct Sample {
    const char* pc;
    uint64_t state;  // of registers and stack
    unsigned count;
};

// The running thread of a worker, and the waits of the block's threads since its last step.
struct Stay {
    volatile bool asked;  // a signal is on its way

    // The thread that ran at the last signals without a break, and where it was.
    uint64_t block, steps, turns, since;
    unsigned thread, samples;
    const char* pc;  // where it was last
    Sample sample[SAMPLES];
    uint64_t gave_way;  // how often a thread was made to give way

    // The waits since the block's last step.
    uint64_t wait_block, wait_steps;
    unsigned char waits[MAX_THREADS];  // how often a thread was in a state that was known
    const void* at[MAX_THREADS];       // where it gave way
    uint64_t states[1024];             // a hash table
    unsigned known;
    uint64_t news;  // states that were not known

    // The host's own notes: the values above when it last looked, and when they changed.
    uint64_t seen_block, seen_steps, seen_news, seen_gave_way, seen_clock, step_ns, news_ns,
        clock_ns, crash_ns;
};

static inline uint64_t mixed(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}
static uint64_t hash_words(uint64_t hash, const void* words, size_t bytes) {
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        uint64_t word;
        memcpy(&word, (const char*)words + i, 8);
        hash = mixed(hash, word);
    }
    return hash;
}

// ------------------------------------------------------------------ the interrupted thread

static uint64_t hash_stack(const Worker& w, uint64_t hash, const char* sp) {
    size_t room, bytes = 4096;
    const char* end = end_of_stack(w, sp, &room);
    if (!end) return hash;
    if ((size_t)(end - sp) < bytes) bytes = (size_t)(end - sp);
    return hash_words(hash, sp, bytes);
}

#if defined(__x86_64__)
const size_t RED_ZONE = 128;
static uint64_t hash_registers(const ucontext_t& context) {
    const mcontext_t& machine = context.uc_mcontext;
    uint64_t hash = hash_words(1, machine.gregs, (REG_RSP + 1) * sizeof(greg_t));
    if (!machine.fpregs) return hash;
    const char* area = (const char*)machine.fpregs;  // as XSAVE leaves it
    hash = hash_words(hash, area + 32, 384);         // x87, XMM
    uint32_t magic, bytes;
    memcpy(&magic, area + 464, sizeof magic);
    memcpy(&bytes, area + 468, sizeof bytes);
    if (magic != 0x46505853) return hash;
    if (bytes > 2688) bytes = 2688;  // the upper halves of YMM, ZMM, and more of these
    return bytes > 576 ? hash_words(hash, area + 576, bytes - 576) : hash;
}
#elif defined(__aarch64__)
const size_t RED_ZONE = 0;
static uint64_t hash_registers(const ucontext_t& context) {
    const mcontext_t& machine = context.uc_mcontext;
    uint64_t hash = hash_words(1, machine.regs, sizeof machine.regs);
    uint32_t magic;
    memcpy(&magic, machine.__reserved, sizeof magic);
    return magic == 0x46508001 ? hash_words(hash, machine.__reserved + 16, 32 * 16) : hash;
}
#else
const size_t RED_ZONE = 0;
static uint64_t hash_registers(const ucontext_t&) {
    return 0;
}
#endif

// ------------------------------------------------------------------ signal handlers

// Notes that a thread gives way because it waits; whether its state is a new one is what counts.
static void note_wait(Worker& w, unsigned thread, const void* at, uint64_t state) {
    Stay& stay = *w.stay;
    if (stay.wait_block != w.block || stay.wait_steps != w.steps) {
        memset(stay.waits, 0, sizeof stay.waits);
        memset(stay.states, 0, sizeof stay.states);
        stay.known = 0;
        ++stay.news;
        stay.wait_block = w.block;
        stay.wait_steps = w.steps;
    }
    const size_t size = sizeof stay.states / sizeof *stay.states;
    state = mixed(mixed(state, thread), (uintptr_t)at) | 1;
    stay.at[thread] = at;
    for (size_t i = state / 2 % size; stay.known < size / 2; i = (i + 1) % size) {
        if (stay.states[i] == state) {
            if (stay.waits[thread] < 255) ++stay.waits[thread];
            return;
        }
        if (stay.states[i]) continue;
        stay.states[i] = state;
        ++stay.known;
        break;
    }
    stay.waits[thread] = 0;
    ++stay.news;
}

// For pool.on_wait: a thread polls by an atomic or by a fence.
static __attribute__((noinline)) void on_poll(Worker& w, const void* at) {
    if (!w.stay || !w.stuck) return;
    jmp_buf registers;  // those that a call preserves
    memset(&registers, 0, sizeof registers);
    if (_setjmp(registers)) return;
    const uint64_t hash = hash_words(1, registers, sizeof registers);
    note_wait(w, current.thread, at, hash_stack(w, hash, (const char*)registers));
}

// Instructions of loops. In those of the first kind threads wait; in the others a thread has been
// for long, and it has computed, or it has waited and counted its polls.
static struct Loops {
    const char* pc[64];
    unsigned next;
    bool has(const char* wanted) const {
        for (const char* each : pc)
            if (each == wanted) return true;
        return false;
    }
    void add(const char* more) {
        if (!has(more)) pc[next++ % 64] = more;
    }
} waiting_loops, long_loops;

static size_t frame_of_signal() {  // bytes that a signal takes on the stack, and for its handler
#ifdef AT_MINSIGSTKSZ
    static const size_t bytes = getauxval(AT_MINSIGSTKSZ);
    return (bytes ? bytes : 4096) + 4096;
#else
    return 8192;
#endif
}

// The handler of look_signal, on a stack of its own: judges where the running thread is.
static void on_look(int, siginfo_t*, void* argument) {
    const int error = errno;
    Worker* const w = worker;
    if (!w || !w->stay) return;
    Stay& stay = *w->stay;
    stay.asked = false;
    const ucontext_t& context = *(const ucontext_t*)argument;
    const char* const pc = interrupted_at(argument);
    const char* const sp = stack_pointer(context);
    size_t room = 0;
    if (w->block == NO_BLOCK || !is_kernel_code(pc) || !end_of_stack(*w, sp, &room)) return;
    if (room < frame_of_signal() + RED_ZONE) return;
    if (has_failed()) {
        raise(give_way_signal());
        return;
    }
    const unsigned thread = current.thread;
    const uint64_t turns = w->spins / PATIENCE, now = now_ns();
    if (stay.block != w->block || stay.steps != w->steps || stay.turns != turns ||
        stay.thread != thread) {
        stay.block = w->block;
        stay.steps = w->steps;
        stay.turns = turns;
        stay.thread = thread;
        stay.since = now;
        stay.samples = 0;
    }
    stay.pc = pc;
    const uint64_t state = hash_stack(*w, hash_registers(context), sp - RED_ZONE);
    Sample* same = nullptr;
    bool in_loop = false;  // at an instruction that this thread executes more than once
    for (unsigned i = 0; i < stay.samples && i < SAMPLES; ++i) {
        if (stay.sample[i].pc != pc) continue;
        in_loop = true;
        if (stay.sample[i].state == state) same = &stay.sample[i];
    }
    if (!same) {
        same = &stay.sample[stay.samples++ % SAMPLES];
        *same = {pc, state, 0};
    }
    if (++same->count >= PROOF) waiting_loops.add(pc);
    if (in_loop && now - stay.since > LONG_NS) long_loops.add(pc);
    // Between two threads of a block whose threads are not fibers yet no thread could give way; but
    // the instructions there are in no loop of a thread.
    if (waiting_loops.has(pc) || (long_loops.has(pc) && now - stay.since > SLICE_NS)) {
        note_wait(*w, thread, pc, state);
        ++stay.gave_way;
        raise(give_way_signal());  // arrives when this handler returns
    }
    errno = error;
}

// The handler of give_way_signal, on the stack of the thread that waits.
static void on_give_way(int, siginfo_t*, void* argument) {
    const int error = errno;
    Worker& w = *worker;
    w.spins += PATIENCE - w.spins % PATIENCE;
    give_way(w, interrupted_at(argument));
    errno = error;
}

static void watch_for_waits() {
    know_kernel_code();
    frame_of_signal();
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_look;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigaddset(&action.sa_mask, give_way_signal());
    sigaction(look_signal(), &action, nullptr);
    sigemptyset(&action.sa_mask);
    action.sa_sigaction = on_give_way;
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER;  // the handler may never return
    sigaction(give_way_signal(), &action, nullptr);
    pool.on_wait = on_poll;
}

}  // namespace cudalab
