// The results of operations of warps and blocks, computed once all their threads have arrived. A
// scheduler's `state` has who is where: Worker of the plain one, `run` of check mode.
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

// The warps of a tile of several, at whose barrier `thread` waits.
struct WarpsOfTile {
    unsigned count, first, end;

    template <class State>
    WarpsOfTile(const State& state, unsigned thread)
        : count((unsigned)state.value[thread]), first((thread >> 5) / count * count) {
        end = first + count < state.warps ? first + count : state.warps;
    }

    // Whether all their live threads wait there.
    template <class State>
    bool have_arrived(const State& state) const {
        for (unsigned warp = first; warp < end; ++warp) {
            if (state.live[warp] & ~state.at_warp_op[warp]) return false;
            for (unsigned left = state.live[warp]; left; left &= left - 1) {
                const unsigned other = warp * 32 + __builtin_ctz(left);
                if (state.op[other] != TILE || state.value[other] != count) return false;
            }
        }
        return true;
    }
};

// Gives the block the result of its vote, if that is what its barrier was for.
template <class State>
void count_votes(State& state) {
    if (state.block_op == COUNT) current.block_vote = state.predicates;
    if (state.block_op == ALL) current.block_vote = state.predicates == state.voters;
    if (state.block_op == ANY) current.block_vote = state.predicates != 0;
    state.block_op = NONE;
    state.predicates = state.voters = 0;
}

}  // namespace cudalab
