// Check mode: the source line that a hook was called from.
//
// assembly/ puts a table of all calls into the instrumented library, by return address.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

namespace cudalab {

// IS_END: a block that only leaves the function. IS_LIBRARY: a header whose accesses are observed,
// as those of the line that called it. IS_JOIN: a block where lanes may meet again. IS_IN_WAIT: a
// call in a loop that only waits; IS_READER: one in a function that such a loop may call.
enum SiteFlags : unsigned {
    IS_BLOCK = 1,
    IS_HEADER = 2,
    IS_BRANCH = 4,
    IS_END = 8,
    IS_LIBRARY = 16,
    IS_JOIN = 32,
    IS_IN_WAIT = 64,
    IS_READER = 128,
    RESULT_UNUSED = 256,
    IS_LOCAL = 512,    // of a check of an index: the array is the thread's own
    NO_CALL = 1024,    // where there was a call that is not needed
    IS_BLIND = 2048,   // no call: an access that has no hook, in the block of the site `head`
    IS_ACCESS = 4096,  // the hook of an access that is made whenever the block `head` is entered
    ADDS_ONE = 8192,   // atomicAdd of the constant 1 to an int, without a use of the result
    IN_FRAME = 16384,  // an access to a variable of its own function, at an index that is checked
    // Of a line whose loads or stores nvcc makes in local memory; Python sets these.
    LOADS_LOCAL = 32768,
    STORES_LOCAL = 65536,
    IS_WHOLE = 524288,    // IN_FRAME, and no element of an array
    IS_FOREIGN = 262144,  // in a library of others
    IS_FIXED = 131072,    // of a check of an index: the array never changes, and has no other hook
};

struct Site {
    uintptr_t return_address;
    unsigned file, line, flags;
    unsigned branch_file, branch_line;  // of the branch that ends the basic block
    unsigned floats, doubles;           // operations in the basic block
    unsigned function;                  // a number
    unsigned head;                      // site of the block whose condition this one continues
};

// A line of a file in one number.
typedef unsigned Place;
static inline Place place_of(unsigned file, unsigned line) {
    return file << 20 | line;
}

// What is known of the accesses at a site: they have been looked at, or were made where the
// instrument does not look.
// ELSEWHERE: in memory of the program that is not known to be a variable of kernels.
// UNALIGNED: a whole structure lies where one of its size need not be aligned.
// ENTERED: of a block; OWN: the memory is the thread's (LOCAL_MEMORY), or the instrument's.
// NOT_KNOWN_LOCAL: nobody knows which variable of the thread it is.
enum Looks : unsigned char {
    LOOKED_AT = 1,
    NOT_LOOKED_AT = 2,
    ENTERED = 4,
    OWN = 8,
    LOCAL_MEMORY = 16,
    UNALIGNED = 32,
    ELSEWHERE = 64,
    NOT_KNOWN_LOCAL = 128
};

// A list that grows. The runtime is linked without a C++ library.
template <class T>
struct List {
    T* items = nullptr;
    size_t count = 0, capacity = 0;

    T& operator[](size_t i) { return items[i]; }
    T* begin() { return items; }
    T* end() { return items + count; }
    T& add(const T& item) {
        if (count == capacity) {
            capacity = capacity ? 2 * capacity : 16;
            items = (T*)realloc((void*)items, capacity * sizeof(T));
            if (!items) abort();
        }
        return items[count++] = item;
    }
    void clear() { count = 0; }
};

// From 64-bit keys (not 0) to numbers.
struct Map {
    struct Slot {
        uint64_t key;
        unsigned value;
    };
    Slot* slots = nullptr;
    size_t used = 0, mask = 0;

    static size_t hash(uint64_t key) { return (size_t)((key * 0x9e3779b97f4a7c15ull) >> 20); }
    Slot* find(uint64_t key) {
        if (!slots) return nullptr;
        for (size_t i = hash(key) & mask;; i = (i + 1) & mask) {
            if (slots[i].key == key) return &slots[i];
            if (!slots[i].key) return nullptr;
        }
    }
    // The value of `key`; if it has none, it gets `value`.
    unsigned& put(uint64_t key, unsigned value) {
        if (Slot* found = find(key)) return found->value;
        if (2 * (used + 1) > mask) grow();
        ++used;
        Slot& slot = free_slot(key);
        slot = {key, value};
        return slot.value;
    }
    void clear() {
        if (slots) memset((void*)slots, 0, (mask + 1) * sizeof *slots);
        used = 0;
    }

  private:
    Slot& free_slot(uint64_t key) {
        size_t i = hash(key) & mask;
        while (slots[i].key) i = (i + 1) & mask;
        return slots[i];
    }
    void grow() {
        Slot* old = slots;
        size_t size = old ? mask + 1 : 0;
        mask = size ? 2 * size - 1 : 63;
        slots = (Slot*)calloc(mask + 1, sizeof *slots);
        if (!slots) abort();
        for (size_t i = 0; i < size; ++i)
            if (old[i].key) free_slot(old[i].key) = old[i];
        free(old);
    }
};

// The sites of one library. Number 0 means no site. No two return addresses share 4 bytes, so what
// hooks need of a site lies in a table by address.
struct Sites {
    struct Call {
        unsigned site;
        unsigned short flags;
        unsigned short offset;  // of the return address in its 4 bytes
    };

    const Site* rows;  // the first has number 1
    size_t count;
    uintptr_t first;
    size_t num_places;
    Call* by_place;
    Place* places;
    unsigned char* looks;  // of Looks, of each site

    void index(const Site* sites, size_t num_sites) {
        rows = sites, count = num_sites;
        uintptr_t last = first = count ? rows[0].return_address : 0;
        for (size_t i = 0; i < count; ++i) {
            const uintptr_t address = rows[i].return_address;
            first = address < first ? address : first;
            last = address > last ? address : last;
        }
        num_places = count ? ((last - first) >> 2) + 1 : 0;
        by_place = (Call*)calloc(num_places + 1, sizeof *by_place);
        places = (Place*)calloc(count + 1, sizeof *places);
        looks = (unsigned char*)calloc(count + 1, sizeof *looks);
        if (!by_place || !places || !looks) abort();
        for (size_t i = 0; i < count; ++i) {
            places[i + 1] = place_of(rows[i].file, rows[i].line);
            if (rows[i].flags & NO_CALL) continue;
            const uintptr_t offset = rows[i].return_address - first;
            by_place[offset >> 2] = {(unsigned)i + 1, (unsigned short)rows[i].flags,
                                     (unsigned short)(offset & 3)};
        }
    }
    Call call(uintptr_t return_address) const {
        const uintptr_t offset = return_address - first;
        if (offset >> 2 >= num_places) return {};
        const Call found = by_place[offset >> 2];
        return found.offset == (offset & 3) ? found : Call{};
    }
    unsigned at(uintptr_t return_address) const { return call(return_address).site; }
    const Site& operator[](unsigned number) const { return rows[number - 1]; }
    Place place(unsigned number) const { return places[number]; }
};

}  // namespace cudalab
