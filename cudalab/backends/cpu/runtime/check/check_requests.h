// Check mode: counts and checks the access that a group of lanes is about to make.
#pragma once

#include "check_paths.h"
#include "check_reach.h"
#include "check_unset.h"

namespace cudalab {

static inline Region& region(unsigned number) {
    return number >= FIRST_SHARED_REGION ? run.shared_regions[number - FIRST_SHARED_REGION]
                                         : run.regions[number];
}

const size_t FAR = 64 << 20;
// Whether an index of type int that has overflowed may have led there, in a whole program.
static bool is_overflow(const char* address, size_t distance) {
    return cudalab_program_keeps && distance < 16 * (1ull << 31) &&
           (!cudalab_program_keeps(address) || !is_mapped(address));
}

// The region that an address belongs to, and whether the access lies inside it.
static unsigned find_region(char* address, unsigned bytes, unsigned site, bool& inside) {
    const unsigned known = run.region_of_site[site];
    if (known != NO_REGION) {
        const Region& r = region(known);
        if (r.used && address >= r.low && address + bytes <= r.high) {
            inside = true;
            return known;
        }
    }
    if ((run.tls && (size_t)(address - run.tls) < run.module->tls_bytes + ZONE) ||
        (run.dynamic_shared &&
         (size_t)(address - run.dynamic_shared + ZONE) < DYNAMIC_SHARED + 2 * ZONE)) {
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
    unsigned nearest = NO_REGION;
    size_t distance = ~(size_t)0, usual = ~(size_t)0;
    for (unsigned i = 0; i < run.regions.count; ++i) {
        const Region& r = run.regions[i];
        if (!r.used) continue;
        if (address >= r.low && address + bytes <= r.high) {
            inside = true;
            return i;
        }
        size_t away = address >= r.high  ? (size_t)(address - r.high)
                      : address >= r.low ? 0
                                         : (size_t)(r.low - address);
        if (away < distance) distance = away, nearest = i;
        if (i == known) usual = away;
    }
    inside = false;
    // An index that is wrong by far leads past other arrays than that of the line.
    if (distance >= 16 && (usual < FAR || is_overflow(address, usual))) return known;
    // An address far away from all buffers means a wrong pointer rather than a wrong index, unless
    // an int could lead there, and nothing else is there.
    return distance < FAR || is_overflow(address, distance) ? nearest : NO_REGION;
}

// An access to memory that a kernel has freed. False if it is none.
static bool after_free(unsigned thread, const Event& e) {
    for (size_t i = run.freed.count; i-- > 0;) {
        const Freed& f = run.freed[i];
        if (e.address + e.bytes <= f.low || e.address >= f.high) continue;
        bool fresh;
        FindingRow& row =
            findings.report(AFTER_FREE, place_of_event(thread), f.place, NO_REGION, fresh);
        if (!fresh) return true;
        row.thread = thread, row.block = run.block, row.access = e.kind, row.bytes = e.bytes;
        row.offset = e.address - f.low;
        return true;
    }
    return false;
}

static const uintptr_t NULL_BYTES = 64 << 10;  // nothing is mapped there

// Whether an address is one of the program's own variables.
static bool is_changeable(const char* address) {
    return address >= run.module->data_low && address < run.module->image_high;
}

// What is known of an access near no region: the index that has led there, or its address.
static void describe_far(FindingRow& row, const Event& e) {
    const FindingRow* index = findings.find(PAST_INNER_ARRAY, row.place, 0, NO_REGION);
    if (index)
        memcpy(row.detail, index->detail, sizeof row.detail);
    else if ((uintptr_t)e.address < NULL_BYTES)
        snprintf(row.detail, sizeof row.detail, "through a null pointer");
    else if (is_changeable(e.address))
        snprintf(row.detail, sizeof row.detail, "a variable of the host");
    else if (cudalab_program_keeps && cudalab_program_keeps(e.address) && is_mapped(e.address))
        snprintf(row.detail, sizeof row.detail, "address %#zx, in memory of the host",
                 (size_t)e.address);
    else
        snprintf(row.detail, sizeof row.detail, "address %#zx", (size_t)e.address);
}

static bool is_far(const Region& r, const char* address) {
    return address < r.low ? (size_t)(r.low - address) >= FAR
                           : address >= r.high && (size_t)(address - r.high) >= FAR;
}

// Reports an access outside all regions. Returns if it can be carried out nevertheless.
static void out_of_bounds(unsigned thread, const Event& e, unsigned nearest) {
    bool fresh;
    const Place place = place_of_event(thread);
    const bool far = nearest != NO_REGION && is_far(region(nearest), e.address);
    if (far && findings.find(PAST_INNER_ARRAY, place, 0, NO_REGION))
        nearest = NO_REGION;  // the index that has led there is known, with its array
    FindingRow& row = findings.report(OUT_OF_BOUNDS, place, 0, nearest, fresh);
    bool in_zone = false;
    if (nearest != NO_REGION) {
        Region& r = region(nearest);
        const size_t zone = r.guard ? r.guard : ARRAY_ZONE;
        in_zone = e.address >= r.low - zone && e.address + e.bytes <= r.high + zone;
        if (fresh) {
            row.offset = e.address - r.low, row.has_index = 1;
            row.beyond =
                e.address >= r.low
                    ? e.address + e.bytes > r.high && e.address < r.high ? 0 : e.address - r.high
                    : e.address - r.low;
            row.space = r.space;
            const uint64_t below = (1ull << 32) - (uint64_t)row.offset / e.bytes;
            if (far)
                snprintf(row.detail, sizeof row.detail,
                         below <= 1 << 16 ? "has an unsigned number been counted below 0?"
                                          : "has an int overflowed?");
        }
    }
    if (fresh) {
        row.thread = thread, row.block = run.block, row.access = e.kind, row.bytes = e.bytes;
        if (nearest == NO_REGION) describe_far(row, e);
    }
    if (in_zone) return;
    if (e.kind == LOAD && is_mapped(e.address) && is_mapped(e.address + e.bytes - 1)) return;
    const uint3& t = run.index[thread];
    run.reached_outside = true;
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

// How much of a buffer that is read without a value has one.
static void describe_written(FindingRow& row, const Region& r) {
    const size_t bytes = (size_t)(r.high - r.low);
    size_t written = 0;
    for (size_t word = 0; word <= bytes / 4; ++word)
        written += (unsigned)__builtin_popcount(r.shadow.written[word] & 15);
    if (written < bytes)
        snprintf(row.detail, sizeof row.detail, "of its %zu bytes, %zu have been", bytes, written);
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
                 address,
                 e.is_object,
                 0};
    if (e.kind == LOAD) now.flags |= IS_READ;
    if (detector.updates(thread, address, now.place, e.kind) && e.kind == STORE)
        now.flags |= IS_UPDATE;
    if (now.flags & (IS_ATOMIC | IS_VOLATILE))
        detector.synchronize(now);
    else if (e.kind == STORE)
        detector.store_plainly(now);
    const bool may_copy = e.kind == STORE && pending.copy[thread].to == e.address;
    const size_t known = findings.rows.count;
    for (unsigned done = 0; done < e.bytes;) {
        const unsigned in_word = (unsigned)((now.offset + done) & 3);
        const unsigned here = 4 - in_word < e.bytes - done ? 4 - in_word : e.bytes - done;
        const unsigned char mask = (unsigned char)(((1u << here) - 1) << in_word);
        const size_t word = (size_t)(now.offset + done) / 4;
        now.word = (uintptr_t)r.low + 4 * word;
        detector.touch(r.shadow.cells[word], r.shadow.written[word], mask, now);
        if (may_copy) r.shadow.written[word] = MAY_BE_UNSET;
        if (r.used_bytes.words) r.used_bytes.add(word, e.kind - LOAD, mask, now.place);
        done += here;
    }
    for (size_t i = known; i < findings.rows.count && r.space == GLOBAL; ++i)
        if (findings.rows[i].kind == UNINITIALISED) describe_written(findings.rows[i], r);
}

// Calls visit(cell) for the words of an atomic operation that the running thread has carried out.
template <class Visit>
static void visit_words(char* address, unsigned bytes, Visit visit) {
    bool inside;
    const unsigned number = find_region(address, bytes, run.event[current.thread].site, inside);
    if (!inside || !region(number).shadow.cells) return;
    const size_t offset = (size_t)(address - region(number).low);
    for (size_t word = offset / 4; word <= (offset + bytes - 1) / 4; ++word)
        visit(region(number).shadow.cells[word]);
}
// It has changed nothing.
static void changed_nothing(char* address, unsigned bytes) {
    visit_words(address, bytes, [](Cell& cell) {
        Mark& mark = cell.atomic;
        if (mark.thread == current.thread && detector.ordering.is_here(mark))
            mark.flags |= CHANGED_NOTHING;
    });
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

// Whether an access is to something of the program that is near no variable of a kernel, such as a
// literal, or a variable of the host: assembly/ has put zones between variables.
static bool is_apart(const Event& e, unsigned nearest) {
    const Module& m = *run.module;
    if (e.address < m.image_low || e.address >= m.image_high) return false;
    if (nearest == NO_REGION || nearest >= FIRST_SHARED_REGION) return true;
    const Region& r = region(nearest);
    return r.guard > 0 || e.address + e.bytes + ARRAY_ZONE <= r.low ||
           e.address >= r.high + ARRAY_ZONE;
}

// The access that a thread is about to make is checked. Returns the region, or for an access
// outside of all the nearest one; NO_REGION if it is near none.
static unsigned check_access(unsigned thread, const Event& e) {
    bool inside;
    unsigned number = find_region(e.address, e.bytes, e.site, inside);
    const bool apart = !inside && is_apart(e, number), ignored = apart && !is_changeable(e.address);
    if (apart) number = NO_REGION;
    run.module->sites.looks[e.site] |= ignored ? ELSEWHERE : LOOKED_AT;
    if (!inside) {
        const bool begins_inside = number != NO_REGION && e.address >= region(number).low &&
                                   e.address < region(number).high;
        if (!ignored && run.detects && begins_inside && !e.is_object &&
            (uintptr_t)e.address % e.bytes)
            misaligned(thread, e, number);
        else if (!ignored && run.detects && !after_free(thread, e))
            out_of_bounds(thread, e, number);
        else if (!ignored && !is_mapped(e.address)) {
            run.reached_outside = true;
            crash("invalid memory access");
        }
        return number;
    }
    if (!run.detects) return run.region_of_site[e.site] = number;
    if (!e.is_object && (uintptr_t)e.address % e.bytes) misaligned(thread, e, number);
    if (e.is_direct && number < FIRST_SHARED_REGION && !reach.includes(number))
        out_of_reach(thread, e, number);
    else
        run.region_of_site[e.site] = number;
    detect(thread, e, number);
    return number;
}

// A load that nothing is wrong with. False if there is more to look at.
static inline bool just_loads(unsigned site, char* address, unsigned bytes) {
    const unsigned number = run.region_of_site[site];
    if (number == NO_REGION) return false;
    Region& r = region(number);
    if (!r.used || address < r.low || address + bytes > r.high) return false;
    if ((uintptr_t)address & (bytes - 1) || !r.shadow.cells) return false;
    const unsigned thread = current.thread;
    const size_t offset = (size_t)(address - r.low), first = offset / 4;
    const unsigned words = bytes < 4 ? 1 : bytes / 4, each = bytes / words;
    if (offset % 4 + each > 4) return false;
    const unsigned mask = ((1u << each) - 1) << offset % 4;
    for (unsigned i = 0; i < words; ++i)
        if (!detector.is_quiet(r.shadow.cells[first + i], r.shadow.written[first + i], mask))
            return false;
    const Place place = run.module->sites.place(site);
    run.event[thread].site = site;
    ++detector.ordering.request;
    for (unsigned i = 0; i < words; ++i) {
        detector.load(r.shadow.cells[first + i], thread, mask, IS_READ, place);
        if (r.used_bytes.words) r.used_bytes.add(first + i, 0, mask, place);
    }
    detector.updates(thread, (uintptr_t)address, place, LOAD);
    return true;
}

// What a warp has loaded at a line, since it came there and since it stored anything.
struct LineLoads {
    struct Load {
        unsigned site;
        Request request;
    };
    Place place;
    List<Load> loads;

    // Whether lanes load again what they have loaded there, by another instruction. g++ reads an
    // index twice where it checks it or where the element is changed; a GPU's compiler does not.
    bool repeats(Place at, unsigned site, const Request& r) {
        if (at != place) place = at, loads.clear();
        for (const Load& one : loads)
            if (one.site == site && one.request.lanes & r.lanes) {  // a loop's next turn
                loads.clear();
                break;
            }
        for (const Load& one : loads)
            if (covers(one.request, r)) return true;
        loads.add({site, r});
        return false;
    }

  private:
    static bool covers(const Request& before, const Request& r) {
        if (before.bytes != r.bytes || r.lanes & ~before.lanes) return false;
        for (unsigned left = r.lanes; left; left &= left - 1) {
            const unsigned lane = __builtin_ctz(left);
            if (before.address[lane] != r.address[lane]) return false;
        }
        return true;
    }
};
static LineLoads line_loads[32];  // of each warp
static void forget_loads() {
    for (LineLoads& each : line_loads) each.loads.clear();
}

static void count_request(unsigned warp, const Event& e, unsigned number, const Request& r) {
    const Place place = run.module->sites.place(e.site);
    LineLoads& loaded = line_loads[warp];
    if (e.kind != LOAD || e.flags & (IS_VOLATILE | IS_ATOMIC))
        loaded.loads.clear();
    else if (loaded.repeats(place, e.site, r))
        return;
    const bool is_local = number == LOCAL_REGION;
    const Region* const at = is_local ? nullptr : &region(number);
    counts.add(place, is_local ? NO_REGION : number, e.kind, is_local ? LOCAL : at->space, r,
               run.interval, run.with_steps, is_local ? nullptr : at->low);
}

// The lanes in `group` are about to do the same access.
static void request(unsigned warp, unsigned group) {
    ++detector.ordering.request;
    const unsigned base = warp * 32;
    unsigned regions[32];
    Request r;
    for (unsigned left = group; left; left &= left - 1) {
        const unsigned lane = __builtin_ctz(left), thread = base + lane;
        const Event& e = run.event[thread];
        const bool is_local = (size_t)(e.address - stack_low(thread)) < FIBER_STACK;
        regions[lane] = is_local ? LOCAL_REGION : check_access(thread, e);
        r.address[lane] = is_local ? FIBER_STACK - (size_t)(run.stack_top[thread] - e.address)
                                   : (uintptr_t)e.address;
    }
    while (run.counts && group) {  // for each array, the lanes that access it: nearly always all
        unsigned first = __builtin_ctz(group);
        const Event& e = run.event[base + first];
        r.lanes = 0, r.bytes = e.bytes, r.turns = e.turns;
        for (unsigned left = group; left; left &= left - 1) {
            unsigned lane = __builtin_ctz(left);
            if (regions[lane] == regions[first] && run.event[base + lane].bytes == e.bytes)
                r.lanes |= 1u << lane;
        }
        group &= ~r.lanes;
        if (regions[first] != NO_REGION) count_request(warp, e, regions[first], r);
    }
}

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
