// What kernels call whose threads are loops (regions.h).
#pragma once

#include "failures.h"
#include "warp_ops.h"

namespace cudalab {

// ------------------------------------------------------------------ warp operations

// A warp some of whose lanes are at one operation together; a bit or a value for each lane.
struct Lanes {
    unsigned warp;
    unsigned here, live;  // at the operation; not yet returned from the kernel
    unsigned mask[32], source[32];
    uint64_t value[32], result[32];
};

static unsigned lanes_of(const Worker& w, const unsigned* lanes, unsigned warp) {
    const unsigned in_warp = w.threads - 32 * warp, all = in_warp >= 32 ? ~0u : (1u << in_warp) - 1;
    return lanes ? lanes[warp] & all : all;
}
template <class T>
static inline T value_of(const Operand& operand, unsigned thread) {
    return ((const T*)operand.values)[operand.one_for_all ? 0 : thread];
}
static uint64_t bits_of(const Operand& operand, unsigned thread) {
    switch (operand.bytes) {
        case 1:
            return value_of<uint8_t>(operand, thread);
        case 2:
            return value_of<uint16_t>(operand, thread);
        case 4:
            return value_of<uint32_t>(operand, thread);
        default:
            return value_of<uint64_t>(operand, thread);
    }
}

// The results of a warp operation for the lanes that are at it.
static void complete_for(WarpOp op, Lanes& lanes, const WarpCall& call) {
    Worker& w = *worker;
    const char* what = op == SYNC        ? "__syncwarp"
                       : op == SHUFFLE   ? "a shuffle"
                       : op == VOTE      ? "a vote"
                       : op == MATCH_ANY ? "a match"
                                         : "a warp reduction";
    const uint3* index = w.index + 32 * lanes.warp;
    for (unsigned left = lanes.here; left;) {
        const unsigned lane = __builtin_ctz(left), mask = lanes.mask[lane];
        const uint3& i = index[lane];
        if (!(mask >> lane & 1))
            fail(w,
                 "thread (%u,%u,%u) is not in the mask 0x%08x of the warp operation it calls "
                 "(%s:%d)",
                 i.x, i.y, i.z, mask, call.file, call.line);
        unsigned missing = mask & lanes.live;
        for (unsigned other = 0; other < 32; ++other)
            if (lanes.here >> other & 1 && lanes.mask[other] == mask) missing &= ~(1u << other);
        if (missing) {
            const uint3& o = index[__builtin_ctz(missing)];
            fail(w,
                 "deadlock: thread (%u,%u,%u) waits at %s (%s:%d) with mask 0x%08x, while thread "
                 "(%u,%u,%u) is elsewhere",
                 i.x, i.y, i.z, what, call.file, call.line, mask, o.x, o.y, o.z);
        }
        const unsigned group = mask & lanes.live;
        complete(op, group, lanes.value, lanes.source, lanes.result);
        left &= ~group;
    }
}

// Those lanes of a warp that are at a call, with what they bring to it.
static Lanes lanes_at(const WarpCall& call, unsigned warp, unsigned here) {
    Lanes lanes;
    lanes.warp = warp;
    lanes.here = here;
    lanes.live = lanes_of(*worker, call.live, warp);
    for (unsigned lane = 0; lane < 32; ++lane) {
        const bool is_here = here >> lane & 1;
        lanes.mask[lane] = is_here ? value_of<unsigned>(call.masks, 32 * warp + lane) : 0;
        lanes.value[lane] = is_here ? bits_of(call.values, 32 * warp + lane) : 0;
    }
    return lanes;
}

static bool is_whole(const WarpCall& call, unsigned warp, unsigned here) {
    unsigned all = here;
    for (unsigned lane = 0; lane < 32 && all == ~0u; ++lane) {
        all &= value_of<unsigned>(call.masks, 32 * warp + lane);
        if (call.masks.one_for_all) break;
    }
    return all == ~0u;
}

static unsigned source_of(Shuffle by, unsigned lane, unsigned n, unsigned width) {
    const unsigned in_group = lane & (width - 1), other = lane ^ n;
    switch (by) {
        case FROM_LANE:
            return (lane & ~(width - 1)) | (n & (width - 1));
        case FROM_BELOW:
            return in_group >= n ? lane - n : lane;
        case FROM_ABOVE:
            return n < width && in_group + n < width ? lane + n : lane;
        default:
            return other < 32 && (other & -width) <= (lane & -width) ? other : lane;
    }
}

// The source lanes of a warp's lanes; a loop for each kind of shuffle, which has no branches.
template <Shuffle by>
static void find_sources_by(const unsigned* n, const unsigned* widths, unsigned* source) {
    for (unsigned lane = 0; lane < 32; ++lane)
        source[lane] = 31 & source_of(by, lane, n[lane], widths[lane]);
}
// The numbers that a warp's lanes bring to an operation; `present` lanes have one.
static void spread(const Operand& operand, unsigned first, unsigned present, unsigned* numbers) {
    const unsigned* from = (const unsigned*)operand.values;
    if (operand.one_for_all)
        for (unsigned lane = 0; lane < 32; ++lane) numbers[lane] = *from;
    else
        memcpy(numbers, from + first, present * sizeof *from);
}
static void find_sources(Shuffle by, const Operand& lanes, const Operand& widths, unsigned first,
                         unsigned present, unsigned* source) {
    unsigned n[32] = {}, width[32] = {};
    spread(lanes, first, present, n);
    spread(widths, first, present, width);
    switch (by) {
        case FROM_LANE:
            return find_sources_by<FROM_LANE>(n, width, source);
        case FROM_BELOW:
            return find_sources_by<FROM_BELOW>(n, width, source);
        case FROM_ABOVE:
            return find_sources_by<FROM_ABOVE>(n, width, source);
        default:
            return find_sources_by<FROM_ACROSS>(n, width, source);
    }
}

// The values of the source lanes, for a whole warp.
template <class T>
static void gather(const void* values, const unsigned* source, void* results) {
    const T* __restrict from = (const T*)values;
    T* __restrict to = (T*)results;
    for (unsigned lane = 0; lane < 32; ++lane) to[lane] = from[source[lane]];
}
#if defined(__AVX512F__) && !defined(__clang__)
// Two registers hold them, from which one instruction picks those of half a warp.
template <>
void gather<uint32_t>(const void* values, const unsigned* source, void* results) {
    typedef uint32_t Half __attribute__((vector_size(64)));
    Half from[2], sources[2];
    memcpy(from, values, sizeof from);
    memcpy(sources, source, sizeof sources);
    for (unsigned half = 0; half < 2; ++half) {
        const Half to = __builtin_shuffle(from[0], from[1], sources[half]);
        memcpy((Half*)results + half, &to, sizeof to);
    }
}
#endif
// Values of other sizes than a word's, such as a tile shuffles: the lanes' numbers are shuffled.
static void shuffle_objects(const WarpCall& call, unsigned warp, unsigned here,
                            const unsigned* source) {
    const uint64_t none = 0;
    const unsigned bytes = call.values.bytes;
    WarpCall of_numbers = call;
    of_numbers.values = {&none, sizeof none, true};
    Lanes some = lanes_at(of_numbers, warp, here);
    for (unsigned lane = 0; lane < 32; ++lane) some.value[lane] = lane;
    memcpy(some.source, source, sizeof some.source);
    complete_for(SHUFFLE, some, of_numbers);
    for (unsigned left = here; left; left &= left - 1) {
        const unsigned lane = __builtin_ctz(left), from = (unsigned)some.result[lane];
        const unsigned thread = call.values.one_for_all ? 0 : 32 * warp + from;
        memcpy((char*)call.results + (32 * warp + lane) * bytes,
               (const char*)call.values.values + thread * bytes, bytes);
    }
}
extern "C" void cudalab_shuffle(const WarpCall* call, Shuffle by, Operand lanes, Operand widths) {
    const Worker& w = *worker;
    const unsigned bytes = call->values.bytes;
    const bool alike = lanes.one_for_all && widths.one_for_all;
    unsigned source[32] = {};
    if (alike) find_sources(by, lanes, widths, 0, 32, source);
    for (unsigned warp = 0; warp < w.warps; ++warp) {
        const unsigned here = lanes_of(w, call->here, warp), first = 32 * warp;
        if (!here) continue;
        const unsigned present = w.threads - first < 32 ? w.threads - first : 32;
        if (!alike) find_sources(by, lanes, widths, first, present, source);
        const char* values = (const char*)call->values.values + first * bytes;
        char* results = (char*)call->results + first * bytes;
        const bool simple = is_whole(*call, warp, here) && !call->values.one_for_all;
        if (bytes > 8 || (bytes & (bytes - 1))) {
            shuffle_objects(*call, warp, here, source);
        } else if (simple && bytes == 4) {
            gather<uint32_t>(values, source, results);
        } else if (simple && bytes == 8) {
            gather<uint64_t>(values, source, results);
        } else {
            Lanes some = lanes_at(*call, warp, here);
            memcpy(some.source, source, sizeof source);
            complete_for(SHUFFLE, some, *call);
            for (unsigned left = here; left; left &= left - 1) {
                const unsigned lane = __builtin_ctz(left);
                memcpy(results + lane * bytes, &some.result[lane], bytes);
            }
        }
    }
}

// The lanes of each mask are at a group's operation together, which the caller carries out.
extern "C" void cudalab_meet(const WarpCall* call) {
    const Worker& w = *worker;
    for (unsigned warp = 0; warp < w.warps; ++warp) {
        const unsigned here = lanes_of(w, call->here, warp);
        if (!here || is_whole(*call, warp, here)) continue;
        Lanes lanes = lanes_at(*call, warp, here);
        memset(lanes.source, 0, sizeof lanes.source);
        complete_for(SHUFFLE, lanes, *call);
    }
}

// Votes, matches and reductions, whose results have 32 bits; of a vote, the answer is `vote`'s.
extern "C" void cudalab_combine(const WarpCall* call, WarpOp op, BlockOp vote) {
    const Worker& w = *worker;
    for (unsigned warp = 0; warp < w.warps; ++warp) {
        const unsigned here = lanes_of(w, call->here, warp);
        if (!here) continue;
        Lanes lanes = lanes_at(*call, warp, here);
        for (unsigned lane = 0; lane < 32; ++lane)
            if (op == VOTE)
                lanes.value[lane] = lanes.value[lane] != 0;
            else if (op == MIN_SIGNED || op == MAX_SIGNED)
                lanes.value[lane] = (uint64_t)(int64_t)(int)lanes.value[lane];
        if (is_whole(*call, warp, here))
            complete(op, ~0u, lanes.value, lanes.source, lanes.result);
        else
            complete_for(op, lanes, *call);
        for (unsigned left = here; left; left &= left - 1) {
            const unsigned lane = __builtin_ctz(left);
            const uint64_t both = lanes.result[lane];
            const unsigned yes = (unsigned)both, all = (unsigned)(both >> 32);
            ((unsigned*)call->results)[32 * warp + lane] = vote == ANY   ? yes != 0
                                                           : vote == ALL ? yes == all
                                                                         : yes;
        }
    }
}

// ------------------------------------------------------------------ what blocks do together

extern "C" void cudalab_vote_of_block(const unsigned* here, BlockOp op, Operand predicates,
                                      int* results) {
    const Worker& w = *worker;
    int yes = 0, all = 0;
    for (unsigned t = 0; t < w.threads; ++t)
        if (lanes_of(w, here, t / 32) >> t % 32 & 1)
            ++all, yes += value_of<int>(predicates, t) != 0;
    current.tally.barriers += (unsigned)all;
    for (unsigned t = 0; t < w.threads; ++t)
        results[t] = op == COUNT ? yes : op == ALL ? yes == all : yes != 0;
}

// Some threads of a block would go on to a barrier, and others not.
extern "C" void cudalab_disagree(const char* file, int line) {
    fail(*worker, "divergent barrier: the threads disagree at %s:%d whether to go on to one", file,
         line);
}

// Memory for `bytes` of local variables of a block, given back in the opposite order.
static size_t lent_bytes(size_t bytes) {
    return (bytes + 127) / 64 * 64;
}
extern "C" void* cudalab_borrow(size_t bytes) {
    Worker& w = *worker;
    const size_t all = MAX_THREADS * LOCAL_MEMORY;
    if (!w.lent) w.lent = map_stacks(all);
    if (!w.lent || w.num_lent + lent_bytes(bytes) > all)
        fail(w, "not enough memory for the local variables of %u threads", w.threads);
    void* memory = w.lent + w.num_lent;
    w.num_lent += lent_bytes(bytes);
    return memory;
}
extern "C" void cudalab_give_back(size_t bytes) {
    worker->num_lent -= lent_bytes(bytes);
}

}  // namespace cudalab
