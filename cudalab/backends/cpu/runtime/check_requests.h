// Check mode: counts and checks the access that a group of lanes is about to make.
#pragma once

#include "check_reach.h"

namespace cudalab {

// The region that an address belongs to, and whether the access lies inside it.
static unsigned find_region(char* address, unsigned bytes, unsigned site, bool& inside) {
    if ((size_t)(address - run.tls) < run.module->tls_bytes + ZONE ||
        (run.dynamic_shared && (size_t)(address - run.dynamic_shared) < DYNAMIC_SHARED + ZONE)) {
        unsigned nearest = NO_REGION;
        size_t distance = ~(size_t)0;
        for (unsigned i = 0; i < run.shared_regions.count; ++i) {
            const Region& r = run.shared_regions[i];
            if (address >= r.low && address + bytes <= r.high) {
                inside = true;
                return FIRST_SHARED_REGION + i;
            }
            // An overrun usually goes past the end of its array, seldom before the start.
            size_t away = address >= r.high  ? (size_t)(address - r.high)
                          : address >= r.low ? 0
                                             : 4 * (size_t)(r.low - address);
            if (away < distance) distance = away, nearest = FIRST_SHARED_REGION + i;
        }
        for (unsigned i = 0; i < run.regions.count;
             ++i) {  // a kernel allocated what lies next to it
            const Region& r = run.regions[i];
            if (r.used && address >= r.low && address + bytes <= r.high) {
                inside = true;
                return i;
            }
        }
        inside = false;
        return nearest;
    }
    unsigned known = run.region_of_site[site];
    if (known != NO_REGION && run.regions[known].used && address >= run.regions[known].low &&
        address + bytes <= run.regions[known].high) {
        inside = true;
        return known;
    }
    unsigned nearest = NO_REGION;
    size_t distance = ~(size_t)0;
    for (unsigned i = 0; i < run.regions.count; ++i) {
        const Region& r = run.regions[i];
        if (!r.used) continue;
        if (address >= r.low && address + bytes <= r.high) {
            run.region_of_site[site] = i;
            inside = true;
            return i;
        }
        size_t away = address >= r.high  ? (size_t)(address - r.high)
                      : address >= r.low ? 0
                                         : (size_t)(r.low - address);
        if (away < distance) distance = away, nearest = i;
    }
    inside = false;
    // An address far away from all buffers means a wrong pointer rather than a wrong index.
    return distance < (64u << 20) ? nearest : NO_REGION;
}

static Region& region(unsigned number) {
    return number >= FIRST_SHARED_REGION ? run.shared_regions[number - FIRST_SHARED_REGION]
                                         : run.regions[number];
}

// Reports an access outside all regions. Returns if it can be carried out nevertheless.
static void out_of_bounds(unsigned thread, const Event& e, unsigned nearest) {
    bool fresh;
    FindingRow& row = findings.report(OUT_OF_BOUNDS, place_of_event(thread), 0, nearest, fresh);
    bool in_zone = false;
    if (nearest != NO_REGION) {
        Region& r = region(nearest);
        in_zone = e.address >= r.low - r.guard && e.address + e.bytes <= r.high + r.guard;
        if (fresh) {
            row.offset = e.address - r.low, row.has_index = 1;
            row.beyond =
                e.address >= r.low
                    ? e.address + e.bytes > r.high && e.address < r.high ? 0 : e.address - r.high
                    : e.address - r.low;
            row.space = r.space;
        }
    }
    if (fresh) {
        row.thread = thread, row.block = run.block, row.access = e.kind, row.bytes = e.bytes;
        if (nearest == NO_REGION)
            snprintf(row.detail, sizeof row.detail, "address %#zx", (size_t)e.address);
    }
    if (in_zone) return;
    if (e.kind == LOAD && is_mapped(e.address) && is_mapped(e.address + e.bytes - 1)) return;
    const uint3& t = run.index[thread];
    give_up("thread (%u,%u,%u): access out of bounds at address %p", t.x, t.y, t.z,
            (void*)e.address);
}

static void misaligned(unsigned thread, const Event& e, unsigned number) {
    bool fresh;
    FindingRow& row = findings.report(MISALIGNED, place_of_event(thread), 0, number, fresh);
    if (fresh) {
        row.thread = thread, row.block = run.block, row.access = e.kind, row.bytes = e.bytes;
        row.offset = e.address - region(number).low, row.has_index = 1;
        row.space = region(number).space;
    }
    if (e.bytes < 16) return;
    const uint3& t = run.index[thread];
    give_up("thread (%u,%u,%u): misaligned address", t.x, t.y, t.z);
}

// An access by the program's own code to memory that nothing in the launch leads to.
static void out_of_reach(unsigned thread, const Event& e, unsigned number) {
    bool fresh;
    FindingRow& row = findings.report(OUT_OF_REACH, place_of_event(thread), 0, number, fresh);
    if (!fresh) return;
    row.thread = thread, row.block = run.block, row.access = e.kind, row.bytes = e.bytes;
    row.offset = e.address - region(number).low, row.has_index = 1;
    row.space = region(number).space;
}

static void detect(unsigned thread, const Event& e, unsigned number) {
    Region& r = region(number);
    if (!r.shadow.cells) return;
    const uintptr_t address = (uintptr_t)e.address;
    Doing now = {e.kind,
                 r.space,
                 number,
                 e.bytes,
                 (unsigned)run.block,
                 thread,
                 place_of_event(thread),
                 e.flags,
                 e.address - r.low,
                 address};
    if (e.kind == LOAD) now.flags |= IS_READ;
    if (detector.updates(thread, address, now.place, e.kind) && e.kind == STORE)
        now.flags |= IS_UPDATE;
    if (now.flags & (IS_ATOMIC | IS_VOLATILE))
        detector.synchronize(r.shadow.cells[now.offset / 4], now);
    for (unsigned done = 0; done < e.bytes;) {
        const unsigned in_word = (unsigned)((now.offset + done) & 3);
        const unsigned here = 4 - in_word < e.bytes - done ? 4 - in_word : e.bytes - done;
        const unsigned char mask = (unsigned char)(((1u << here) - 1) << in_word);
        const size_t word = (size_t)(now.offset + done) / 4;
        detector.touch(r.shadow.cells[word], r.shadow.written[word], mask, now);
        if (r.used_bytes.words) r.used_bytes.add(word, e.kind - LOAD, mask, now.place);
        done += here;
    }
}

// The atomic operation that `thread` has just carried out has changed nothing.
static void changed_nothing(char* address, unsigned bytes) {
    bool inside;
    const unsigned thread = current.thread;
    const unsigned number = find_region(address, bytes, run.event[thread].site, inside);
    if (!inside || !region(number).shadow.cells) return;
    Mark& mark = region(number).shadow.cells[(address - region(number).low) / 4].atomic;
    if (mark.thread == thread && detector.ordering.is_here(mark)) mark.flags |= CHANGED_NOTHING;
}

// An asynchronous copy to these bytes has started, or has arrived.
static void set_under_way(char* to, size_t bytes, bool under_way) {
    if (!run.observing || !run.detects) return;
    bool inside;
    unsigned number = find_region(to, (unsigned)bytes, run.event[current.thread].site, inside);
    if (!inside) return;  // has been reported
    Region& r = region(number);
    if (!r.shadow.cells) return;
    size_t first = (size_t)(to - r.low) / 4, behind = (size_t)(to - r.low + bytes + 3) / 4;
    memset(r.shadow.written + first, under_way ? UNDER_WAY : 15, behind - first);
}

// The lanes in `group` are about to do the same access.
static void request(unsigned warp, unsigned group) {
    ++detector.ordering.request;
    unsigned base = warp * 32, sites = 0, regions[32];
    Request r;
    for (unsigned left = group; left; left &= left - 1) {
        unsigned lane = __builtin_ctz(left), thread = base + lane;
        const Event& e = run.event[thread];
        sites = e.site;
        bool inside;
        regions[lane] = find_region(e.address, e.bytes, e.site, inside);
        r.address[lane] = (uintptr_t)e.address;
        if (!inside) {
            regions[lane] = NO_REGION;
            bool ignored = e.address >= run.module->image_low && e.address < run.module->image_high;
            if (!ignored && run.detects) {
                bool any;
                out_of_bounds(thread, e, find_region(e.address, e.bytes, e.site, any));
            } else if (!ignored && !is_mapped(e.address)) {
                crash("invalid memory access");
            }
            continue;
        }
        if (run.detects && e.bytes > 1 && (uintptr_t)e.address % e.bytes)
            misaligned(thread, e, regions[lane]);
        if (!run.detects) continue;
        const bool is_shared = regions[lane] >= FIRST_SHARED_REGION;
        if (e.is_direct && !is_shared && !reach.includes(regions[lane]))
            out_of_reach(thread, e, regions[lane]);
        detect(thread, e, regions[lane]);
    }
    if (!run.counts) return;
    Place place = run.module->sites.place(sites);
    while (group) {  // for each array, the lanes that access it: nearly always all of them
        unsigned first = __builtin_ctz(group);
        const Event& e = run.event[base + first];
        r.lanes = 0, r.bytes = e.bytes;
        for (unsigned left = group; left; left &= left - 1) {
            unsigned lane = __builtin_ctz(left);
            if (regions[lane] == regions[first] && run.event[base + lane].bytes == e.bytes)
                r.lanes |= 1u << lane;
        }
        group &= ~r.lanes;
        if (regions[first] == NO_REGION) continue;
        counts.add(place, regions[first], e.kind, region(regions[first]).space, r, run.interval,
                   run.with_steps);
    }
}

// The basic blocks that each thread has entered since the last barrier, and threads that left the
// kernel while others reached a barrier. Returning early is allowed. Going past the barrier is not:
// entering a basic block that the waiting threads enter once the barrier has released them. Blocks
// that only leave a function do not count.
struct Paths {
    static const unsigned LONGEST = 512;
    unsigned short blocks[MAX_THREADS][LONGEST];  // the low half of each block's site
    unsigned count[MAX_THREADS], last[MAX_THREADS];
    Place last_place[MAX_THREADS];  // where a thread was seen last
    unsigned left[MAX_THREADS], num_left;

    struct Suspect {
        unsigned short block;
        unsigned thread, waits;
        Place barrier;
    };
    List<Suspect> suspects;

    void begin_block(unsigned threads) {
        memset(count, 0, threads * sizeof *count);
        memset(last, 0, threads * sizeof *last);
        num_left = 0;
        suspects.clear();
    }
    // What the threads have done before is not known: nothing is compared up to the next barrier.
    void resume_block(unsigned threads) {
        begin_block(threads);
        for (unsigned t = 0; t < threads; ++t) count[t] = LONGEST;
    }
    void enter(unsigned thread, const Sites::Call& block) {
        if (block.flags & IS_END) return;
        last[thread] = block.site;
        unsigned& n = count[thread];
        if (n < LONGEST) blocks[thread][n++] = (unsigned short)block.site;
        if (suspects.count) look_for_suspect(thread, (unsigned short)block.site);
    }
    void leave(unsigned thread) {
        left[num_left++] = thread;
        if (!last[thread]) return;
        const Site& s = run.module->sites[last[thread]];
        last_place[thread] =
            s.branch_line ? place_of(s.branch_file, s.branch_line) : place_of(s.file, s.line);
    }
    // `waits` is one of the threads that the barrier releases.
    void pass_barrier(unsigned waits, unsigned threads) {
        for (unsigned i = 0; i < num_left; ++i) compare(left[i], waits);
        num_left = 0;
        memset(count, 0, threads * sizeof *count);
    }

  private:
    __attribute__((noinline)) void look_for_suspect(unsigned thread, unsigned short block) {
        for (const Suspect& s : suspects)
            if (s.block == block && thread != s.thread) {
                accuse(s, BARRIER_DIVERGENCE);
                return suspects.clear();
            }
    }
    void compare(unsigned gone, unsigned waits) {
        accuse({0, gone, waits, place_of_event(waits)}, EARLY_RETURN);
        if (count[gone] == LONGEST || count[waits] == LONGEST) return;
        unsigned same = 0;
        while (same < count[gone] && same < count[waits] &&
               blocks[gone][same] == blocks[waits][same])
            ++same;
        for (unsigned i = same; i < count[gone] && suspects.count < 64; ++i)
            suspects.add({blocks[gone][i], gone, waits, place_of_event(waits)});
    }
    void accuse(const Suspect& s, FindingKind kind) {
        bool fresh;
        FindingRow& row = findings.report(kind, s.barrier, last_place[s.thread], NO_REGION, fresh);
        if (!fresh) return;
        row.thread = s.waits, row.other_thread = s.thread;
        row.block = row.other_block = run.block;
        snprintf(row.detail, sizeof row.detail, "left");
    }
};
static Paths paths;

static void observe(unsigned warp, unsigned group) {
    const Event& first = run.event[warp * 32 + __builtin_ctz(group)];
    if (first.kind >= LOAD) return request(warp, group);
    if (first.kind != BLOCK_START) return;
    if (!run.counts) return;
    const Site& site = run.module->sites[first.site];
    unsigned lanes = (unsigned)__builtin_popcount(group);
    counts.floats += (uint64_t)site.floats * lanes;
    counts.doubles += (uint64_t)site.doubles * lanes;
    forks.enter(warp * 32, group, first.site, site.head, site.flags & IS_BRANCH, first.depth,
                counts.branches);
}

}  // namespace cudalab
