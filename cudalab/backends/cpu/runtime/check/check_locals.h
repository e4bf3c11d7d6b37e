// Check mode: the local variables of kernels that lie between zones (kernels/locals.h), and which
// of their bytes have a value. Other memory of a thread's stack is not known.
#pragma once

#include "check_state.h"

namespace cudalab {

// An object, such as a struct, counts as several accesses, as wide as its address allows: it need
// not lie at a multiple of its size. A scalar or a vector has to.
// WHOLE: an object that the program copies as its type, whose alignment is not known here; PASSED:
// perhaps of a larger one.
enum Shape { SCALAR, OBJECT, WHOLE, PASSED };

// What a zone before a variable holds.
struct LocalName {
    const char* name;
    size_t zone_bytes, bytes;
};

// A thread has read what has no value.
struct UnsetRead {
    unsigned site;
    char* address;
    unsigned bytes, access;
    LocalName variable;
    char* low;
};
const unsigned MOST_UNSET = 4;  // of a thread, between its stores

static struct {
    unsigned char* states;  // of all stacks
    bool any;               // since they were cleared
    UnsetRead unset[MAX_THREADS][MOST_UNSET];
    unsigned char num_unset[MAX_THREADS];
    // What a thread reads next, though it may have no value.
    const volatile void* lent[MAX_THREADS];
} locals;

static void begin_locals() {
    locals.states = (unsigned char*)new_pages(MAX_THREADS * FIBER_STACK);
}
static inline unsigned char* states_of(const volatile void* p) {
    return locals.states + ((const char*)p - run.stacks);
}
static void forget_locals() {
    if (locals.any) madvise(locals.states, MAX_THREADS * FIBER_STACK, MADV_DONTNEED);
    locals.any = false;
}

static void local_begins(char* zone, size_t zone_bytes, size_t bytes, LocalState begins,
                         const char* name) {
    locals.any = true;
    const LocalName known = {name, zone_bytes, bytes};
    memcpy(zone, &known, sizeof known);
    unsigned char* state = states_of(zone);
    memset(state, BEFORE, zone_bytes);
    memset(state + zone_bytes, begins, bytes);
    memset(state + zone_bytes + bytes, BEHIND, LOCAL_ZONE);
    if (begins == NO_FIELD) memset(zone + zone_bytes, 1, bytes);
}
// What has been set to zero in an object that has just begun is no part of a field.
static void end_padding(const char* object, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i)
        if (!object[i]) states_of(object)[i] = HAS_VALUE;
}

// The start of the zone before the variable to which a byte belongs.
static char* zone_of(char* p) {
    const unsigned char* state = states_of(p);
    const unsigned char* const low = states_of(stack_low(current.thread));
    while (state > low && *state == BEHIND) --state;
    while (state > low && *state > BEHIND) --state;
    while (state > low && state[-1] == BEFORE) --state;
    return run.stacks + (state - locals.states);
}

static unsigned site_of_frame(void** frame, unsigned thread, unsigned& depth);

static void report_local(FindingKind kind, unsigned thread, const UnsetRead& read) {
    bool fresh;
    const Place place = run.module->sites.place(read.site);
    FindingRow& row = findings.report(kind, place, 0, LOCAL_REGION, fresh);
    if (!fresh) return;
    row.thread = thread, row.block = run.block;
    row.access = read.access, row.space = LOCAL, row.bytes = read.bytes;
    row.has_index = read.variable.bytes == read.bytes ? 2 : 1;
    row.offset = read.address - read.low;
    const int64_t end = row.offset + read.bytes - (int64_t)read.variable.bytes;
    row.beyond = row.offset < 0 ? row.offset : end;
    snprintf(row.detail, sizeof row.detail, "%s", read.variable.name);
}

// An access outside of a variable, or a read of what has no value, which matters if its thread
// stores something behind it: those behind the end of the data often compute with anything.
static __attribute__((noinline)) void note_local(FindingKind kind, unsigned site, char* p,
                                                 size_t bytes, unsigned access, void** frame) {
    const unsigned flags = run.module->sites[site].flags, thread = current.thread;
    if (!run.detects || !site || (flags & IS_FOREIGN && kind == UNINITIALISED)) return;
    unsigned depth;
    if (flags & IS_HEADER) site = frame ? site_of_frame(frame, thread, depth) : 0;
    if (!site) return;
    UnsetRead read = {site, p, (unsigned)bytes, access, {}, nullptr};
    char* const zone = zone_of(p);
    memcpy(&read.variable, zone, sizeof read.variable);
    read.low = zone + read.variable.zone_bytes;
    unsigned char& count = locals.num_unset[thread];
    if (kind == OUT_OF_BOUNDS)
        report_local(kind, thread, read);
    else if (count < MOST_UNSET)
        locals.unset[thread][count++] = read;
}

static inline bool is_shared(const char* p) {
    return (size_t)(p - run.dynamic_shared) < DYNAMIC_SHARED ||
           (size_t)(p - run.tls) < run.module->tls_bytes;
}

// The thread stores something at a line: in shared memory only what it reads there matters.
static __attribute__((noinline)) void use_unset(unsigned thread, unsigned site, const char* to) {
    const bool to_shared = is_shared(to);
    const Sites& sites = run.module->sites;
    unsigned char& count = locals.num_unset[thread];
    unsigned kept = 0;
    for (unsigned i = 0; i < count; ++i) {
        const UnsetRead read = locals.unset[thread][i];
        if (to_shared && sites.place(read.site) != sites.place(site))
            locals.unset[thread][kept++] = read;
        else
            report_local(UNINITIALISED, thread, read);
    }
    count = (unsigned char)kept;
}
// The threads end.
static void end_unset() {
    for (unsigned t = 0; locals.any && t < run.threads; ++t) {
        for (unsigned i = 0; i < locals.num_unset[t]; ++i) {
            const UnsetRead& read = locals.unset[t][i];
            const Place place = run.module->sites.place(read.site);
            if (!findings.find(UNINITIALISED, place, 0, LOCAL_REGION))
                report_local(UNUSED_VALUE, t, read);
        }
        locals.num_unset[t] = 0;
    }
}

// Whether no field of the object around a byte has a value.
static bool has_no_field(char* p) {
    LocalName variable;
    char* const zone = zone_of(p);
    memcpy(&variable, zone, sizeof variable);
    return !memchr(states_of(zone + variable.zone_bytes), HAS_VALUE, variable.bytes);
}

// clang reads the bytes around a field of bits before it writes them: nobody knows whether a read
// with the same line that came last was such a one.
#ifdef __clang__
static const bool READS_BEFORE_BITS = true;
#else
static const bool READS_BEFORE_BITS = false;
#endif
static bool may_have_read_bits(unsigned site, const char* p, size_t bytes) {
    const Sites& sites = run.module->sites;
    unsigned char& count = locals.num_unset[current.thread];
    if (!READS_BEFORE_BITS || !count || *states_of(p) != NO_FIELD) return false;
    const UnsetRead& last = locals.unset[current.thread][count - 1];
    const bool is_same = sites.place(last.site) == sites.place(site);
    if (!is_same || last.address != p || last.bytes != bytes) return false;
    --count;
    return true;
}

// Takes an access to the thread's own memory, perhaps by a header that the function of `frame` has
// called; whether all of it is known.
static __attribute__((noinline)) bool takes_local(unsigned site, char* p, size_t bytes,
                                                  unsigned kind, Shape shape, void** frame) {
    unsigned char* state = states_of(p);
    // Some compilers set a variable to zero together with its zones, before it begins.
    if (*state == BEFORE && kind == STORE && bytes > 2 * LOCAL_ZONE && state[-1] != BEFORE)
        return true;
    size_t unset = 0, unknown = kind == STORE && may_have_read_bits(site, p, bytes);
    bool by_fields = shape != SCALAR;
    for (size_t i = 0; i < bytes; ++i) {
        if (state[i] == BEFORE || state[i] == BEHIND) {
            note_local(OUT_OF_BOUNDS, site, p, bytes, kind, frame);
            return true;
        }
        by_fields |= state[i] == NO_FIELD;
        unknown += state[i] == NOT_KNOWN || (state[i] == CONSTRUCTED && kind != STORE);
        unset += state[i] == NO_VALUE || state[i] == NO_FIELD;
        if (state[i] != NOT_KNOWN && kind != LOAD) state[i] = HAS_VALUE;
    }
    const bool is_lent = locals.lent[current.thread] == p;
    if (is_lent) locals.lent[current.thread] = nullptr;
    if (!unset || kind == STORE || is_lent) return !unknown;
    // Nobody knows whether what is copied without a value is used.
    if (by_fields && (unset < bytes || (shape == PASSED && !has_no_field(p)))) return false;
    note_local(UNINITIALISED, site, p, bytes, kind, frame);
    return !unknown;
}
static inline bool knows_local(unsigned site, const volatile void* p, size_t bytes, unsigned kind,
                               Shape shape = SCALAR, void** frame = nullptr) {
    if (!locals.any) return false;
    const unsigned char* state = states_of(p);
    if (bytes == 4) {
        unsigned four;
        memcpy(&four, state, sizeof four);
        if (four == HAS_VALUE * 0x01010101u) return true;
        if (!four) return false;
    }
    return takes_local(site, (char*)p, bytes, kind, shape, frame);
}

}  // namespace cudalab
