// The results of warp operations, computed once all their lanes have arrived.
#pragma once

#include "cudalab_cpu.h"

namespace cudalab {

static uint64_t combine(WarpOp op, uint64_t a, uint64_t b) {
    switch (op) {
        case ADD:
            return (unsigned)a + (unsigned)b;
        case MIN_SIGNED:
            return (uint64_t)(int64_t)((int)a < (int)b ? (int)a : (int)b);
        case MAX_SIGNED:
            return (uint64_t)(int64_t)((int)a > (int)b ? (int)a : (int)b);
        case MIN_UNSIGNED:
            return (unsigned)a < (unsigned)b ? a : b;
        case MAX_UNSIGNED:
            return (unsigned)a > (unsigned)b ? a : b;
        case AND:
            return a & b;
        case OR:
            return a | b;
        default:
            return a ^ b;
    }
}

// All lanes of `group` have arrived at `op`: give each its result. Arrays are those of the warp,
// indexed by lane.
static void complete(WarpOp op, unsigned group, const uint64_t* value, const unsigned* source,
                     uint64_t* result) {
    if (op == SYNC) return;
    if (op == SHUFFLE) {
        for (unsigned left = group; left; left &= left - 1) {
            unsigned lane = __builtin_ctz(left), from = source[lane] & 31;
            result[lane] = group >> from & 1 ? value[from] : 0;  // as on an H200
        }
    } else if (op == VOTE) {
        unsigned votes = 0;
        for (unsigned lane = 0; lane < 32; ++lane) votes |= (unsigned)(value[lane] & 1) << lane;
        uint64_t both = (uint64_t)group << 32 | (votes & group);
        for (unsigned lane = 0; lane < 32; ++lane)
            if (group >> lane & 1) result[lane] = both;
    } else if (op == MATCH_ANY) {
        for (unsigned left = group; left;) {
            uint64_t wanted = value[__builtin_ctz(left)];
            unsigned same = 0;
            for (unsigned lane = 0; lane < 32; ++lane)
                same |= (unsigned)(value[lane] == wanted) << lane;
            same &= left;
            left &= ~same;
            for (unsigned s = same; s; s &= s - 1) result[__builtin_ctz(s)] = same;
        }
    } else if (op == MATCH_ALL) {
        uint64_t wanted = value[__builtin_ctz(group)];
        unsigned same = 0;
        for (unsigned lane = 0; lane < 32; ++lane)
            same |= (unsigned)(value[lane] == wanted) << lane;
        uint64_t all = (same & group) == group ? group : 0;
        for (unsigned g = group; g; g &= g - 1) result[__builtin_ctz(g)] = all;
    } else {
        unsigned first = __builtin_ctz(group);
        uint64_t total = value[first];
        for (unsigned g = group & (group - 1); g; g &= g - 1)
            total = combine(op, total, value[__builtin_ctz(g)]);
        for (unsigned g = group; g; g &= g - 1) result[__builtin_ctz(g)] = total;
    }
}

}  // namespace cudalab
