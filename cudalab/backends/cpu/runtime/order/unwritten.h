// Copies that have brought the host what nobody has written, and whether it reads that part of
// them. Part of order.cpp.
#pragma once

#include "order.h"
#include "tasks.h"

namespace cudalab {

static List<UnwrittenCopy>& unwritten =
    *(List<UnwrittenCopy>*)calloc(1, sizeof(List<UnwrittenCopy>));
const size_t MOST_UNWRITTEN = 64;

// The host reads what has no value, at a `place`. If it is 0, nobody has seen that; then the copy
// counts unless the host has read other parts of it.
static void end_unwritten(size_t number, unsigned place) {
    const UnwrittenCopy copy = unwritten[number];
    unwritten.remove_at(number);
    char text[900];
    const char* const format = place ? "%s:%d: %s. The host reads that at #%u#" : "%s:%d: %s";
    snprintf(text, sizeof text, format, copy.call.file, copy.call.line, copy.text, place);
    if (place || !copy.reads_others) report(MessageKind::UNWRITTEN, text);
    free(copy.has_none), free(copy.text);
}
// The host, or a copy to it, uses bytes.
static void use_unwritten(uintptr_t address, size_t bytes, bool stores, unsigned place) {
    for (size_t number = unwritten.size(); number-- > 0;) {
        UnwrittenCopy& copy = unwritten[number];
        const size_t begin = address > copy.to ? address - copy.to : 0;
        const size_t end = address + bytes > copy.to ? address + bytes - copy.to : 0;
        bool reads_none = false;
        for (size_t i = begin; i < end && i < copy.bytes; ++i) {
            reads_none |= !stores && copy.has_none[i];
            copy.reads_others |= !stores && !copy.has_none[i];
            copy.has_none[i] &= !stores;
        }
        if (reads_none) end_unwritten(number, place);
    }
}

}  // namespace cudalab
