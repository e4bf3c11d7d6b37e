// Check mode: the blocks of a launch, one after another, and the memory that each begins with.
#pragma once

#include <link.h>

#include "check_grid.h"

namespace cudalab {

static bool in_block;  // whether threads of a block are running

static int find_library(dl_phdr_info* info, size_t, void* argument) {
    Module& m = *(Module*)argument;
    char *low = nullptr, *high = nullptr, *data_low = nullptr, *fixed_high = nullptr;
    size_t tls_bytes = 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& header = info->dlpi_phdr[i];
        char* begin = (char*)info->dlpi_addr + header.p_vaddr;
        if (header.p_type == PT_TLS) tls_bytes = header.p_memsz;
        if (header.p_type == PT_GNU_RELRO) fixed_high = begin + header.p_memsz;
        if (header.p_type != PT_LOAD) continue;
        if (header.p_flags & PF_W) data_low = begin;
        if (!low || begin < low) low = begin;
        if (begin + header.p_memsz > high) high = begin + header.p_memsz;
    }
    if ((char*)m.inside < low || (char*)m.inside >= high) return 0;
    m.image_low = low, m.image_high = high, m.tls_bytes = tls_bytes;
    m.data_low = fixed_high > data_low ? fixed_high : data_low;
    m.tls_module = info->dlpi_tls_modid;
    return 1;
}

extern "C" void* __tls_get_addr(size_t*);

// The shared arrays of the module as regions of this thread's memory.
static void place_shared_arrays() {
    Module& m = *run.module;
    dl_iterate_phdr(find_library, &m);
    size_t where[2] = {m.tls_module, 0};
    run.tls = m.tls_bytes ? (char*)__tls_get_addr(where) : nullptr;
    if (run.detects && m.tls_bytes / 4 + 2 > run.shared_shadow.words) {
        delete_shadow(run.shared_shadow);
        run.shared_shadow = new_shadow(m.tls_bytes);
    }
    if (run.detects && !run.dynamic_shadow.cells) run.dynamic_shadow = new_shadow(DYNAMIC_SHARED);
    const Shadow none = {};
    run.shared_regions.clear();
    for (size_t i = 0; i < m.num_arrays; ++i) {
        const SharedArray& a = m.arrays[i];
        char* low = run.tls + a.offset;
        Shadow shadow = run.detects ? part_of(run.shared_shadow, a.offset) : none;
        run.shared_regions.add({low, low + a.bytes, ARRAY_ZONE, SHARED, true, shadow, {}});
    }
    char* low = run.dynamic_shared;
    run.shared_regions.add({low,
                            low + run.shared_bytes,
                            ZONE,
                            SHARED,
                            true,
                            run.detects ? run.dynamic_shadow : none,
                            {}});
}

// Shared memory starts with garbage, so that no kernel relies on its contents, and what it holds is
// never constructed: its guards say that it has been.
static void poison_shared_memory() {
    const Module& m = *run.module;
    for (size_t i = 0; i < run.shared_regions.count; ++i) {
        Region& r = run.shared_regions[i];
        const size_t bytes = (size_t)(r.high - r.low);
        const bool is_array = i >= m.num_arrays || !(m.arrays[i].is_guard || m.arrays[i].is_own);
        if (is_array) fill_unset(r.low, bytes);
        if (!is_array && m.arrays[i].is_guard) memset(r.low, 0xff, bytes);
        mark_written(r.shadow, bytes, !is_array);
    }
}

static void prepare_fibers() {
    forget_locals();
    for (unsigned t = 0; t < MAX_THREADS; ++t) {
        // Different offsets, or the hot ends of all stacks would share a few cache sets.
        size_t bytes = FIBER_STACK - t % 64 * 64;
        run.stack_top[t] = stack_low(t) + bytes;
        new_context(&run.context[t], stack_low(t), bytes, FIBER_ENTRY);
    }
    run.prepared = true;
}

// Runs the threads that are ready until the block has ended, or waits for others.
static void run_threads() {
    run.group = run.warp = run.at_grid = run.idle = 0;
    run.parked = false;
    shuffle_warps();
    in_block = true;
    __atomic_store_n(&run.attention, run.counts, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&run.stopping, __ATOMIC_SEQ_CST) ||
        __atomic_load_n(&run.looking_away, __ATOMIC_SEQ_CST))
        run.attention = true;
    unsigned first = next_thread();
    set_thread(run.index[first], first);
    last_block = run.observing && run.detects ? paths.last[first] : nullptr;
    switch_to(&run.main_context, run.context[first]);
    in_block = false;
    end_locals();
    detector.end_part(run.threads);
    run.blocks_done += !run.parked;
}

// A block that was put aside at the grid's barrier begins anew as far as order is concerned.
static void go_on(Parked& parked) {
    const bool at_grid = parked.at_grid;
    put_back(parked);
    if (at_grid)
        detector.begin_block((unsigned)run.block, run.threads);
    else
        detector.ordering.resume_block((unsigned)run.block), detector.begin_part(run.threads);
    if (run.observing && run.detects)
        at_grid ? paths.begin_block(run.threads) : paths.resume_block(run.threads);
    run_threads();
}

static void run_block(uint64_t block) {
    run.block = block;
    current.block_idx = block_index(block);
    if (!run.prepared) prepare_fibers();
    if (run.observing) poison_shared_memory();
    for (unsigned warp = 0; warp < run.warps; ++warp) {
        unsigned in_warp = run.threads - warp * 32;
        run.live[warp] = run.ready[warp] = in_warp >= 32 ? ~0u : (1u << in_warp) - 1;
        run.at_barrier[warp] = run.at_warp_op[warp] = run.yielded[warp] = 0;
    }
    memset((void*)run.event, 0, run.threads * sizeof *run.event);
    memset(run.behind, 0, run.threads * sizeof *run.behind);
    memset(run.polls, 0, run.threads * sizeof *run.polls);
    for (unsigned t = 0; t < run.threads; ++t) run.copies[t].forget();
    run.block_op = NONE;
    run.predicates = run.voters = 0;
    run.interval = 0;
    if (run.observing && run.counts)
        forks.begin_block(run.threads, run.with_steps ? &counts : nullptr), forget_loads();
    detector.begin_block((unsigned)run.block, run.threads);
    if (run.observing && run.detects) paths.begin_block(run.threads);
    run_threads();
}

// Runs all blocks of a grid; each reaches the grid's barrier before any continues after it.
static void run_cooperative() {
    if (!CUDALAB_FAST_SWITCH)  // POSIX contexts do not say how much of a stack is in use
        return fail_launch("cooperative grids cannot be observed on this processor");
    List<Parked> waiting, before;
    for (uint64_t i = 0; i < run.num_blocks && !run.failed && !run.stopping; ++i) {
        run.prepared = false;  // the stacks still have the contents of the previous block
        run_block(i);
        if (run.parked) waiting.add(put_aside());
        run.with_steps = false;
    }
    while (waiting.count && !run.failed && !run.stopping && pass_grid_barrier(waiting)) {
        List<Parked> next = before;
        before = waiting, waiting = next;
        waiting.clear();
        for (Parked& parked : before) {
            if (run.failed || run.stopping) break;
            go_on(parked);
            if (run.parked) waiting.add(put_aside());
        }
    }
    drop(waiting);
    drop(before);
    run.prepared = false;
}

// Runs all blocks of a grid in turn; those that wait for later ones go on behind them.
static void run_in_turn() {
    List<Parked> waiting, before;
    run.may_park = CUDALAB_FAST_SWITCH && run.num_blocks > 1;
    for (uint64_t i = 0; i < run.num_blocks && !run.failed && !run.stopping; ++i) {
        run_block(run.blocks ? run.blocks[i] : run.first_block + i);
        run.with_steps = false;
        if (!run.parked) continue;
        waiting.add(put_aside());
        run.prepared = false;  // the stacks still have its contents
        run.may_park = waiting.count < MAX_PARKED;
    }
    while (waiting.count && !run.failed && !run.stopping) {
        List<Parked> next = before;
        before = waiting, waiting = next;
        waiting.clear();
        run.may_park = before.count > 1;
        for (Parked& parked : before) {
            if (run.failed || run.stopping) break;
            go_on(parked);
            run.prepared = false;
            if (run.parked) waiting.add(put_aside());
        }
    }
    run.may_park = false;
    drop(waiting), drop(before);
}

static void run_blocks() {
    run.warps = (run.threads + 31) / 32;
    current.grid_dim = run.grid;
    current.block_dim = run.block_dim;
    current.warp_results = run.result;
    run.observing = run.detects || run.counts;
    locals.any = false;
    free(run.region_of_site);
    size_t sites = run.module->sites.count + 1;
    run.region_of_site = (unsigned*)malloc(sites * sizeof *run.region_of_site);
    memset(run.region_of_site, 0xff, sites * sizeof *run.region_of_site);
    place_shared_arrays();
    current.dynamic_shared = run.dynamic_shared;
    current.static_shared = run.tls;
    current.tally = {};
    if (run.cooperative)
        run_cooperative();
    else
        run_in_turn();
    run.tally = current.tally;
    run.observing = false;
}

}  // namespace cudalab
