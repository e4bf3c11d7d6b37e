// Check mode: blocks that wait for each other, at the grid's barrier or for what others write.
//
// Blocks run one after another. A block that has reached the grid's barrier, or whose threads only
// poll, is put aside with the stacks of its threads and its shared memory, until all others have
// been there, too. Then each in turn is put back where it was, so that every pointer stays valid,
// and continues.
#pragma once

#include "check_locals.h"
#include "check_schedule.h"

namespace cudalab {

// A block that waits for the others.
struct Parked {
    uint64_t block;
    bool at_grid;  // at its barrier
    char* memory;  // copies of the memory that visit_block visits
    Forks forks;
};

template <class Visit>
static void visit_stack(Visit visit, char* low, char* high) {
    const size_t bytes = (size_t)(high - low);
    visit(low, bytes);
    visit(states_of(low), bytes);
    locals.any = true;
}

// Calls visit(address, bytes) for all memory that belongs to the block alone. The contexts come
// before the stacks: they say which part of each is in use.
template <class Visit>
static void visit_block(Visit visit) {
    visit(run.live, sizeof run.live);
    visit(run.ready, sizeof run.ready);
    visit(run.at_barrier, sizeof run.at_barrier);
    visit(run.at_warp_op, sizeof run.at_warp_op);
    visit(run.mask, run.threads * sizeof *run.mask);
    visit(run.source, run.threads * sizeof *run.source);
    visit(run.barrier, run.threads * sizeof *run.barrier);
    visit((void*)run.op, run.threads * sizeof *run.op);
    visit(run.value, run.threads * sizeof *run.value);
    visit(run.result, run.threads * sizeof *run.result);
    visit(&run.block_op, sizeof run.block_op);
    visit(&run.predicates, sizeof run.predicates);
    visit(&run.voters, sizeof run.voters);
    if (run.began_to_detect) detector.ordering.visit_block(visit, run.threads);
    visit(run.order, sizeof run.order);
    visit(&run.interval, sizeof run.interval);
    visit((void*)run.event, run.threads * sizeof *run.event);
    visit(run.behind, run.threads * sizeof *run.behind);
    visit((void*)run.context, run.threads * sizeof *run.context);
    for (unsigned t = 0; t < run.threads; ++t)
        if (run.live[t >> 5] & bit(t)) visit_stack(visit, (char*)run.context[t], run.stack_top[t]);
    for (Region& r : run.shared_regions) {
        size_t bytes = (size_t)(r.high - r.low);
        visit(r.low, bytes);
        if (r.shadow.cells) visit(r.shadow.written, bytes / 4 + 1);
    }
}

static Parked put_aside() {
    Parked parked = {run.block, run.at_grid != 0, nullptr, forks};
    forks = {};  // its lists are the parked block's
    size_t bytes = 0;
    visit_block([&](void*, size_t size) { bytes += size; });
    char* to = parked.memory = (char*)malloc(bytes);
    if (!to) abort();
    visit_block([&](void* from, size_t size) { memcpy(to, from, size), to += size; });
    return parked;
}

static void drop(Forks& others) {
    for (auto& list : others.open) free(list.items);
    free(others.forks.items);
    free(others.spare.items);
}

static void drop(List<Parked>& blocks) {
    for (Parked& parked : blocks) free(parked.memory), drop(parked.forks);
    free(blocks.items);
}

static void put_back(Parked& parked) {
    char* from = parked.memory;
    visit_block([&](void* to, size_t size) { memcpy(to, from, size), from += size; });
    free(parked.memory);
    drop(forks);
    forks = parked.forks;
    parked.memory = nullptr, parked.forks = {};
    run.block = parked.block;
    current.block_idx = block_index(run.block);
    for (unsigned warp = 0; warp < run.warps; ++warp) {
        run.yielded[warp] = 0;
        run.calls[warp].differ = true;  // perhaps
        if (!parked.at_grid) continue;
        run.ready[warp] = run.live[warp];
        run.at_barrier[warp] = run.at_warp_op[warp] = 0;
    }
    memset(run.polls, 0, run.threads * sizeof *run.polls);
    ++run.interval;
}

// Every block has reached the grid's barrier, or its end. In all blocks, accesses before the
// barrier are ordered before those after it. False if the waiting blocks would wait forever.
static bool pass_grid_barrier(List<Parked>& waiting) {
    detector.begin_launch();
    if (waiting.count == run.num_blocks) return true;
    put_back(waiting[0]);
    unsigned warp = 0;
    while (!run.live[warp]) ++warp;
    bool fresh;
    FindingRow& row = report_here(DEADLOCK, warp * 32 + __builtin_ctz(run.live[warp]), 0, fresh);
    snprintf(row.detail, sizeof row.detail,
             "%llu of %llu blocks wait at grid.sync(), the others have ended",
             (unsigned long long)waiting.count, (unsigned long long)run.num_blocks);
    fail_launch("deadlock: %s", row.detail);
    return false;
}

}  // namespace cudalab
