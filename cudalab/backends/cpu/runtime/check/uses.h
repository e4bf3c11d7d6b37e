// What a launch uses, and what the host may not use yet: shared by check mode (check_memory.h) and
// the order of a program's work (order.cpp).
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace cudalab {

// How a word is used: for loads, stores and atomics four bits each, one for each byte; then the
// number of a place: of the last store or atomic, or else of the last load.
typedef uint16_t Use;
const Use WRITES = 0xff0, ANY_USE = 0xfff;
const unsigned PLACE_SHIFT = 12, NUM_PLACES = 16;

const size_t PIECE = 4096, PIECE_WORDS = PIECE / 4;  // memory is looked at in pieces
typedef unsigned UsePlaces[NUM_PLACES];              // of a piece: lines, in check mode's form

// The host's own accesses between these addresses are reported, `kind` 0 loads, 1 stores; and its
// compare-and-swaps.
struct HostWatch {
    uintptr_t low, high;
    void (*use)(uintptr_t address, size_t bytes, unsigned kind, unsigned place);
    void (*check)(uintptr_t address);
};

}  // namespace cudalab
