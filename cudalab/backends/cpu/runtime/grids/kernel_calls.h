// The functions that kernels call: barriers and warp operations of fibers, and for every kernel
// waiting in loops, asynchronous copies, clocks and assertions. What else the kernels call whose
// threads are loops is in loops.h.
#pragma once

#include <sched.h>
#include <time.h>

#include "fibers.h"

namespace cudalab {

const unsigned CLOCK_READS = 8;  // in succession: a wait
const long long WORK_NS = 200;   // between two reads of the clock: no wait

// ------------------------------------------------------------------ barriers and warp operations

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
    ++current.tally.barriers;
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
    current.tally.warp_barriers += op == SYNC;
    if (__builtin_expect(!(mask & bit(thread)), 0)) {
        const uint3& i = w.index[thread];
        fail(w,
             "thread (%u,%u,%u) is not in the mask 0x%08x of the warp operation it calls (%s:%d)",
             i.x, i.y, i.z, mask, file, line);
    }
    w.at_warp_op[warp] |= bit(thread);
    const unsigned group = mask & w.live[warp];
    const bool completes = !(group & ~w.at_warp_op[warp]) && try_complete(w, thread);
    if (completes && op != SYNC) return;
    // Behind a barrier lanes go on in ascending order, as those of loops do.
    run_next(w, thread, completes ? warp << 5 | __builtin_ctz(group) : next_thread(w, thread));
}

// The lanes of a warp that come here wait for each other, until no lane of the warp can go on.
extern "C" void cudalab_wait_for_lanes(const char* file, int place) {
    if (!worker || !worker->kernel || !worker->kernel->thread) return;  // host code, or loops
    Worker& w = *worker;
    if (__builtin_expect(!w.fibers, 0)) promote(w);
    const unsigned thread = current.thread, warp = thread >> 5;
    w.spins = 0;
    w.site[thread] = {file, place};
    w.op[thread] = CONVERGE;
    w.mask[thread] = bit(thread);
    w.at_warp_op[warp] |= bit(thread);
    if (ready(w, warp)) return run_next(w, thread, next_thread(w, thread));
    unsigned first = w.at_warp_op[warp];
    while (w.op[warp << 5 | __builtin_ctz(first)] != CONVERGE) first &= first - 1;
    const unsigned other = warp << 5 | __builtin_ctz(first);
    converge(w, other);
    run_next(w, thread, other);
}

// ------------------------------------------------------------------ waiting in loops

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

// ------------------------------------------------------------------ asynchronous copies

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

// ------------------------------------------------------------------ clocks and assertions

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

// assert() in a kernel of a lab; whole programs have a function of their own.
extern "C" void cudalab_fail_assertion(const char* condition, const char* file,
                                       unsigned line) noexcept {
    fail(*worker, "assertion `%s` failed at %s:%u", condition, file, line);
    __builtin_unreachable();
}

}  // namespace cudalab
