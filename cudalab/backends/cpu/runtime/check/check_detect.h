// Check mode: races and other findings. check_order.h says which accesses are ordered.
//
// Two accesses to a word that nothing orders are a race if one of them writes, unless both are
// atomic operations whose scopes include each other, or one is a volatile load: of a word that is
// updated by atomic operations, or in a loop that waits for a volatile store. A plain load beside
// atomic operations is none if its thread goes on with a compare-and-swap of the word, which checks
// the value: old = *p; do … while (old != atomicCAS(p, …)). Nor is one that decides whether such an
// operation is made: if (*p == 0) atomicCAS(p, 0, 1).
#pragma once

#include <stdio.h>

#include "check_findings.h"
#include "check_order.h"

namespace cudalab {

// What a thread is about to do to a piece of memory.
struct Doing {
    unsigned kind, space, region, bytes;
    unsigned block, thread;
    Place place;
    unsigned char flags;  // of MarkFlags
    int64_t offset;       // from the start of the region
    uintptr_t address;
    bool is_object;  // which may have padding
    uintptr_t word;  // that is looked at

    bool writes() const { return kind == STORE || (kind == ATOMIC && !(flags & CHANGED_NOTHING)); }
};

// A word of shared memory without a value is read, perhaps to copy it.
static void reads_unset_word(const Doing& now, Place copied);

struct Detector {
    Ordering ordering;

    void begin_launch() {
        ordering.begin_launch();
        setter_of.clear(), setters.clear(), plain_unlocks.clear(), tests.clear();
    }
    void begin_block(unsigned index, unsigned threads) {
        ordering.begin_block(index, threads);
        begin_part(threads);
    }
    // The block begins, or goes on after others.
    void begin_part(unsigned threads) {
        memset((void*)recent, 0, threads * sizeof *recent);
        memset((void*)flags_read, 0, sizeof flags_read);
        num_stores = num_collisions = num_contested = 0;
    }

    // One lane's access to at most 4 bytes of a word.
    void touch(Cell& cell, unsigned char& written, unsigned char mask, const Doing& now) {
        meet(cell, cell.store, STORE, mask, now);
        meet(cell, cell.atomic, ATOMIC, mask, now);
        if (now.writes()) {
            meet(cell, cell.load, LOAD, mask, now);
            meet(cell, cell.other_load, LOAD, mask, now);
        }
        if (written & MAY_BE_UNSET && !is_unset((char*)now.word, 4)) written = 15;
        if (now.kind != STORE && (written & mask) != mask && !(now.flags & IS_UNUSED) &&
            !may_be_padding(written, mask, now))
            read_unset(written & UNDER_WAY ? NOT_ARRIVED : UNINITIALISED, cell, written, mask, now);
        if (now.kind == LOAD) {
            if (num_contested) read_back(now);
            return load(cell, now.thread, mask, now.flags, now.place);
        }
        Mark& last = now.flags & IS_ATOMIC ? cell.atomic : cell.store;
        const bool goes_on = last.thread == now.thread && last.flags == now.flags &&
                             last.clock == ordering.clock[now.thread] && ordering.is_here(last) &&
                             !ordering.precedes_barrier(last);
        last = Mark::of(ordering.request, now.thread, goes_on ? mask | last.bytes : mask, now.flags,
                        now.place, ordering.clock[now.thread]);
        written = (unsigned char)((written | mask) & ~(UNDER_WAY | MAY_BE_UNSET));
    }

    void read_unset(FindingKind what, const Cell& cell, unsigned written, unsigned mask,
                    const Doing& now) {
        const bool is_plain = now.kind == LOAD && !(now.flags & (IS_ATOMIC | IS_VOLATILE));
        const Place copied = written & MAY_BE_UNSET ? cell.store.place : 0;
        if (what == UNINITIALISED && now.space == SHARED && is_plain && mask == 15 &&
            !now.is_object)
            return reads_unset_word(now, copied);
        bool fresh;
        FindingRow& row = findings.report(what, now.place, 0, now.region, fresh);
        if (fresh) describe(row, now), row.other_place = copied;
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
    void synchronize(const Doing& now) {
        const bool grid = !(now.flags & IN_BLOCK_ONLY);
        if (now.kind != STORE) ordering.acquire(now.address, now.thread, grid);
        if (now.kind != STORE && !(now.flags & IS_UNUSED))
            flags_read[now.thread] = flags_read[MAX_THREAD] = now.address;
        if (now.kind == LOAD) return;
        ordering.release(now.address, now.thread, grid);
        if (setters.count == MAX_SETTERS) return;
        const unsigned index = setter_of.put(setter_key(now.address, now.block), setters.count);
        if (index == setters.count) setters.add({});
        setters[index] = {ordering.request, now.thread, now.place, now.kind == ATOMIC};
    }
    // A plain store, perhaps of a thread that gives back a lock.
    void store_plainly(const Doing& now) {
        if (ordering.drop_lock(now.address, now.thread))
            plain_unlocks.put((uint64_t)now.address, now.place);
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
        for (unsigned i = 0; i < num_collisions; ++i)
            if (is_settled(collisions[i], thread)) {
                if (collisions[i].differs && num_contested < MAX_COLLISIONS)
                    contested[num_contested++] = collisions[i];
                collisions[i--] = collisions[--num_collisions];
            }
        for (unsigned i = 0; i < num_stores; ++i) {
            if (stores[i].now.thread != thread) continue;
            const Store store = stores[i];
            stores[i--] = stores[--num_stores];
            const bool same = !memcmp((void*)store.now.address, store.before, store.now.bytes);
            accuse({same ? SAME_VALUE : RACE, store.now, store.mark, STORE, store.order,
                    missing_between(store.mark, store.now, store.order), nullptr});
        }
    }
    bool has_stores() const { return num_stores + num_collisions > 0; }

    // The thread has carried out a compare-and-swap of the word: what it had read before was right
    // if that has succeeded.
    void check_guesses(Cell& cell, unsigned thread) {
        set_checked(cell.load, thread);
        set_checked(cell.other_load, thread);
        List<Accusation>& mine = guesses[thread];
        for (size_t i = mine.count; i-- > 0;)
            if (mine[i].cell == &cell) mine[i] = mine[--mine.count];
    }
    // Whatever lanes have written: nobody has looked whose value has stayed, as those do that write
    // tags.
    void report_contested() {
        for (unsigned i = 0; i < num_contested; ++i)
            report_in_step(OTHER_VALUES, contested[i].now, contested[i].mark, 0);
        num_contested = 0;
    }
    void pass_barrier() {
        report_contested();
        ordering.pass_barrier();
    }
    // The block ends, or lets others run: no more compare-and-swaps follow.
    void end_part(unsigned threads) {
        report_contested();
        for (unsigned t = 0; has_guesses && t < threads; ++t) {
            for (const Accusation& race : guesses[t])
                if (!is_test(race)) accuse(race);
            guesses[t].clear();
        }
        has_guesses = false;
    }

  private:
    static const unsigned MAX_THREAD = 1024, MAX_STORES = 64, MAX_GUESSES = 8,
                          MAX_SETTERS = 1 << 20;
    static const unsigned MAX_COLLISIONS = 32;
    struct Recent {  // loads of a thread
        struct {
            uintptr_t address;
            Place place;
        } loads[4];
        unsigned char next;
    } recent[1024];
    // The word that each thread, or any of them, has read last by an atomic or volatile access.
    uintptr_t flags_read[MAX_THREAD + 1];
    // The thread of a block that has changed such a word last.
    struct Setter {
        uint64_t request;
        unsigned thread;
        Place place;
        bool is_ticket;
    };
    Map setter_of;
    List<Setter> setters;
    Map tests;          // places of loads whose threads have gone on with a compare-and-swap
    Map plain_unlocks;  // address of a lock -> where a plain store has given it back

    // What two accesses lack, and `by` what the second thread knows that it may go on.
    struct Lack {
        unsigned missing;
        const char* detail;
        Place by;
    };

    struct Store {  // that met another one, and may write the same value
        Doing now;
        Mark mark;
        Order order;
        unsigned char before[16];
    } stores[MAX_STORES];
    unsigned num_stores = 0;

    struct Collision {  // of two lanes that store to the same bytes of a word in one instruction
        Doing now;
        Mark mark;
        unsigned char bytes;
        bool has_first;  // one of them has stored
        bool differs;
        unsigned char first[4];
    };
    Collision collisions[MAX_COLLISIONS];  // of which one has not stored yet
    Collision contested[MAX_COLLISIONS];   // of different values, which nobody has read so far
    unsigned num_collisions = 0, num_contested = 0;

    struct Accusation {
        FindingKind kind;
        Doing now;
        Mark mark;
        unsigned mark_kind;
        Order order;
        Lack lack;
        const Cell* cell;
    };
    List<Accusation> guesses[MAX_THREAD];  // races but for a compare-and-swap of the thread
    bool has_guesses = false;

    void set_checked(Mark& mark, unsigned thread) {
        const bool is_plain = !(mark.flags & (IS_ATOMIC | IS_VOLATILE));
        if (!is_plain || mark.thread != thread || !ordering.is_here(mark)) return;
        mark.flags |= IS_CHECKED;
        tests.put(mark.place, 1);
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
            const FindingKind what = lost ? LOST_UPDATE : SAME_WORD;
            report_in_step(what, now, mark, lost ? now.place : 0);
            if (!lost && !(now.flags & mark.flags & IS_VOLATILE)) collide(now, mark, mask);
            return;
        }
        const Order order = ordering.order(mark, now.thread);
        if (order == ORDERED) return;
        if (both_store && !lost && num_stores < MAX_STORES) return keep(now, mark, order);
        const Accusation race = {lost ? LOST_UPDATE : RACE,         now,  mark, mark_kind, order,
                                 missing_between(mark, now, order), &cell};
        if (is_test(race)) return;
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
    // A plain load that decides whether a compare-and-swap of the word is made, beside an atomic
    // operation: if (*p == 0) atomicCAS(p, 0, 1). It has led to one, if not in this thread.
    bool is_test(const Accusation& race) {
        const bool loads = race.now.kind == LOAD;
        if ((loads ? race.mark_kind : race.now.kind) != ATOMIC) return false;
        if (!loads && race.mark_kind != LOAD) return false;
        return tests.find(loads ? race.now.place : race.mark.place) != nullptr;
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

    static void report_in_step(FindingKind what, const Doing& now, const Mark& mark, Place other) {
        bool fresh;
        FindingRow& row = findings.report(what, now.place, other, now.region, fresh);
        if (!fresh) return;
        describe(row, now);
        row.other_thread = mark.thread, row.other_block = now.block;
        row.other_access = STORE, row.other_place = mark.place;
        row.missing = SYNCWARP;
    }
    // Whether the two write different values is known when both have written.
    void collide(const Doing& now, const Mark& mark, unsigned mask) {
        if (num_collisions == MAX_COLLISIONS) return;
        for (unsigned i = 0; i < num_collisions; ++i)
            if (collisions[i].now.thread == now.thread) return;
        collisions[num_collisions++] = {now,   mark,  (unsigned char)(mask & mark.bytes),
                                        false, false, {}};
    }
    // The thread has stored: whether both have.
    static bool is_settled(Collision& c, unsigned thread) {
        if (thread != c.now.thread && thread != c.mark.thread) return false;
        bool differ = false;
        for (unsigned i = 0; i < 4; ++i) {
            if (!(c.bytes >> i & 1)) continue;
            const unsigned char value = ((unsigned char*)c.now.word)[i];
            differ |= c.has_first && value != c.first[i];
            c.first[i] = value;
        }
        c.differs |= differ;
        const bool both = c.has_first;
        c.has_first = true;
        return both;
    }

    // A thread that has stored to a contested word looks at it.
    void read_back(const Doing& now) {
        for (unsigned i = 0; i < num_contested; ++i) {
            const Collision& c = contested[i];
            if (c.now.word != now.word) continue;
            if (now.thread != c.now.thread && now.thread != c.mark.thread) continue;
            const Place place = c.now.place;
            for (unsigned k = num_contested; k-- > 0;)
                if (contested[k].now.place == place) contested[k] = contested[--num_contested];
            return;
        }
    }

    // A store of a thread to several words is kept once.
    void keep(const Doing& now, const Mark& mark, Order order) {
        for (unsigned i = 0; i < num_stores; ++i)
            if (stores[i].now.thread == now.thread) return;
        Store& store = stores[num_stores++];
        store.now = now, store.mark = mark, store.order = order;
        memcpy(store.before, (void*)now.address, now.bytes);
    }

    Lack missing_between(const Mark& mark, const Doing& now, Order order) {
        if (now.flags & mark.flags & IS_ATOMIC) return {NOTHING, "scope", 0};
        if (order == UNFENCED_LOCK) return {FENCE, "lock", 0};
        if (order == NARROW_SCOPE) return {FENCE, "scope", 0};
        if (const Map::Slot* unlock = plain_unlocks.find((uint64_t)lock_between(mark, now)))
            return {FENCE, "unlock", unlock->value};
        const bool same_block = ordering.is_here(mark);
        const bool same_warp = same_block && mark.thread / 32 == now.thread / 32;
        const char* detail = now.flags & mark.flags & IS_VOLATILE ? "volatile" : "";
        if (const Setter* setter = find_setter(mark, now)) {
            if (setter->is_ticket) detail = "ticket";
            const bool waits = setter->thread == mark.thread ||
                               !ordering.in_same_span(mark.request, setter->request);
            if (waits) return {FENCE, detail, setter->place};
            if (!same_block) return {SYNCTHREADS, "ticket", setter->place};
        }
        return {same_warp ? SYNCWARP : same_block ? SYNCTHREADS : NOTHING, detail, 0};
    }
    // The lock under which the thread is, or that the two accesses are to.
    uintptr_t lock_between(const Mark& mark, const Doing& now) const {
        const unsigned either = mark.flags | now.flags, both = mark.flags & now.flags;
        if (either & IS_ATOMIC && !(both & IS_ATOMIC)) return now.address;
        return ordering.lock_of(now.thread);
    }
    static uint64_t setter_key(uintptr_t address, unsigned block) {
        return ((uint64_t)address * 0x9e3779b97f4a7c15ull ^ (uint64_t)block << 1) | 1;
    }
    // Who of the first access's block has changed a word that the thread has read: behind that
    // access, or another thread of the block, which has not waited for it.
    const Setter* find_setter(const Mark& mark, const Doing& now) {
        const unsigned block = ordering.block_of(mark);
        const uintptr_t flags[] = {flags_read[now.thread], flags_read[MAX_THREAD]};
        for (uintptr_t flag : flags) {
            if (!flag || flag == now.address) continue;
            const Map::Slot* found = setter_of.find(setter_key(flag, block));
            if (!found) continue;
            const Setter& setter = setters[found->value];
            const bool waits = setter.thread == mark.thread ||
                               !ordering.in_same_span(mark.request, setter.request);
            if (setter.request > mark.request || !waits) return &setter;
        }
        return nullptr;
    }
    void accuse(const Accusation& race) {
        const Doing& now = race.now;
        const Mark& mark = race.mark;
        bool fresh;
        const bool by_lock = !strcmp(race.lack.detail, "unlock");
        const FindingKind kind = by_lock ? RACE : race.kind;
        FindingRow& row = findings.report(kind, now.place, mark.place, now.region, fresh);
        // If several pairs of threads race here, what the most distant ones need cures all of them.
        if (!fresh && !needs_more(race.lack.missing, row.missing)) return;
        describe(row, now);
        name_other(row, mark, mark.flags & IS_ATOMIC ? (unsigned)ATOMIC : race.mark_kind);
        row.missing = race.lack.missing, row.by = race.lack.by;
        snprintf(row.detail, sizeof row.detail, "%s", race.lack.detail);
    }

    static bool needs_more(unsigned missing, unsigned known) {
        if (known == SYNCWARP) return missing == SYNCTHREADS || missing == NOTHING;
        return known == SYNCTHREADS && missing == NOTHING;
    }

    void name_other(FindingRow& row, const Mark& mark, unsigned kind) {
        row.other_thread = mark.thread, row.other_block = ordering.block_of(mark);
        row.other_access = kind;
        row.other_place = mark.place;
    }
};

}  // namespace cudalab
