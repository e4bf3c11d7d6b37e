// The threads of a block as fibers.
//
// A block starts as a plain loop over its threads, on one stack. The first thread that has to wait
// turns the block into fibers: it keeps that stack, and every later thread gets one of its own. A
// kernel without barriers therefore costs one function call per thread.
//
// 32-bit masks, with one bit per lane, decide which thread runs next: live, waiting at the block
// barrier, waiting at a warp operation. A warp operation completes when every live lane of its mask
// has arrived; the last one computes the results for all of them. The block barrier opens when all
// live threads wait at it. If no thread can run, the kernel is deadlocked, and the message says
// which thread waits where, and for which other one.
#pragma once

#include "failures.h"
#include "warp_ops.h"

namespace cudalab {

const int MAX_GUARDED_WORKERS = 16;  // guard pages count against the kernel's limit of mappings

// ------------------------------------------------------------------ warp operations

// Releases the lanes that wait for others to arrive at the same line.
static bool converge(Worker& w, unsigned thread) {
    const unsigned warp = thread >> 5, base = warp << 5;
    const Site& site = w.site[thread];
    unsigned group = 0;
    for (unsigned left = w.at_warp_op[warp]; left; left &= left - 1) {
        unsigned other = base + __builtin_ctz(left);
        if (w.op[other] == CONVERGE && w.site[other].place == site.place &&
            strcmp(w.site[other].file, site.file) == 0)
            group |= bit(other);
    }
    for (unsigned left = group; left; left &= left - 1)
        w.result[base + __builtin_ctz(left)] = group;
    w.at_warp_op[warp] &= ~group;
    ++w.steps;
    return true;
}

// Opens the barrier of a tile of several warps if no live thread of it is missing.
static bool open_tile(Worker& w, unsigned thread) {
    const WarpsOfTile tile(w, thread);
    if (!tile.have_arrived(w)) return false;
    for (unsigned warp = tile.first; warp < tile.end; ++warp) w.at_warp_op[warp] = 0;
    ++w.steps;
    return true;
}

// Completes the operation that `thread` waits at if no live lane of its mask is missing.
static bool try_complete(Worker& w, unsigned thread) {
    if (w.op[thread] == CONVERGE) return converge(w, thread);
    if (w.op[thread] == TILE) return open_tile(w, thread);
    unsigned warp = thread >> 5, group = w.mask[thread] & w.live[warp];
    if (group & ~w.at_warp_op[warp]) return false;
    WarpOp op = w.op[thread];
    const unsigned base = warp << 5;
    for (unsigned left = group; left; left &= left - 1) {
        unsigned other = base + __builtin_ctz(left);
        if (w.mask[other] != w.mask[thread] || w.op[other] != op) return false;
    }
    complete(op, group, w.value + base, w.source + base, w.result + base);
    w.at_warp_op[warp] &= ~group;
    ++w.steps;
    return true;
}

// ------------------------------------------------------------------ scheduling

static inline void set_current(Worker& w, unsigned thread) {
    set_thread(w.index[thread], thread);
}

static void open_barrier(Worker& w) {
    for (unsigned warp = 0; warp < w.warps; ++warp) w.at_barrier[warp] = 0;
    count_votes(w);
    w.block_site.file = nullptr;
    ++w.steps;
}

// Called when no thread of the block is ready: completes what finished or arrived threads allow.
static unsigned wake(Worker& w) {
    bool alive = false, at_warp_op = false;
    for (unsigned warp = 0; warp < w.warps; ++warp) {
        for (unsigned waiting = w.at_warp_op[warp]; waiting; waiting &= waiting - 1) {
            unsigned thread = (warp << 5) | __builtin_ctz(waiting);
            if (try_complete(w, thread)) return thread;
            at_warp_op = true;
        }
        alive |= w.live[warp] != 0;
    }
    if (!alive) return NOBODY;
    if (at_warp_op) fail_deadlock(w);
    open_barrier(w);
    for (unsigned warp = 0;; ++warp)
        if (w.live[warp]) return (warp << 5) | __builtin_ctz(w.live[warp]);
}

static inline unsigned ready(const Worker& w, unsigned warp) {
    return w.live[warp] & ~(w.at_barrier[warp] | w.at_warp_op[warp]);
}

// The thread to run after `thread`, which waits or has finished; NOBODY when the block has ended.
static inline unsigned next_thread(Worker& w, unsigned thread) {
    unsigned warp = thread >> 5, lanes = ready(w, warp);
    if (__builtin_expect(lanes != 0, 1)) {
        unsigned later = lanes & (unsigned)(~0ull << ((thread & 31) + 1));
        return (warp << 5) | __builtin_ctz(later ? later : lanes);
    }
    for (unsigned i = 1; i < w.warps; ++i) {
        unsigned other = warp + i < w.warps ? warp + i : warp + i - w.warps;
        lanes = ready(w, other);
        if (lanes) return (other << 5) | __builtin_ctz(lanes);
    }
    return wake(w);
}

static inline void run_next(Worker& w, unsigned thread, unsigned next) {
    if (next == thread) return;
    set_current(w, next);
    // 1024 stacks are more than the first-level cache and TLB hold: fetch the one after next.
    __builtin_prefetch(w.context[(next + 2) % MAX_THREADS]);
    switch_to(&w.context[thread], w.context[next]);
}

// Makes sure that each thread of the block can have a stack.
static void map_fiber_stacks(Worker& w) {
    if (w.num_stacks >= w.threads) return;
    if (w.stacks) munmap(w.stacks, w.num_stacks * FIBER_STACK);
    w.prepared = w.num_stacks = 0;
    w.stacks = map_stacks(w.threads * FIBER_STACK);
    if (!w.stacks) fail(w, "not enough memory for the stacks of %u threads", w.threads);
    w.num_stacks = w.threads;
}

// The running thread has to wait: from here on the block's threads are fibers.
static __attribute__((noinline)) void promote(Worker& w) {
    unsigned thread = current.thread;  // all earlier threads have finished
    if (!w.kernel->thread) fail(w, "a function waits for other threads, which are loops here");
    map_fiber_stacks(w);
    for (; w.prepared < w.threads; ++w.prepared) {
        // Different offsets, or the hot ends of all stacks would share a few cache sets.
        size_t bytes = FIBER_STACK - w.prepared % 64 * 64;
        char* stack = fiber_stack(w, w.prepared);
        if (pool.workers <= MAX_GUARDED_WORKERS) mprotect(stack, GUARD, PROT_NONE);
        new_context(&w.context[w.prepared], stack, bytes, FIBER_ENTRY);
    }
    for (unsigned warp = 0; warp < w.warps; ++warp) {
        unsigned first = warp << 5, in_warp = w.threads - first;
        unsigned all = in_warp >= 32 ? ~0u : (1u << in_warp) - 1;
        unsigned ended = first + 32 <= thread ? ~0u : first >= thread ? 0u : bit(thread) - 1;
        w.live[warp] = all & ~ended;
        w.at_barrier[warp] = w.at_warp_op[warp] = 0;
    }
    w.fibers = true;
    w.promoted = thread;
    w.parked = w.context[thread];
    w.context[thread] = w.block_context;
    w.block_op = NONE;
    w.predicates = w.voters = 0;
    w.block_site.file = nullptr;
}

static void thread_finished(Worker& w) {
    unsigned thread = current.thread;
    w.live[thread >> 5] &= ~bit(thread);
    ++w.steps;
    unsigned next = next_thread(w, thread);
    if (next != NOBODY) set_current(w, next);
    Context to = next == NOBODY ? w.main_context : w.context[next];
    if (thread == w.promoted) {  // its own fiber stays as it was; the block's stack is left
        w.context[thread] = w.parked;
        leave_to(to);
    }
    switch_to(&w.context[thread], to);
}

extern "C" void cudalab_fiber_main() {
    for (;;) {  // one turn per block
        Worker& w = *worker;
        w.kernel->thread(w.args);
        thread_finished(w);
    }
}

// ------------------------------------------------------------------ blocks

static bool claim_block(uint64_t* block) {
    Launch& launch = pool.launch;
    if (has_failed() || __atomic_load_n(&launch.cancelled, __ATOMIC_RELAXED)) return false;
    *block = launch.alone ? launch.next++ : claim(&launch.next);
    return *block < launch.blocks;
}
static void begin_block(Worker& w, uint64_t block) {
    const uint3& grid = pool.launch.grid;
    const uint64_t row = block < grid.x ? 0 : block / grid.x;  // divisions take long
    current.block_idx = {(unsigned)(block - row * grid.x), (unsigned)(row ? row % grid.y : 0),
                         (unsigned)(row ? row / grid.y : 0)};
    w.block = block;
    w.fibers = false;
    w.spins = 0;
    ++w.steps;
    if (w.any_copies)
        for (unsigned t = 0; t < w.threads; ++t) w.copies[t].forget();
    w.any_copies = false;
    w.num_lent = 0;
    if (!w.kernel->thread) set_current(w, 0);
}

// A block, and those behind it whose threads are loops, for these leave nothing on the stack.
extern "C" void cudalab_block_main() {
    Worker& w = *worker;
    const bool in_loops = !w.kernel->thread;
    uint64_t next;
    do w.kernel->block(w.args, w.threads, w.index, &w.fibers);
    while (in_loops && claim_block(&next) && (begin_block(w, next), true));
    if (w.fibers) thread_finished(w);
    leave_to(w.main_context);
}

}  // namespace cudalab
