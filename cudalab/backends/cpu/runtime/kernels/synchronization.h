// Where threads meet or let others run: barriers, fences and warp operations.
#pragma once

#include "runtime.h"

// ------------------------------------------------------------------ barriers and fences

#define CUDALAB_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

// A barrier's place is its line and, since a line or a macro may have several, its number among all
// in the text. Both travel as one number: 20 bits for the line.
#define __syncthreads() __syncthreads_at(__COUNTER__)
#define __syncthreads_count(...) __syncthreads_counted(__VA_ARGS__, __COUNTER__)
#define __syncthreads_and(...) __syncthreads_all(__VA_ARGS__, __COUNTER__)
#define __syncthreads_or(...) __syncthreads_any(__VA_ARGS__, __COUNTER__)

inline void __syncthreads_at(int number, CUDALAB_HERE) {
    ::cudalab::cudalab_block_barrier(file, line | (number & 0x7ff) << 20);
}
#define CUDALAB_BLOCK_VOTE(name, op)                                  \
    inline int name(int predicate, int number, CUDALAB_HERE) {        \
        ::cudalab::cudalab_block_vote(::cudalab::op, predicate, file, \
                                      line | (number & 0x7ff) << 20); \
        return (int)::cudalab::current.block_vote;                    \
    }
CUDALAB_BLOCK_VOTE(__syncthreads_counted, COUNT)
CUDALAB_BLOCK_VOTE(__syncthreads_all, ALL)
CUDALAB_BLOCK_VOTE(__syncthreads_any, ANY)
#undef CUDALAB_BLOCK_VOTE
inline void __syncwarp(unsigned mask = 0xffffffffu, CUDALAB_HERE) {
    ::cudalab::cudalab_warp_op(::cudalab::SYNC, mask, 0, 0, file, line);
}
// Where the lanes of a warp go in step from one statement to the next, or read before any of them
// writes: see language/lockstep.py. In check mode they do so anyway.
#ifdef CUDALAB_CHECK
inline void cudalab_step(int) {}
template <class T>
inline T cudalab_in_step(int, T value) {
    return value;
}
struct cudalab_in_step_to_the_end {
    explicit cudalab_in_step_to_the_end(int) {}
    template <class T>
    T operator=(T value) {
        return value;
    }
};
#else
inline void cudalab_step(int number, CUDALAB_HERE) {
#ifdef CUDALAB_BUILTIN_VARIABLES  // whole programs
    if (number == 1) ::cudalab::tell_of_steps(file, line);
#endif
    ::cudalab::cudalab_wait_for_lanes(file, line | (number & 0x7ff) << 20);
}
template <class T>
inline T cudalab_in_step(int number, T value, CUDALAB_HERE) {
    ::cudalab::cudalab_wait_for_lanes(file, line | (number & 0x7ff) << 20);
    return value;
}
struct cudalab_in_step_to_the_end {
    const int number;
    const char* const file;
    const int line;
    explicit cudalab_in_step_to_the_end(int number, CUDALAB_HERE)
        : number(number), file(file), line(line) {}
    template <class T>
    T operator=(T value) {
        return cudalab_in_step(number, value, file, line);
    }
};
#endif
inline void __threadfence() {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    CUDALAB_FENCED(true);
    ::cudalab::cudalab_spinning();
}
inline void __threadfence_block() {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    CUDALAB_FENCED(false);
    ::cudalab::cudalab_spinning();
}
inline void __threadfence_system() {
    __threadfence();
}
inline void __nanosleep(unsigned) {
    ::cudalab::cudalab_yield();
}

// ------------------------------------------------------------------ warp operations

template <class T>
inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, CUDALAB_HERE) {
    unsigned lane = ::cudalab::lane(), group = lane & ~(unsigned)(width - 1);
    ::cudalab::cudalab_warp_op(::cudalab::SHUFFLE, mask, ::cudalab::to_bits(value),
                               group | ((unsigned)source & (unsigned)(width - 1)), file, line);
    return ::cudalab::from_bits<T>(::cudalab::warp_result());
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, CUDALAB_HERE) {
    unsigned lane = ::cudalab::lane(), in_group = lane & (unsigned)(width - 1);
    ::cudalab::cudalab_warp_op(::cudalab::SHUFFLE, mask, ::cudalab::to_bits(value),
                               in_group >= delta ? lane - delta : lane, file, line);
    return ::cudalab::from_bits<T>(::cudalab::warp_result());
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, CUDALAB_HERE) {
    unsigned lane = ::cudalab::lane(), in_group = lane & (unsigned)(width - 1);
    bool inside = delta < (unsigned)width && in_group + delta < (unsigned)width;
    ::cudalab::cudalab_warp_op(::cudalab::SHUFFLE, mask, ::cudalab::to_bits(value),
                               inside ? lane + delta : lane, file, line);
    return ::cudalab::from_bits<T>(::cudalab::warp_result());
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, CUDALAB_HERE) {
    unsigned lane = ::cudalab::lane(), source = (lane & 31) ^ (unsigned)lane_mask;
    // Groups of `width` lanes: a lane may read its own group and earlier ones.
    bool inside = source < 32 && source / (unsigned)width <= lane / (unsigned)width;
    ::cudalab::cudalab_warp_op(::cudalab::SHUFFLE, mask, ::cudalab::to_bits(value),
                               inside ? source : lane, file, line);
    return ::cudalab::from_bits<T>(::cudalab::warp_result());
}

// A vote's result: the lanes whose predicate holds (low half), the lanes that took part (high).
inline uint64_t cudalab_vote(unsigned mask, int predicate, const char* file, int line) {
    ::cudalab::cudalab_warp_op(::cudalab::VOTE, mask, predicate != 0, 0, file, line);
    return ::cudalab::warp_result();
}
inline unsigned __ballot_sync(unsigned mask, int predicate, CUDALAB_HERE) {
    return (unsigned)cudalab_vote(mask, predicate, file, line);
}
inline int __any_sync(unsigned mask, int predicate, CUDALAB_HERE) {
    return (unsigned)cudalab_vote(mask, predicate, file, line) != 0;
}
inline int __all_sync(unsigned mask, int predicate, CUDALAB_HERE) {
    uint64_t vote = cudalab_vote(mask, predicate, file, line);
    return (unsigned)vote == (unsigned)(vote >> 32);
}
template <class T>
inline unsigned __match_any_sync(unsigned mask, T value, CUDALAB_HERE) {
    ::cudalab::cudalab_warp_op(::cudalab::MATCH_ANY, mask, ::cudalab::to_bits(value), 0, file,
                               line);
    return (unsigned)::cudalab::warp_result();
}
template <class T>
inline unsigned __match_all_sync(unsigned mask, T value, int* same, CUDALAB_HERE) {
    ::cudalab::cudalab_warp_op(::cudalab::MATCH_ALL, mask, ::cudalab::to_bits(value), 0, file,
                               line);
    unsigned lanes = (unsigned)::cudalab::warp_result();
    *same = lanes != 0;
    return lanes;
}
#define CUDALAB_REDUCE(name, T, op)                                                               \
    inline T name(unsigned mask, T value, CUDALAB_HERE) {                                         \
        ::cudalab::cudalab_warp_op(::cudalab::op, mask, (uint64_t)(int64_t)value, 0, file, line); \
        return (T)::cudalab::warp_result();                                                       \
    }
CUDALAB_REDUCE(__reduce_add_sync, int, ADD)
CUDALAB_REDUCE(__reduce_add_sync, unsigned, ADD)
CUDALAB_REDUCE(__reduce_min_sync, int, MIN_SIGNED)
CUDALAB_REDUCE(__reduce_max_sync, int, MAX_SIGNED)
CUDALAB_REDUCE(__reduce_min_sync, unsigned, MIN_UNSIGNED)
CUDALAB_REDUCE(__reduce_max_sync, unsigned, MAX_UNSIGNED)
CUDALAB_REDUCE(__reduce_and_sync, unsigned, AND)
CUDALAB_REDUCE(__reduce_or_sync, unsigned, OR)
CUDALAB_REDUCE(__reduce_xor_sync, unsigned, XOR)

// The scheduler chooses which lanes run together: here only the caller, in check mode those that
// are in step with it.
inline unsigned __activemask() {
#ifdef CUDALAB_CHECK
    return ::cudalab::cudalab_active_lanes();
#else
    ++::cudalab::current.tally.asked;
    return 1u << ::cudalab::lane();
#endif
}
inline unsigned __lane_id() {
    return ::cudalab::lane();
}
