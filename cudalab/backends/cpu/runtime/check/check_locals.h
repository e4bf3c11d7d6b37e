// Check mode: the local variables of kernels that lie between zones (kernels/locals.h), and which
// of their bytes have a value. Other memory of a thread's stack is not known.
#pragma once

#include "check_unset.h"

namespace cudalab {

// An object, such as a struct, counts as several accesses, as wide as its address allows: it need
// not lie at a multiple of its size. A scalar or a vector has to.
// WHOLE: an object that the program copies as its type, whose alignment is not known here; PASSED:
// perhaps of a larger one.
enum Shape { SCALAR, OBJECT, WHOLE, PASSED };

// A variable without zones.
struct Unzoned {
    const char *low, *name;
    size_t bytes;
};
const unsigned MOST_UNZONED = 16;  // of a thread, that are remembered

// A thread has read an object of which some has no value. Nobody knows whether that is used, unless
// the next store puts a copy into a variable that is known.
struct PartRead {
    unsigned site;
    size_t bytes;
};
const unsigned MOST_PARTS = 4;
struct LastStore {
    char* to;  // null: to no variable of the thread
    size_t bytes;
    unsigned site;
};

static struct {
    unsigned char* states;  // of all stacks
    bool any;               // in this launch
    // What a thread reads next, though it may have no value.
    const volatile void* lent[MAX_THREADS];
    PartRead parts[MAX_THREADS][MOST_PARTS];
    unsigned char num_parts[MAX_THREADS];
    LastStore stored[MAX_THREADS];  // without a load of an object since
    Unzoned unzoned[MAX_THREADS][MOST_UNZONED];
    unsigned char next_unzoned[MAX_THREADS];
} locals;

static inline unsigned char* states_of(const volatile void* p) {
    return locals.states + ((const char*)p - run.stacks);
}
static inline bool may_be_unset(const volatile void* p) {
    const unsigned char state = locals.any ? *states_of(p) : HAS_VALUE;
    return state > BEHIND && state != HAS_VALUE;
}
static void begin_locals() {
    locals.states = (unsigned char*)new_pages(MAX_THREADS * FIBER_STACK);
}
// Threads that have stopped within a function have left theirs.
static void forget_locals() {
    madvise(locals.states, MAX_THREADS * FIBER_STACK, MADV_DONTNEED);
}

static void local_begins(char* zone, size_t zone_bytes, size_t bytes, LocalState begins,
                         const char* name) {
    locals.any = true;
    const LocalNote known = {name, zone_bytes, bytes};
    memcpy(zone, &known, sizeof known);
    unsigned char* state = states_of(zone);
    memset(state, BEFORE, zone_bytes);
    memset(state + zone_bytes, begins == FILLED ? COPIED : begins, bytes);
    memset(state + zone_bytes + bytes, BEHIND, LOCAL_ZONE);
    if (begins > CONSTRUCTED && begins != HAS_VALUE) fill_unset(zone + zone_bytes, bytes);
}
static void stores_in_local(unsigned thread, char* p, size_t bytes, unsigned site);
static void local_begins(char* variable, size_t bytes, LocalState begins, const char* name) {
    const unsigned thread = current.thread;
    locals.any = true;
    memset(states_of(variable), begins, bytes);
    if (begins == COPIED)
        stores_in_local(thread, variable, bytes, 0);
    else if (begins != HAS_VALUE)
        fill_unset(variable, bytes);
    locals.unzoned[thread][locals.next_unzoned[thread]++ % MOST_UNZONED] = {variable, name, bytes};
}
// The start of the zone before the variable to which a byte belongs; of the variable, if it has
// none.
static char* zone_of(char* p) {
    const unsigned char* state = states_of(p);
    const unsigned char* const low = states_of(stack_low(current.thread));
    while (state > low && *state == BEHIND) --state;
    while (state > low && state[-1] > BEHIND) --state;
    while (state > low && state[-1] == BEFORE) --state;
    return run.stacks + (state - locals.states);
}
// What is known of the variable to which a byte belongs, and where it begins.
static LocalNote variable_of(char* p, char*& low) {
    low = zone_of(p);
    LocalNote known = {"", 0, 0};
    if (*states_of(low) == BEFORE) {
        memcpy(&known, low, sizeof known);
        low += known.zone_bytes;
        return known;
    }
    for (const Unzoned& each : locals.unzoned[current.thread])
        if (each.low <= p && p < each.low + each.bytes) {
            low = (char*)each.low;
            return {each.name, 0, each.bytes};
        }
    return known;
}

static unsigned site_of_frame(void** frame, unsigned thread, unsigned& depth);

// Whether a load is part of the assignment that the last store is part of. g++ tells of the store
// before it tells of the load.
static bool is_of_copy(const LastStore& store, unsigned site, size_t bytes) {
    const Sites& sites = run.module->sites;
    return store.bytes == bytes && sites.place(store.site) == sites.place(site);
}
// Nobody knows what the accesses to the thread's own memory mean.
static void list_local(unsigned site) {
    run.module->sites.looks[site] |= OWN | LOCAL_MEMORY | NOT_KNOWN_LOCAL;
}
// An access outside of a variable, or a read of what has no value, which matters if its thread
// stores something behind it: those behind the end of the data often compute with anything.
static __attribute__((noinline)) void note_local(FindingKind kind, unsigned site, char* p,
                                                 size_t bytes, unsigned access, bool of_object,
                                                 void** frame) {
    const unsigned flags = run.module->sites[site].flags, thread = current.thread;
    if (!run.detects || !site) return;
    unsigned depth;
    if (flags & IS_HEADER) site = frame ? site_of_frame(frame, thread, depth) : 0;
    if (!site) return;
    if (flags & IS_FOREIGN && kind == UNINITIALISED) return list_local(site);
    const Place place = run.module->sites.place(site);
    UnsetRead read = {place, p, (unsigned)bytes, access, 0, false, {}, {}, nullptr};
    read.variable = variable_of(p, read.low);
    const LastStore last = locals.stored[thread];
    const bool stored_elsewhere = of_object && !last.to && is_of_copy(last, site, bytes);
    if (kind == OUT_OF_BOUNDS || stored_elsewhere) return report_unset(kind, thread, read);
    read.copied = copied_to(thread, p, bytes);
    reads_unset(thread, read);
}

// Of what has been read in part nobody knows whether that is used.
static __attribute__((noinline)) void list_parts(unsigned thread) {
    for (unsigned i = 0; i < locals.num_parts[thread]; ++i)
        list_local(locals.parts[thread][i].site);
    locals.num_parts[thread] = 0;
}
// A thread stores something that is no variable of its own.
static inline void stores_elsewhere(unsigned thread, size_t bytes, unsigned site) {
    locals.stored[thread] = {nullptr, bytes, site};
    if (locals.num_parts[thread]) list_parts(thread);
}
// A thread has stored something in a variable of its own: perhaps the copy of what it has just
// read.
static void stores_in_local(unsigned thread, char* p, size_t bytes, unsigned site) {
    locals.stored[thread] = {p, bytes, site};
    if (!locals.num_parts[thread]) return;
    PartRead* const parts = locals.parts[thread];
    if (parts[0].bytes != bytes) return list_parts(thread);
    memset(states_of(p), COPIED, bytes);
    memmove(parts, parts + 1, --locals.num_parts[thread] * sizeof *parts);
}
// A thread reads an object that has no value in part.
static void reads_in_part(unsigned site, size_t bytes, Shape shape) {
    const unsigned thread = current.thread;
    const LastStore last = locals.stored[thread];
    if (locals.num_parts[thread] == MOST_PARTS) list_parts(thread);
    locals.parts[thread][locals.num_parts[thread]++] = {site, bytes};
    if (shape == PASSED || !is_of_copy(last, site, bytes)) return;
    if (!last.to) return list_parts(thread);
    memset(states_of(last.to), COPIED, bytes);
    --locals.num_parts[thread];
    locals.stored[thread].bytes = 0;
}

// The threads end.
static void end_locals() {
    for (unsigned t = 0; locals.any && t < run.threads; ++t) list_parts(t);
    end_unset();
}

// Whether no field of the object around a byte has a value.
static bool has_no_field(char* p) {
    char* low;
    const LocalNote variable = variable_of(p, low);
    const unsigned char* const state = states_of(low);
    for (size_t i = 0; i < variable.bytes; ++i)
        if (state[i] == HAS_VALUE || (state[i] < NO_VALUE && !is_unset(low + i, 1))) return false;
    return true;
}

// clang reads the bytes around a field of bits before it writes them: nobody knows whether a read
// with the same line that came last was such a one.
#ifdef __clang__
static const bool READS_BEFORE_BITS = true;
#else
static const bool READS_BEFORE_BITS = false;
#endif
static bool may_have_read_bits(unsigned site, const char* p, size_t bytes) {
    unsigned char& count = pending.count[current.thread];
    if (!READS_BEFORE_BITS || !count || *states_of(p) != NO_FIELD) return false;
    const UnsetRead& last = pending.reads[current.thread][count - 1];
    const bool is_same = last.place == run.module->sites.place(site);
    if (!is_same || last.address != p || last.bytes != bytes) return false;
    --count;
    return true;
}

// Bytes of the thread's own memory get a value, perhaps by a copy.
static void sets_local(char* p, size_t bytes, unsigned site) {
    unsigned char* state = states_of(p);
    bool is_known = true;
    for (size_t i = 0; i < bytes; ++i) {
        is_known &= state[i] != NOT_KNOWN;
        if (state[i] != NOT_KNOWN) state[i] = bytes > 4 ? COPIED : HAS_VALUE;
    }
    if (is_known && stores(current.thread, site, p, bytes, true)) memset(state, HANDED_ON, bytes);
    if (is_known)
        stores_in_local(current.thread, p, bytes, site);
    else
        stores_elsewhere(current.thread, bytes, site);
}
// How many of the bytes of what may be a copy have no value; the others are known to have one.
static size_t unset_of_copy(char* p, size_t bytes) {
    unsigned char* state = states_of(p);
    size_t unset = 0;
    for (size_t i = 0, size; i < bytes; i += size) {
        const size_t word = 4 - (uintptr_t)(p + i) % 4;
        size = word < bytes - i ? word : bytes - i;
        const bool has_none = is_unset(p + i, size);
        for (size_t k = i; k < i + size; ++k) {
            const bool is_copy = state[k] == COPIED || state[k] == HANDED_ON;
            unset += has_none && (is_copy || state[k] == CONSTRUCTED);
            if (is_copy && !has_none) state[k] = HAS_VALUE;
        }
    }
    return unset;
}

// Takes an access to the thread's own memory, perhaps by a header that the function of `frame` has
// called; whether all of it is known.
static __attribute__((noinline)) bool takes_local(unsigned site, char* p, size_t bytes,
                                                  unsigned kind, Shape shape, void** frame) {
    unsigned char* state = states_of(p);
    // Some compilers set a variable to zero together with its zones, before it begins.
    if (*state == BEFORE && kind == STORE && bytes > 2 * LOCAL_ZONE && state[-1] != BEFORE)
        return true;
    size_t unset = 0, unknown = kind == STORE && may_have_read_bits(site, p, bytes), copied = 0;
    bool by_fields = shape != SCALAR;
    for (size_t i = 0; i < bytes; ++i) {
        if (state[i] == BEFORE || state[i] == BEHIND) {
            if (kind != LOAD) sets_local(p, i, site);
            note_local(OUT_OF_BOUNDS, site, p, bytes, kind, false, frame);
            return true;
        }
        const bool is_copy = COPIED <= state[i] && state[i] <= HANDED_ON;
        by_fields |= state[i] == NO_FIELD || (is_copy && state[i] != HANDED_ON);
        unknown += state[i] == NOT_KNOWN || (state[i] == CONSTRUCTED && kind != STORE);
        unset += state[i] == NO_VALUE || state[i] == NO_FIELD;
        copied += is_copy;
    }
    if (kind == STORE) return sets_local(p, bytes, site), !unknown;
    if (copied) unset += unset_of_copy(p, bytes);
    const bool is_lent = locals.lent[current.thread] == p;
    if (is_lent) locals.lent[current.thread] = nullptr;
    if (kind != LOAD)
        sets_local(p, bytes, site);
    else if (unset == 0)
        locals.stored[current.thread].bytes = 0;
    if (!unset || is_lent) return !unknown;
    if (copied && bytes < 4) return false;  // or chance
    if (by_fields && (unset < bytes || (shape == PASSED && !has_no_field(p)))) {
        reads_in_part(site, bytes, shape);
        return !unknown;
    }
    note_local(UNINITIALISED, site, p, bytes, kind, by_fields, frame);
    return !unknown;
}
static inline bool knows_local(unsigned site, const volatile void* p, size_t bytes, unsigned kind,
                               Shape shape = SCALAR, void** frame = nullptr) {
    if (!locals.any) return false;
    const unsigned char* state = states_of(p);
    const unsigned thread = current.thread;
    if (bytes == 4 && !locals.num_parts[thread] && !awaits_store(thread)) {
        unsigned four;
        memcpy(&four, state, sizeof four);
        if (four == HAS_VALUE * 0x01010101u || !four) {
            if (kind == STORE)
                locals.stored[thread] = {four ? (char*)p : nullptr, bytes, site};
            else
                locals.stored[thread].bytes = 0;
            return four;
        }
    }
    return takes_local(site, (char*)p, bytes, kind, shape, frame);
}

}  // namespace cudalab
