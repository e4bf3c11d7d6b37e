// Check mode: races and other findings. check_order.h says which accesses are ordered.
//
// Two accesses to a word that nothing orders are a race if one of them writes, unless both are
// atomic operations whose scopes include each other, or one is a volatile load: of a word that is
// updated by atomic operations, or in a loop that waits for a volatile store. A plain load beside
// atomic operations is none if its thread goes on with a compare-and-swap of the word, which checks
// the value: old = *p; do … while (old != atomicCAS(p, …)).
#pragma once

#include <stdarg.h>
#include <stdio.h>

#include "check_order.h"

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
    SAME_VALUE,
    PAST_INNER_ARRAY,
    OUT_OF_REACH,
};
enum Missing : unsigned { NOTHING, SYNCTHREADS, SYNCWARP, FENCE };
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

// What a thread is about to do to a piece of memory.
struct Doing {
    unsigned kind, space, region, bytes;
    unsigned block, thread;
    Place place;
    unsigned char flags;  // of MarkFlags
    int64_t offset;       // from the start of the region
    uintptr_t address;
    bool is_object;  // which may have padding

    bool writes() const { return kind == STORE || (kind == ATOMIC && !(flags & CHANGED_NOTHING)); }
};

// The findings of a launch; those at the same places are one, which is counted.
struct Findings {
    List<FindingRow> rows;

    // The finding's row; `fresh` if it is the first of its kind at these places.
    FindingRow& report(FindingKind kind, Place place, Place other, unsigned region, bool& fresh) {
        uint64_t key = ((uint64_t)place * 0x9e3779b1u ^ other) * 0x85ebca77c2b2ae63ull ^
                       (uint64_t)region << 8 ^ (uint64_t)kind << 1;
        unsigned index = number_of.put(key | 1, (unsigned)rows.count);
        fresh = index == rows.count;
        if (fresh) {
            FindingRow row;
            memset((void*)&row, 0, sizeof row);
            row.kind = kind, row.place = place, row.other_place = other, row.region = region;
            row.thread = row.other_thread = NO_THREAD;
            rows.add(row);
        }
        ++rows[index].count;
        return rows[index];
    }
    void forget() { rows.clear(), number_of.clear(); }

  private:
    Map number_of;
};
static Findings findings;

struct Detector {
    Ordering ordering;

    void begin_block(unsigned index, unsigned threads) {
        ordering.begin_block(index, threads);
        begin_part(threads);
    }
    // The block begins, or goes on after others.
    void begin_part(unsigned threads) {
        memset((void*)recent, 0, threads * sizeof *recent);
        memset((void*)flags_read, 0, sizeof flags_read);
        num_stores = 0;
    }

    // One lane's access to at most 4 bytes of a word.
    void touch(Cell& cell, unsigned char& written, unsigned char mask, const Doing& now) {
        meet(cell, cell.store, STORE, mask, now);
        meet(cell, cell.atomic, ATOMIC, mask, now);
        if (now.writes()) {
            meet(cell, cell.load, LOAD, mask, now);
            meet(cell, cell.other_load, LOAD, mask, now);
        }
        if (now.kind != STORE && (written & mask) != mask && !(now.flags & IS_UNUSED) &&
            !may_be_padding(written, mask, now)) {
            bool fresh;
            FindingKind what = written & UNDER_WAY ? NOT_ARRIVED : UNINITIALISED;
            FindingRow& row = findings.report(what, now.place, 0, now.region, fresh);
            if (fresh) describe(row, now);
        }
        if (now.kind == LOAD) return load(cell, now.thread, mask, now.flags, now.place);
        (now.flags & IS_ATOMIC ? cell.atomic : cell.store) = Mark::of(
            ordering.request, now.thread, mask, now.flags, now.place, ordering.clock[now.thread]);
        written = (unsigned char)((written | mask) & ~UNDER_WAY);
    }

    // Objects are copied with the padding between their members, which nobody writes: of 8 bytes,
    // one that has a value is enough.
    static bool may_be_padding(const unsigned char& written, unsigned mask, const Doing& now) {
        if (!now.is_object || now.kind != LOAD || written & UNDER_WAY) return false;
        const unsigned char& other = *(unsigned char*)((uintptr_t)&written ^ 1);
        return written & mask || (now.bytes >= 8 && other & 15);
    }

    // Whether the bytes in `mask` have a value, and no load of them now can be a race.
    bool is_quiet(const Cell& cell, unsigned char written, unsigned mask) const {
        return (written & mask) == mask && ordering.is_past(cell.store) &&
               ordering.is_past(cell.atomic);
    }
    // Remembers a load.
    void load(Cell& cell, unsigned thread, unsigned bytes, unsigned flags, Place place) {
        const unsigned now = ordering.clock[thread];
        if (cell.load.thread != thread || !ordering.is_here(cell.load))
            cell.other_load = cell.load;
        else if (cell.load.clock == now && !ordering.precedes_barrier(cell.load))
            bytes |= cell.load.bytes;
        cell.load = Mark::of(ordering.request, thread, bytes, flags, place, now);
    }

    // The releases and acquires of an atomic or volatile access to a word that may be a flag.
    void synchronize(const Cell& cell, const Doing& now) {
        const bool grid = !(now.flags & IN_BLOCK_ONLY);
        if (now.kind != STORE) {
            ordering.acquire(now.address, now.thread, grid);
            flags_read[now.thread] = {now.address, cell.atomic, cell.store};
            flags_read[MAX_THREAD] = flags_read[now.thread];
        }
        if (now.kind != LOAD) ordering.release(now.address, now.thread, grid);
    }

    // Whether this store ends an x = x + 1 of its thread; loads are remembered.
    bool updates(unsigned thread, uintptr_t address, Place place, unsigned kind) {
        Recent& mine = recent[thread];
        if (kind == LOAD) {
            mine.loads[mine.next++ & 3] = {address, place};
            return false;
        }
        for (auto& load : mine.loads)
            if (load.address == address && load.place == place) return true;
        return false;
    }

    // The stores that the thread has just carried out: a race, or the value was there already.
    void settle(unsigned thread) {
        for (unsigned i = 0; i < num_stores; ++i) {
            if (stores[i].now.thread != thread) continue;
            const Store store = stores[i];
            stores[i--] = stores[--num_stores];
            const bool same = !memcmp((void*)store.now.address, store.before, store.now.bytes);
            accuse({same ? SAME_VALUE : RACE, store.now, store.mark, STORE, store.order,
                    missing_between(store.mark, store.now, store.order), nullptr});
        }
    }
    bool has_stores() const { return num_stores > 0; }

    // The thread has carried out a compare-and-swap of the word: what it had read before was right
    // if that has succeeded.
    void check_guesses(Cell& cell, unsigned thread) {
        set_checked(cell.load, thread);
        set_checked(cell.other_load, thread);
        List<Accusation>& mine = guesses[thread];
        for (size_t i = mine.count; i-- > 0;)
            if (mine[i].cell == &cell) mine[i] = mine[--mine.count];
    }
    // The block ends, or lets others run: no more compare-and-swaps follow.
    void end_part(unsigned threads) {
        for (unsigned t = 0; has_guesses && t < threads; ++t) {
            for (const Accusation& race : guesses[t]) accuse(race);
            guesses[t].clear();
        }
        has_guesses = false;
    }

  private:
    static const unsigned MAX_THREAD = 1024, MAX_STORES = 64, MAX_GUESSES = 8;
    struct Recent {  // loads of a thread
        struct {
            uintptr_t address;
            Place place;
        } loads[4];
        unsigned char next;
    } recent[1024];
    struct Flag {
        uintptr_t address;
        Mark atomic, store;        // who has set it
    } flags_read[MAX_THREAD + 1];  // the last one that each thread, or any of them, has read

    struct Store {  // that met another one, and may write the same value
        Doing now;
        Mark mark;
        Order order;
        unsigned char before[16];
    } stores[MAX_STORES];
    unsigned num_stores = 0;

    struct Accusation {
        FindingKind kind;
        Doing now;
        Mark mark;
        unsigned mark_kind;
        Order order;
        unsigned missing;
        const Cell* cell;
    };
    List<Accusation> guesses[MAX_THREAD];  // races but for a compare-and-swap of the thread
    bool has_guesses = false;

    void set_checked(Mark& mark, unsigned thread) {
        const bool is_plain = !(mark.flags & (IS_ATOMIC | IS_VOLATILE));
        if (is_plain && mark.thread == thread && ordering.is_here(mark)) mark.flags |= IS_CHECKED;
    }

    static void describe(FindingRow& row, const Doing& now) {
        row.thread = now.thread, row.block = now.block;
        row.access = now.kind, row.space = now.space, row.bytes = now.bytes;
        row.offset = now.offset, row.has_index = 1;
    }

    // Whether two accesses may come in any order; one of them writes.
    static bool may_meet(const Mark& mark, const Doing& now, bool same_block) {
        const unsigned both = now.flags & mark.flags, either = now.flags | mark.flags;
        if (both & IS_ATOMIC) return same_block || !(either & IN_BLOCK_ONLY);
        const unsigned strong = IS_ATOMIC | IS_VOLATILE;
        if (!(now.flags & strong) || !(mark.flags & strong)) return false;
        const bool both_volatile = both & IS_VOLATILE;
        if (both_volatile) return either & IS_WAITING && !(either & IS_UPDATE);
        return either & (CHANGED_NOTHING | IS_READ);
    }

    void meet(const Cell& cell, const Mark& mark, unsigned mark_kind, unsigned char mask,
              const Doing& now) {
        if (ordering.is_past(mark) || !(mark.bytes & mask)) return;
        const bool same_block = ordering.is_here(mark);
        if (same_block ? mark.thread == now.thread : now.space == SHARED) return;
        const bool mark_writes = mark_kind != LOAD && !(mark.flags & CHANGED_NOTHING);
        if (!mark_writes && !now.writes()) return;
        if (may_meet(mark, now, same_block)) return;
        const bool both_store = now.kind == STORE && mark_kind == STORE;
        const bool lost =
            both_store && (now.flags & mark.flags & IS_UPDATE) && mark.place == now.place;
        if (both_store && same_block && mark.request == ordering.request) {
            bool fresh;
            FindingKind what = lost ? LOST_UPDATE : SAME_WORD;
            FindingRow& row =
                findings.report(what, now.place, lost ? now.place : 0, now.region, fresh);
            if (fresh) describe(row, now), name_other(row, mark, mark_kind, SYNCWARP);
            return;
        }
        const Order order = ordering.order(mark, now.thread);
        if (order == ORDERED) return;
        if (both_store && !lost && num_stores < MAX_STORES) return keep(now, mark, order);
        const Accusation race = {lost ? LOST_UPDATE : RACE,         now,  mark, mark_kind, order,
                                 missing_between(mark, now, order), &cell};
        if (!may_be_guess(race, same_block)) return accuse(race);
        const unsigned reader = now.kind == LOAD ? now.thread : mark.thread;
        if (!(mark_kind == LOAD && mark.flags & IS_CHECKED)) guess(reader, race);
    }

    // A plain load beside an atomic operation.
    static bool may_be_guess(const Accusation& race, bool same_block) {
        const unsigned strong = IS_ATOMIC | IS_VOLATILE;
        if (race.now.kind == LOAD) return race.mark_kind == ATOMIC && !(race.now.flags & strong);
        return race.now.kind == ATOMIC && race.mark_kind == LOAD && !(race.mark.flags & strong) &&
               (same_block || race.mark.flags & IS_CHECKED);
    }
    // The load is a race unless its thread goes on with a compare-and-swap.
    void guess(unsigned reader, const Accusation& race) {
        for (const Accusation& known : guesses[reader])
            if (known.cell == race.cell && known.now.place == race.now.place &&
                known.mark.place == race.mark.place)
                return;
        if (guesses[reader].count == MAX_GUESSES) return accuse(race);
        guesses[reader].add(race);
        has_guesses = true;
    }

    // A store of a thread to several words is kept once.
    void keep(const Doing& now, const Mark& mark, Order order) {
        for (unsigned i = 0; i < num_stores; ++i)
            if (stores[i].now.thread == now.thread) return;
        Store& store = stores[num_stores++];
        store.now = now, store.mark = mark, store.order = order;
        memcpy(store.before, (void*)now.address, now.bytes);
    }

    unsigned missing_between(const Mark& mark, const Doing& now, Order order) {
        const bool same_block = ordering.is_here(mark);
        const bool same_warp = same_block && mark.thread / 32 == now.thread / 32;
        if (order != UNORDERED || flag_was_set(mark, now)) return FENCE;
        return same_warp ? SYNCWARP : same_block ? SYNCTHREADS : NOTHING;
    }
    void accuse(const Accusation& race) {
        const Doing& now = race.now;
        const Mark& mark = race.mark;
        bool fresh;
        FindingRow& row = findings.report(race.kind, now.place, mark.place, now.region, fresh);
        // If several pairs of threads race here, what the most distant ones need cures all of them.
        if (!fresh && !needs_more(race.missing, row.missing)) return;
        describe(row, now);
        const unsigned kind = mark.flags & IS_ATOMIC ? (unsigned)ATOMIC : race.mark_kind;
        name_other(row, mark, kind, race.missing);
        const char* detail = race.order == UNFENCED_LOCK            ? "lock"
                             : race.order == NARROW_SCOPE           ? "scope"
                             : now.flags & mark.flags & IS_ATOMIC   ? "scope"
                             : now.flags & mark.flags & IS_VOLATILE ? "volatile"
                                                                    : "";
        if (now.flags & mark.flags & IS_ATOMIC) row.missing = NOTHING;
        snprintf(row.detail, sizeof row.detail, "%s", detail);
    }

    static bool needs_more(unsigned missing, unsigned known) {
        if (known == SYNCWARP) return missing == SYNCTHREADS || missing == NOTHING;
        return known == SYNCTHREADS && missing == NOTHING;
    }

    // Whether the thread has read a flag that the other one has set behind its access.
    bool flag_was_set(const Mark& mark, const Doing& now) {
        const Flag flags[] = {flags_read[now.thread], flags_read[MAX_THREAD]};
        for (const Flag& flag : flags)
            if (flag.address && flag.address != now.address &&
                (has_set(flag.atomic, mark) || has_set(flag.store, mark)))
                return true;
        return false;
    }
    bool has_set(const Mark& flag, const Mark& mark) {
        return ordering.is_known(flag) && flag.thread == mark.thread &&
               flag.request > mark.request && flag.flags & (IS_ATOMIC | IS_VOLATILE) &&
               ordering.block_of(flag) == ordering.block_of(mark);
    }

    void name_other(FindingRow& row, const Mark& mark, unsigned kind, unsigned missing) {
        row.other_thread = mark.thread, row.other_block = ordering.block_of(mark);
        row.other_access = kind, row.missing = missing;
        row.other_place = mark.place;
    }
};

}  // namespace cudalab
