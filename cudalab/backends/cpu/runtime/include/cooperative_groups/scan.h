// Scans over the lanes of a group.
#pragma once

#include "cooperative_groups.h"

namespace cooperative_groups {

template <class Group, class T, class Op = plus<T>>
inline T inclusive_scan(const Group& group, T value, Op op = Op(), CUDALAB_HERE) {
    const unsigned size = (unsigned)group.size(), rank = (unsigned)group.thread_rank();
    for (unsigned offset = 1; offset < size; offset *= 2) {
        const T left = group.shfl_up(value, offset, file, line);
        if (rank >= offset) value = op(left, value);
    }
    return value;
}
template <class Group, class T, class Op = plus<T>>
inline T exclusive_scan(const Group& group, T value, Op op = Op(), CUDALAB_HERE) {
    const T before = group.shfl_up(inclusive_scan(group, value, op, file, line), 1, file, line);
    return group.thread_rank() ? before : T();
}

}  // namespace cooperative_groups
