// Check mode: the choice of the next threads, barriers, warp operations and waiting.
//
// When all lanes of a group have stopped, the next group of the warp is formed. Among the lanes
// that are furthest behind (in the deepest call, and there at the lowest address, since compilers
// that do not optimize lay out code in the order of the source) it has those that stopped at the
// same place. So lanes that a branch has separated meet again at its end, and a lane that cuts an
// iteration short with `continue` stays with the others.
#pragma once

#include <time.h>

#include "check_requests.h"
#include "warp_ops.h"

namespace cudalab {

static void shuffle_warps() {
    for (unsigned i = 0; i < run.warps; ++i) run.order[i] = i;
    if (!run.shuffles) return;
    for (unsigned i = run.warps; i > 1; --i) {
        unsigned other = (unsigned)(random_number() % i), kept = run.order[i - 1];
        run.order[i - 1] = run.order[other];
        run.order[other] = kept;
    }
}

// One of the lanes, as a mask.
static unsigned any_of(unsigned lanes) {
    const unsigned first = (unsigned)random_number() & 31;
    const unsigned from_there = lanes >> first << first;
    lanes = from_there ? from_there : lanes;
    return lanes & -lanes;
}

// The lanes of `lanes` that are furthest behind, at the same place.
static unsigned choose_group(unsigned warp, unsigned lanes) {
    if (!run.in_step) return run.shuffles ? any_of(lanes) : lanes & -lanes;  // loops go so
    const uint64_t* behind = run.behind + warp * 32;
    uint64_t least = ~0ull;
    for (unsigned lane = 0; lane < 32; ++lane) {
        const uint64_t other = lanes >> lane & 1 ? behind[lane] : ~0ull;
        least = other < least ? other : least;
    }
    unsigned group = 0;
    for (unsigned lane = 0; lane < 32; ++lane) group |= (unsigned)(behind[lane] == least) << lane;
    return group & lanes;
}

static bool wake();

// Forms the next group. False when the block has ended.
static __attribute__((noinline)) bool form_group() {
    for (;;) {
        for (unsigned i = 0; i < run.warps; ++i) {
            unsigned position = run.warp + i < run.warps ? run.warp + i : run.warp + i - run.warps;
            unsigned warp = run.order[position];
            unsigned lanes = run.ready[warp] & ~run.yielded[warp];
            if (!lanes) continue;
            run.warp = position, run.first = warp * 32;
            run.group = run.active = choose_group(warp, lanes);
            if (run.observing) observe(warp, run.group);
            return true;
        }

        bool polling = false;
        for (unsigned warp = 0; warp < run.warps; ++warp) {
            polling |= run.yielded[warp] != 0;
            run.yielded[warp] = 0;
        }
        if (polling && run.may_park && ++run.idle > MAX_IDLE) {  // perhaps for another block
            run.parked = true;
            return false;
        }
        if (!polling && !wake()) return false;
    }
}

static inline unsigned next_thread() {
    if (__builtin_expect(!run.group, 0) && !form_group()) return NOBODY;
    const unsigned lane = run.shuffles ? any_of(run.group) : run.group & -run.group;
    run.group &= ~lane;
    return run.first + __builtin_ctz(lane);
}

static inline void set_running(unsigned before, unsigned thread) {
    set_thread(run.index[thread], thread);
    paths.switch_to(before, thread);
}

// The running thread has stopped: resume the next one. `is_done`: it has carried out its last
// access, which several stops may belong to.
static inline void stop(unsigned thread, bool is_done = true) {
    if (is_done && detector.has_stores()) detector.settle(thread);
    if (is_done) settle(thread);
    unsigned next = next_thread();
    if (next == thread) return;
    if (next != NOBODY) set_running(thread, next);
    switch_to(&run.context[thread], next == NOBODY ? run.main_context : run.context[next]);
}

static void thread_finished() {
    unsigned thread = current.thread, warp = thread >> 5;
    if (detector.has_stores()) detector.settle(thread);
    settle(thread);
    ++run.progress;
    run.live[warp] &= ~bit(thread);
    run.ready[warp] &= ~bit(thread);
    if (run.observing && run.counts) forks.leave(thread, 0, 0, counts.branches);
    if (run.observing && run.detects) paths.leave(thread);
    unsigned next = next_thread();
    if (next != NOBODY) set_running(thread, next);
    switch_to(&run.context[thread], next == NOBODY ? run.main_context : run.context[next]);
}

extern "C" void cudalab_fiber_main() {
    for (;;) {  // one turn per block
        run.kernel->thread(run.args);
        thread_finished();
    }
}
extern "C" void cudalab_block_main() {}

// ------------------------------------------------------------------ barriers and warp operations

// Opens the barrier of a tile of several warps if no live thread of it is missing. It orders
// accesses like a barrier of the block.
static bool open_tile(unsigned thread) {
    const WarpsOfTile tile(run, thread);
    if (!tile.have_arrived(run)) return false;
    for (unsigned warp = tile.first; warp < tile.end; ++warp) {
        run.ready[warp] |= run.at_warp_op[warp];
        run.at_warp_op[warp] = 0;
    }
    detector.pass_barrier();
    if (run.counts && run.observing) ++counts.warp_ops[run.event[thread].site];
    return true;
}

static bool try_complete(unsigned thread) {
    if (run.op[thread] == TILE) return open_tile(thread);
    unsigned warp = thread >> 5, group = run.mask[thread] & run.live[warp];
    if (group & ~run.at_warp_op[warp]) return false;
    for (unsigned left = run.calls[warp].differ ? group : 0; left; left &= left - 1) {
        unsigned other = warp * 32 + __builtin_ctz(left);
        if (run.mask[other] != run.mask[thread] || run.op[other] != run.op[thread]) return false;
    }
    unsigned base = warp * 32;
    WarpOp op = run.op[thread];
    if (run.detects && op == SHUFFLE)
        for (unsigned left = group; left; left &= left - 1) {
            unsigned lane = __builtin_ctz(left), from = run.source[base + lane] & 31;
            if (group >> from & 1) continue;
            bool fresh;
            FindingRow& row = report_here(WRONG_MASK, base + lane, 0, fresh);
            if (fresh)
                snprintf(
                    row.detail, sizeof row.detail,
                    "lane %u reads from lane %u, which %s: the result is undefined", lane, from,
                    run.mask[thread] >> from & 1 ? "has left the kernel" : "is not in the mask");
        }
    complete(op, group, run.value + base, run.source + base, run.result + base);
    run.at_warp_op[warp] &= ~group;
    run.ready[warp] |= group;
    if (op == SYNC) detector.ordering.sync_warp(warp, group);
    if (run.counts && run.observing) ++counts.warp_ops[run.event[thread].site];
    return true;
}

static const char* name_of(WarpOp op) {
    return op == SYNC        ? "__syncwarp"
           : op == TILE      ? "the barrier of a tile"
           : op == SHUFFLE   ? "a shuffle"
           : op == VOTE      ? "a vote"
           : op <= MATCH_ALL ? "a match"
                             : "a warp reduction";
}

static void describe_masks(FindingRow& row, unsigned one, unsigned other) {
    snprintf(row.detail, sizeof row.detail,
             "lane %u calls %s with mask 0x%08x, lane %u with mask 0x%08x", one & 31,
             name_of(run.op[one]), run.mask[one], other & 31, run.mask[other]);
}

// Lanes that call the same operation together must agree on who takes part.
static void check_masks(unsigned warp, unsigned thread) {
    unsigned waiting = run.at_warp_op[warp] & run.active;
    for (; waiting; waiting &= waiting - 1) {
        unsigned other = warp * 32 + __builtin_ctz(waiting);
        bool related = run.mask[other] & bit(thread) || run.mask[thread] & bit(other);
        if (!related || run.mask[other] == run.mask[thread] ||
            run.event[other].site != run.event[thread].site)
            continue;
        bool fresh;
        FindingRow& row = report_here(WRONG_MASK, thread, place_of_event(other), fresh);
        if (fresh) {
            row.other_thread = other, row.other_block = run.block;
            describe_masks(row, thread, other);
        }
        return;
    }
}

// `first` waits at a warp operation that can never complete.
static void deadlock(unsigned first) {
    unsigned warp = first >> 5, base = warp * 32, other = NOBODY;
    for (unsigned lane = 0; lane < 32 && other == NOBODY; ++lane) {
        unsigned t = base + lane;
        if (t == first || !(run.live[warp] & bit(t)) || !(run.mask[first] & bit(t))) continue;
        if (!(run.at_warp_op[warp] & bit(t)) || run.mask[t] != run.mask[first] ||
            run.op[t] != run.op[first])
            other = t;
    }
    bool fresh;
    if (other == NOBODY) {
        report_here(DEADLOCK, first, 0, fresh);
        give_up("deadlock");
        return;
    }
    bool waits_here = run.at_warp_op[warp] & bit(other);
    bool other_mask = waits_here && run.op[other] == run.op[first];
    bool in_branch = !waits_here && run.op[first] != SYNC;
    FindingKind kind = other_mask || in_branch ? WRONG_MASK : DEADLOCK;
    FindingRow& row = report_here(kind, first, place_of_event(other), fresh);
    row.other_thread = other, row.other_block = run.block;
    if (other_mask)
        describe_masks(row, first, other);
    else
        snprintf(row.detail, sizeof row.detail,
                 "the mask 0x%08x of %s names lane %u, which waits at %s", run.mask[first],
                 name_of(run.op[first]), other & 31,
                 waits_here ? name_of(run.op[other]) : "__syncthreads");
    give_up("deadlock: %s", row.detail);
}

// All live threads wait at the block barrier.
static void check_barrier(unsigned first) {
    paths.pass_barrier(first, run.threads, current.thread);
    Place place = place_of_event(first);
    for (unsigned t = first + 1; t < run.threads; ++t) {
        if (!(run.live[t >> 5] & bit(t))) continue;
        if (place_of_event(t) == place && run.barrier[t] == run.barrier[first]) continue;
        bool fresh;
        FindingRow& row = report_here(BARRIER_DIVERGENCE, first, place_of_event(t), fresh);
        if (fresh) row.other_thread = t, row.other_block = run.block;
        return;
    }
}

// All live threads wait at a barrier. Whether it is the grid's; if only some of them wait there, no
// thread can continue.
static bool waits_for_grid() {
    if (!run.at_grid) return false;
    unsigned live = 0;
    for (unsigned warp = 0; warp < run.warps; ++warp)
        live += (unsigned)__builtin_popcount(run.live[warp]);
    if (run.at_grid < live)
        give_up("deadlock: %u threads wait at grid.sync(), %u at __syncthreads()", run.at_grid,
                live - run.at_grid);
    return true;
}

// No thread is ready. False if none is alive, or if all of them wait for other blocks.
static bool wake() {
    unsigned first = NOBODY, waits = NOBODY;
    bool completed = false;
    for (unsigned warp = 0; warp < run.warps; ++warp) {
        for (unsigned waiting = run.at_warp_op[warp]; waiting; waiting &= waiting - 1) {
            unsigned thread = warp * 32 + __builtin_ctz(waiting);
            if (run.at_warp_op[warp] & bit(thread) && try_complete(thread))
                completed = true;
            else if (waits == NOBODY)
                waits = thread;
        }
        if (run.live[warp] && first == NOBODY) first = warp * 32 + __builtin_ctz(run.live[warp]);
    }
    if (completed) return true;
    if (waits != NOBODY) deadlock(waits);
    if (first == NOBODY) return false;
    if (run.detects && run.observing) check_barrier(first);
    if (run.counts && run.observing) ++counts.barriers[run.event[first].site];
    forget_loads();
    if (waits_for_grid()) {
        run.parked = true;
        return false;
    }
    count_votes(run);
    for (unsigned warp = 0; warp < run.warps; ++warp) {
        run.ready[warp] |= run.at_barrier[warp];
        run.at_barrier[warp] = 0;
    }
    ++run.interval;
    ++run.progress;
    run.idle = 0;
    detector.pass_barrier();
    run.warp = 0;
    shuffle_warps();
    return true;
}

// The kernel's own call that led here: frames of our own headers are skipped.
static unsigned site_of_frame(void** frame, unsigned thread, unsigned& depth) {
    for (int level = 0; level < 64; ++level) {  // libraries call deeply
        unsigned site = run.module->sites.at((uintptr_t)frame[1]);
        if (site && !(run.module->sites[site].flags & IS_HEADER)) {
            depth = (unsigned)(run.stack_top[thread] - (char*)frame);
            return site;
        }
        if ((char*)frame[0] <= (char*)frame || (char*)frame[0] >= run.stack_top[thread]) break;
        frame = (void**)frame[0];
    }
    depth = 0;
    return 0;
}

#define HERE ((void**)__builtin_frame_address(0))

static void arrive(unsigned thread, void** frame) {
    Event& e = run.event[thread];
    e.kind = NO_ACCESS;
    e.site = site_of_frame(frame, thread, e.depth);
    run.behind[thread] = how_far(e.depth, e.site);
    run.polls[thread] = 0;
    run.ready[thread >> 5] &= ~bit(thread);
}
static void arrive_at_barrier(unsigned thread, int place, void** frame) {
    arrive(thread, frame);
    run.barrier[thread] = place;
    run.at_barrier[thread >> 5] |= bit(thread);
}

extern "C" void cudalab_block_barrier(const char*, int place) {
    unsigned thread = current.thread;
    ++current.tally.barriers;
    arrive_at_barrier(thread, place, HERE);
    stop(thread);
}

// The grid's barrier: the block's first, then every block's (check_grid.h).
extern "C" __attribute__((visibility("default"))) void cudalab_grid_barrier() {
    unsigned thread = current.thread;
    if (!run.cooperative) give_up("grid.sync() needs cudaLaunchCooperativeKernel");
    arrive_at_barrier(thread, 0, HERE);
    ++run.at_grid;
    stop(thread);
}

extern "C" void cudalab_block_vote(BlockOp op, int predicate, const char*, int place) {
    unsigned thread = current.thread;
    ++current.tally.barriers;
    arrive_at_barrier(thread, place, HERE);
    shows_unset(thread);
    run.block_op = op;
    run.predicates += predicate != 0;
    ++run.voters;
    stop(thread);
}

// Lanes that a branch has separated are told apart where they stop.
extern "C" unsigned cudalab_active_lanes() {
    ++current.tally.asked;
    const unsigned thread = current.thread;
    if (!run.in_step) return bit(thread);
    if (!run.counts) {  // or they stop at each branch
        Event& e = run.event[thread];
        e.kind = NO_ACCESS;
        e.site = site_of_frame(HERE, thread, e.depth);
        run.behind[thread] = how_far(e.depth, e.site);
        stop(thread);
    }
    return run.active;
}

extern "C" void cudalab_warp_op(WarpOp op, unsigned mask, uint64_t value, unsigned source,
                                const char*, int) {
    unsigned thread = current.thread, warp = thread >> 5;
    if (op == CONVERGE) {  // lanes that are in step have converged
        run.result[thread] = cudalab_active_lanes();
        return;
    }
    current.tally.warp_barriers += op == SYNC;
    arrive(thread, HERE);
    if (op != SYNC && op != TILE) shows_unset(thread);
    if (!(mask & bit(thread))) {
        bool fresh;
        FindingRow& row = report_here(WRONG_MASK, thread, 0, fresh);
        if (fresh)
            snprintf(row.detail, sizeof row.detail,
                     "lane %u calls %s with mask 0x%08x, which does not name it", thread & 31,
                     name_of(op), mask);
        const uint3& i = run.index[thread];
        if (!run.detects)
            give_up("thread (%u,%u,%u) is not in the mask 0x%08x of the warp operation it calls",
                    i.x, i.y, i.z, mask);
    }
    run.mask[thread] = mask | bit(thread);
    run.op[thread] = op;
    run.value[thread] = value;
    run.source[thread] = source;
    WarpCalls& calls = run.calls[warp];
    if (!run.at_warp_op[warp]) calls = {run.mask[thread], op, false};
    calls.differ |= calls.mask != run.mask[thread] || calls.op != op;
    if (run.detects && calls.differ) check_masks(warp, thread);
    run.at_warp_op[warp] |= bit(thread);
    if (!((mask & run.live[warp]) & ~run.at_warp_op[warp])) try_complete(thread);
    stop(thread);
}

// ------------------------------------------------------------------ waiting, fences, atomics

// All others run before `thread` runs again.
static void let_others_run(unsigned thread) {
    check_time();
    run.polls[thread] = 0;
    run.yielded[thread >> 5] |= bit(thread);
}

extern "C" void cudalab_yield() {
    unsigned thread = current.thread;
    Event& e = run.event[thread];
    e.kind = NO_ACCESS;
    e.site = site_of_frame(HERE, thread, e.depth);
    run.behind[thread] = how_far(e.depth, e.site);
    let_others_run(thread);
    stop(thread);
}

// This OS thread.
static __thread bool runs_kernels __attribute__((tls_model("initial-exec")));

extern "C" void cudalab_spinning() {
    if (!runs_kernels) return;  // a library's host code
    if (++run.polls[current.thread] >= PATIENCE) cudalab_yield();
}

extern "C" void cudalab_fence(bool to_grid) {
    if (run.observing && run.detects)
        detector.ordering.fence(current.thread, to_grid ? TO_GRID : TO_BLOCK);
}

extern "C" long long cudalab_read_clock(const void*) {
    cudalab_spinning();
    return cudalab_clock();
}
extern "C" long long cudalab_clock() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

}  // namespace cudalab
