// Check mode: which accesses are ordered, by the rules of the PTX memory model.
//
// Two accesses of one block are ordered by a block barrier between them,
// or by a warp barrier that both lanes take part in. Everything else, other blocks too, needs a
// release and an acquire: an atomic or volatile store by a thread that knows the first access to be
// published, and an atomic or volatile load of that word before the second access. A fence
// publishes what its thread has done and seen, to the block or to the whole grid. Behind a barrier
// all threads know what each has published before it. An atomic operation of block scope releases
// to its own block only, and acquires from it only.
#pragma once

#include "check_count.h"

namespace cudalab {

enum Scope : unsigned { TO_BLOCK, TO_GRID, SCOPES };
enum Order : unsigned {
    UNORDERED,
    NARROW_SCOPE,   // a fence or an atomic operation orders them for its own block only
    UNFENCED_LOCK,  // no fence keeps the first access behind the lock that its thread had taken
    ORDERED,
};

// Of the lanes of a warp: the clocks up to which their accesses are known, or published.
struct Clocks {
    unsigned of[32];
};

// What the fences of a thread have published.
struct Published {
    uint64_t before[SCOPES];    // everything in the block up to these requests
    unsigned own[SCOPES];       // its own accesses up to these clocks
    unsigned acquired[SCOPES];  // how many acquires of the block: their releases pass on
    uint64_t at;                // the request behind the last fence
};
struct Fenced {  // of a thread, before a barrier
    unsigned thread, clock[SCOPES];
};
struct Lock {
    uintptr_t address;
    uint64_t request;        // with which it was taken
    unsigned fence[SCOPES];  // the clock at the first fence behind it
};

// An atomic or volatile store, and what it publishes to those who read the word.
struct Release {
    unsigned block, thread;
    bool to_grid;
    unsigned previous;  // number of the block's release of this word before, from 1; 0: none
    size_t first_fenced, end_fenced;
    Lock lock;  // that it gives back
    Published published;
    Clocks warp[SCOPES];
};
struct Acquire {
    unsigned variable, releases;  // as many as there were
    unsigned thread, clock;
    uint64_t request;
    bool from_grid;
};

struct Ordering {
    uint64_t request = 1;  // the number of the last one
    unsigned clock[1024];  // of each thread, counts its warp barriers and fences

    void begin_launch() {
        launch_start = request;
        for (auto& variable : variables) free(variable.releases.items);
        for (auto& list : acquires) free(list.items);
        variables.clear(), variable_of.clear(), last_release.clear(), all_fenced.clear();
        acquires.clear(), acquires_of.clear(), spans.clear();
    }
    void begin_block(unsigned index, unsigned threads) {
        block = index, num_threads = threads;
        begin_span();
        block_start = request;
        memset((void*)published, 0, threads * sizeof *published);
        memset((void*)locks, 0, threads * sizeof *locks);
        for (unsigned t = 0; t < threads; ++t) clock[t] = clock[t] ? clock[t] : 1;
        first_fenced = all_fenced.count;
        has_fences = fenced_now = resumed = false;
    }
    // The block goes on, with all that visit_block visits as it was then.
    void resume_block(unsigned index) {
        block = index, resumed = true;
        spans.add({request, block});
    }
    template <class Visit>
    void visit_block(Visit visit, unsigned threads) {
        visit(&block_start, sizeof block_start);
        visit(&barrier, sizeof barrier);
        visit(&has_fences, sizeof has_fences);
        visit(&fenced_now, sizeof fenced_now);
        visit(&first_fenced, sizeof first_fenced);
        visit(clock, threads * sizeof *clock);
        visit((void*)seen, threads * sizeof *seen);
        visit((void*)published, threads * sizeof *published);
        for (auto& known : published_to) visit((void*)known, threads * sizeof *known);
        visit((void*)locks, threads * sizeof *locks);
    }

    // Whether an access was made in this launch, in this block, before its last barrier.
    bool is_known(const Mark& mark) const { return mark.request > launch_start; }
    bool is_here(const Mark& mark) {
        return mark.request > block_start && (!resumed || block_of(mark) == block);
    }
    // Whether an access is one that nothing meets: none at all, of another launch, or of this block
    // before its last barrier.
    bool is_past(const Mark& mark) const {
        return mark.request <= launch_start ||
               (mark.request <= barrier && mark.request > block_start && !resumed);
    }
    bool precedes_barrier(const Mark& mark) const { return mark.request <= barrier; }
    unsigned block_of(const Mark& mark) { return span_of(mark.request).block; }
    // Whether no barrier lies between two requests of a block.
    bool in_same_span(uint64_t one, uint64_t other) { return &span_of(one) == &span_of(other); }

    // All threads of the block have met at a barrier.
    void pass_barrier() {
        for (unsigned t = 0; fenced_now && t < num_threads; ++t)
            if (published[t].at > barrier)
                all_fenced.add({t, {published[t].own[TO_BLOCK], published[t].own[TO_GRID]}});
        fenced_now = false;
        begin_span();
    }

    // All lanes of `group` are at a __syncwarp, which orders them after each other's accesses.
    void sync_warp(unsigned warp, unsigned group) {
        const unsigned base = warp * 32;
        meet(seen + base, group, clock + base);
        for (unsigned scope = 0; has_fences && scope < SCOPES; ++scope)
            meet(published_to[scope] + base, group, nullptr);
        for (unsigned left = group; left; left &= left - 1) ++clock[base + __builtin_ctz(left)];
    }

    void fence(unsigned thread, Scope scope) {
        Published& mine = published[thread];
        Map::Slot* slot = acquires_of.find(block + 1ull);
        for (unsigned s = TO_BLOCK; s <= scope; ++s) {
            mine.before[s] = barrier;
            published_to[s][thread] = seen[thread];
            published_to[s][thread].of[thread & 31] = mine.own[s] = clock[thread];
            mine.acquired[s] = slot ? (unsigned)acquires[slot->value].count : 0;
            if (!locks[thread].fence[s]) locks[thread].fence[s] = clock[thread];
        }
        ++clock[thread];
        mine.at = request + 1;
        has_fences = fenced_now = true;
    }

    // A compare-and-swap has taken the lock at `address`.
    void take_lock(uintptr_t address, unsigned thread) {
        locks[thread] = {address, request, {0, 0}};
    }

    // The lock that a thread has taken; 0: none.
    uintptr_t lock_of(unsigned thread) const { return locks[thread].address; }
    // The thread stores to a word. Whether that was the lock, which it no longer has.
    bool drop_lock(uintptr_t address, unsigned thread) {
        const bool had = locks[thread].address == address;
        if (had) locks[thread] = {};
        return had;
    }

    // Records that `thread` stores to (or updates) a word that others may wait for.
    void release(uintptr_t address, unsigned thread, bool to_grid) {
        if (!has_fences) return;
        const unsigned index = variable_of.put((uint64_t)address, (unsigned)variables.count);
        if (index == variables.count) variables.add({{}, true});
        Variable& variable = variables[index];
        unsigned& last = last_release.put(key(index, block), 0);
        Release r = {};
        r.block = block, r.thread = thread, r.to_grid = to_grid, r.previous = last;
        r.first_fenced = first_fenced, r.end_fenced = all_fenced.count;
        r.published = published[thread];
        for (unsigned s = 0; s < SCOPES; ++s) r.warp[s] = published_to[s][thread];
        if (locks[thread].address == address) r.lock = locks[thread], locks[thread] = {};
        variable.releases.add(r);
        variable.always_to_grid &= to_grid;
        last = (unsigned)variable.releases.count;
    }

    void acquire(uintptr_t address, unsigned thread, bool from_grid) {
        Map::Slot* found = variable_of.find((uint64_t)address);
        if (!found) return;
        const unsigned releases = (unsigned)variables[found->value].releases.count;
        const unsigned index = acquires_of.put(block + 1ull, (unsigned)acquires.count);
        if (index == acquires.count) acquires.add({});
        List<Acquire>& mine = acquires[index];
        if (mine.count) {  // a thread that polls
            const Acquire& last = mine[mine.count - 1];
            if (last.variable == found->value && last.thread == thread && last.request > barrier &&
                last.releases == releases)
                return;
        }
        mine.add({found->value, releases, thread, clock[thread], request, from_grid});
    }

    // Whether `thread` is ordered after the access `mark`.
    Order order(const Mark& mark, unsigned thread) {
        if (is_here(mark) && is_before(mark.thread, mark.request, mark.clock, thread))
            return ORDERED;
        Map::Slot* slot = acquires_of.find(block + 1ull);
        if (!slot) return UNORDERED;
        ways.clear(), explored.clear();
        for (const Acquire& a : acquires[slot->value])
            if (is_before(a.thread, a.request, a.clock, thread)) ways.add({a, block});
        return search(mark, block_of(mark));
    }

  private:
    static const unsigned MAX_STEPS = 1u << 17;
    struct Variable {
        List<Release> releases;
        bool always_to_grid;
    };
    struct Way {  // an acquire of a block
        Acquire acquire;
        unsigned block;
    };

    struct Span {        // of a block, between two barriers
        uint64_t start;  // its requests are greater
        unsigned block;
    };

    uint64_t launch_start = 0, block_start = 0, barrier = 0;  // up to these requests
    List<Span> spans;
    unsigned block = 0, num_threads = 0;
    bool has_fences = false, fenced_now = false;  // in this block; since its last barrier
    bool resumed = false;                         // other blocks have run in between
    Clocks seen[1024];                            // of each thread: what it is ordered after
    Published published[1024];
    Clocks published_to[SCOPES][1024];  // of each thread, the clocks of its warp
    Lock locks[1024];
    List<Fenced> all_fenced;  // of all blocks
    size_t first_fenced = 0;
    Map variable_of;
    List<Variable> variables;
    Map last_release;  // of a word and a block: number from 1
    Map acquires_of;   // block -> its list
    List<List<Acquire>> acquires;
    List<Way> ways;
    Map explored;

    void begin_span() {
        barrier = request;
        if (spans.count && spans[spans.count - 1].start == request)
            spans[spans.count - 1].block = block;
        else
            spans.add({request, block});
    }
    const Span& span_of(uint64_t of_request) {
        size_t first = 0, behind = spans.count;
        while (behind - first > 1) {
            const size_t middle = (first + behind) / 2;
            (spans[middle].start < of_request ? first : behind) = middle;
        }
        return spans[first];
    }

    static uint64_t key(unsigned variable, unsigned of_block) {
        return (uint64_t)variable << 32 | (of_block + 1ull);
    }

    bool is_before(unsigned first, uint64_t at, unsigned first_clock, unsigned thread) const {
        if (first == thread || at <= barrier) return true;
        return first / 32 == thread / 32 && seen[thread].of[first & 31] >= first_clock;
    }

    // Each lane of `group` learns what any of them knows; `clocks` are their own.
    static void meet(Clocks* lanes, unsigned group, const unsigned* clocks) {
        Clocks newest = {};
        for (unsigned left = group; left; left &= left - 1) {
            const unsigned lane = __builtin_ctz(left);
            const Clocks& mine = lanes[lane];
            for (unsigned i = 0; i < 32; ++i)
                newest.of[i] = mine.of[i] > newest.of[i] ? mine.of[i] : newest.of[i];
            if (clocks && clocks[lane] > newest.of[lane]) newest.of[lane] = clocks[lane];
        }
        for (unsigned left = group; left; left &= left - 1) lanes[__builtin_ctz(left)] = newest;
    }

    // Whether a release says, to those of that scope, that the access has been made.
    bool covers(const Release& r, const Mark& mark, Scope scope) const {
        if (mark.request <= r.published.before[scope]) return true;
        const bool same_warp = r.thread / 32 == mark.thread / 32;
        if (same_warp && r.warp[scope].of[mark.thread & 31] >= mark.clock) return true;
        for (size_t i = r.end_fenced; i-- > r.first_fenced;)
            if (all_fenced.items[i].thread == mark.thread)
                return all_fenced.items[i].clock[scope] >= mark.clock;
        return false;
    }
    bool precedes_lock_fence(const Release& r, const Mark& mark, Scope scope) {
        const Lock& lock = r.lock;
        return lock.address && r.thread == mark.thread && mark.request > lock.request &&
               in_same_span(mark.request, lock.request) &&
               (!lock.fence[scope] || mark.clock <= lock.fence[scope]);
    }

    // The order that the releases of the mark's own block give to an acquire.
    Order direct(const Way& way, const Mark& mark, unsigned of_block) {
        Map::Slot* last = last_release.find(key(way.acquire.variable, of_block));
        Order best = UNORDERED;
        const List<Release>& releases = variables[way.acquire.variable].releases;
        for (unsigned i = last ? last->value : 0; i > 0; i = releases.items[i - 1].previous) {
            const Release& r = releases.items[i - 1];
            if (i > way.acquire.releases) continue;
            const bool same = r.block == way.block;
            const bool reaches = same || (r.to_grid && way.acquire.from_grid);
            const Scope scope = same ? TO_BLOCK : TO_GRID;
            Order found = UNORDERED;
            if (reaches && covers(r, mark, scope))
                found = precedes_lock_fence(r, mark, scope) ? UNFENCED_LOCK : ORDERED;
            else if (covers(r, mark, TO_BLOCK))
                found = NARROW_SCOPE;
            if (found > best) best = found;
            if (best == ORDERED) return best;
        }
        return best;
    }

    // Follows `ways` back, from acquires to releases and what these had acquired before.
    Order search(const Mark& mark, unsigned of_block) {
        Order best = UNORDERED;
        for (unsigned steps = 0; ways.count > 0; ++steps) {
            if (steps > MAX_STEPS) return ORDERED;  // rather than accuse without proof
            const Way way = ways[--ways.count];
            const Order found = direct(way, mark, of_block);
            if (found > best) best = found;
            if (best == ORDERED) return best;
            const Variable& variable = variables[way.acquire.variable];
            const unsigned reader = variable.always_to_grid ? ~1u : way.block;
            unsigned& done = explored.put(key(way.acquire.variable, reader), 0);
            const unsigned from = done;
            if (way.acquire.releases > done) done = way.acquire.releases;
            for (unsigned i = from; i < way.acquire.releases; ++i) {
                const Release& r = variable.releases.items[i];
                const bool same = r.block == way.block;
                if (same || (r.to_grid && way.acquire.from_grid))
                    add_ways(r, same ? TO_BLOCK : TO_GRID);
            }
        }
        return best;
    }
    void add_ways(const Release& r, Scope scope) {
        Map::Slot* slot = acquires_of.find(r.block + 1ull);
        for (unsigned k = 0; slot && k < r.published.acquired[scope]; ++k)
            ways.add({acquires[slot->value][k], r.block});
    }
};

}  // namespace cudalab
