// Check mode: what is wrong, as Python reads it.
#pragma once

#include <stdarg.h>
#include <string.h>

#include "check_sites.h"

namespace cudalab {

enum FindingKind : unsigned {
    RACE,
    LOST_UPDATE,
    SAME_WORD,
    OUT_OF_BOUNDS,
    MISALIGNED,
    UNINITIALISED,
    BARRIER_DIVERGENCE,
    DEADLOCK,
    WRONG_MASK,
    INFINITE_LOOP,
    CRASH,
    EARLY_RETURN,
    NOT_ARRIVED,
    SAME_VALUE,
    PAST_INNER_ARRAY,
    OUT_OF_REACH,
    OTHER_VALUES,  // of lanes that store to one word in one instruction
    AFTER_FREE,    // of memory that a kernel has allocated
    ZERO_DIVISION,
    UNUSED_VALUE,  // what has no value, by a thread that stores nothing behind it
};
enum Missing : unsigned { NOTHING, SYNCTHREADS, SYNCWARP, FENCE };
const unsigned NO_THREAD = ~0u;

// Python reads these structs.
struct FindingRow {
    unsigned kind;
    Place place, other_place;
    unsigned thread, other_thread;  // linear; NO_THREAD: none
    unsigned access, other_access, space, region, bytes, missing;
    unsigned has_index;  // 2: only a space
    Place by;            // what the detail is about; 0: nothing
    uint64_t block, other_block;
    int64_t offset;  // bytes from the region's start
    int64_t beyond;
    uint64_t count;
    char detail[200];
};

// The findings of a launch; those at the same places are one, which is counted.
struct Findings {
    List<FindingRow> rows;

    // The row of a finding that has been reported; null: there is none.
    const FindingRow* find(FindingKind kind, Place place, Place other, unsigned region) {
        const Map::Slot* slot = number_of.find(key_of(kind, place, other, region));
        return slot ? &rows[slot->value] : nullptr;
    }
    // The finding's row; `fresh` if it is the first of its kind at these places.
    FindingRow& report(FindingKind kind, Place place, Place other, unsigned region, bool& fresh) {
        unsigned index = number_of.put(key_of(kind, place, other, region), (unsigned)rows.count);
        fresh = index == rows.count;
        if (fresh) {
            FindingRow row;
            memset((void*)&row, 0, sizeof row);
            row.kind = kind, row.place = place, row.other_place = other, row.region = region;
            row.thread = row.other_thread = NO_THREAD;
            rows.add(row);
        }
        ++rows[index].count;
        return rows[index];
    }
    void forget() { rows.clear(), number_of.clear(); }

  private:
    Map number_of;

    static uint64_t key_of(FindingKind kind, Place place, Place other, unsigned region) {
        const uint64_t places = ((uint64_t)place * 0x9e3779b1u ^ other) * 0x85ebca77c2b2ae63ull;
        return places ^ (uint64_t)region << 8 ^ (uint64_t)kind << 1 | 1;
    }
};
static Findings findings;

}  // namespace cudalab
