// Sums over all earlier tiles, in one launch: a block publishes its tile's sum and looks back at
// those of earlier tiles.
//
// Blocks take tiles by ticket: a block only ever waits for tiles that running blocks have taken, in
// any order of block starts.
//
// The published scheme walks back over single tiles until it meets one whose complete prefix is
// known. How far it walks depends on timing, and with it the order of additions: floats would
// differ from run to run. Here tiles form groups of 32 and super-groups of 32 groups. The last tile
// of a group publishes the group's sum, the last tile of a super-group the prefix up to its end. A
// tile's prefix is then always the same sum of three: the super-groups before, the groups before it
// in its super-group, the tiles before it in its group. One warp fetches all at once, one per lane.
//
// Each published value has a status word: {flag, value} in 64 bits for items of 4 bytes, written
// and read whole, so that no fence is needed; for items of 8 bytes the word is the flag, and a
// fence separates flag and value: common/device/signals.cuh. The flag is the number of the run, so
// that statuses are never cleared between launches.
//
// Limits: a chain of one hop for every 1024 tiles remains.
#pragma once
#include "common/device/signals.cuh"
#include "common/thread/operators.cuh"
#include "common/warp/warp_scan.cuh"

using Op = OP<T>;

using Word = unsigned long long;

// Everything that tiles, groups and super-groups publish, in this order.
struct Statuses {
    Word* words;  // as many as there are nodes; for items of 8 bytes as many values follow
    unsigned groups, supers, nodes;  // where groups and super-groups begin, and the end
    unsigned run;                    // the flag of this launch
};

constexpr bool PACKED = sizeof(T) == 4;  // flag and value share a word

__device__ inline Word bits_of(T value) {
    Word bits = 0;
    memcpy(&bits, &value, sizeof(T));
    return bits;
}
__device__ inline T value_of(Word bits) {
    T value;
    memcpy(&value, &bits, sizeof(T));
    return value;
}
__device__ inline bool ready(Word word, unsigned run) {
    return (unsigned)(word >> 32) == run;
}

__device__ inline void publish(const Statuses& statuses, unsigned node, T value) {
    Word word = (Word)statuses.run << 32;
    if (PACKED) {
        word |= bits_of(value);
    } else {
        store_relaxed(statuses.words + statuses.nodes + node, bits_of(value));
        fence_device();  // a reader that sees the flag must see the value
    }
    store_relaxed(statuses.words + node, word);
}

// The word of the node that this lane waits for, or a ready one if it waits for none.
__device__ inline Word peek(const Statuses& statuses, unsigned node, bool wanted) {
    return wanted ? load_relaxed(statuses.words + node)
                  : (Word)statuses.run << 32 | (PACKED ? bits_of(Op::identity()) : 0);
}

// The value of a node whose word is ready.
__device__ inline T value_at(const Statuses& statuses, unsigned node, bool wanted, Word word) {
    if (PACKED) return value_of(word & 0xffffffffu);
    return wanted ? value_of(load_relaxed(statuses.words + statuses.nodes + node)) : Op::identity();
}

// The sum over the lanes of a warp, in all of them.
__device__ inline T sum_over_warp(T value) {
    return __shfl_sync(FULL_WARP, inclusive_scan_warp(value, Op()), 31);
}

// The sum of all items before `tile`, whose own sum is `tile_sum`. One whole warp calls it.
__device__ inline T look_back(const Statuses& statuses, unsigned tile, T tile_sum) {
    const unsigned lane = threadIdx.x % 32;
    const unsigned group = tile / 32, super = group / 32;
    const unsigned tile_node = group * 32 + lane;
    const unsigned group_node = statuses.groups + super * 32 + lane;
    const unsigned super_node = statuses.supers + super - 1;  // the prefix up to this super-group
    const bool tile_wanted = lane < tile % 32, group_wanted = lane < group % 32;
    const bool super_wanted = super > 0;

    // All three are requested together: the last two have usually arrived with the first.
    Word tile_word, group_word, super_word;
    while (true) {
        tile_word = peek(statuses, tile_node, tile_wanted);
        group_word = peek(statuses, group_node, group_wanted);
        super_word = peek(statuses, super_node, super_wanted);
        if (__all_sync(FULL_WARP, ready(tile_word, statuses.run))) break;
        __nanosleep(32);  // leave the memory to the blocks that are waited for
    }
    if (!PACKED) fence_device();  // values are read after their flags
    const T in_group = sum_over_warp(value_at(statuses, tile_node, tile_wanted, tile_word));
    const T through_tile = Op()(in_group, tile_sum);
    if (tile % 32 == 31 && lane == 0) publish(statuses, statuses.groups + group, through_tile);

    while (!__all_sync(FULL_WARP,
                       ready(group_word, statuses.run) && ready(super_word, statuses.run))) {
        __nanosleep(32);
        group_word = peek(statuses, group_node, group_wanted);
        super_word = peek(statuses, super_node, super_wanted);
    }
    if (!PACKED) fence_device();  // values are read after their flags
    const T in_super = sum_over_warp(value_at(statuses, group_node, group_wanted, group_word));
    const T before_group = Op()(value_at(statuses, super_node, super_wanted, super_word), in_super);
    if (tile % 1024 == 1023 && lane == 0)
        publish(statuses, statuses.supers + super, Op()(before_group, through_tile));
    return Op()(before_group, in_group);
}

// A block's tile of this launch.
struct Taken {
    unsigned tile;
    Statuses statuses;
};

// Takes the next tile; the whole block calls it, once.
// ticket: the run's number in the high half, the next tile in the low half. Both it and the words
// are zero before the first launch and belong to the kernel from then on.
__device__ inline Taken take_tile(Word* words, Word* ticket) {
    __shared__ Word block_ticket;

    // One atomic yields both numbers. The block with the last ticket knows that no other block of
    // this launch will read it again, and sets it for the next launch.
    if (threadIdx.x == 0) {
        block_ticket = atomicAdd(ticket, 1ull);
        if ((unsigned)block_ticket == gridDim.x - 1)
            store_relaxed(ticket, ((block_ticket >> 32) + 1) << 32);
    }
    __syncthreads();  // all threads can read the ticket
    const unsigned groups = gridDim.x, supers = groups + (groups + 31) / 32;
    const unsigned nodes = supers + (groups + 1023) / 1024;
    // Runs count from 1: zero memory holds no flag.
    const unsigned run = (unsigned)(block_ticket >> 32) + 1;
    return {(unsigned)block_ticket, {words, groups, supers, nodes, run}};
}
