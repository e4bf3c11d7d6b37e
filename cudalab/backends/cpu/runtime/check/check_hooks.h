// Check mode: the hooks that an instrumented kernel calls before each access and in each block.
#pragma once

#include "check_locals.h"
#include "check_schedule.h"

extern "C" unsigned cudalab_check_add(char* low, size_t bytes, size_t guard, unsigned space,
                                      int with_shadow);
extern "C" void cudalab_check_remove(unsigned number);

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace cudalab {

// g++ says so of packed members alone; clang also of a cast of what it knows to lie anywhere, which
// a GPU takes for aligned.
#ifdef __clang__
static const Shape PACKED = WHOLE;
#else
static const Shape PACKED = OBJECT;
#endif
static size_t width_of(const char* address, size_t bytes, Shape shape) {
    if (shape == SCALAR && bytes <= 16 && !(bytes & (bytes - 1))) return bytes;
    size_t width = 16;
    while (bytes % width || (uintptr_t)address % width) width /= 2;
    return width;
}
// Of 16 bytes the compiler promises no more than a multiple of 8; vectors are the headers'.
static Shape shape_of(size_t bytes, const volatile void* p) {
    return bytes == 16 && (uintptr_t)p % 8 == 0 ? OBJECT : SCALAR;
}

static void stop_for(unsigned site, unsigned depth, char* address, size_t bytes, Shape shape,
                     unsigned kind, unsigned flags, bool is_direct) {
    const unsigned thread = current.thread;
    const size_t whole = width_of(address, bytes, shape);
    const bool by_word = shape == OBJECT && whole < 4 && !run.counts;
    const bool goes_on = kind == LOAD && !(flags & (IS_VOLATILE | IS_ATOMIC)) && !run.counts;
    run.behind[thread] = how_far(depth, site);
    const bool may_copy =
        kind != LOAD && stores(thread, site, address, kind == STORE ? bytes : 0, false);
    if (kind != LOAD) stores_elsewhere(thread, bytes, site);
    for (bool is_first = true; bytes > 0; is_first = false) {
        size_t width = whole;
        if (by_word) width = 4 - (uintptr_t)address % 4;
        if (width > bytes) width = bytes;
        run.event[thread] = {site,
                             depth,
                             kind,
                             (unsigned)width,
                             address,
                             (unsigned char)flags,
                             is_direct,
                             shape == OBJECT,
                             (unsigned short)(flags & TURNS)};
        if (goes_on) {
            ++detector.ordering.request;
            check_access(thread, run.event[thread]);
            address += width, bytes -= width;
            continue;
        }
        if (flags & (IS_VOLATILE | IS_ATOMIC) && kind == LOAD && ++run.polls[thread] >= PATIENCE)
            let_others_run(thread);
        stop(thread, is_first);
        pending.copy[thread].is_done |= may_copy;
        address += width, bytes -= width;
    }
}

// Whether the load at `site` is part of a loop that only waits, perhaps in a function that calls
// the one with the load; `frame` is that of the load's function.
static bool is_waiting(unsigned site, void** frame) {
    const Sites& sites = run.module->sites;
    const char* end = run.stack_top[current.thread];
    for (int level = 0; level < 8 && site; ++level) {
        if (sites[site].flags & IS_IN_WAIT) return true;
        if (!(sites[site].flags & IS_READER) || (char*)frame[0] <= (char*)frame) return false;
        site = sites.at((uintptr_t)frame[1]);
        frame = (void**)frame[0];
        if ((char*)frame >= end) return false;
    }
    return false;
}

static __thread bool narrow;  // the next atomic operation has block scope
// ------------------------------------------------------------------ the program's host code

static bool watches_uses;
static const HostWatch none_watched = {};
static const HostWatch* host_watch = &none_watched;  // never null
static Module* host_module;                          // the program

// The line of the program's own code that a call came from; behind it, the callers of headers.
static Place place_on_host(void* return_address, void** frame) {
    const char* const here = (const char*)__builtin_frame_address(0);
    for (int level = 0; level < 64; ++level) {
        const unsigned site = host_module->sites.at((uintptr_t)return_address);
        if (site && !(host_module->sites[site].flags & IS_HEADER))
            return host_module->sites.place(site);
        if ((char*)frame[0] <= (char*)frame || (char*)frame[0] > here + (64 << 20)) break;
        frame = (void**)frame[0];
        return_address = frame[1];
    }
    return 0;
}
// Volatile accesses may poll what a kernel writes.
static inline void access_by_host(const volatile void* p, size_t bytes, unsigned kind,
                                  bool is_volatile, void* return_address, void** frame) {
    const uintptr_t address = (uintptr_t)p;
    if (address >= host_watch->high || address + bytes <= host_watch->low || is_volatile) return;
    host_watch->use(address, bytes, kind - LOAD, place_on_host(return_address, frame));
}

// The host compares and swaps a word.
static inline void checked_by_host(const volatile void* p) {
    const uintptr_t address = (uintptr_t)p;
    if (!runs_kernels && address >= host_watch->low && address < host_watch->high)
        host_watch->check(address);
}

// ------------------------------------------------------------------ accesses

static inline bool is_on_stack(const volatile void* p) {
    return (size_t)((char*)p - stack_low(current.thread)) < FIBER_STACK;
}
// Whether memory is the thread's own, or the instrument's.
static inline bool is_own(const volatile void* p) {
    return is_on_stack(p) || (size_t)((char*)p - (char*)&current) < sizeof current;
}
static __attribute__((noinline)) void report_misaligned(unsigned site, size_t bytes,
                                                        unsigned kind) {
    bool fresh;
    FindingRow& row =
        findings.report(MISALIGNED, run.module->sites.place(site), 0, NO_REGION, fresh);
    if (!fresh) return;
    row.thread = current.thread, row.block = run.block;
    row.access = kind, row.space = LOCAL, row.bytes = (unsigned)bytes;
}
struct ArrayType {
    uint16_t kind, info;
    char name[1];  // such as 'int [4]'
};
struct Indexing {
    const char* file;
    unsigned line, column;
    const ArrayType* array;
};
// The check of an index that failed last, if its access has not come yet; whether it is not said
// which memory that is.
static struct {
    unsigned site;
    uintptr_t index;
    const ArrayType* array;
    bool is_open;
    unsigned thread;
    uint64_t block;
} failed;

static __attribute__((noinline)) void report_index(FindingKind kind, unsigned space) {
    bool fresh;
    const Place place = run.module->sites.place(failed.site);
    FindingRow& row = findings.report(kind, place, 0, NO_REGION, fresh);
    if (!fresh) return;
    row.thread = failed.thread, row.block = failed.block;
    row.space = space, row.has_index = kind == OUT_OF_BOUNDS;
    int used = snprintf(row.detail, sizeof row.detail, "index %lld of an array of type ",
                        (long long)failed.index);
    for (const char* c = failed.array->name; *c && used + 1 < (int)sizeof row.detail; ++c)
        if (*c != '\'' && *c != ' ') row.detail[used++] = *c;  // compilers differ in these
}
// The first element of the array of the index that failed, if that is accessed at `p`.
static inline char* first_element(const volatile void* p, size_t bytes) {
    const char* size = strchr(failed.array->name, '[');
    size_t items = 1;  // of an element that is an array
    while (size && (size = strchr(size + 1, '['))) items *= strtoul(size + 1, nullptr, 10);
    return (char*)p - (int64_t)failed.index * (int64_t)(items * bytes);
}
// Whether the access at `p` may be that of the index: the array is a local variable.
static inline bool indexed_local(const volatile void* p, size_t bytes) {
    char* const first = first_element(p, bytes);
    const bool in_variable = locals.any && is_on_stack(first) && *states_of(first) > BEHIND;
    if (!is_on_stack(p)) return failed.is_open && in_variable;
    if (!locals.any || *states_of(p) <= BEHIND) return true;
    return in_variable && zone_of((char*)p) == zone_of(first);
}
// The index is one within a larger object, whose end the access may or may not pass.
static inline void end_index() {
    if (failed.site && failed.is_open) report_index(PAST_INNER_ARRAY, GLOBAL);
    failed.site = 0;
}
// An access, which may be that of the index; others of its line read what the index is made of, or
// take part in an assignment. What it leads to tells: a local variable, of which not all are known.
static __attribute__((noinline)) void settle_index(unsigned site, const volatile void* p,
                                                   size_t bytes) {
    const Sites& sites = run.module->sites;
    const bool is_there =
        sites[site].flags & IS_HEADER || sites.place(failed.site) == sites.place(site);
    if (!is_there) return end_index();
    if (indexed_local(p, bytes)) {
        report_index(OUT_OF_BOUNDS, LOCAL);
        failed.site = 0;
    } else if (is_shared(first_element(p, bytes)))
        end_index();
}
// Of the thread's own memory the alignment is looked at, the index that has led there, and of local
// variables that are known the bounds, and whether they have a value.
static inline void note_own(unsigned site, const volatile void* p, size_t bytes, unsigned kind,
                            Shape shape = SCALAR, void** frame = nullptr) {
    const bool on_stack = is_on_stack(p);
    bool known = false;
    if (failed.site && on_stack) {
        settle_index(site, p, bytes);
        known = !failed.site;
    }
    known = known || (on_stack && knows_local(site, p, bytes, kind, shape, frame));
    const unsigned within = kind == STORE ? IN_FRAME | IS_WHOLE : IS_WHOLE;
    known |= (run.module->sites[site].flags & within) != 0;
    const unsigned in_memory = known ? LOCAL_MEMORY : LOCAL_MEMORY | NOT_KNOWN_LOCAL;
    run.module->sites.looks[site] |= (unsigned char)(on_stack ? OWN | in_memory : OWN);
    if (shape != SCALAR) return;
    const bool is_scalar = shape_of(bytes, p) == SCALAR && bytes <= 16 && !(bytes & (bytes - 1));
    if (is_scalar && (uintptr_t)p & (bytes - 1) && run.detects)
        report_misaligned(site, bytes, kind);
}

// Whether an access to the thread's own memory is counted as one to local memory.
static inline bool is_counted_local(unsigned site, const volatile void* p, unsigned kind) {
    const unsigned counted = kind == LOAD ? LOADS_LOCAL : STORES_LOCAL;
    return run.counts && run.module->sites[site].flags & counted && is_on_stack(p);
}

// What a header has told of last: of a copy both ends.
struct Told {
    const char *low, *high;
};
static Told told[MAX_THREADS][2];

// CUDA's own loads, stores and atomics, and copies of its vectors, which cudalab_cpu.h carries out
// when this returns.
static void access_by_header(const volatile void* p, size_t bytes, unsigned kind, unsigned flags,
                             void** frame, Shape shape = SCALAR) {
    if (narrow) flags |= IN_BLOCK_ONLY, narrow = false;
    if (!runs_kernels) return access_by_host(p, bytes, kind, flags & IS_VOLATILE, frame[1], frame);
    if (!run.observing) return;
    char* address = (char*)p;
    unsigned thread = current.thread, depth;
    if ((size_t)(address - (char*)&current) < sizeof current) return;
    unsigned site = site_of_frame(frame, thread, depth);
    if (!site) return;
    if (is_on_stack(address)) {
        note_own(site, address, bytes, kind, OBJECT);
        if (!is_counted_local(site, p, kind)) return;
    }
    told[thread][1] = told[thread][0];
    told[thread][0] = {address, address + bytes};
    if (run.module->sites[site].flags & RESULT_UNUSED) flags |= IS_UNUSED;
    if (run.module->sites[site].flags & ADDS_ONE) flags |= AT_ONCE;
    if (kind == ATOMIC) flags |= IS_ATOMIC;
    if (flags & IS_VOLATILE && kind == LOAD) {
        void** own = (void**)(run.stack_top[thread] - depth);
        if (is_waiting(site, (void**)own[0])) flags |= IS_WAITING;
    }
    stop_for(site, depth, address, bytes, shape, kind, flags, false);
    unsigned char& looks = run.module->sites.looks[site];
    if (!(looks & LOOKED_AT)) looks |= NOT_LOOKED_AT;  // it has been lost on the way
}
// Host code of a library, such as Thrust, is under way: it may write to the device's memory.
static bool library_access;
EXPORT void cudalab_check_library(int begins) {
    library_access = begins;
}
static void written_by_library(const char* address, size_t bytes) {
    for (Region& r : run.regions) {
        if (!r.used || address < r.low || address + bytes > r.high) continue;
        for (size_t i = (size_t)(address - r.low); r.shadow.cells && bytes > 0; ++i, --bytes)
            r.shadow.written[i / 4] |= (unsigned char)(1u << i % 4);
        return;
    }
}

// Whether an access is to be observed as the kernel's own.
static inline bool is_observed(const volatile void* p, size_t bytes, unsigned kind,
                               bool is_volatile, void* return_address, void** frame) {
    if (!run.observing || !runs_kernels) {
        if (kind == STORE && library_access) written_by_library((char*)p, bytes);
        if (!runs_kernels)
            access_by_host(p, bytes, kind, is_volatile, return_address, frame);
        else if (is_volatile && kind == LOAD)
            cudalab_spinning();  // perhaps a wait for another thread
        return false;
    }
    return true;
}
static __attribute__((noinline)) void access(const volatile void* p, size_t bytes, Shape shape,
                                             unsigned kind, bool is_volatile, void* return_address,
                                             void** frame) {
    if (!is_observed(p, bytes, kind, is_volatile, return_address, frame)) return;
    const auto [site, flags, offset] = run.module->sites.call((uintptr_t)return_address);
    if (!site) return;
    if (failed.site && !is_own(p)) settle_index(site, p, bytes);
    if (shape == WHOLE || shape == PASSED) {  // a size is a multiple of the alignment
        const size_t most = bytes & -bytes;
        if ((uintptr_t)p & ((most > 8 ? 8 : most) - 1)) run.module->sites.looks[site] |= UNALIGNED;
    }
    if (is_own(p)) {
        note_own(site, p, bytes, kind, shape, frame);
        if (!is_counted_local(site, p, kind)) return;
    }
    if (shape != SCALAR) shape = OBJECT;
    unsigned how = is_volatile ? IS_VOLATILE : 0;
    if (flags & IS_LIBRARY) return access_by_header(p, bytes, kind, how, frame, shape);
    if (flags & IS_HEADER) return;
    if (is_volatile && kind == LOAD && is_waiting(site, (void**)*frame)) how |= IS_WAITING;
    const unsigned depth = (unsigned)(run.stack_top[current.thread] - (char*)frame);
    stop_for(site, depth, (char*)p, bytes, shape, kind, how, true);
}
// The same for a plain access by the kernel's own code, whose site is known.
static __attribute__((noinline)) void access_at(unsigned site, void* p, size_t bytes, unsigned kind,
                                                void* return_address, void** frame) {
    if (!is_observed(p, bytes, kind, false, return_address, frame)) return;
    if (failed.site && !is_own(p)) settle_index(site, p, bytes);
    if (is_own(p)) {
        note_own(site, p, bytes, kind);
        if (!is_counted_local(site, p, kind)) return;
    }
    const unsigned depth = (unsigned)(run.stack_top[current.thread] - (char*)frame);
    stop_for(site, depth, (char*)p, bytes, shape_of(bytes, p), kind, 0, true);
}

static void stop_at_block(unsigned site, void* frame) {
    const unsigned thread = current.thread;
    Event& e = run.event[thread];
    e.site = site, e.kind = BLOCK_START;
    e.depth = (unsigned)(run.stack_top[thread] - (char*)frame);
    run.behind[thread] = how_far(e.depth, site);
    stop(thread);
}
// The running thread enters a block, and there is nothing else to do.
static inline bool just_enters(unsigned site) {
    if (__builtin_expect(!last_block || run.attention, 0)) return false;
    run.module->sites.looks[site] |= ENTERED;
    paths.enter(site);
    return true;
}
// The same, whatever else there is to do. Returns whether the kernel is looked at.
static bool enters(unsigned site, bool ends) {
    if (!run.kernel || !runs_kernels) return false;  // other threads are the host's
    if (run.observing) {
        run.event[current.thread].site = site;
        run.module->sites.looks[site] |= ENTERED;
    }
    check_time();
    if (!run.observing) last_block = nullptr;
    if (last_block && !ends) {
        paths.enter(site);
        if (paths.suspects.count) paths.look_for_suspect(current.thread, site);
    }
    return run.observing;
}
static __attribute__((noinline)) void enter(unsigned site, void* frame) {
    if (enters(site, false) && run.counts) stop_at_block(site, frame);
}
static __attribute__((noinline)) void enter_join(unsigned site, void* frame) {
    if (just_enters(site) || enters(site, false)) stop_at_block(site, frame);
}
static __attribute__((noinline)) void enter_end(unsigned site, void* frame) {
    if (enters(site, true)) stop_at_block(site, frame);
}

extern "C" void cudalab_access(const volatile void* p, size_t bytes, unsigned kind,
                               unsigned flags) {
    if (kind == ATOMIC) tally_atomic(flags);
    access_by_header(p, bytes, kind, flags, HERE);
}
extern "C" void cudalab_in_block_only() {
    narrow = true;
}
extern "C" void cudalab_swapped(void* p, size_t bytes, bool done) {
    current.tally.swaps += done;
    if (!run.observing || !run.detects) return;
    visit_words((char*)p, (unsigned)bytes,
                [](Cell& cell) { detector.check_guesses(cell, current.thread); });
    if (!done) return changed_nothing((char*)p, (unsigned)bytes);
    detector.ordering.take_lock((uintptr_t)p, current.thread);
}
extern "C" void cudalab_changed_nothing(void* p, size_t bytes) {
    if (run.observing && run.detects) changed_nothing((char*)p, (unsigned)bytes);
}

// A kernel frees memory that a kernel has allocated, of the region `number`; NO_REGION: what is no
// such memory, or no longer. The program keeps it until the launch ends.
EXPORT void cudalab_check_freed(unsigned number, void* memory) {
    unsigned depth;
    const unsigned site = site_of_frame(HERE, current.thread, depth);
    const Place place = site ? run.module->sites.place(site) : 0;
    if (number != NO_REGION) {
        const Region& r = run.regions[number];
        run.freed.add({r.low, r.high, place});
        return cudalab_check_remove(number);
    }
    Place before = 0;
    for (const Freed& f : run.freed)
        if (f.low == memory) before = f.place;
    if (!run.observing || !run.detects || !site) return;
    bool fresh;
    FindingRow& row = findings.report(AFTER_FREE, place, before, NO_REGION, fresh);
    row.thread = current.thread, row.block = run.block, row.access = NO_ACCESS;
}

// What kernels of labs allocate and free, as assembly/ lets them; programs have heap.cpp.
EXPORT void* cudalab_heap_allocate(size_t bytes) {
    char* memory = (char*)malloc(bytes);
    if (memory) cudalab_check_add(memory, bytes, 0, GLOBAL, run.detects);
    return memory;
}
EXPORT void cudalab_heap_free(void* memory) {
    if (!memory) return;
    unsigned number = 0;
    while (number < run.regions.count && !run.regions[number].is_at((char*)memory)) ++number;
    if (number == run.regions.count) return cudalab_check_freed(NO_REGION, memory);
    cudalab_check_freed(number, memory);
    run.kept.add(memory);
}
static void forget_freed() {
    for (void* memory : run.kept) free(memory);
    run.kept.clear(), run.freed.clear();
}

// A division by zero that the processor would not stop at.
EXPORT void cudalab_check_division() {
    unsigned depth;
    if (run.observing) divides_by_zero(site_of_frame(HERE, current.thread, depth));
}

// assert() in a kernel ends it; observe.cpp calls this for those of whole programs.
EXPORT void cudalab_fail_assertion(const char* condition, const char* file,
                                   unsigned line) noexcept {
    unsigned depth, site = site_of_frame(HERE, current.thread, depth);
    if (site) run.event[current.thread].site = site;
    char what[sizeof(FindingRow::detail)];
    snprintf(what, sizeof what, "assertion `%s` failed at %s:%u", condition, file, line);
    crash(what);
    __builtin_unreachable();
}

// memset, memcpy and memmove of the C library, in programs.
EXPORT void cudalab_set(void* p, int value, size_t bytes) {
    if (!run.observing && library_access) written_by_library((char*)p, bytes);
    access_by_header(p, bytes, STORE, 0, HERE, OBJECT);
    memset(p, value, bytes);
}
EXPORT void cudalab_moved(void* to, const void* from, size_t bytes) {
    if (!run.observing && library_access) written_by_library((char*)to, bytes);
    access_by_header(from, bytes, LOAD, 0, HERE, OBJECT);
    access_by_header(to, bytes, STORE, 0, HERE, OBJECT);
    memmove(to, from, bytes);
}

EXPORT void cudalab_copied(void* to, const void* from, size_t bytes) {
    if (!run.observing && library_access) written_by_library((char*)to, bytes);
    access_by_header(from, bytes, LOAD, 0, HERE);
    access_by_header(to, bytes, STORE, 0, HERE);
    memcpy(to, from, bytes);
}

// What the C library reads or writes for the program's host code.
EXPORT void cudalab_host_uses(const void* p, size_t bytes, int stores) {
    if (!runs_kernels && bytes)
        access_by_host(p, bytes, stores ? STORE : LOAD, false, HERE[1], HERE);
}

// Both accesses are recorded when the copy starts; its target has no value until it arrives.
extern "C" void cudalab_copy_async(void* to, const void* from, size_t bytes, size_t zeros) {
    if (bytes > zeros) access_by_header(from, bytes - zeros, LOAD, 0, HERE);
    access_by_header(to, bytes, STORE, 0, HERE);
    set_under_way((char*)to, bytes, true);
    run.copies[current.thread].add(to, from, bytes, zeros);
}

extern "C" void cudalab_close_copies() {
    run.copies[current.thread].close();
}

extern "C" void cudalab_wait_for_copies(unsigned under_way) {
    run.copies[current.thread].wait(
        under_way, [](const AsyncCopy& copy) { set_under_way(copy.to, copy.bytes, false); });
}

#define CALLER __builtin_return_address(0), HERE

// An access by a header whose accesses are not observed: it has told of it itself, or else the line
// that called it is one that the instrument does not look at. Of the variables of kernels it reads
// those that have a value.
static __attribute__((noinline)) void access_by_unobserved(const volatile void* p, size_t bytes,
                                                           unsigned kind, void** frame) {
    if (!run.observing) return;
    const bool is_lent = locals.lent[current.thread] != nullptr;
    const bool reads_unset = is_on_stack(p) && kind == LOAD && !is_lent && may_be_unset(p);
    if (is_own(p) && !reads_unset) return;
    for (const Told& t : told[current.thread])
        if ((const char*)p >= t.low && (const char*)p + bytes <= t.high) return;
    const Sites& sites = run.module->sites;
    const unsigned here = sites.at((uintptr_t)frame[1]);
    const unsigned block = last_block ? *last_block : run.event[current.thread].site;
    const bool is_inlined = here && block && sites[here].function == sites[block].function;
    unsigned depth;
    const unsigned site =
        is_inlined ? block : site_of_frame((void**)frame[0], current.thread, depth);
    if (site && reads_unset) return note_own(site, p, bytes, LOAD);
    unsigned char& looks = sites.looks[site];
    if (!site || looks & NOT_LOOKED_AT) return;
    bool inside;
    find_region((char*)p, (unsigned)bytes, site, inside);
    if (inside) looks |= NOT_LOOKED_AT;
}

// Plain accesses, for which assembly/ chooses the hook: by the kernel's own code, at a site that
// it names, and by headers of cudalab's, which matter where the host's code calls them, and where
// they set local variables of kernels.
#define HOOKS_AT(n)                                                                          \
    EXPORT void cudalab_read##n(void* p, unsigned site) {                                    \
        if (last_block && !run.attention) {                                                  \
            if (is_on_stack(p)) return note_own(site, p, n, LOAD);                           \
            if (failed.site) settle_index(site, p, n);                                       \
            if (just_loads(site, (char*)p, n)) return;                                       \
        }                                                                                    \
        access_at(site, p, n, LOAD, CALLER);                                                 \
    }                                                                                        \
    EXPORT void cudalab_write##n(void* p, unsigned site) {                                   \
        if (last_block && !run.counts && is_on_stack(p)) return note_own(site, p, n, STORE); \
        access_at(site, p, n, STORE, CALLER);                                                \
    }                                                                                        \
    EXPORT void cudalab_header_read##n(void* p) {                                            \
        if (runs_kernels) return access_by_unobserved(p, n, LOAD, HERE);                     \
        access(p, n, shape_of(n, p), LOAD, false, CALLER);                                   \
    }                                                                                        \
    EXPORT void cudalab_own_write##n(void* p) {                                              \
        if (runs_kernels && is_on_stack(p)) knows_local(0, p, n, STORE);                     \
    }                                                                                        \
    EXPORT void cudalab_header_write##n(void* p) {                                           \
        cudalab_own_write##n(p);                                                             \
        if (runs_kernels) return access_by_unobserved(p, n, STORE, HERE);                    \
        access(p, n, shape_of(n, p), STORE, false, CALLER);                                  \
    }
HOOKS_AT(1)
HOOKS_AT(2)
HOOKS_AT(4)
HOOKS_AT(8)
HOOKS_AT(16)

#define HOOK(name, n, shape, way, is_volatile)         \
    EXPORT void __tsan_##name##n(void* p) {            \
        access(p, n, shape, way, is_volatile, CALLER); \
    }
#define HOOKS(n)                                            \
    HOOK(read, n, shape_of(n, p), LOAD, false)              \
    HOOK(write, n, shape_of(n, p), STORE, false)            \
    HOOK(volatile_read, n, shape_of(n, p), LOAD, true)      \
    HOOK(volatile_write, n, shape_of(n, p), STORE, true)    \
    HOOK(unaligned_read, n, PACKED, LOAD, false)            \
    HOOK(unaligned_write, n, PACKED, STORE, false)          \
    HOOK(unaligned_volatile_read, n, PACKED, LOAD, true)    \
    HOOK(unaligned_volatile_write, n, PACKED, STORE, true)  \
    EXPORT void __tsan_read_write##n(void* p) {             \
        access(p, n, shape_of(n, p), LOAD, false, CALLER);  \
        access(p, n, shape_of(n, p), STORE, false, CALLER); \
    }
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)

EXPORT void __tsan_read_range(void* p, size_t bytes) {
    access(p, bytes, WHOLE, LOAD, false, CALLER);
}
EXPORT void __tsan_write_range(void* p, size_t bytes) {
    access(p, bytes, WHOLE, STORE, false, CALLER);
}
// For objects in registers (objects.py).
EXPORT void __tsan_read_object(void* p, size_t bytes) {
    access(p, bytes, PASSED, LOAD, false, CALLER);
}
EXPORT void __tsan_write_object(void* p, size_t bytes) {
    access(p, bytes, PASSED, STORE, false, CALLER);
}
EXPORT void* __tsan_memcpy(void* to, const void* from, size_t bytes) {
    access(from, bytes, OBJECT, LOAD, false, CALLER);
    access(to, bytes, OBJECT, STORE, false, CALLER);
    return memcpy(to, from, bytes);
}
EXPORT void* __tsan_memmove(void* to, const void* from, size_t bytes) {
    access(from, bytes, OBJECT, LOAD, false, CALLER);
    access(to, bytes, OBJECT, STORE, false, CALLER);
    return memmove(to, from, bytes);
}
EXPORT void* __tsan_memset(void* p, int value, size_t bytes) {
    access(p, bytes, OBJECT, STORE, false, CALLER);
    return memset(p, value, bytes);
}

// An index is out of the bounds that the type of the array has: of one of the thread's own, of one
// that never changes, or of one within a larger object, whose end the access may or may not pass.
// What is declared as the last array of a structure, with one item, may have more.
EXPORT void __ubsan_handle_out_of_bounds(const Indexing* indexing, uintptr_t index) {
    if (!run.observing || !run.detects) return;
    const Sites::Call here = run.module->sites.call((uintptr_t)__builtin_return_address(0));
    if (!here.site || here.flags & IS_HEADER) return;
    end_index();
    const bool local = here.flags & IS_LOCAL;
    failed = {here.site, index, indexing->array, false, current.thread, run.block};
    if (local || run.module->sites[here.site].flags & IS_FIXED)
        report_index(OUT_OF_BOUNDS, local ? LOCAL : GLOBAL);
    else
        failed.is_open = !strstr(indexing->array->name, "[1]");
}

// At the start of each basic block: assembly/ chooses the hook, and names the site.
EXPORT void cudalab_block(unsigned site) {
    if (!just_enters(site)) enter(site, HERE);
}
EXPORT void cudalab_block_join(unsigned site) {
    enter_join(site, HERE);
}
EXPORT void cudalab_block_end(unsigned site) {
    if (run.counts)
        enter_end(site, HERE);
    else if (run.observing && runs_kernels)
        run.module->sites.looks[site] |= ENTERED;
}
EXPORT void cudalab_block_end_join(unsigned site) {
    enter_end(site, HERE);
}
EXPORT void cudalab_block_of_library() {
    if (run.attention && run.kernel && runs_kernels) check_time();
}
EXPORT void __tsan_init() {}
// A local variable comes to life, and the function that has it ends.
EXPORT void cudalab_local(void* zone, size_t zone_bytes, size_t bytes, LocalState state,
                          const char* name) {
    if (run.observing && run.detects && runs_kernels && is_on_stack(zone))
        local_begins((char*)zone, zone_bytes, bytes, state, name);
}
EXPORT void cudalab_local_without_zones(void* variable, size_t bytes, LocalState state,
                                        const char* name) {
    if (run.observing && run.detects && runs_kernels && is_on_stack(variable))
        local_begins((char*)variable, bytes, state, name);
}
EXPORT void cudalab_lend(const volatile void* variable) {
    if (runs_kernels) locals.lent[current.thread] = variable;
}
EXPORT void cudalab_leave() {
#ifdef __aarch64__
    const char *const low = (const char*)HERE[0], *const high = *(const char**)low;
#else
    const char *const low = (const char*)HERE, *const high = (const char*)HERE[0];
#endif
    if (locals.any && runs_kernels && is_on_stack(low) && is_on_stack(high - 1))
        memset(states_of(low), NOT_KNOWN, (size_t)(high - low));
}
// The pointer by which an object with virtual functions knows its type.
EXPORT void __tsan_vptr_update(void** p, void*) {
    access(p, sizeof *p, SCALAR, STORE, false, CALLER);
}
EXPORT void __tsan_vptr_read(void** p) {
    access(p, sizeof *p, SCALAR, LOAD, false, CALLER);
}

}  // namespace cudalab
