// Asynchronous copies of a block's threads (cp.async), carried out when the thread waits for them,
// which is as late as a GPU may do it. A kernel that forgets to wait, or to close the group that it
// waits for, reads the previous contents, as it may on a GPU.
#pragma once

#include <stdlib.h>
#include <string.h>

namespace cudalab {

struct AsyncCopy {
    char* to;
    const char* from;
    unsigned bytes, zeros;  // bytes written; the last `zeros` of them are zeros, not read
    unsigned group;         // the number of groups that were closed before
};

// The copies of one thread, in order.
struct AsyncCopies {
    AsyncCopy* items;
    unsigned begin, end, room;
    unsigned closed;  // groups

    void add(void* to, const void* from, size_t bytes, size_t zeros) {
        if (begin == end) begin = end = 0;
        if (end == room) {
            room = room ? 2 * room : 16;
            items = (AsyncCopy*)realloc(items, room * sizeof *items);
            if (!items) abort();
        }
        items[end++] = {(char*)to, (const char*)from, (unsigned)bytes, (unsigned)zeros, closed};
    }
    void close() { ++closed; }
    // Calls arrive(copy) for all copies but those of the last `under_way` closed groups.
    template <class F>
    void wait(unsigned under_way, F arrive) {
        for (; begin < end && items[begin].group + under_way < closed; ++begin) {
            const AsyncCopy& copy = items[begin];
            memcpy(copy.to, copy.from, copy.bytes - copy.zeros);
            memset(copy.to + copy.bytes - copy.zeros, 0, copy.zeros);
            arrive(copy);
        }
    }
    void forget() { begin = end = closed = 0; }
};

}  // namespace cudalab
