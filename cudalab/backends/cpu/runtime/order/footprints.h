// What the work that may still be under way uses of memory. Part of order.cpp.
#pragma once

#include "internal.h"
#include "list.h"
#include "uses.h"

namespace cudalab {

const Use EVERY_BYTE = 0xf;

// The use of a piece of memory by one piece of work: the same of all words, or of each its own.
struct Footprint {
    unsigned task;
    UsePlaces places;  // 0: that of the task
    Use same;
    Use* words;

    uint64_t four(size_t word) const {  // words
        if (!words) return same * 0x0001000100010001ull;
        uint64_t uses;
        memcpy(&uses, words + word, sizeof uses);
        return uses;
    }
    bool make_words() {
        if (words) return true;
        words = (Use*)malloc(PIECE_WORDS * sizeof *words);
        for (size_t i = 0; words && i < PIECE_WORDS; ++i) words[i] = same;
        return words;
    }
    void drop() { free(words); }
};

// A bit for each byte of four words that is loaded, stored, changed by an atomic.
struct Bytes {
    uint64_t loads, stores, atomics;
    explicit Bytes(uint64_t four)
        : loads(four & EACH), stores(four >> 4 & EACH), atomics(four >> 8 & EACH) {}
    static const uint64_t EACH = 0x000f000f000f000full;
};

// The first byte of the piece that two pieces of work use in ways that need an order, or PIECE.
static size_t find_conflict(const Footprint& one, const Footprint& other) {
    const size_t words = one.words || other.words ? PIECE_WORDS : 4;
    for (size_t word = 0; word < words; word += 4) {
        const uint64_t four = one.four(word), others = other.four(word);
        if (!four || !others) continue;
        const Bytes a(four), b(others);
        const uint64_t both = (a.stores & (b.loads | b.stores | b.atomics)) |
                              (b.stores & (a.loads | a.atomics)) | (a.loads & b.atomics) |
                              (a.atomics & b.loads);
        if (!both) continue;
        const unsigned bit = (unsigned)__builtin_ctzll(both);
        return (word + bit / 16) * 4 + bit % 16;
    }
    return PIECE;
}
static Use use_of(const Footprint& footprint, size_t byte) {
    return footprint.words ? footprint.words[byte / 4] : footprint.same;
}
// 0: the byte is loaded, 1: stored, 2: changed by an atomic. Stores come first.
static unsigned kind_at(const Footprint& footprint, size_t byte) {
    const unsigned use = use_of(footprint, byte) >> byte % 4;
    return use & 0x10 ? 1 : use & 0x100 ? 2 : 0;
}
static unsigned place_at(const Footprint& footprint, size_t byte) {
    return footprint.places[use_of(footprint, byte) >> PLACE_SHIFT];
}
// Removes what need not be remembered: whatever conflicts with it conflicts with `later`, too,
// which comes after it. Returns whether anything is left.
static bool forget_covered(Footprint& earlier, const Footprint& later) {
    if (!earlier.words && !later.words) {
        const Bytes by(later.same);
        earlier.same &= (Use) ~(by.stores * 0x111 | by.loads | by.atomics << 8);
        return earlier.same & ANY_USE;
    }
    if (!earlier.make_words()) return true;
    uint64_t left = 0;
    for (size_t word = 0; word < PIECE_WORDS; word += 4) {
        const Bytes by(later.four(word));
        const uint64_t rest =
            earlier.four(word) & ~(by.stores * 0x111 | by.loads | by.atomics << 8);
        memcpy(earlier.words + word, &rest, sizeof rest);
        left |= rest & ANY_USE * 0x0001000100010001ull;
    }
    return left;
}

const unsigned NO_TASK = ~0u;

// Whether some word is used in one of the ways.
static bool uses_any(const Footprint& used, Use ways) {
    for (size_t word = 0; used.words && word < PIECE_WORDS; ++word)
        if (used.words[word] & ways) return true;
    return !used.words && used.same & ways;
}

// What kernels have stored in memory, and who has looked at it.
struct Result {
    const char* kernel;  // the last that has stored there; null: none
    Place launch;
    size_t number;              // of that launch
    bool is_loaded, is_copied;  // by kernels; by copies

    void become(const char* by, Place at, size_t number_of_launch) {
        kernel = by, launch = at, number = number_of_launch;
    }
};

// An allocation or a variable.
struct Memory {
    uintptr_t begin;
    size_t bytes;
    unsigned region;
    bool is_for_host;
    Place place;
    unsigned made_by;         // the task of cudaMallocAsync, or NO_TASK
    List<Footprint>* pieces;  // null: no work under way uses it
    bool is_plain;            // of cudaMalloc
    Result result;
    bool is_used() const { return pieces || made_by != NO_TASK; }

    size_t num_pieces() const { return bytes / PIECE + 1; }
    void forget() {
        made_by = NO_TASK;
        for (size_t i = 0; pieces && i < num_pieces(); ++i) {
            for (Footprint& each : pieces[i]) each.drop();
            pieces[i].~List<Footprint>();
        }
        free((void*)pieces);
        pieces = nullptr;
    }
    List<Footprint>& piece(size_t number) {
        if (!pieces) pieces = (List<Footprint>*)calloc(num_pieces(), sizeof *pieces);
        if (!pieces) abort();
        return pieces[number];
    }
};

// Calls visit(piece, footprint) for the pieces of memory that a range of bytes lies in.
template <class Visit>
static void for_pieces(size_t offset, size_t bytes, unsigned kind, Visit visit) {
    static thread_local Use words[PIECE_WORDS];
    for (const size_t end = offset + bytes; offset < end;) {
        const size_t piece = offset / PIECE, first = offset % PIECE;
        const size_t behind = end - piece * PIECE < PIECE ? end - piece * PIECE : PIECE;
        Footprint used = {NO_TASK, {}, (Use)(EVERY_BYTE << 4 * kind), nullptr};
        if (first || behind < PIECE) {
            memset(words, 0, sizeof words);
            for (size_t at = first; at < behind; ++at)
                words[at / 4] |= (Use)(1 << at % 4 << 4 * kind);
            used.words = words;
        }
        visit(piece, used);
        offset = (piece + 1) * PIECE;
    }
}

}  // namespace cudalab
