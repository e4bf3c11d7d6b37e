// Kernels as loops over the threads of a block: what the text that regions/ writes is made of.
//
// A function of the whole block is cut where threads meet. Between two cuts is a region, a loop
// over the threads; a local variable that lives across a cut is an array over the threads.
// Functions begin with CUDALAB_ENTER, regions with CUDALAB_EACH or CUDALAB_SOME and then
// CUDALAB_THREAD.
#pragma once

#include "cudalab_cpu.h"

#if defined(__clang__)
#define CUDALAB_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define CUDALAB_INDEPENDENT _Pragma("GCC ivdep")
#endif

// Where a block lies. The runtime launches a kernel as loops only if no index of a thread in the
// grid exceeds an int, which the compiler may then count on.
#define CUDALAB_ENTER                                                                   \
    const uint3 blockIdx = B_.index, blockDim = B_.dim, gridDim = B_.grid, threadIdx{}; \
    (void)blockIdx, (void)blockDim, (void)gridDim, (void)threadIdx;                     \
    ::cudalab::assume_small(blockIdx.x* blockDim.x, blockDim.x);                        \
    ::cudalab::assume_small(blockIdx.y* blockDim.y, blockDim.y);                        \
    ::cudalab::assume_small(blockIdx.z* blockDim.z, blockDim.z)
#define CUDALAB_HERE_TOO                                                   \
    const uint3 blockIdx = B_.index, blockDim = B_.dim, gridDim = B_.grid; \
    (void)blockIdx, (void)blockDim, (void)gridDim, (void)threadIdx

// The threads touch nothing in common, so that the compiler may take several at once; or it takes
// one by one those that have arrays of their own, or that change what others see.
#define CUDALAB_EACH CUDALAB_EACH_IN(CUDALAB_INDEPENDENT)
#define CUDALAB_EACH_ORDERED CUDALAB_EACH_IN()
#define CUDALAB_EACH_IN(how)                                           \
    for (size_t z_ = 0, row_ = 0; z_ < blockDim.z; ++z_)               \
        for (size_t y_ = 0; y_ < blockDim.y; ++y_, row_ += blockDim.x) \
    how for (unsigned x_ = 0; x_ < blockDim.x; ++x_)                   \
        CUDALAB_POSITION(row_ + x_, x_, (unsigned)y_, (unsigned)z_)
#define CUDALAB_SOME(mask) CUDALAB_SOME_IN(mask, CUDALAB_INDEPENDENT)
#define CUDALAB_SOME_ORDERED(mask) CUDALAB_SOME_IN(mask, )
#define CUDALAB_SOME_IN(mask, how)                                                               \
    for (size_t first_ = 0; first_ < B_.threads; first_ += 32)                                   \
        if (const unsigned lanes_ = mask.lanes[first_ / 32])                                     \
    how for (unsigned lane_ = 0; lane_ < 32; ++lane_) if (lanes_ >> lane_ & 1) CUDALAB_POSITION( \
        first_ + lane_, B_.x(first_ + lane_), B_.y(first_ + lane_), B_.z(first_ + lane_))
#define CUDALAB_POSITION(number, ...) \
    if (const ::cudalab::Position position_{number, {__VA_ARGS__}}; true)
#define CUDALAB_THREAD                       \
    const size_t t_ = position_.number;      \
    const uint3 threadIdx = position_.index; \
    (void)t_, (void)threadIdx;

// One thread's part of a region with loops over an array of its own: g++ 12 compiles some such
// loops in a loop over threads to wrong code.
#define CUDALAB_APART __attribute__((noinline))
#define CUDALAB_COLD __attribute__((noinline))
#define CUDALAB_INLINE inline __attribute__((always_inline))

namespace cudalab {

CUDALAB_INLINE void assume_small(unsigned first, unsigned threads) {
    if (first > 0x7fffffffu - 1024 || threads > 1024) __builtin_unreachable();
}

struct Position {
    size_t number;
    uint3 index;
};

struct All {};
struct Mask;

struct Block {
    uint3 index, dim, grid;
    unsigned threads, warps;
    const Mask* live;  // the threads that have not returned from the kernel; null: all
    CUDALAB_INLINE unsigned x(size_t t) const { return flat() ? (unsigned)t : (unsigned)t % dim.x; }
    CUDALAB_INLINE unsigned y(size_t t) const { return flat() ? 0 : (unsigned)t / dim.x % dim.y; }
    CUDALAB_INLINE unsigned z(size_t t) const { return flat() ? 0 : (unsigned)t / (dim.x * dim.y); }
    CUDALAB_INLINE bool flat() const { return dim.x == threads; }
    CUDALAB_INLINE unsigned lanes(unsigned warp) const {
        return threads - 32 * warp >= 32 ? ~0u : (1u << (threads & 31)) - 1;
    }
};

// Threads of a block, a bit each.
struct Mask {
    unsigned lanes[32];
    Mask() : lanes{} {}
    CUDALAB_COLD explicit Mask(const Block& block) {
        for (unsigned w = 0; w < 32; ++w) lanes[w] = w < block.warps ? block.lanes(w) : 0;
    }
    Mask(const Mask& other) = default;
    CUDALAB_INLINE void add(size_t t) { lanes[t >> 5] |= 1u << (t & 31); }
    CUDALAB_INLINE void remove(size_t t) { lanes[t >> 5] &= ~(1u << (t & 31)); }
    CUDALAB_COLD void keep(const Mask& other) {
        for (unsigned w = 0; w < 32; ++w) lanes[w] &= other.lanes[w];
    }
    CUDALAB_COLD void drop(const Mask& other) {
        for (unsigned w = 0; w < 32; ++w) lanes[w] &= ~other.lanes[w];
    }
    CUDALAB_COLD bool any() const {
        unsigned all = 0;
        for (unsigned w = 0; w < 32; ++w) all |= lanes[w];
        return all != 0;
    }
};
inline unsigned lanes_of(const Block& block, const Mask& mask, unsigned warp) {
    return mask.lanes[warp] & block.lanes(warp);
}
inline unsigned lanes_of(const Block& block, All, unsigned warp) {
    return block.lanes(warp);
}

// The answers of threads to a condition that is the same for all of them.
struct Agreement {
    unsigned some = 0, others = 0;
    CUDALAB_INLINE void add(bool answer) { some |= answer, others |= !answer; }
    bool yes(const char* file, int line) const {
        if (__builtin_expect(some & others, 0)) cudalab_disagree(file, line);
        return some;
    }
};

// Values of a block's threads. Large ones do not fit on the stack.
template <class T>
using Kept = typename std::remove_const<typename std::remove_reference<T>::type>::type;
const size_t ON_STACK = 32 << 10;
template <class T, unsigned most, bool small = (sizeof(T) * most <= ON_STACK)>
struct Values {
    alignas(64) unsigned char bytes[sizeof(T) * most + 64];  // an odd number of lines
    CUDALAB_INLINE T& operator[](size_t t) { return ((T*)bytes)[t]; }
};
template <class T, unsigned most>
struct Values<T, most, false> {
    T* const at = (T*)cudalab_borrow(sizeof(T) * most);
    ~Values() { cudalab_give_back(sizeof(T) * most); }
    CUDALAB_INLINE T& operator[](size_t t) { return at[t]; }
};
template <class T>
CUDALAB_INLINE void construct(T* at, const T& value) {
    __builtin_memcpy((void*)at, &value, sizeof value);
}
// One value for all threads.
template <class T>
struct Uniform {
    T value;
    CUDALAB_INLINE const T& operator[](size_t) const { return value; }
};
template <class T>
CUDALAB_INLINE Uniform<T> uniform(T value) {
    return {value};
}

// ------------------------------------------------------------------ warp operations
// `from` threads, whose operands are arrays over the block's threads or one value for all.

namespace regions {

const Uniform<int> WHOLE = {32};

// The lanes of warp `w` that are `from` it, their masks and values, for cudalab_complete.
template <class S, class M, class V>
inline Lanes lanes_at(const Block& block, const S& from, unsigned w, M masks, V value_of) {
    Lanes lanes;
    lanes.warp = w;
    lanes.here = lanes_of(block, from, w);
    lanes.live = block.live ? block.live->lanes[w] : block.lanes(w);
    for (unsigned l = 0; l < 32; ++l) {
        const bool here = lanes.here >> l & 1;
        lanes.mask[l] = here ? (unsigned)masks[32 * w + l] : 0;
        lanes.value[l] = here ? value_of(32 * w + l) : 0;
    }
    return lanes;
}

// Not all lanes of warp `w` take part.
template <class S, class T, class M, class V, class F>
CUDALAB_COLD void shuffle_some(const Block& block, const S& from, unsigned w, T* result, M masks,
                               V values, F source, const char* file, int line) {
    Lanes lanes = lanes_at(block, from, w, masks, [&](size_t t) { return to_bits<T>(values[t]); });
    for (unsigned l = 0; l < 32; ++l)
        lanes.source[l] = lanes.here >> l & 1 ? source(l, 32 * w + l) : 0;
    cudalab_complete(SHUFFLE, &lanes, "a shuffle", file, line);
    for (unsigned left = lanes.here; left; left &= left - 1) {
        const unsigned l = __builtin_ctz(left);
        result[32 * w + l] = from_bits<T>(lanes.result[l]);
    }
}
template <class S, class T, class M, class V, class F>
CUDALAB_INLINE void shuffle(const Block& block, const S& from, T* result, M masks, V values,
                            F source, const char* file, int line) {
    for (unsigned w = 0; w < block.warps; ++w) {
        const size_t base = 32 * w;
        unsigned all = lanes_of(block, from, w);
        for (unsigned l = 0; l < 32; ++l) all &= (unsigned)masks[base + l];
        if (__builtin_expect(all == ~0u, 1)) {
            CUDALAB_INDEPENDENT
            for (unsigned l = 0; l < 32; ++l)
                result[base + l] = values[base + (source(l, base + l) & 31)];
        } else if (lanes_of(block, from, w)) {
            shuffle_some(block, from, w, result, masks, values, source, file, line);
        }
    }
}

template <class S, class T, class M, class V, class L, class W>
inline void __shfl_sync(const Block& block, const S& from, T* result, M masks, V values, L lanes,
                        W widths, const char* file, int line) {
    shuffle(
        block, from, result, masks, values,
        [&](unsigned l, size_t t) {
            const unsigned n = (unsigned)widths[t];
            return (l & ~(n - 1)) | ((unsigned)lanes[t] & (n - 1));
        },
        file, line);
}
template <class S, class T, class M, class V, class D, class W>
inline void __shfl_up_sync(const Block& block, const S& from, T* result, M masks, V values,
                           D deltas, W widths, const char* file, int line) {
    shuffle(
        block, from, result, masks, values,
        [&](unsigned l, size_t t) {
            const unsigned n = (unsigned)widths[t], d = (unsigned)deltas[t];
            return (l & (n - 1)) >= d ? l - d : l;
        },
        file, line);
}
template <class S, class T, class M, class V, class D, class W>
inline void __shfl_down_sync(const Block& block, const S& from, T* result, M masks, V values,
                             D deltas, W widths, const char* file, int line) {
    shuffle(
        block, from, result, masks, values,
        [&](unsigned l, size_t t) {
            const unsigned n = (unsigned)widths[t], d = (unsigned)deltas[t];
            return d < n && (l & (n - 1)) + d < n ? l + d : l;
        },
        file, line);
}
template <class S, class T, class M, class V, class L, class W>
inline void __shfl_xor_sync(const Block& block, const S& from, T* result, M masks, V values,
                            L lane_masks, W widths, const char* file, int line) {
    shuffle(
        block, from, result, masks, values,
        [&](unsigned l, size_t t) {
            const unsigned s = l ^ (unsigned)lane_masks[t], n = (unsigned)widths[t];
            return s < 32 && s / n <= l / n ? s : l;
        },
        file, line);
}
#define CUDALAB_WHOLE_WARP(name)                                                              \
    template <class S, class T, class M, class V, class D>                                    \
    CUDALAB_INLINE void name(const Block& block, const S& from, T* result, M masks, V values, \
                             D deltas, const char* file, int line) {                          \
        name(block, from, result, masks, values, deltas, WHOLE, file, line);                  \
    }
CUDALAB_WHOLE_WARP(__shfl_sync)
CUDALAB_WHOLE_WARP(__shfl_up_sync)
CUDALAB_WHOLE_WARP(__shfl_down_sync)
CUDALAB_WHOLE_WARP(__shfl_xor_sync)
#undef CUDALAB_WHOLE_WARP

// Any other operation.
template <class S, class T, class M, class V, class R>
CUDALAB_COLD void combine(WarpOp op, const Block& block, const S& from, T* result, M masks,
                          V value_of, R result_of, const char* what, const char* file, int line) {
    for (unsigned w = 0; w < block.warps; ++w) {
        Lanes lanes = lanes_at(block, from, w, masks, value_of);
        cudalab_complete(op, &lanes, what, file, line);
        for (unsigned left = lanes.here; left; left &= left - 1) {
            const unsigned l = __builtin_ctz(left);
            result[32 * w + l] = result_of(lanes.result[l]);
        }
    }
}
#define CUDALAB_VOTE(name, T, answer)                                                 \
    template <class S, class M, class V>                                              \
    inline void name(const Block& block, const S& from, T* result, M masks, V values, \
                     const char* file, int line) {                                    \
        combine(                                                                      \
            VOTE, block, from, result, masks,                                         \
            [&](size_t t) { return (uint64_t)(values[t] != 0); },                     \
            [](uint64_t vote) { return (T)(answer); }, "a vote", file, line);         \
    }
CUDALAB_VOTE(__ballot_sync, unsigned, (unsigned)vote)
CUDALAB_VOTE(__any_sync, int, (unsigned)vote != 0)
CUDALAB_VOTE(__all_sync, int, (unsigned)vote == (unsigned)(vote >> 32))
#undef CUDALAB_VOTE
template <class S, class M, class V>
inline void __match_any_sync(const Block& block, const S& from, unsigned* result, M masks, V values,
                             const char* file, int line) {
    combine(
        MATCH_ANY, block, from, result, masks, [&](size_t t) { return to_bits(values[t]); },
        [](uint64_t lanes) { return (unsigned)lanes; }, "a match", file, line);
}
#define CUDALAB_REDUCTION(name, SIGNED, UNSIGNED)                                     \
    template <class S, class T, class M, class V>                                     \
    inline void name(const Block& block, const S& from, T* result, M masks, V values, \
                     const char* file, int line) {                                    \
        combine(                                                                      \
            std::is_signed<T>::value ? SIGNED : UNSIGNED, block, from, result, masks, \
            [&](size_t t) { return (uint64_t)(int64_t)(T)values[t]; },                \
            [](uint64_t total) { return (T)total; }, "a warp reduction", file, line); \
    }
CUDALAB_REDUCTION(__reduce_add_sync, ADD, ADD)
CUDALAB_REDUCTION(__reduce_min_sync, MIN_SIGNED, MIN_UNSIGNED)
CUDALAB_REDUCTION(__reduce_max_sync, MAX_SIGNED, MAX_UNSIGNED)
CUDALAB_REDUCTION(__reduce_and_sync, AND, AND)
CUDALAB_REDUCTION(__reduce_or_sync, OR, OR)
CUDALAB_REDUCTION(__reduce_xor_sync, XOR, XOR)
#undef CUDALAB_REDUCTION

// ------------------------------------------------------------------ votes of the block

template <class S, class V, class F>
inline void vote_of_block(const Block& block, const S& from, int* result, V values, F answer) {
    int yes = 0, all = 0;
    for (unsigned w = 0; w < block.warps; ++w)
        for (unsigned left = lanes_of(block, from, w); left; left &= left - 1, ++all)
            yes += values[32 * w + __builtin_ctz(left)] != 0;
    for (unsigned t = 0; t < block.threads; ++t) result[t] = answer(yes, all);
}
#pragma push_macro("__syncthreads_or")
#undef __syncthreads_or
#pragma push_macro("__syncthreads_and")
#undef __syncthreads_and
#pragma push_macro("__syncthreads_count")
#undef __syncthreads_count
#define CUDALAB_BLOCK_VOTE(name, answer)                                                           \
    template <class S, class V>                                                                    \
    inline void name(const Block& block, const S& from, int* result, V values, const char*, int) { \
        vote_of_block(block, from, result, values, [](int yes, int all) {                          \
            (void)all;                                                                             \
            return (int)(answer);                                                                  \
        });                                                                                        \
    }
CUDALAB_BLOCK_VOTE(__syncthreads_count, yes)
CUDALAB_BLOCK_VOTE(__syncthreads_and, yes == all)
CUDALAB_BLOCK_VOTE(__syncthreads_or, yes != 0)
#undef CUDALAB_BLOCK_VOTE
#pragma pop_macro("__syncthreads_count")
#pragma pop_macro("__syncthreads_and")
#pragma pop_macro("__syncthreads_or")

}  // namespace regions

// ------------------------------------------------------------------ what the host launches

template <auto kernel>
struct BlockLauncher;
template <class... Params, void (*kernel)(Block&, Params...)>
struct BlockLauncher<kernel> {
    static constexpr unsigned num_params = sizeof...(Params);
    static constexpr unsigned char sizes[sizeof...(Params) + 1] = {
        (unsigned char)(sizeof(Params) | (std::is_pointer<Params>::value ? 128 : 0))..., 0};
    template <size_t... I>
    static inline void call(void* const* args, Indices<I...>) {
        (void)args;
        Block block;
        block.index = current.block_idx, block.dim = current.block_dim;
        block.grid = current.grid_dim;
        block.threads = block.dim.x * block.dim.y * block.dim.z;
        block.warps = (block.threads + 31) / 32;
        block.live = nullptr;
        kernel(block, *(typename std::remove_const<Params>::type*)args[I]...);
    }
    static void run(void* const* args, unsigned, const uint3*, const bool*) {
        call(args, typename MakeIndices<sizeof...(Params)>::type());
    }
};

}  // namespace cudalab

#define CUDALAB_BLOCKS(kernel)                               \
    extern "C" __attribute__((visibility("default")))        \
    const ::cudalab::Kernel cudalab_kernel_##kernel = {      \
        #kernel,                                             \
        nullptr,                                             \
        ::cudalab::BlockLauncher<kernel##_all_>::run,        \
        ::cudalab::BlockLauncher<kernel##_all_>::num_params, \
        ::cudalab::BlockLauncher<kernel##_all_>::sizes,      \
        nullptr};
