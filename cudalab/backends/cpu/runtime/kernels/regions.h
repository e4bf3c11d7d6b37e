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
#define CUDALAB_ENTER                                            \
    CUDALAB_HERE_TOO;                                            \
    const uint3 threadIdx{};                                     \
    (void)threadIdx;                                             \
    ::cudalab::assume_small(blockIdx.x* blockDim.x, blockDim.x); \
    ::cudalab::assume_small(blockIdx.y* blockDim.y, blockDim.y); \
    ::cudalab::assume_small(blockIdx.z* blockDim.z, blockDim.z)
#define CUDALAB_HERE_TOO                                                     \
    const uint3 blockIdx = cudalab_B.index;                                  \
    const CUDALAB_EXTENT blockDim = cudalab_B.dim, gridDim = cudalab_B.grid; \
    (void)blockIdx, (void)blockDim, (void)gridDim
#ifdef CUDALAB_PROGRAM
#define CUDALAB_EXTENT dim3
#else
#define CUDALAB_EXTENT uint3
#endif

// The threads touch nothing in common, so that the compiler may take several at once; or it takes
// one by one those that have arrays of their own, or that change what others see.
#define CUDALAB_EACH CUDALAB_EACH_IN(CUDALAB_INDEPENDENT)
#define CUDALAB_EACH_ORDERED CUDALAB_EACH_IN()
#define CUDALAB_SOME(mask) CUDALAB_SOME_IN(mask, CUDALAB_INDEPENDENT)
#define CUDALAB_SOME_ORDERED(mask) CUDALAB_SOME_IN(mask, )
#ifdef CUDALAB_FLAT  // no kernel names threadIdx.y or z: blocks have one dimension
#define CUDALAB_EACH_IN(how)                                                     \
    how for (unsigned cudalab_x = 0; cudalab_x < cudalab_B.threads; ++cudalab_x) \
        CUDALAB_POSITION(cudalab_x, cudalab_x, 0, 0)
#define CUDALAB_EACH_ROW CUDALAB_EACH
#define CUDALAB_AHEAD                                                            \
    for (unsigned cudalab_x = 0; cudalab_x < cudalab_B.threads; cudalab_x += 16) \
    CUDALAB_POSITION(cudalab_x, cudalab_x, 0, 0)
#define CUDALAB_RAGGED (cudalab_B.threads < 16)
#define CUDALAB_AT(t) CUDALAB_POSITION(t, (unsigned)(t), 0, 0)
#else
#define CUDALAB_EACH_IN(how)                                                                       \
    for (size_t cudalab_z = 0, cudalab_row = 0; cudalab_z < blockDim.z; ++cudalab_z)               \
        for (size_t cudalab_y = 0; cudalab_y < blockDim.y; ++cudalab_y, cudalab_row += blockDim.x) \
    how for (unsigned cudalab_x = 0; cudalab_x < blockDim.x; ++cudalab_x) CUDALAB_POSITION(        \
        cudalab_row + cudalab_x, cudalab_x, (unsigned)cudalab_y, (unsigned)cudalab_z)
// Rows of blocks that are not ragged, a number of neighbours at a time that the compiler knows.
#define CUDALAB_EACH_ROW                                                                           \
    for (size_t cudalab_z = 0, cudalab_row = 0; cudalab_z < blockDim.z; ++cudalab_z)               \
        for (size_t cudalab_y = 0; cudalab_y < blockDim.y; ++cudalab_y, cudalab_row += blockDim.x) \
            for (unsigned cudalab_first = 0; cudalab_first < blockDim.x; cudalab_first += 16)      \
    CUDALAB_INDEPENDENT for (unsigned cudalab_lane = 0; cudalab_lane < 16; ++cudalab_lane)         \
        CUDALAB_POSITION(cudalab_row + cudalab_first + cudalab_lane, cudalab_first + cudalab_lane, \
                         (unsigned)cudalab_y, (unsigned)cudalab_z)
// The first of every 16 threads, to ask for what they read next: of the first row, as all rows do.
#define CUDALAB_AHEAD                                                     \
    for (unsigned cudalab_x = 0; cudalab_x < blockDim.x; cudalab_x += 16) \
    CUDALAB_POSITION(cudalab_x, cudalab_x, 0, 0)
#define CUDALAB_RAGGED (blockDim.x % 16 != 0)
#define CUDALAB_AT(t) CUDALAB_POSITION(t, cudalab_B.x(t), cudalab_B.y(t), cudalab_B.z(t))
#endif
#define CUDALAB_SOME_IN(mask, how)                                                         \
    for (size_t cudalab_first = 0; cudalab_first < cudalab_B.threads; cudalab_first += 32) \
        if (const unsigned cudalab_lanes = mask.lanes[cudalab_first / 32])                 \
    how for (unsigned cudalab_lane = 0; cudalab_lane < 32;                                 \
             ++cudalab_lane) if (cudalab_lanes >> cudalab_lane & 1)                        \
        CUDALAB_AT(cudalab_first + cudalab_lane)
// Lanes of a block or a mask, a warp at a time.
#define CUDALAB_EACH_WARP \
    for (size_t cudalab_first = 0; cudalab_first < cudalab_B.threads; cudalab_first += 32)
#define CUDALAB_LANES(mask) CUDALAB_LANES_IN(mask, CUDALAB_INDEPENDENT)
#define CUDALAB_LANES_ORDERED(mask) CUDALAB_LANES_IN(mask, )
#define CUDALAB_LANES_IN(mask, how)                                                   \
    if (const unsigned cudalab_lanes = ::cudalab::lanes_at(mask, cudalab_first / 32)) \
    how for (unsigned cudalab_lane = 0; cudalab_lane < 32;                            \
             ++cudalab_lane) if (cudalab_lanes >> cudalab_lane & 1)                   \
        CUDALAB_AT(cudalab_first + cudalab_lane)
#define CUDALAB_POSITION(number, ...) \
    if (const ::cudalab::Position cudalab_position{number, {__VA_ARGS__}}; true)
#define CUDALAB_THREAD                                \
    const size_t cudalab_t = cudalab_position.number; \
    const uint3 threadIdx = cudalab_position.index;   \
    (void)cudalab_t, (void)threadIdx;
#define CUDALAB_RANK (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z))

// An assertion, with its text in the source.
#define cudalab_assert(text, ...) \
    ((__VA_ARGS__) ? (void)0 : ::cudalab::cudalab_fail_assertion(text, __FILE__, __LINE__))

// One thread's part of a region with loops over an array of its own: g++ 12 compiles some such
// loops in a loop over threads to wrong code.
#define CUDALAB_APART __attribute__((noinline))
// A function that several places call: compiled once, not in each of them.
#define CUDALAB_ONCE __attribute__((noinline))
#define CUDALAB_COLD __attribute__((noinline))
#define CUDALAB_INLINE inline __attribute__((always_inline))

namespace cudalab {

CUDALAB_INLINE void assume_small(unsigned first, unsigned threads) {
    if (first > 0x7fffffffu - 1024 || threads > 1024) __builtin_unreachable();
}

// An index that is one more for the thread with the next x. The compiler need not know that an int
// does not wrap around.
CUDALAB_INLINE ptrdiff_t index(int i, unsigned x) {
    return (ptrdiff_t)(int)(i - (int)x) + x;
}
template <class T>
CUDALAB_INLINE const T& index(const T& i, unsigned) {
    return i;
}

// Ask for the elements that 16 neighbouring threads will read, which need not exist.
template <class T>
CUDALAB_INLINE void ahead(T* element) {
    for (size_t i = 0; i < 16 * sizeof(T); i += 64) __builtin_prefetch((const char*)element + i);
}

// Neither does the index of a block's last thread, whatever a kernel takes for the block's width.
CUDALAB_INLINE void assume_no_wrap(unsigned block, unsigned width) {
    if (width <= 1024 && block * width > ~0u - 4096) __builtin_unreachable();
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
    mutable uint64_t barriers, warp_barriers;  // as Tally counts them
    // The block that the OS thread runs.
    static Block here() {
        const auto& dim = CUDALAB_POSITION_OF(blockDim, block_dim);
        const auto& grid = CUDALAB_POSITION_OF(gridDim, grid_dim);
        const unsigned threads = dim.x * dim.y * dim.z;
        return {CUDALAB_POSITION_OF(blockIdx, block_idx),
                {dim.x, dim.y, dim.z},
                {grid.x, grid.y, grid.z},
                threads,
                (threads + 31) / 32,
                nullptr,
                0,
                0};
    }
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
CUDALAB_INLINE unsigned lanes_at(const Block& block, size_t warp) {
    return block.lanes((unsigned)warp);
}
CUDALAB_INLINE unsigned lanes_at(const Mask& mask, size_t warp) {
    return mask.lanes[warp];
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

inline unsigned number_of(const unsigned* lanes, unsigned warps) {
    unsigned sum = 0;
    for (unsigned w = 0; w < warps; ++w) sum += (unsigned)__builtin_popcount(lanes[w]);
    return sum;
}
// The threads that meet: all that are in the kernel, or those of a mask.
CUDALAB_INLINE unsigned number_of(const Block& block, All) {
    return block.live ? number_of(block.live->lanes, block.warps) : block.threads;
}
CUDALAB_INLINE unsigned number_of(const Block& block, const Mask& mask) {
    return number_of(mask.lanes, block.warps);
}

// Values of a block's threads. Large ones do not fit on the stack.
template <class T>
using Kept = typename std::remove_const<typename std::remove_reference<T>::type>::type;

// Whether a value of type T is no reference, and copied without a change of what is copied.
template <typename T, typename Bare = typename std::remove_all_extents<T>::type>
constexpr bool is_copied =
    !std::is_reference<T>::value &&
    (std::is_void<Bare>::value || std::is_constructible<Bare, const Bare&>::value);
const size_t ON_STACK = 32 << 10;
template <size_t bytes, bool small = (bytes <= ON_STACK)>
struct Memory {
    alignas(64) unsigned char at[bytes + 64];  // an odd number of lines
};
template <size_t bytes>
struct Memory<bytes, false> {
    void* const at = cudalab_borrow(bytes);
    ~Memory() { cudalab_give_back(bytes); }
};
// A pointer, not an object with operator[]: there is nothing to inline in each region.
#define CUDALAB_VALUES(name, most, ...)                                  \
    ::cudalab::Memory<sizeof(__VA_ARGS__) * most> name##_cudalab_memory; \
    auto* const name = (::std::add_pointer_t<__VA_ARGS__>)name##_cudalab_memory.at
template <class T>
CUDALAB_INLINE void construct(T* at, const T& value) {
    __builtin_memcpy((void*)at, &value, sizeof value);
}
template <class T>
CUDALAB_INLINE void construct(T* at, const volatile T& value) {
    *at = value;
}
// What a reference to const refers to: a variable, or a value that is put at `place`.
template <class T, class V>
CUDALAB_INLINE const T* lasting(T* place, V&& value) {
    if constexpr (::std::is_lvalue_reference_v<V> &&
                  ::std::is_convertible_v<::std::remove_reference_t<V>*, const T*>) {
        return &value;
    } else {
        static_assert(::std::is_trivially_destructible_v<T>, "a destructor behind a barrier");
        return ::new ((void*)place) T(static_cast<V&&>(value));
    }
}
// A variable that is declared without a value: its class may say how it begins.
template <class T>
CUDALAB_INLINE void begin(T& object) {
    ::new ((void*)&object) T;
}
template <class T, size_t n>
CUDALAB_INLINE void begin(T (&objects)[n]) {
    if (::std::is_trivially_default_constructible<T>::value) return;
    for (size_t i = 0; i < n; ++i) begin(objects[i]);
}
// The threads that are still in a loop whose rounds they do side by side: 1, the others 0.
template <unsigned most>
struct Staying {
    alignas(64) unsigned threads[most];
    CUDALAB_INLINE explicit Staying(const Block& block) {
        for (unsigned t = 0; t < block.threads; ++t) threads[t] = 0;
    }
    CUDALAB_INLINE unsigned& operator[](size_t t) { return threads[t]; }
    CUDALAB_INLINE unsigned count(const Block& block) const {
        unsigned sum = 0;
        for (unsigned t = 0; t < block.threads; ++t) sum += threads[t];
        return sum;
    }
};
// A thread's array while the thread runs a region: a copy, which the compiler may keep in
// registers; a large one stays where it is.
const size_t NEARBY = 1024;
template <class T, bool small = (sizeof(T) <= NEARBY)>
struct Nearby {
    alignas(64) T value;
    T& home;
    CUDALAB_INLINE explicit Nearby(T& array) : home(array) {
        __builtin_memcpy((void*)&value, &array, sizeof value);
    }
    CUDALAB_INLINE ~Nearby() { __builtin_memcpy((void*)&home, &value, sizeof value); }
};
template <class T>
struct Nearby<const T, true> {
    const T& value;
    explicit Nearby(const T& array) : value(array) {}
};
template <class T>
struct Nearby<T, false> {
    T& value;
    explicit Nearby(T& array) : value(array) {}
};
// What threads call, handed to a function of the block: a lambda that is told the thread, an object
// of each thread, or one for all.
template <class F>
struct Lambda {
    F call;
    template <class... A>
    auto operator()(A&&... a) const -> decltype(call(uint3(), size_t(), a...));  // for its type
};
template <class F>
inline Lambda<F> lambda(F call) {
    return {call};
}
template <class T>
struct OfThreads {
    T* values;
    template <class... A>
    auto operator()(A&&... a) const -> decltype(values[0](a...));  // for its type
};
template <class T>
inline OfThreads<T> of_threads(T* values) {
    return {values};
}
template <class F>
CUDALAB_INLINE auto of_thread(const Lambda<F>& lambda, const uint3& index, size_t t) {
    return
        [&lambda, index, t](auto&&... a) -> decltype(auto) { return lambda.call(index, t, a...); };
}
template <class T>
CUDALAB_INLINE T& of_thread(const OfThreads<T>& objects, const uint3&, size_t t) {
    return objects.values[t];
}
template <class T>
CUDALAB_INLINE const T& of_thread(const T& object, const uint3&, size_t) {
    return object;
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

// ------------------------------------------------------------------ warp operations and votes
// The runtime, which is compiled once, has them: loops.h.

namespace regions {

// Operands of the threads: an array, or one value for all.
template <class T>
inline Operand operand(const T* values) {
    return {values, sizeof(T), false};
}
template <class T>
inline Operand operand(const Uniform<T>& value) {
    return {&value.value, sizeof(T), true};
}
inline const unsigned* lanes_of(All) {
    return nullptr;
}
inline const unsigned* lanes_of(const Mask& mask) {
    return mask.lanes;
}
template <class S, class M, class V>
inline WarpCall call_of(const Block& block, const S& from, void* results, const M& masks,
                        const V& values, const char* file, int line) {
    const unsigned* live = block.live ? block.live->lanes : nullptr;
    return {lanes_of(from), live, operand(masks), operand(values), results, file, line};
}

#define CUDALAB_SHUFFLE(name, by)                                                        \
    template <class S, class T, class M, class V, class L, class W>                      \
    inline void name(const Block& block, const S& from, T* results, const M& masks,      \
                     const V& values, const L& lanes, const W& widths, const char* file, \
                     int line) {                                                         \
        const WarpCall call = call_of(block, from, results, masks, values, file, line);  \
        cudalab_shuffle(&call, by, operand(lanes), operand(widths));                     \
    }                                                                                    \
    template <class S, class T, class M, class V, class L>                               \
    inline void name(const Block& block, const S& from, T* results, const M& masks,      \
                     const V& values, const L& lanes, const char* file, int line) {      \
        name(block, from, results, masks, values, lanes, uniform(32), file, line);       \
    }
CUDALAB_SHUFFLE(__shfl_sync, FROM_LANE)
CUDALAB_SHUFFLE(__shfl_up_sync, FROM_BELOW)
CUDALAB_SHUFFLE(__shfl_down_sync, FROM_ABOVE)
CUDALAB_SHUFFLE(__shfl_xor_sync, FROM_ACROSS)
#undef CUDALAB_SHUFFLE

#define CUDALAB_COMBINE(name, T, op, vote)                                              \
    template <class S, class M, class V>                                                \
    inline void name(const Block& block, const S& from, T* results, const M& masks,     \
                     const V& values, const char* file, int line) {                     \
        const WarpCall call = call_of(block, from, results, masks, values, file, line); \
        cudalab_combine(&call, op, vote);                                               \
    }
CUDALAB_COMBINE(__ballot_sync, unsigned, VOTE, NONE)
CUDALAB_COMBINE(__any_sync, int, VOTE, ANY)
CUDALAB_COMBINE(__all_sync, int, VOTE, ALL)
CUDALAB_COMBINE(__match_any_sync, unsigned, MATCH_ANY, NONE)
CUDALAB_COMBINE(__reduce_add_sync, int, ADD, NONE)
CUDALAB_COMBINE(__reduce_add_sync, unsigned, ADD, NONE)
CUDALAB_COMBINE(__reduce_min_sync, int, MIN_SIGNED, NONE)
CUDALAB_COMBINE(__reduce_max_sync, int, MAX_SIGNED, NONE)
CUDALAB_COMBINE(__reduce_min_sync, unsigned, MIN_UNSIGNED, NONE)
CUDALAB_COMBINE(__reduce_max_sync, unsigned, MAX_UNSIGNED, NONE)
CUDALAB_COMBINE(__reduce_and_sync, unsigned, AND, NONE)
CUDALAB_COMBINE(__reduce_or_sync, unsigned, OR, NONE)
CUDALAB_COMBINE(__reduce_xor_sync, unsigned, XOR, NONE)
#undef CUDALAB_COMBINE

// Their names are macros where threads are fibers.
#pragma push_macro("__syncthreads_or")
#undef __syncthreads_or
#pragma push_macro("__syncthreads_and")
#undef __syncthreads_and
#pragma push_macro("__syncthreads_count")
#undef __syncthreads_count
#define CUDALAB_BLOCK_VOTE(name, op)                                                          \
    template <class S, class V>                                                               \
    inline void name(const Block&, const S& from, int* results, const V& values, const char*, \
                     int) {                                                                   \
        cudalab_vote_of_block(lanes_of(from), op, operand(values), results);                  \
    }
CUDALAB_BLOCK_VOTE(__syncthreads_count, COUNT)
CUDALAB_BLOCK_VOTE(__syncthreads_and, ALL)
CUDALAB_BLOCK_VOTE(__syncthreads_or, ANY)
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
        Block block = Block::here();
        ((void (*)(Block&, Taken<Params>...))kernel)(
            block, *(typename std::remove_const<Params>::type*)args[I]...);
        current.tally.barriers += block.barriers;
        current.tally.warp_barriers += block.warp_barriers;
    }
    static void run(void* const* args, unsigned, const uint3*, const bool*) {
        call(args, typename MakeIndices<sizeof...(Params)>::type());
    }
};

}  // namespace cudalab

#ifdef CUDALAB_FLAT
#define CUDALAB_IS_FLAT true
#else
#define CUDALAB_IS_FLAT false
#endif
#define CUDALAB_BLOCKS(kernel, by_whole_warps)                      \
    extern "C" __attribute__((visibility("default")))               \
    const ::cudalab::Kernel cudalab_kernel_##kernel = {             \
        #kernel,                                                    \
        nullptr,                                                    \
        ::cudalab::BlockLauncher<kernel##_cudalab_all>::run,        \
        ::cudalab::BlockLauncher<kernel##_cudalab_all>::num_params, \
        ::cudalab::BlockLauncher<kernel##_cudalab_all>::sizes,      \
        nullptr,                                                    \
        CUDALAB_IS_FLAT,                                            \
        nullptr,                                                    \
        by_whole_warps,                                             \
        false};
