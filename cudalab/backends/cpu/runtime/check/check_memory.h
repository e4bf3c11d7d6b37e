// Check mode: the memory that a kernel may access, and the state of each word.
#pragma once

#include <sys/mman.h>

#include "check_sites.h"
#include "uses.h"

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
    Cell* cells;  // one per word
    // Of each word the bytes that have a value, a bit each, or UNDER_WAY or MAY_BE_UNSET.
    unsigned char* written;
    size_t words;
};
// A word that an asynchronous copy will write when its thread waits for it.
const unsigned char UNDER_WAY = 16;
// A word into which perhaps a copy of nothing has been stored: it has a value unless it is UNSET.
const unsigned char MAY_BE_UNSET = 32;

// What bytes without a value hold: the number -5123163, or no number of a float.
static inline unsigned char unset_byte(const void* p) {
    return (unsigned char)(0xffb1d3a5u >> (uintptr_t)p % 4 * 8);
}
static void fill_unset(char* p, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) p[i] = (char)unset_byte(p + i);
}
static bool is_unset(const char* p, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i)
        if ((unsigned char)p[i] != unset_byte(p + i)) return false;
    return true;
}

// The bytes of a region that a launch uses. Only whole programs ask for them.
struct Used {
    Use* words;  // null: nobody asks
    UsePlaces* places;
    List<unsigned> pieces;  // those that are used
    size_t num_pieces;
    size_t last_piece;  // whose use was recorded last, at `last_place` with this number
    Place last_place;
    unsigned last_number;

    void watch(size_t bytes, void* (*new_pages)(size_t)) {
        num_pieces = bytes / PIECE + 1;
        words = (Use*)new_pages(num_pieces * PIECE_WORDS * sizeof *words);
        places = (UsePlaces*)new_pages(num_pieces * sizeof *places);
    }
    void drop() {
        if (!words) return;
        munmap(words, num_pieces * PIECE_WORDS * sizeof *words);
        munmap((void*)places, num_pieces * sizeof *places);
        free(pieces.items);
        *this = {};
    }

    // `kind`: 0 loads, 1 stores, 2 changes atomically; `bytes` of the word, a bit each.
    void add(size_t word, unsigned kind, unsigned bytes, Place place) {
        const size_t piece = word / PIECE_WORDS;
        if (place != last_place || piece != last_piece) find_number(piece, place);
        Use use = words[word];
        if (kind || !(use & WRITES)) use = (Use)((use & ANY_USE) | last_number << PLACE_SHIFT);
        words[word] = (Use)(use | bytes << 4 * kind);
    }

    // Calls visit(number, words, places) for each piece that is used, and forgets what is used.
    template <class Visit>
    void take(Visit visit) {
        for (unsigned number : pieces) {
            Use* first = words + number * PIECE_WORDS;
            visit(number, first, places[number]);
            memset(first, 0, PIECE_WORDS * sizeof *first);
            memset(places[number], 0, sizeof *places);
        }
        pieces.clear();
        last_place = 0;
    }

  private:
    __attribute__((noinline)) void find_number(size_t piece, Place place) {
        Place* seen = places[piece];
        if (!seen[0]) pieces.add((unsigned)piece);
        unsigned number = 0;
        while (seen[number] && seen[number] != place && number < NUM_PLACES - 1) ++number;
        seen[number] = place;
        last_piece = piece, last_place = place, last_number = number;
    }
};

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
static const unsigned LOCAL_REGION = NO_REGION - 1;  // the thread's own memory

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
