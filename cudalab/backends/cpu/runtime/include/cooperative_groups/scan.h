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
// Of several warps: each by itself, behind the sums of those before it.
template <unsigned SIZE, class Parent, class T, class Op = plus<T>>
inline T inclusive_scan(const thread_block_tile<SIZE, Parent>& tile, T value, Op op = Op(),
                        CUDALAB_HERE) {
    const T sum = inclusive_scan<lane_tile<(SIZE < 32 ? SIZE : 32)>>(
        tiled_partition<(SIZE < 32 ? SIZE : 32)>(tile), value, op, file, line);
    if constexpr (SIZE <= 32) {
        return sum;
    } else {
        T sums[SIZE / 32];
        tile.exchange(sum, tile.thread_rank() % 32 == 31, sums, file, line);
        const unsigned warp = tile.thread_rank() / 32;
        if (warp == 0) return sum;
        for (unsigned i = 1; i < warp; ++i) sums[0] = op(sums[0], sums[i]);
        return op(sums[0], sum);
    }
}
template <unsigned SIZE, class Parent, class T, class Op = plus<T>>
inline T exclusive_scan(const thread_block_tile<SIZE, Parent>& tile, T value, Op op = Op(),
                        CUDALAB_HERE) {
    if constexpr (SIZE <= 32) {
        return exclusive_scan<lane_tile<SIZE>>(tile, value, op, file, line);
    } else {
        const T sum = inclusive_scan(tile, value, op, file, line);
        T sums[SIZE / 32];
        tile.exchange(sum, tile.thread_rank() % 32 == 31, sums, file, line);
        const T before = tiled_partition<32>(tile).shfl_up(sum, 1, file, line);
        const unsigned rank = tile.thread_rank();
        return rank == 0 ? T() : rank % 32 ? before : sums[rank / 32 - 1];
    }
}

}  // namespace cooperative_groups
