// Check mode: the bytes of a region that a launch uses. Only whole programs ask for them.
#pragma once

#include "check_sites.h"
#include "uses.h"

namespace cudalab {

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

}  // namespace cudalab
