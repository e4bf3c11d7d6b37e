// Check mode: the memory that a kernel may access, and the state of each word.
#pragma once

#include <sys/mman.h>

#include "check_used.h"

namespace cudalab {

enum Space : unsigned { GLOBAL, SHARED, CONSTANT, LOCAL };
enum AccessKind : unsigned { NO_ACCESS, BLOCK_START, LOAD, STORE, ATOMIC };
enum MarkFlags : unsigned char {
    IS_ATOMIC = 1,
    IS_VOLATILE = 2,
    IN_BLOCK_ONLY = 4,  // an atomic operation of block scope
    IS_UPDATE = 8,      // a store of a thread that has loaded the word on the same line: x = x + 1
    IS_WAITING = 16,    // a load in a loop that waits for others
    CHANGED_NOTHING = 32,  // an atomic operation that turned out to be a load
    IS_READ = 64,
    IS_UNUSED = 128,  // the old value that it returns
    IS_CHECKED =
        128,  // of a plain load: its thread has gone on with a compare-and-swap of the word
};

// An access to a word. Requests are numbered over all blocks and launches, so the number says when
// it was, and in which block; lanes of one instruction have the same. 0: no access.
struct Mark {
    uint64_t request : 40, thread : 10;
    uint64_t bytes : 4;  // of the word, one bit each
    uint64_t flags : 8;
    Place place;
    unsigned clock;  // of the thread, counts its warp barriers and fences

    // In one piece: the fields one by one would take several stores.
    static Mark of(uint64_t request, uint64_t thread, uint64_t bytes, uint64_t flags, Place place,
                   unsigned clock) {
        Mark mark;
        const uint64_t fields = request | thread << 40 | bytes << 50 | flags << 54;
        memcpy((void*)&mark, &fields, sizeof fields);
        mark.place = place, mark.clock = clock;
        return mark;
    }
};

// 4 bytes of memory: the last store, the last atomic operation, and the last loads of two threads.
struct Cell {
    Mark store, atomic, load, other_load;
};
static_assert(sizeof(Cell) == 64, "a line of the cache");

// The state of a piece of memory. Its pages exist once they are touched.
struct Shadow {
    Cell* cells;             // one per word
    unsigned char* written;  // of each word the bytes that have a value, a bit each; UNDER_WAY
    size_t words;
};
// A word that an asynchronous copy will write when its thread waits for it.
const unsigned char UNDER_WAY = 16;

struct Region {
    char *low, *high;
    size_t guard;  // bytes before and after it that belong to no other region
    unsigned space;
    bool used;
    Shadow shadow;  // no cells: counted only
    Used used_bytes;

    // Whether a kernel has allocated it there.
    bool is_at(const char* address) const { return used && guard == 0 && low == address; }
};

static const unsigned NO_REGION = ~0u;

// Memory that a kernel has allocated and freed.
struct Freed {
    const char *low, *high;
    Place place;
};

static void* new_pages(size_t bytes) {
    void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) abort();
    return pages;
}

static Shadow new_shadow(size_t bytes) {
    size_t words = bytes / 4 + 2;
    return {(Cell*)new_pages(words * sizeof(Cell)), (unsigned char*)new_pages(words), words};
}

static void delete_shadow(Shadow& shadow) {
    if (!shadow.cells) return;
    munmap((void*)shadow.cells, shadow.words * sizeof(Cell));
    munmap(shadow.written, shadow.words);
    shadow = {};
}

// No accesses have been made, and the pages are free again.
static void forget_cells(Shadow& shadow) {
    if (shadow.cells) madvise((void*)shadow.cells, shadow.words * sizeof(Cell), MADV_DONTNEED);
}

// The part of a shadow that begins at `offset`, a multiple of 4.
static Shadow part_of(const Shadow& shadow, size_t offset) {
    if (!shadow.cells) return {};
    return {shadow.cells + offset / 4, shadow.written + offset / 4, shadow.words - offset / 4};
}

// The first `bytes` bytes have, or have not, been written.
static void mark_written(Shadow& shadow, size_t bytes, bool written) {
    if (!shadow.cells) return;
    memset(shadow.written, written ? 15 : 0, bytes / 4);
    unsigned char last = (unsigned char)((1u << bytes % 4) - 1);
    if (written)
        shadow.written[bytes / 4] |= last;
    else
        shadow.written[bytes / 4] &= (unsigned char)~last;
}

// `bytes` bytes from `offset` on have been written.
static void mark_part_written(Shadow& shadow, size_t offset, size_t bytes) {
    if (!shadow.cells || !bytes) return;
    const size_t first = offset / 4, last = (offset + bytes - 1) / 4;
    const unsigned from = 15u << offset % 4 & 15, to = 15u >> (3 - (offset + bytes - 1) % 4);
    if (first == last) {
        shadow.written[first] |= (unsigned char)(from & to);
        return;
    }
    shadow.written[first] |= (unsigned char)from;
    memset(shadow.written + first + 1, 15, last - first - 1);
    shadow.written[last] |= (unsigned char)to;
}

}  // namespace cudalab
