// Reductions over the lanes of a group: every lane gets the result.
#pragma once

#include "cooperative_groups.h"

namespace cooperative_groups {

template <class Group, class T, class Op>
inline T reduce(const Group& group, T value, Op op, CUDALAB_HERE) {
    const unsigned rank = (unsigned)group.thread_rank();
    // Folds halves, leaving an odd one in the middle; at the end the first rank shares the result.
    for (unsigned left = (unsigned)group.size(); left > 1;) {
        const unsigned half = (left + 1) / 2;
        const T other = group.shfl(value, rank + half < left ? rank + half : rank, file, line);
        if (rank + half < left) value = op(value, other);
        left = half;
    }
    return group.shfl(value, 0, file, line);
}
// Of several warps: each by itself, and then their results.
template <unsigned SIZE, class Parent, class T, class Op>
inline T reduce(const thread_block_tile<SIZE, Parent>& tile, T value, Op op, CUDALAB_HERE) {
    if constexpr (SIZE <= 32) {
        return reduce<lane_tile<SIZE>>(tile, value, op, file, line);
    } else {
        const T of_warp = reduce(tiled_partition<32>(tile), value, op, file, line);
        return tile.gather(of_warp, op, file, line);
    }
}

}  // namespace cooperative_groups
