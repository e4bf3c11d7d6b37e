// Groups of threads that wait and exchange values together.
//
// A tile or a coalesced group is a set of lanes of one warp; its operations are warp operations
// with that mask. A grid waits only in a cooperative launch (launch.cpp).
#pragma once
#define _COOPERATIVE_GROUPS_H_

#include "cuda_runtime.h"

#ifdef CUDALAB_CHECK  // CUDA's vectors tell of their copies there
#define CUDALAB_IS_BYTES(T) std::is_trivially_destructible<T>::value
#else
#define CUDALAB_IS_BYTES(T) std::is_trivially_copyable<T>::value
#endif

namespace cudalab {
// Each lane of `mask` gets the value of its lane `source`; values may have any size.
template <class T>
inline T exchange(unsigned mask, const T& value, unsigned source, const char* file, int line) {
    static_assert(CUDALAB_IS_BYTES(T), "a shuffle copies bytes");
    const size_t words = (sizeof(T) + 7) / 8;
    uint64_t from[words] = {}, to[words];
    __builtin_memcpy(from, &value, sizeof(T));
    for (size_t i = 0; i < words; ++i) {
        cudalab_warp_op(SHUFFLE, mask, from[i], source, file, line);
        to[i] = warp_result();
    }
    T result;
    __builtin_memcpy((void*)&result, to, sizeof(T));
    return result;
}
// The lane that has the given rank among the lanes of `mask`, or none (32).
inline unsigned lane_of_rank(unsigned mask, unsigned rank) {
    for (; mask; mask &= mask - 1, --rank)
        if (rank == 0) return (unsigned)__builtin_ctz(mask);
    return 32;
}
}  // namespace cudalab

namespace cooperative_groups {

// Lanes of one warp: the base of tiles and coalesced groups.
class lane_group {
  public:
    unsigned long long size() const { return (unsigned)__builtin_popcount(mask_); }
    unsigned long long num_threads() const { return size(); }
    unsigned thread_rank() const {
        return (unsigned)__builtin_popcount(mask_ & ((1u << cudalab::lane()) - 1));
    }
    unsigned meta_group_rank() const { return meta_rank_; }
    unsigned meta_group_size() const { return meta_size_; }
    void sync(CUDALAB_HERE) const {
        cudalab::cudalab_warp_op(cudalab::SYNC, mask_, 0, 0, file, line);
    }
    template <class T>
    T shfl(T value, unsigned rank, CUDALAB_HERE) const {
        return take(value, rank % (unsigned)size(), file, line);
    }
    template <class T>
    T shfl_up(T value, unsigned delta, CUDALAB_HERE) const {
        const unsigned rank = thread_rank();
        return take(value, rank >= delta ? rank - delta : rank, file, line);
    }
    template <class T>
    T shfl_down(T value, unsigned delta, CUDALAB_HERE) const {
        const unsigned rank = thread_rank();
        return take(value, rank + delta < size() ? rank + delta : rank, file, line);
    }
    template <class T>
    T shfl_xor(T value, unsigned mask, CUDALAB_HERE) const {
        const unsigned rank = thread_rank();
        return take(value, (rank ^ mask) < size() ? rank ^ mask : rank, file, line);
    }
    int any(int predicate, CUDALAB_HERE) const { return __any_sync(mask_, predicate, file, line); }
    int all(int predicate, CUDALAB_HERE) const { return __all_sync(mask_, predicate, file, line); }
    unsigned ballot(int predicate, CUDALAB_HERE) const {
        return packed(__ballot_sync(mask_, predicate, file, line));
    }
    template <class T>
    unsigned match_any(T value, CUDALAB_HERE) const {
        return packed(__match_any_sync(mask_, value, file, line));
    }
    template <class T>
    unsigned match_all(T value, int& same, CUDALAB_HERE) const {
        return packed(__match_all_sync(mask_, value, &same, file, line));
    }
    unsigned cudalab_mask() const { return mask_; }

  protected:
    lane_group(unsigned mask, unsigned meta_rank, unsigned meta_size)
        : mask_(mask), meta_rank_(meta_rank), meta_size_(meta_size) {}

    template <class T>
    T take(const T& value, unsigned rank, const char* file, int line) const {
        return cudalab::exchange(mask_, value, cudalab::lane_of_rank(mask_, rank), file, line);
    }
    // A mask of lanes as a mask of ranks.
    unsigned packed(unsigned lanes) const {
        unsigned ranks = 0, rank = 0;
        for (unsigned left = mask_; left; left &= left - 1, ++rank)
            ranks |= (lanes >> __builtin_ctz(left) & 1) << rank;
        return ranks;
    }

    unsigned mask_, meta_rank_, meta_size_;
};

class thread_block {
  public:
    struct arrival_token {};

    static void sync(CUDALAB_HERE) { cudalab::cudalab_block_barrier(file, line); }
    static arrival_token barrier_arrive() {
        return {};
    }  // nothing happens before the wait, as in CUDA
    static void barrier_wait(arrival_token&&, CUDALAB_HERE) { sync(file, line); }
    static unsigned thread_rank() { return cudalab::current.thread; }
    static unsigned size() { return blockDim.x * blockDim.y * blockDim.z; }
    static unsigned num_threads() { return size(); }
    static dim3 group_index() { return blockIdx; }
    static dim3 thread_index() { return threadIdx; }
    static dim3 group_dim() { return blockDim; }
    static dim3 dim_threads() { return blockDim; }
};

class grid_group {
  public:
    struct arrival_token {};

    static bool is_valid() { return cudalab::in_cooperative_launch(); }
    static void sync(CUDALAB_HERE) { cudalab::sync_grid(file, line); }
    static arrival_token barrier_arrive(CUDALAB_HERE) {
        cudalab::arrive_at_grid(file, line);
        return {};
    }
    static void barrier_wait(arrival_token&&, CUDALAB_HERE) { cudalab::wait_for_grid(file, line); }
    static unsigned long long block_rank() {
        return ((unsigned long long)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    }
    static unsigned long long num_blocks() {
        return (unsigned long long)gridDim.x * gridDim.y * gridDim.z;
    }
    static unsigned long long thread_rank() {
        return block_rank() * thread_block::size() + thread_block::thread_rank();
    }
    static unsigned long long size() { return num_blocks() * thread_block::size(); }
    static unsigned long long num_threads() { return size(); }
    static dim3 group_dim() { return gridDim; }
    static dim3 dim_blocks() { return gridDim; }
    static dim3 block_index() { return blockIdx; }
};

class coalesced_group : public lane_group {
  public:
    explicit coalesced_group(unsigned mask, unsigned meta_rank = 0, unsigned meta_size = 1)
        : lane_group(mask, meta_rank, meta_size) {}
};

// SIZE consecutive threads of a block, all of one warp.
template <unsigned SIZE>
class lane_tile : public lane_group {
  public:
    lane_tile(unsigned meta_rank, unsigned meta_size)
        : lane_group((SIZE == 32 ? ~0u : (1u << SIZE % 32) - 1) << (cudalab::lane() & ~(SIZE - 1)),
                     meta_rank, meta_size) {}
    static constexpr unsigned size() { return SIZE; }
    static constexpr unsigned num_threads() { return SIZE; }
    unsigned thread_rank() const { return cudalab::lane() & (SIZE - 1); }
};

// The same of several warps.
template <unsigned SIZE>
class warps_tile {
  public:
    warps_tile(unsigned meta_rank, unsigned meta_size)
        : meta_rank_(meta_rank), meta_size_(meta_size) {}
    static constexpr unsigned size() { return SIZE; }
    static constexpr unsigned num_threads() { return SIZE; }
    static unsigned thread_rank() { return cudalab::current.thread & (SIZE - 1); }
    unsigned meta_group_rank() const { return meta_rank_; }
    unsigned meta_group_size() const { return meta_size_; }
    void sync(CUDALAB_HERE) const {
        cudalab::cudalab_warp_op(cudalab::TILE, ~0u, SIZE / 32, 0, file, line);
    }
    int any(int predicate, CUDALAB_HERE) const {
        const int of_warp = __any_sync(~0u, predicate, file, line);
        return gather(of_warp, [](int a, int b) { return a | b; }, file, line);
    }
    int all(int predicate, CUDALAB_HERE) const {
        const int of_warp = __all_sync(~0u, predicate, file, line);
        return gather(of_warp, [](int a, int b) { return a & b; }, file, line);
    }
    template <class T>
    T shfl(const T& value, unsigned rank, CUDALAB_HERE) const {
        T all[WARPS];
        exchange(value, cudalab::lane() == rank % 32, all, file, line);
        return all[rank / 32 % WARPS];
    }
    // One value of each warp, folded by halves; every thread gets the result.
    template <class T, class Op>
    T gather(const T& of_warp, Op op, const char* file, int line) const {
        T all[WARPS];
        exchange(of_warp, cudalab::lane() == 0, all, file, line);
        for (unsigned half = WARPS / 2; half; half /= 2)
            for (unsigned i = 0; i < half; ++i) all[i] = op(all[i], all[i + half]);
        return all[0];
    }
    // All values that the lanes which give one have given, in the order of their warps.
    template <class T>
    static void exchange(const T& value, bool gives, T* all, const char* file, int line) {
        static_assert(CUDALAB_IS_BYTES(T), "a shuffle copies bytes");
        static_assert(sizeof(T) <= 32, "values of more than 32 bytes");
        static __thread unsigned long long values[1024 / 32][4];  // of this OS thread's block
        const unsigned first = cudalab::current.thread / SIZE * WARPS;
        const warps_tile here(0, 0);
        if (gives) __builtin_memcpy(values[cudalab::current.thread / 32], &value, sizeof(T));
        here.sync(file, line);
        for (unsigned i = 0; i < WARPS; ++i)
            __builtin_memcpy((void*)&all[i], values[first + i], sizeof(T));
        here.sync(file, line);
    }

  private:
    static constexpr unsigned WARPS = SIZE / 32;
    unsigned meta_rank_, meta_size_;
};

template <unsigned SIZE, class Parent = void>
class thread_block_tile
    : public std::conditional<SIZE <= 32, lane_tile<SIZE>, warps_tile<SIZE>>::type {
    static_assert(SIZE && SIZE <= 1024 && (SIZE & (SIZE - 1)) == 0, "tiles have 1 to 1024 threads");
    typedef typename std::conditional<SIZE <= 32, lane_tile<SIZE>, warps_tile<SIZE>>::type Base;

  public:
    using Base::Base;
    template <class Other>
    thread_block_tile(const thread_block_tile<SIZE, Other>& other) : Base(other) {}
};

// Memory that tiles of several warps need on some GPUs, and not here.
template <unsigned MOST = 1024>
struct block_tile_memory {
    unsigned unused;
};

// Any of the above groups, decided at run time.
class thread_group {
  public:
    thread_group(const thread_block&) : kind_(BLOCK), lanes_(0) {}
    thread_group(const grid_group&) : kind_(GRID), lanes_(0) {}
    thread_group(const lane_group& group)
        : kind_(LANES),
          lanes_(group.cudalab_mask(), group.meta_group_rank(), group.meta_group_size()) {}

    unsigned long long size() const {
        return kind_ == BLOCK  ? thread_block::size()
               : kind_ == GRID ? grid_group::size()
                               : lanes_.size();
    }
    unsigned long long num_threads() const { return size(); }
    unsigned long long thread_rank() const {
        return kind_ == BLOCK  ? thread_block::thread_rank()
               : kind_ == GRID ? grid_group::thread_rank()
                               : lanes_.thread_rank();
    }
    void sync(CUDALAB_HERE) const {
        if (kind_ == BLOCK)
            thread_block::sync(file, line);
        else if (kind_ == GRID)
            grid_group::sync(file, line);
        else
            lanes_.sync(file, line);
    }
    bool cudalab_is_block() const { return kind_ == BLOCK; }
    const coalesced_group& cudalab_lanes() const { return lanes_; }

  private:
    enum { BLOCK, GRID, LANES } kind_;
    coalesced_group lanes_;
};

// ------------------------------------------------------------------ making groups

inline thread_block this_thread_block() {
    return {};
}
template <unsigned MOST>
inline thread_block this_thread_block(block_tile_memory<MOST>&) {
    return {};
}
inline grid_group this_grid() {
    return {};
}
inline thread_block_tile<1> this_thread() {
    return {0, 1};
}
inline coalesced_group coalesced_threads(CUDALAB_HERE) {
    return coalesced_group(cudalab::converged_lanes(file, line));
}

template <unsigned SIZE>
inline thread_block_tile<SIZE, thread_block> tiled_partition(const thread_block& block) {
    return {block.thread_rank() / SIZE, (block.size() + SIZE - 1) / SIZE};
}
template <unsigned SIZE, unsigned PARENT, class P>
inline thread_block_tile<SIZE, thread_block_tile<PARENT, P>> tiled_partition(
    const thread_block_tile<PARENT, P>& tile) {
    static_assert(SIZE <= PARENT, "a part cannot be larger than the whole");
    return {tile.thread_rank() / SIZE, PARENT / SIZE};
}
inline coalesced_group tiled_partition(const coalesced_group& group, unsigned size) {
    const unsigned begin = group.thread_rank() / size * size;
    unsigned part = 0;
    for (unsigned rank = begin; rank < begin + size; ++rank) {
        const unsigned lane = cudalab::lane_of_rank(group.cudalab_mask(), rank);
        if (lane < 32) part |= 1u << lane;
    }
    return coalesced_group(part, begin / size, ((unsigned)group.size() + size - 1) / size);
}
inline thread_group tiled_partition(const thread_group& group, unsigned size) {
    if (!group.cudalab_is_block()) return tiled_partition(group.cudalab_lanes(), size);
    const unsigned first = cudalab::lane() & ~(size - 1);
    const unsigned mask = size >= 32 ? ~0u : ((1u << size) - 1) << first;
    return coalesced_group(mask, thread_block::thread_rank() / size,
                           (thread_block::size() + size - 1) / size);
}
template <class Label>
inline coalesced_group labeled_partition(const lane_group& group, Label label, CUDALAB_HERE) {
    const unsigned mask = group.cudalab_mask();
    const unsigned same = __match_any_sync(mask, label, file, line);
    unsigned seen = 0, before = 0, parts = 0;  // parts are in the order of their first lanes
    for (unsigned left = mask; left; left &= left - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(left);
        const unsigned with = cudalab::exchange(mask, same, lane, file, line);
        if (seen >> lane & 1) continue;
        seen |= with;
        ++parts;
        before += __builtin_ctz(with) < __builtin_ctz(same);
    }
    return coalesced_group(same, before, parts);
}
inline coalesced_group binary_partition(const lane_group& group, bool predicate, CUDALAB_HERE) {
    return labeled_partition(group, (int)predicate, file, line);
}

// ------------------------------------------------------------------ functions on groups

template <class Group>
inline void sync(const Group& group, CUDALAB_HERE) {
    group.sync(file, line);
}
template <class Group>
inline unsigned long long thread_rank(const Group& group) {
    return group.thread_rank();
}
template <class Group>
inline unsigned long long group_size(const Group& group) {
    return group.size();
}
template <class Group, class F, class... A>
inline void invoke_one(const Group& group, F&& function, A&&... arguments) {
    if (group.thread_rank() == 0) function(arguments...);
}
template <class F, class... A>
inline auto invoke_one_broadcast(const lane_group& group, F&& function, A&&... arguments)
    -> decltype(function(arguments...)) {
    decltype(function(arguments...)) result{};
    if (group.thread_rank() == 0) result = function(arguments...);
    return group.shfl(result, 0);
}

#define CUDALAB_OPERATOR(name, expression)                                \
    template <class T = void>                                             \
    struct name {                                                         \
        T operator()(const T& a, const T& b) const { return expression; } \
    };
CUDALAB_OPERATOR(plus, (T)(a + b))
CUDALAB_OPERATOR(less, b < a ? b : a)
CUDALAB_OPERATOR(greater, a < b ? b : a)
CUDALAB_OPERATOR(bit_and, (T)(a & b))
CUDALAB_OPERATOR(bit_or, (T)(a | b))
CUDALAB_OPERATOR(bit_xor, (T)(a ^ b))
#undef CUDALAB_OPERATOR

}  // namespace cooperative_groups
