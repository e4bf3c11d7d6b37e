// Reductions over the lanes of a group: every lane gets the result.
#pragma once

#include "../cooperative_groups.h"

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

}  // namespace cooperative_groups
