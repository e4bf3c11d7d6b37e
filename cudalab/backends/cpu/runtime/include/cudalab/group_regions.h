// Cooperative groups in kernels whose threads are loops (regions.h), beyond barriers and shuffles.
//
// The words __cg_… and __grid_sync are put into such kernels by regions/groups.py. Results are
// those of cooperative_groups.h, to the last bit: a reduction folds the values by rank.
#pragma once

#include "../../kernels/regions.h"
#include "cooperative_groups.h"
#include "cooperative_groups/reduce.h"

// For their types.
template <class T, class Op>
T __cg_reduce(unsigned mask, T value, Op op);
template <class T, class... Op>
T __cg_inclusive_scan(unsigned mask, T value, Op... op);
template <class T, class... Op>
T __cg_exclusive_scan(unsigned mask, T value, Op... op);
template <class T>
cooperative_groups::coalesced_group __cg_split(unsigned mask, T label);
cooperative_groups::coalesced_group __cg_here();

namespace cudalab {

inline unsigned size_of(unsigned mask) {
    return (unsigned)__builtin_popcount(mask);
}
inline unsigned lanes_of_tile(unsigned size, unsigned thread) {
    return ((1u << size) - 1) << (thread & 31 & ~(size - 1));
}
// A mask of lanes as a mask of ranks.
inline unsigned ranks_of(unsigned mask, unsigned lanes) {
    unsigned ranks = 0, rank = 0;
    for (unsigned left = mask; left; left &= left - 1, ++rank)
        ranks |= (lanes >> __builtin_ctz(left) & 1) << rank;
    return ranks;
}
// The rank of a thread among the lanes of a mask, and the lanes that shuffles take values from.
inline unsigned rank_in(unsigned mask, unsigned thread) {
    return size_of(mask & ((1u << (thread & 31)) - 1));
}
inline unsigned lane_at(unsigned mask, unsigned, unsigned rank) {
    return lane_of_rank(mask, rank % size_of(mask));
}
inline unsigned lane_below(unsigned mask, unsigned thread, unsigned delta) {
    const unsigned rank = rank_in(mask, thread);
    return lane_of_rank(mask, rank >= delta ? rank - delta : rank);
}
inline unsigned lane_above(unsigned mask, unsigned thread, unsigned delta) {
    const unsigned rank = rank_in(mask, thread);
    return lane_of_rank(mask, rank + delta < size_of(mask) ? rank + delta : rank);
}
inline unsigned lane_across(unsigned mask, unsigned thread, unsigned bits) {
    const unsigned rank = rank_in(mask, thread), other = rank ^ bits;
    return lane_of_rank(mask, other < size_of(mask) ? other : rank);
}

namespace regions {

template <class S>
inline void __grid_sync(const Block&, const S& from, const char* file, int line) {
    const unsigned* here = lanes_of(from);
    bool any = !here;
    for (unsigned warp = 0; warp < 32 && !any; ++warp) any = here[warp] != 0;
    if (any) sync_grid_of_loops(file, line);
}

// The lanes of a warp that have a mask in common, by rank.
struct Ranks {
    unsigned mask, count, thread[32];
    bool present[32];  // else it has returned from the kernel
};

// Calls `work` for each group of lanes.
template <class S, class R, class M, class V, class F>
inline void by_groups(const Block& block, const S& from, R* results, const M& masks,
                      const V& values, const char* file, int line, F work) {
    const WarpCall call = call_of(block, from, results, masks, values, file, line);
    cudalab_meet(&call);
    for (unsigned warp = 0; warp < block.warps; ++warp) {
        const unsigned first = 32 * warp, all = block.lanes(warp);
        const unsigned live = block.live ? block.live->lanes[warp] & all : all;
        for (unsigned left = call.here ? call.here[warp] & all : all; left;) {
            Ranks ranks;
            ranks.mask = masks[first + (unsigned)__builtin_ctz(left)];
            ranks.count = 0;
            for (unsigned lanes = ranks.mask; lanes; lanes &= lanes - 1, ++ranks.count) {
                const unsigned lane = (unsigned)__builtin_ctz(lanes);
                ranks.thread[ranks.count] = first + lane;
                ranks.present[ranks.count] = live >> lane & 1;
            }
            work(ranks);
            left &= ~ranks.mask;
        }
    }
}

// The values of lanes by rank; where a lane has returned from the kernel, all bits are 0.
template <class T>
struct OfRanks {
    alignas(T) unsigned char bytes[32 * sizeof(T)];
    T& operator[](unsigned rank) { return ((T*)bytes)[rank]; }

    template <class V>
    OfRanks(const Ranks& ranks, const V& values) {
        for (unsigned rank = 0; rank < ranks.count; ++rank) {
            T& to = (*this)[rank];
            if (ranks.present[rank])
                __builtin_memcpy((void*)&to, &values[ranks.thread[rank]], sizeof(T));
            else
                __builtin_memset((void*)&to, 0, sizeof(T));
        }
    }
    void give(const Ranks& ranks, T* results) {
        for (unsigned rank = 0; rank < ranks.count; ++rank)
            if (ranks.present[rank]) results[ranks.thread[rank]] = (*this)[rank];
    }
};

template <class S, class T, class M, class V, class O>
inline void __cg_reduce(const Block& block, const S& from, T* results, const M& masks,
                        const V& values, const O& ops, const char* file, int line) {
    by_groups(block, from, results, masks, values, file, line, [&](const Ranks& ranks) {
        OfRanks<T> own(ranks, values);
        for (unsigned left = ranks.count; left > 1;) {
            const unsigned half = (left + 1) / 2;
            for (unsigned rank = 0; rank + half < left; ++rank) {
                auto op = ops[ranks.thread[rank]];
                if (ranks.present[rank]) own[rank] = op(own[rank], own[rank + half]);
            }
            left = half;
        }
        for (unsigned rank = 1; rank < ranks.count; ++rank) own[rank] = own[0];
        own.give(ranks, results);
    });
}

template <class T, class O>
inline void scan(const Ranks& ranks, OfRanks<T>& own, const O& ops) {
    for (unsigned offset = 1; offset < ranks.count; offset *= 2)
        for (unsigned rank = ranks.count - 1; rank >= offset; --rank) {
            auto op = ops[ranks.thread[rank]];
            if (ranks.present[rank]) own[rank] = op(own[rank - offset], own[rank]);
        }
}
template <class S, class T, class M, class V, class O>
inline void __cg_inclusive_scan(const Block& block, const S& from, T* results, const M& masks,
                                const V& values, const O& ops, const char* file, int line) {
    by_groups(block, from, results, masks, values, file, line, [&](const Ranks& ranks) {
        OfRanks<T> own(ranks, values);
        scan(ranks, own, ops);
        own.give(ranks, results);
    });
}
template <class S, class T, class M, class V, class O>
inline void __cg_exclusive_scan(const Block& block, const S& from, T* results, const M& masks,
                                const V& values, const O& ops, const char* file, int line) {
    by_groups(block, from, results, masks, values, file, line, [&](const Ranks& ranks) {
        OfRanks<T> own(ranks, values);
        scan(ranks, own, ops);
        for (unsigned rank = ranks.count - 1; rank > 0; --rank) own[rank] = own[rank - 1];
        own[0] = T();
        own.give(ranks, results);
    });
}
// Without an operation they add.
#define CUDALAB_SCAN(name)                                                                      \
    template <class S, class T, class M, class V>                                               \
    inline void name(const Block& block, const S& from, T* results, const M& masks,             \
                     const V& values, const char* file, int line) {                             \
        name(block, from, results, masks, values, uniform(cooperative_groups::plus<T>()), file, \
             line);                                                                             \
    }
CUDALAB_SCAN(__cg_inclusive_scan)
CUDALAB_SCAN(__cg_exclusive_scan)
#undef CUDALAB_SCAN

// The lanes that are here.
template <class S>
inline void __cg_here(const Block& block, const S& from,
                      cooperative_groups::coalesced_group* results, const char*, int) {
    const unsigned* here = lanes_of(from);
    for (unsigned warp = 0; warp < block.warps; ++warp) {
        const unsigned lanes = here ? here[warp] & block.lanes(warp) : block.lanes(warp);
        for (unsigned left = lanes; left; left &= left - 1)
            results[32 * warp + (unsigned)__builtin_ctz(left)] =
                cooperative_groups::coalesced_group(lanes);
    }
}

// The lanes with the same label; groups are in the order of their first lanes.
template <class S, class M, class V>
inline void __cg_split(const Block& block, const S& from,
                       cooperative_groups::coalesced_group* results, const M& masks,
                       const V& labels, const char* file, int line) {
    unsigned same[1024];
    const WarpCall call = call_of(block, from, &same[0], masks, labels, file, line);
    cudalab_combine(&call, MATCH_ANY, NONE);
    by_groups(block, from, results, masks, labels, file, line, [&](const Ranks& ranks) {
        unsigned before[32], seen = 0, parts = 0;
        for (unsigned rank = 0; rank < ranks.count; ++rank) {
            const unsigned lane = ranks.thread[rank] & 31;
            const unsigned with = ranks.present[rank] ? same[ranks.thread[rank]] : 0;
            if (!(seen >> lane & 1)) {
                for (unsigned left = with; left; left &= left - 1)
                    before[__builtin_ctz(left)] = parts;
                seen |= with;
                ++parts;
            }
        }
        for (unsigned rank = 0; rank < ranks.count; ++rank)
            if (ranks.present[rank]) {
                const unsigned thread = ranks.thread[rank];
                results[thread] =
                    cooperative_groups::coalesced_group(same[thread], before[thread & 31], parts);
            }
    });
}

}  // namespace regions
}  // namespace cudalab
