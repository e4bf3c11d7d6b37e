// Check mode: the local variables of kernels that lie between zones (kernels/locals.h), and which
// of their bytes have a value. Other memory of a thread's stack is not known.
#pragma once

#include "check_state.h"

namespace cudalab {

// Of a byte of a stack.
enum LocalState : unsigned char { NOT_KNOWN, BEFORE, BEHIND, NO_VALUE, HAS_VALUE };

// What a zone before a variable holds.
struct LocalName {
    const char* name;
    size_t zone_bytes, bytes;
};

static struct {
    unsigned char* states;  // of all stacks
    bool any;               // since they were cleared
    const volatile void*
        lent[MAX_THREADS];  // what a thread reads next, though it may have no value
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

static void local_begins(char* zone, size_t zone_bytes, size_t bytes, bool has_value,
                         const char* name) {
    locals.any = true;
    const LocalName known = {name, zone_bytes, bytes};
    memcpy(zone, &known, sizeof known);
    unsigned char* state = states_of(zone);
    memset(state, BEFORE, zone_bytes);
    memset(state + zone_bytes, has_value ? HAS_VALUE : NO_VALUE, bytes);
    memset(state + zone_bytes + bytes, BEHIND, LOCAL_ZONE);
}

// The start of the zone before the variable to which a byte belongs.
static char* zone_of(char* p) {
    const unsigned char* state = states_of(p);
    const unsigned char* const low = states_of(stack_low(current.thread));
    while (state > low && *state == BEHIND) --state;
    while (state > low && *state >= NO_VALUE) --state;
    while (state > low && state[-1] == BEFORE) --state;
    return run.stacks + (state - locals.states);
}

static unsigned site_of_frame(void** frame, unsigned thread, unsigned& depth);
static __attribute__((noinline)) void report_local(FindingKind kind, unsigned site, char* p,
                                                   size_t bytes, unsigned access, void** frame) {
    const unsigned flags = run.module->sites[site].flags;
    if (!run.detects || !site || (flags & IS_FOREIGN && kind == UNINITIALISED)) return;
    unsigned depth;
    if (flags & IS_HEADER) site = frame ? site_of_frame(frame, current.thread, depth) : 0;
    if (!site) return;
    bool fresh;
    FindingRow& row = findings.report(kind, run.module->sites.place(site), 0, LOCAL_REGION, fresh);
    if (!fresh) return;
    LocalName known;
    char* const zone = zone_of(p);
    memcpy(&known, zone, sizeof known);
    row.thread = current.thread, row.block = run.block;
    row.access = access, row.space = LOCAL, row.bytes = (unsigned)bytes;
    const char* const low = zone + known.zone_bytes;
    row.has_index = known.bytes == bytes ? 2 : 1;
    row.offset = p - low;
    row.beyond = p < low ? p - low : p + bytes - (low + known.bytes);
    snprintf(row.detail, sizeof row.detail, "%s", known.name);
}

// Takes an access to the thread's own memory, perhaps by a header that the function of `frame` has
// called; whether all of it is known.
static __attribute__((noinline)) bool takes_local(unsigned site, char* p, size_t bytes,
                                                  unsigned kind, bool is_object, void** frame) {
    unsigned char* state = states_of(p);
    // Some compilers set a variable to zero together with its zones, before it begins.
    if (*state == BEFORE && kind == STORE && bytes > 2 * LOCAL_ZONE && state[-1] != BEFORE)
        return true;
    size_t unset = 0, unknown = 0;
    for (size_t i = 0; i < bytes; ++i) {
        if (state[i] == BEFORE || state[i] == BEHIND) {
            report_local(OUT_OF_BOUNDS, site, p, bytes, kind, frame);
            return true;
        }
        unknown += state[i] == NOT_KNOWN;
        unset += state[i] == NO_VALUE;
        if (state[i] == NO_VALUE && kind != LOAD) state[i] = HAS_VALUE;
    }
    const bool is_lent = locals.lent[current.thread] == p;
    if (is_lent) locals.lent[current.thread] = nullptr;
    if (unset && kind != STORE && !is_lent && (!is_object || unset == bytes))
        report_local(UNINITIALISED, site, p, bytes, kind, frame);
    return !unknown;
}
static inline bool knows_local(unsigned site, const volatile void* p, size_t bytes, unsigned kind,
                               bool is_object = false, void** frame = nullptr) {
    if (!locals.any) return false;
    const unsigned char* state = states_of(p);
    if (bytes == 4) {
        unsigned four;
        memcpy(&four, state, sizeof four);
        if (four == HAS_VALUE * 0x01010101u) return true;
        if (!four) return false;
    }
    return takes_local(site, (char*)p, bytes, kind, is_object, frame);
}

}  // namespace cudalab
