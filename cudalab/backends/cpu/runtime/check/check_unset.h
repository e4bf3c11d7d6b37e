// Check mode: what threads have read though it has no value, until it is known whether they use it.
//
// What has no value is filled with UNSET. A thread that stores as many bytes next, and stores
// UNSET, has copied it: then the copy has no value either, and nothing is wrong so far. Anything
// else that a thread stores may have been computed from what it has read.
#pragma once

#include "check_state.h"

namespace cudalab {

// What a zone before a variable holds.
struct LocalNote {
    const char* name;
    size_t zone_bytes, bytes;
};

// A thread has read what has no value, in shared memory or in a variable of its own.
struct UnsetRead {
    Place place;
    char* address;
    unsigned bytes, access;
    Place copied;  // where it was stored, without a value; 0: nobody has
    bool is_shared;
    Doing doing;  // to shared memory
    LocalNote variable;
    char* low;  // where that begins
};
const unsigned MOST_UNSET = 8;  // of a thread, between its stores

// A store that is perhaps a copy of what has been read.
struct Copy {
    char* to;  // null: none
    UnsetRead read;
    Place place;
    bool is_done;
};
struct Copied {
    const char* low;
    unsigned bytes;
    Place place;
};
const unsigned MOST_COPIED = 8;  // of a thread, that are remembered

static struct {
    UnsetRead reads[MAX_THREADS][MOST_UNSET];
    unsigned char count[MAX_THREADS];
    Copy copy[MAX_THREADS];
    Copied copied[MAX_THREADS][MOST_COPIED];  // into variables of its own
    unsigned char next_copied[MAX_THREADS];
} pending;

static bool is_shared(const char* p) {
    return (size_t)(p - run.dynamic_shared) < DYNAMIC_SHARED ||
           (size_t)(p - run.tls) < run.module->tls_bytes;
}

static unsigned region_of(const UnsetRead& read) {
    return read.is_shared ? read.doing.region : LOCAL_REGION;
}

static void report_unset(FindingKind kind, unsigned thread, const UnsetRead& read) {
    bool fresh;
    FindingRow& row = findings.report(kind, read.place, 0, region_of(read), fresh);
    if (!fresh) return;
    row.thread = thread, row.block = run.block, row.other_place = read.copied;
    row.access = read.access, row.bytes = read.bytes;
    if (read.is_shared) {
        row.space = SHARED, row.offset = read.doing.offset, row.has_index = 1;
        return;
    }
    row.space = LOCAL;
    row.has_index = read.variable.bytes == read.bytes ? 2 : 1;
    row.offset = read.address - read.low;
    const int64_t end = row.offset + read.bytes - (int64_t)read.variable.bytes;
    row.beyond = row.offset < 0 ? row.offset : end;
    snprintf(row.detail, sizeof row.detail, "%s", read.variable.name);
}

static void reads_unset(unsigned thread, const UnsetRead& read) {
    unsigned char& count = pending.count[thread];
    if (count < MOST_UNSET)
        pending.reads[thread][count++] = read;
    else if (read.is_shared)
        report_unset(UNINITIALISED, thread, read);
}

// The same of a word of shared memory.
static void reads_unset_word(const Doing& now, Place copied) {
    char* const address = (char*)now.address;
    for (unsigned i = 0; i < pending.count[now.thread]; ++i) {
        const UnsetRead& known = pending.reads[now.thread][i];
        if (known.is_shared && known.place == now.place) return;  // and not been stored
    }
    reads_unset(now.thread, {now.place, address, now.bytes, LOAD, copied, true, now, {}, nullptr});
}

// Reports those reads of a thread of which `is_used` says so, and forgets them.
template <class Decide>
static void decide(unsigned thread, Decide is_used) {
    unsigned kept = 0;
    for (unsigned i = 0; i < pending.count[thread]; ++i) {
        const UnsetRead read = pending.reads[thread][i];
        if (is_used(read))
            report_unset(UNINITIALISED, thread, read);
        else
            pending.reads[thread][kept++] = read;
    }
    pending.count[thread] = (unsigned char)kept;
}

// A thread has stored at a line what it may have computed from what it has read: in shared memory
// and in variables of its own only what it reads there matters, unless that is shared memory.
static void uses_unset(unsigned thread, Place place, const char* to, bool is_own) {
    const bool to_shared = !is_own && is_shared(to);
    decide(thread, [&](const UnsetRead& read) {
        return read.is_shared || (!is_own && (!to_shared || read.place == place));
    });
}

// The thread has carried out what may be a copy.
static __attribute__((noinline)) void settle_copy(unsigned thread) {
    Copy& copy = pending.copy[thread];
    const Copy made = copy;
    copy.to = nullptr;
    const bool is_own = !is_shared(made.to);
    if (is_unset(made.to, made.read.bytes)) {
        if (!is_own) return;
        Copied& copied = pending.copied[thread][pending.next_copied[thread]++ % MOST_COPIED];
        copied = {made.to, made.read.bytes, made.place};
        return;
    }
    reads_unset(thread, made.read);
    uses_unset(thread, made.place, made.to, is_own);
}
static inline void settle(unsigned thread) {
    if (pending.copy[thread].to && pending.copy[thread].is_done) settle_copy(thread);
}

// A thread stores something in shared memory or in a variable of its own that is known, `is_own`,
// or elsewhere. Whether it may be a copy, of which the words are to be looked at before they are
// taken for written.
static __attribute__((noinline)) bool stores_behind_unset(unsigned thread, unsigned site, char* to,
                                                          size_t bytes, bool is_own) {
    const Place place = run.module->sites.place(site);
    settle(thread);
    UnsetRead* const reads = pending.reads[thread];
    unsigned i = 0;
    while (i < pending.count[thread] && reads[i].bytes != bytes) ++i;
    if (i == pending.count[thread] || bytes < 4 || (uintptr_t)to % 4 ||
        !(is_own || is_shared(to))) {
        uses_unset(thread, place, to, is_own);
        return false;
    }
    pending.copy[thread] = {to, reads[i], place, is_own};
    memmove((void*)(reads + i), reads + i + 1, (--pending.count[thread] - i) * sizeof *reads);
    return true;
}
static inline bool awaits_store(unsigned thread) {
    return pending.count[thread] || pending.copy[thread].to;
}
static inline bool stores(unsigned thread, unsigned site, char* to, size_t bytes, bool is_own) {
    return awaits_store(thread) && stores_behind_unset(thread, site, to, bytes, is_own);
}

// Where what lies in a variable of the thread was stored without a value; 0 if nobody knows.
static Place copied_to(unsigned thread, const char* p, size_t bytes) {
    for (const Copied& each : pending.copied[thread])
        if (each.low == p && each.bytes == bytes) return each.place;
    return 0;
}

// Lanes, or the threads of a block, are told of what the thread may have computed.
static void shows_unset(unsigned thread) {
    settle(thread);
    decide(thread, [](const UnsetRead& read) { return read.is_shared; });
}

// The threads end, or wait for other blocks: what those have read that end and have stored nothing
// behind it was for nothing.
static void end_unset() {
    for (unsigned t = 0; t < run.threads; ++t) {
        run.parked ? shows_unset(t) : settle(t);
        for (unsigned i = 0; i < pending.count[t]; ++i) {
            const UnsetRead& read = pending.reads[t][i];
            if (!findings.find(UNINITIALISED, read.place, 0, region_of(read)))
                report_unset(UNUSED_VALUE, t, read);
        }
        pending.count[t] = 0;
        if (pending.next_copied[t]) memset((void*)pending.copied[t], 0, sizeof pending.copied[t]);
        pending.next_copied[t] = 0;
    }
}

}  // namespace cudalab
