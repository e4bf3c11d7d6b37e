// Device memory: a range of addresses, the parts of it that are free, and the rights to access it.
// Part of memory.cpp.
//
// Its pages are accessible only while a kernel or a copy of the API runs, so host code that
// dereferences a device pointer is stopped there (launch.cpp reports it).
#pragma once

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "order.h"
#include "sorted_map.h"

namespace cudalab {

// Access rights are set for whole huge pages, at a thousandth of the cost for small ones.
static const size_t HUGE_PAGE = 2 << 20;

typedef SortedMap<Allocation> Allocations;

static struct Memory {
    char* arena;
    size_t size, used, high_water;       // high_water: pages up to there have been handed out
    Allocations live;                    // of every kind
    Allocations freed;                   // freed device memory, until it is reused
    SortedMap<size_t> free;              // ranges below high_water
    Section device, constants, managed;  // of the program's variables
    unsigned opened, by_kernels;         // how often: by kernels, and in all
} memory = {};                           // never destroyed: other exit handlers may still use it

static size_t round_up(size_t n, size_t to) {
    return (n + to - 1) / to * to;
}

size_t device_bytes() {
    static size_t bytes = [] {
        const char* text = getenv("CUDALAB_DEVICE_MEMORY");
        if (text && *text) {
            char* unit;
            double value = strtod(text, &unit);
            for (const char* u = "KMGT"; *u && *unit; ++u) {
                value *= 1024;
                if ((*unit & ~0x20) == *u) break;
            }
            if (unit == text || value < PAGE || (*unit && unit[1])) {
                fprintf(stderr, "CUDALAB_DEVICE_MEMORY=%s: not a size such as 512M or 2G\n", text);
                _exit(125);  // the program could not be started
            }
            return (size_t)value / PAGE * PAGE;
        }
        return (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGE_SIZE) / 2 / PAGE * PAGE;
    }();
    return bytes;
}
size_t free_bytes() {
    return device_bytes() - memory.used;
}

// ------------------------------------------------------------------ access rights

static void set_access(const Section& variables, int rights) {
    const size_t bytes = (size_t)(variables.end - variables.begin);
    if (bytes > PAGE) mprotect((void*)variables.begin, bytes, rights);  // else there is no variable
}
static void change_access(int opened, int by_kernels) {
    const unsigned before = memory.opened, copies_before = before - memory.by_kernels;
    memory.opened += (unsigned)opened;
    memory.by_kernels += (unsigned)by_kernels;
    const unsigned copies = memory.opened - memory.by_kernels;
    const int both = PROT_READ | PROT_WRITE;
    if (!before != !memory.opened) {
        const int rights = memory.opened ? both : PROT_NONE;
        if (memory.high_water)
            mprotect(memory.arena, round_up(memory.high_water, HUGE_PAGE), rights);
        set_access(memory.device, rights);
    } else if (!copies_before == !copies) {
        return;
    }
    set_access(memory.constants, copies ? both : memory.opened ? PROT_READ : PROT_NONE);
}
Access::Access(By by_) : by(by_) {
    if (by == ALL) {
        wait_for_all_work();
        library_works();
    }
    change_access(1, by == KERNEL);
}
Access::~Access() {
    change_access(-1, by == KERNEL ? -1 : 0);
}

// ------------------------------------------------------------------ free ranges

static bool reserve_arena() {
    if (memory.arena) return true;
    size_t size = device_bytes();
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void* range = mmap(nullptr, size + 2 * HUGE_PAGE, PROT_NONE, flags, -1, 0);
    if (range == MAP_FAILED) return false;
    char* arena = (char*)round_up((uintptr_t)range, HUGE_PAGE);
#ifdef MADV_HUGEPAGE
    madvise(arena, size + HUGE_PAGE, MADV_HUGEPAGE);
#endif
    madvise(arena, size + HUGE_PAGE, MADV_DONTDUMP);
    memory.arena = arena;
    memory.size = size;
    memory.high_water = PAGE;  // the first page stays empty: free() reads before its pointer
    return true;
}

// Pages that are in use differ from those behind them in being dumped, too, so the system never
// joins the two: that would make each change of rights twice as slow.
static void hand_out(size_t new_high) {
    const size_t bytes = round_up(new_high, HUGE_PAGE);
    madvise(memory.arena, bytes, MADV_DODUMP);
    if (memory.opened)  // a library or a kernel allocates
        mprotect(memory.arena, bytes, PROT_READ | PROT_WRITE);
    memory.high_water = new_high;
}

// The first free range that is long enough; the memory above high_water is one more range.
static uintptr_t take(size_t bytes) {
    for (auto range = memory.free.begin(); range != memory.free.end(); ++range) {
        if (range->value < bytes) continue;
        uintptr_t begin = range->key;
        size_t left = range->value - bytes;
        memory.free.erase(range);
        if (left) memory.free[begin + bytes] = left;
        return begin;
    }
    uintptr_t end = (uintptr_t)memory.arena + memory.high_water;
    size_t begin_offset = memory.high_water;
    if (!memory.free.empty()) {  // the last free range may reach up to high_water
        auto last = memory.free.end() - 1;
        if (last->key + last->value == end) {
            begin_offset = last->key - (uintptr_t)memory.arena;
            if (begin_offset + bytes <= memory.size) memory.free.erase(last);
        }
    }
    if (begin_offset + bytes > memory.size) return 0;
    uintptr_t begin = (uintptr_t)memory.arena + begin_offset;
    size_t new_high = round_up(begin_offset + bytes, PAGE);
    if (new_high > memory.size) new_high = memory.size;
    if (begin_offset + bytes < new_high)
        memory.free[begin + bytes] = new_high - begin_offset - bytes;
    hand_out(new_high);
    return begin;
}

static void give_back(uintptr_t begin, size_t bytes) {
    auto next = memory.free.lower_bound(begin);
    if (next != memory.free.end() && begin + bytes == next->key) {
        bytes += next->value;
        next = memory.free.erase(next);
    }
    if (next != memory.free.begin()) {
        auto before = next - 1;
        if (before->key + before->value == begin) {
            before->value += bytes;
            return;
        }
    }
    memory.free[begin] = bytes;
}

}  // namespace cudalab
