// Check mode: races and other findings, and the order of accesses.
//
// Two accesses of one block are ordered by a block barrier between them (its number is the epoch),
// or by a warp barrier that both lanes take part in. Everything else, other blocks too, needs a
// release and an acquire: a fence and then an atomic (or volatile) store by the first thread, and
// an atomic or volatile load of that word before the access by the second.
#pragma once

#include <stdarg.h>
#include <stdio.h>

#include "check_count.h"

namespace cudalab {

enum FindingKind : unsigned {
    RACE,
    LOST_UPDATE,
    SAME_WORD,
    OUT_OF_BOUNDS,
    MISALIGNED,
    UNINITIALISED,
    BARRIER_DIVERGENCE,
    DEADLOCK,
    WRONG_MASK,
    INFINITE_LOOP,
    CRASH,
    EARLY_RETURN,
    NOT_ARRIVED,
};
enum Missing : unsigned { NOTHING, SYNCTHREADS, SYNCWARP };
const unsigned NO_THREAD = ~0u;

// Python reads these structs.
struct FindingRow {
    unsigned kind;
    Place place, other_place;
    unsigned thread, other_thread;  // linear; NO_THREAD: none
    unsigned access, other_access, space, region, bytes, missing, has_index;
    uint64_t block, other_block;
    int64_t offset;  // bytes from the region's start
    int64_t beyond;
    uint64_t count;
    char detail[200];
};

struct Who {  // the thread that accesses memory now
    unsigned block, thread, epoch, request;
    Place place;
};

// The order that a fence of a thread gives to those who acquire the word that it stores to next.
struct Release {
    unsigned block, epoch, thread;
    unsigned short fences;
    unsigned acquired;  // how many acquires the releasing block had made: their releases pass on
    unsigned seen[32];  // of the thread's warp
};
struct Acquire {
    unsigned variable, releases;  // as many as there were
    unsigned thread, epoch, clock;
};

struct Detector {
    List<FindingRow> findings;
    Map finding_of;

    unsigned launch_epoch = 1, epoch = 1, block = 0;
    unsigned clock[1024];     // of each thread, counts its warp barriers
    unsigned seen[1024][32];  // of each thread: what clocks of its warp it is ordered after
    unsigned short fences[1024];
    Release fenced[1024];  // as of each thread's last fence
    struct {
        uintptr_t address;
        Place place;
    } recent[1024][4];  // loads of each thread
    unsigned char next_recent[1024];

    Map variable_of;
    List<List<Release>> variables;
    Map acquires_of;  // block -> its list
    List<List<Acquire>> acquires;

    void begin_launch() {
        launch_epoch = ++epoch;
        for (auto& list : variables) free(list.items);
        for (auto& list : acquires) free(list.items);
        variables.clear(), variable_of.clear(), acquires.clear(), acquires_of.clear();
    }
    void begin_block(unsigned index, unsigned threads) {
        block = index;
        ++epoch;
        memset(fences, 0, threads * sizeof *fences);
        memset((void*)recent, 0, threads * sizeof *recent);
        for (unsigned t = 0; t < threads; ++t) clock[t] = clock[t] ? clock[t] : 1;
    }

    // ---------------------------------------------------------------- findings

    // The finding's row; `fresh` if it is the first of its kind at these places.
    FindingRow& report(FindingKind kind, Place place, Place other, unsigned region, bool& fresh) {
        uint64_t key = ((uint64_t)place * 0x9e3779b1u ^ other) * 0x85ebca77c2b2ae63ull ^
                       (uint64_t)region << 8 ^ (uint64_t)kind << 1;
        unsigned index = finding_of.put(key | 1, (unsigned)findings.count);
        fresh = index == findings.count;
        if (fresh) {
            FindingRow row;
            memset((void*)&row, 0, sizeof row);
            row.kind = kind, row.place = place, row.other_place = other, row.region = region;
            row.thread = row.other_thread = NO_THREAD;
            findings.add(row);
        }
        ++findings[index].count;
        return findings[index];
    }

    // ---------------------------------------------------------------- order

    // All lanes of `group` are at a __syncwarp, which orders them after each other's accesses.
    void sync_warp(unsigned warp, unsigned group) {
        unsigned base = warp * 32, newest[32] = {};
        for (unsigned left = group; left; left &= left - 1) {
            unsigned lane = __builtin_ctz(left);
            unsigned* mine = seen[base + lane];
            for (unsigned i = 0; i < 32; ++i) newest[i] = mine[i] > newest[i] ? mine[i] : newest[i];
            if (clock[base + lane] > newest[lane]) newest[lane] = clock[base + lane];
        }
        for (unsigned left = group; left; left &= left - 1) {
            unsigned lane = __builtin_ctz(left);
            memcpy(seen[base + lane], newest, sizeof newest);
            ++clock[base + lane];
        }
    }

    void fence(unsigned thread) {
        if (fences[thread] < 0xffff) ++fences[thread];
        Release& r = fenced[thread];
        r = {block, epoch, thread, fences[thread], 0, {}};
        memcpy(r.seen, seen[thread], sizeof r.seen);
    }

    // Records that `thread` stores to (or updates) a word that others may wait for.
    void release(uintptr_t address, unsigned thread) {
        if (!fences[thread]) return;
        unsigned index = variable_of.put((uint64_t)address, (unsigned)variables.count);
        if (index == variables.count) variables.add({});
        Release r = fenced[thread];
        Map::Slot* mine = acquires_of.find(block + 1ull);
        r.acquired = mine ? (unsigned)acquires[mine->value].count : 0;
        variables[index].add(r);
    }

    void acquire(uintptr_t address, unsigned thread) {
        Map::Slot* found = variable_of.find((uint64_t)address);
        if (!found) return;
        unsigned releases = (unsigned)variables[found->value].count;
        unsigned index = acquires_of.put(block + 1ull, (unsigned)acquires.count);
        if (index == acquires.count) acquires.add({});
        List<Acquire>& mine = acquires[index];
        if (mine.count) {  // a thread that polls
            Acquire& last = mine[mine.count - 1];
            if (last.variable == found->value && last.thread == thread && last.epoch == epoch &&
                last.releases == releases)
                return;
        }
        mine.add({found->value, releases, thread, epoch, clock[thread]});
    }

    // Whether `thread` is ordered after the access `mark` in this block.
    bool ordered_in_block(const Mark& mark, unsigned thread) {
        if (mark.thread == thread || mark.epoch < epoch) return true;
        return mark.thread / 32 == thread / 32 && seen[thread][mark.thread & 31] >= mark.clock;
    }
    static bool covers(const Release& r, const Mark& mark) {
        if (r.block != mark.block) return false;
        if (r.thread == mark.thread) return mark.fences < r.fences;
        if (mark.epoch < r.epoch) return true;
        return r.thread / 32 == mark.thread / 32 && r.seen[mark.thread & 31] >= mark.clock;
    }
    // Whether one of the first `releases` of a word, or what they had acquired, covers `mark`.
    bool reaches(unsigned variable, unsigned releases, const Mark& mark, unsigned depth) {
        List<Release>& list = variables[variable];
        for (unsigned i = releases; i-- > 0;)
            if (covers(list[i], mark)) return true;
        if (depth == 0) return false;
        for (unsigned i = releases; i-- > 0;) {
            Map::Slot* slot = acquires_of.find(list[i].block + 1ull);
            for (unsigned k = 0; slot && k < list[i].acquired; ++k) {
                Acquire a = acquires[slot->value][k];
                if (a.variable == variable && a.releases <= i) continue;
                if (reaches(a.variable, a.releases, mark, depth - 1)) return true;
            }
        }
        return false;
    }
    bool synchronized(const Mark& mark, unsigned thread) {
        Map::Slot* slot = acquires_of.find(block + 1ull);
        if (!slot) return false;
        List<Acquire>& mine = acquires[slot->value];
        for (size_t i = mine.count; i-- > 0;) {
            Acquire a = mine[i];
            bool before = a.thread == thread || a.epoch < epoch ||
                          (a.thread / 32 == thread / 32 && seen[thread][a.thread & 31] >= a.clock);
            if (before && reaches(a.variable, a.releases, mark, 3)) return true;
        }
        return false;
    }

    // ---------------------------------------------------------------- accesses

    // One lane's access to at most 4 bytes of a word.
    void touch(Cell& cell, unsigned char& written, unsigned region, unsigned space, int64_t offset,
               unsigned kind, unsigned char mask, unsigned char flags, const Who& who,
               unsigned bytes) {
        const bool stores = kind != LOAD;
        conflict(cell.store, kind, mask, flags, space, region, offset, who, STORE, bytes);
        if (stores) {
            conflict(cell.load, kind, mask, flags, space, region, offset, who, LOAD, bytes);
            conflict(cell.other_load, kind, mask, flags, space, region, offset, who, LOAD, bytes);
        }
        if (kind != STORE && (written & mask) != mask) {
            bool fresh;
            FindingKind what = written & UNDER_WAY ? NOT_ARRIVED : UNINITIALISED;
            FindingRow& row = report(what, who.place, 0, region, fresh);
            if (fresh) describe(row, kind, space, offset, bytes, who);
        }
        Mark mark = {who.place,
                     who.epoch,
                     who.block,
                     who.request,
                     clock[who.thread],
                     (unsigned short)who.thread,
                     fences[who.thread],
                     mask,
                     flags};
        if (stores) {
            cell.store = mark;
            written = (unsigned char)((written | mask) & ~UNDER_WAY);
        } else {
            if (cell.load.thread != mark.thread || cell.load.block != mark.block)
                cell.other_load = cell.load;
            else if (cell.load.epoch == mark.epoch && cell.load.clock == mark.clock)
                mark.bytes |= cell.load.bytes;
            cell.load = mark;
        }
    }

    // Whether this store ends an x = x + 1 of its thread; loads are remembered.
    bool updates(unsigned thread, uintptr_t address, Place place, unsigned kind) {
        auto& loads = recent[thread];
        if (kind == LOAD) {
            unsigned char& next = next_recent[thread];
            loads[next & 3] = {address, place};
            ++next;
            return false;
        }
        for (auto& load : loads)
            if (load.address == address && load.place == place) return true;
        return false;
    }

  private:
    void describe(FindingRow& row, unsigned kind, unsigned space, int64_t offset, unsigned bytes,
                  const Who& who) {
        row.thread = who.thread, row.block = who.block;
        row.access = kind, row.space = space, row.bytes = bytes;
        row.offset = offset, row.has_index = 1;
    }

    void conflict(const Mark& mark, unsigned kind, unsigned char mask, unsigned char flags,
                  unsigned space, unsigned region, int64_t offset, const Who& who,
                  unsigned mark_kind, unsigned bytes) {
        if (mark.epoch < launch_epoch || !(mark.bytes & mask)) return;
        const bool same_block = mark.block == who.block;
        if (same_block ? mark.thread == who.thread : space == SHARED) return;
        if (flags & mark.flags & IS_ATOMIC) return;
        const unsigned strong = IS_ATOMIC | IS_VOLATILE;
        if ((flags & strong) && (mark.flags & strong) &&
            (space == GLOBAL || ((flags | mark.flags) & IS_ATOMIC)))
            return;
        const bool both_store = kind == STORE && mark_kind == STORE;
        const bool lost = both_store && (flags & mark.flags & IS_UPDATE) && mark.place == who.place;
        if (both_store && same_block && mark.request == who.request) {
            bool fresh;
            FindingKind what = lost ? LOST_UPDATE : SAME_WORD;
            FindingRow& row = report(what, who.place, lost ? who.place : 0, region, fresh);
            if (fresh) {
                describe(row, kind, space, offset, bytes, who);
                accuse(row, mark, mark_kind, SYNCWARP);
            }
            return;
        }
        if (same_block && ordered_in_block(mark, who.thread)) return;
        if (synchronized(mark, who.thread)) return;
        bool fresh;
        unsigned missing = !same_block                           ? NOTHING
                           : mark.thread / 32 == who.thread / 32 ? SYNCWARP
                                                                 : SYNCTHREADS;
        FindingRow& row = report(lost ? LOST_UPDATE : RACE, who.place, mark.place, region, fresh);
        // If several pairs of threads race here, the barrier that a pair in different warps needs
        // fixes all of them.
        if (!fresh && !(row.missing == SYNCWARP && missing == SYNCTHREADS)) return;
        describe(row, kind, space, offset, bytes, who);
        accuse(row, mark, mark.flags & IS_ATOMIC ? (unsigned)ATOMIC : mark_kind, missing);
        if (flags & mark.flags & IS_VOLATILE) snprintf(row.detail, sizeof row.detail, "volatile");
    }

    static void accuse(FindingRow& row, const Mark& mark, unsigned kind, unsigned missing) {
        row.other_thread = mark.thread, row.other_block = mark.block;
        row.other_access = kind, row.missing = missing;
        row.other_place = mark.place;
    }
};

}  // namespace cudalab
