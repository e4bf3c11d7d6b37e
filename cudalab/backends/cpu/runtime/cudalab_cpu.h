// CUDA's built-ins for a host C++17 compiler, so that a .cu file compiles unchanged.
//
// A kernel is an ordinary function. The threads of a block run one after another until one of them
// must wait for others; from then on each is a fiber (runtime.cpp). `__shared__` is memory of the
// OS thread that runs the block, so all threads of a block, and no other block, see it.
#pragma once

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <type_traits>

#include "conversions.h"

#define CUDALAB_CPU 1
#define __CUDACC__ 1
#ifndef __CUDA_ARCH__      // in kernel files
#define __CUDA_ARCH__ 750  // above this they may assume inline PTX
#if defined(__GLIBC__) && !defined(CUDALAB_CHECK)
#define __assert_fail(condition, file, line, function) \
    ::cudalab::cudalab_fail_assertion(condition, file, line)
#endif
#endif

// ------------------------------------------------------------------ qualifiers

// g++ would guard the initialization of shared arrays of structs that have functions, in check
// mode.
#if defined(CUDALAB_CHECK) && !defined(__clang__)
#define CUDALAB_NO_GUARD __constinit
#else
#define CUDALAB_NO_GUARD
#endif

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __shared__ __attribute__((aligned(16))) static CUDALAB_NO_GUARD thread_local
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __maxnreg__(...)

// ------------------------------------------------------------------ vector types

// In check mode a copy is a function that reports its access once: compilers copy structs in
// pieces, or without a hook.
#if defined(CUDALAB_CHECK) && !defined(CUDALAB_RUNTIME)
extern "C" void cudalab_copied(void* to, const void* from, size_t bytes);
#define CUDALAB_COPIES(type, parameters, ...)      \
    type() = default;                              \
    constexpr type parameters : __VA_ARGS__ {}     \
    type(const type& from) {                       \
        cudalab_copied(this, &from, sizeof(type)); \
    }                                              \
    type& operator=(const type& from) {            \
        cudalab_copied(this, &from, sizeof(type)); \
        return *this;                              \
    }
#else
#define CUDALAB_COPIES(...)
#endif

#define CUDALAB_VECTOR(T, name, bytes1, bytes2, bytes3, bytes4)                           \
    struct alignas(bytes1) name##1 {                                                      \
        T x;                                                                              \
        CUDALAB_COPIES(name##1, (T a), x(a))                                              \
    };                                                                                    \
    struct alignas(bytes2) name##2 {                                                      \
        T x, y;                                                                           \
        CUDALAB_COPIES(name##2, (T a, T b = 0), x(a), y(b))                               \
    };                                                                                    \
    struct alignas(bytes3) name##3 {                                                      \
        T x, y, z;                                                                        \
        CUDALAB_COPIES(name##3, (T a, T b = 0, T c = 0), x(a), y(b), z(c))                \
    };                                                                                    \
    struct alignas(bytes4) name##4 {                                                      \
        T x, y, z, w;                                                                     \
        CUDALAB_COPIES(name##4, (T a, T b = 0, T c = 0, T d = 0), x(a), y(b), z(c), w(d)) \
    };                                                                                    \
    static inline name##1 make_##name##1(T x) {                                           \
        return {x};                                                                       \
    }                                                                                     \
    static inline name##2 make_##name##2(T x, T y) {                                      \
        return {x, y};                                                                    \
    }                                                                                     \
    static inline name##3 make_##name##3(T x, T y, T z) {                                 \
        return {x, y, z};                                                                 \
    }                                                                                     \
    static inline name##4 make_##name##4(T x, T y, T z, T w) {                            \
        return {x, y, z, w};                                                              \
    }
CUDALAB_VECTOR(signed char, char, 1, 2, 1, 4)
CUDALAB_VECTOR(unsigned char, uchar, 1, 2, 1, 4)
CUDALAB_VECTOR(short, short, 2, 4, 2, 8)
CUDALAB_VECTOR(unsigned short, ushort, 2, 4, 2, 8)
CUDALAB_VECTOR(int, int, 4, 8, 4, 16)
CUDALAB_VECTOR(unsigned int, uint, 4, 8, 4, 16)
CUDALAB_VECTOR(long, long, 8, 16, 8, 16)
CUDALAB_VECTOR(unsigned long, ulong, 8, 16, 8, 16)
CUDALAB_VECTOR(long long, longlong, 8, 16, 8, 16)
CUDALAB_VECTOR(unsigned long long, ulonglong, 8, 16, 8, 16)
CUDALAB_VECTOR(float, float, 4, 8, 4, 16)
CUDALAB_VECTOR(double, double, 8, 16, 8, 16)

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};

// ------------------------------------------------------------------ functions of the runtime

#pragma GCC visibility push(default)
namespace cudalab {

// The position of the running thread. One per OS thread, rewritten at every switch.
struct Current {
    uint3 thread_idx;
    unsigned thread;  // linear index in the block
    uint3 block_idx;
    uint3 block_dim;
    uint3 grid_dim;
    unsigned block_vote;     // result of the last __syncthreads_count/and/or
    char* dynamic_shared;    // extern __shared__
    uint64_t* warp_results;  // per thread: result of its last warp operation
};
extern __thread Current current __attribute__((tls_model("initial-exec")));

enum WarpOp : unsigned {
    SYNC,
    SHUFFLE,
    VOTE,
    MATCH_ANY,
    MATCH_ALL,
    ADD,
    MIN_SIGNED,
    MAX_SIGNED,
    MIN_UNSIGNED,
    MAX_UNSIGNED,
    AND,
    OR,
    XOR,
    CONVERGE,  // completes for the lanes that have arrived when no lane of the warp can continue
    TILE,      // a barrier of several warps: `value` of them
};
enum BlockOp : unsigned { NONE, COUNT, ALL, ANY };

// For kernels whose threads are loops (regions.h and loops.h): what the threads of a block bring to
// an operation at which they meet.
struct Operand {
    const void* values;  // of the threads, in their order
    unsigned bytes;      // of a value
    bool one_for_all;    // there is only one
};
struct WarpCall {
    const unsigned *here, *live;  // lanes of each warp: at the call, in the kernel; null: all
    Operand masks, values;
    void* results;
    const char* file;
    int line;
};
enum Shuffle : unsigned { FROM_LANE, FROM_BELOW, FROM_ABOVE, FROM_ACROSS };

// The kernel's own code reads the results after these return: code after the switch to another
// fiber inside them would make the processor mispredict their return.
extern "C" {
void cudalab_block_barrier(const char* file, int place);
void cudalab_block_vote(BlockOp op, int predicate, const char* file, int place);
void cudalab_warp_op(WarpOp op, unsigned mask, uint64_t value, unsigned source, const char* file,
                     int line);
void cudalab_yield();     // let the other threads of the block run
void cudalab_spinning();  // an atomic or fence that may be part of a wait loop
void cudalab_copy_async(void* to, const void* from, size_t bytes, size_t zeros);
void cudalab_close_copies();
void cudalab_wait_for_copies(unsigned under_way);
__attribute__((noreturn)) void cudalab_fail_assertion(const char* condition, const char* file,
                                                      unsigned line);
long long cudalab_clock();
long long cudalab_read_clock(const void* at);  // by a kernel; null: at the place of this call
// For kernels whose threads are loops: loops.h and regions.h.
void cudalab_shuffle(const WarpCall* call, Shuffle by, Operand lanes, Operand widths);
void cudalab_combine(const WarpCall* call, WarpOp op, BlockOp vote);
void cudalab_vote_of_block(const unsigned* here, BlockOp op, Operand predicates, int* results);
void cudalab_disagree(const char* file, int line);
void* cudalab_borrow(size_t bytes);
void cudalab_give_back(size_t bytes);
#ifdef CUDALAB_CHECK
void cudalab_fence(bool to_grid);
unsigned cudalab_active_lanes();
void cudalab_access(const volatile void* p, size_t bytes, unsigned kind, unsigned flags);
void cudalab_in_block_only();  // the scope of the next access, which is atomic
void cudalab_swapped(void* p, size_t bytes, bool done);
void cudalab_changed_nothing(void* p, size_t bytes);
#endif
}
}  // namespace cudalab
#pragma GCC visibility pop

// Check mode must know the accesses that the functions below make for a kernel.
#ifdef CUDALAB_CHECK
#define CUDALAB_FENCED(to_grid) ::cudalab::cudalab_fence(to_grid)
#define CUDALAB_ACCESS(p, kind, flags) ::cudalab::cudalab_access(p, sizeof *(p), kind, flags)
#define CUDALAB_IN_BLOCK_ONLY() ::cudalab::cudalab_in_block_only()
#define CUDALAB_SWAPPED(p, done) ::cudalab::cudalab_swapped((void*)(p), sizeof *(p), done)
#define CUDALAB_CHANGED_NOTHING(p) ::cudalab::cudalab_changed_nothing((void*)(p), sizeof *(p))
#else
#define CUDALAB_FENCED(to_grid) ((void)0)
#define CUDALAB_ACCESS(p, kind, flags) ((void)0)
#define CUDALAB_IN_BLOCK_ONLY() ((void)0)
#define CUDALAB_SWAPPED(p, done) ((void)0)
#define CUDALAB_CHANGED_NOTHING(p) ((void)0)
#endif
#define CUDALAB_LOADS(p) CUDALAB_ACCESS(p, 2, 0)
#define CUDALAB_STORES(p) CUDALAB_ACCESS(p, 3, 0)
#define CUDALAB_UPDATES(p) CUDALAB_ACCESS(p, 4, 1)
#define CUDALAB_UPDATES_IF(changes, p) CUDALAB_ACCESS(p, 4, (changes) ? 1 : 1 | 32)
// Atomic loads and stores, and those that are volatile.
#define CUDALAB_LOADS_ATOMICALLY(p) CUDALAB_ACCESS(p, 2, 1)
#define CUDALAB_STORES_ATOMICALLY(p) CUDALAB_ACCESS(p, 3, 1)
#define CUDALAB_LOADS_VOLATILE(p) CUDALAB_ACCESS(p, 2, 2)

namespace cudalab {

typedef void (*ThreadFn)(void* const* args);
typedef void (*BlockFn)(void* const* args, unsigned threads, const uint3* indices,
                        const bool* fibers);

// What the host needs to launch a kernel: found in the library as cudalab_kernel_<name>.
struct Kernel {
    const char* name;
    ThreadFn thread;  // one thread of the block; null if its threads are loops (regions.h)
    BlockFn block;    // threads in a plain loop, until the block turns to fibers; or all of them
    unsigned num_params;
    const unsigned char* param_sizes;  // bytes; a pointer has its top bit set
    const unsigned* arg_bytes;         // in whole programs: of each parameter, and of the closure
    bool flat;                         // loops for blocks of one dimension
    BlockFn loops;                     // in whole programs: all threads as loops, or null
    bool by_whole_warps;               // loops for blocks whose rows are whole warps
};
struct Symbol {
    void* address;
    size_t bytes;
};

inline void set_thread(const uint3& index, unsigned thread) {
    current.thread_idx = index;
    current.thread = thread;
}
inline unsigned lane() {
    return current.thread & 31;
}
inline uint64_t warp_result() {
    return current.warp_results[current.thread];
}

template <class T>
inline uint64_t to_bits(T value) {
    static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
    uint64_t bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(T));
    return bits;
}
template <class T>
inline T from_bits(uint64_t bits) {
    T value;
    __builtin_memcpy(&value, &bits, sizeof(T));
    return value;
}

// `extern __shared__ T name[];` outside a function: its address differs by OS thread.
template <class T>
struct DynamicShared {
    operator T*() const { return (T*)current.dynamic_shared; }
    template <class U>
    explicit operator U*() const {
        return (U*)current.dynamic_shared;
    }
    template <class I>
    T& operator[](I i) const {
        return ((T*)current.dynamic_shared)[i];
    }
};

template <size_t... I>
struct Indices {};
template <size_t N, size_t... I>
struct MakeIndices : MakeIndices<N - 1, N - 1, I...> {};
template <size_t... I>
struct MakeIndices<0, I...> {
    typedef Indices<I...> type;
};

template <auto kernel>
struct Launcher;
template <class... Params, void (*kernel)(Params...)>
struct Launcher<kernel> {
    static constexpr unsigned num_params = sizeof...(Params);
    static constexpr unsigned char sizes[sizeof...(Params) + 1] = {
        (unsigned char)(sizeof(Params) | (std::is_pointer<Params>::value ? 128 : 0))..., 0};
    template <size_t... I>
    static inline __attribute__((always_inline)) void call(void* const* args, Indices<I...>) {
        (void)args;
        kernel(*(typename std::remove_const<Params>::type*)args[I]...);
    }
    static void thread(void* const* args) {
        call(args, typename MakeIndices<sizeof...(Params)>::type());
    }
    static void block(void* const* args, unsigned threads, const uint3* indices,
                      const bool* fibers) {
        for (unsigned t = 0; t < threads; ++t) {
            set_thread(indices[t], t);
            call(args, typename MakeIndices<sizeof...(Params)>::type());
            if (__builtin_expect(*(volatile const bool*)fibers, 0)) return;
        }
    }
};

}  // namespace cudalab

#define CUDALAB_KERNEL(kernel)                                                            \
    extern "C" __attribute__((visibility("default")))                                     \
    const ::cudalab::Kernel cudalab_kernel_##kernel = {                                   \
        #kernel, ::cudalab::Launcher<kernel>::thread, ::cudalab::Launcher<kernel>::block, \
        ::cudalab::Launcher<kernel>::num_params, ::cudalab::Launcher<kernel>::sizes};
#define CUDALAB_SYMBOL(symbol)                        \
    extern "C" __attribute__((visibility("default"))) \
    const ::cudalab::Symbol cudalab_symbol_##symbol = {(void*)&symbol, sizeof(symbol)};

#define threadIdx (::cudalab::current.thread_idx)
#define blockIdx (::cudalab::current.block_idx)
#define blockDim (::cudalab::current.block_dim)
#define gridDim (::cudalab::current.grid_dim)
#define warpSize 32

// ------------------------------------------------------------------ barriers and fences

#define CUDALAB_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

// A barrier's place is its line and, since a line or a macro may have several, its number among all
// in the text. Both travel as one number: 20 bits for the line.
#define __syncthreads() __syncthreads_at(__COUNTER__)
#define __syncthreads_count(predicate) __syncthreads_vote(::cudalab::COUNT, predicate, __COUNTER__)
#define __syncthreads_and(predicate) __syncthreads_vote(::cudalab::ALL, predicate, __COUNTER__)
#define __syncthreads_or(predicate) __syncthreads_vote(::cudalab::ANY, predicate, __COUNTER__)

inline void __syncthreads_at(int number, CUDALAB_HERE) {
    ::cudalab::cudalab_block_barrier(file, line | (number & 0x7ff) << 20);
}
inline int __syncthreads_vote(::cudalab::BlockOp op, int predicate, int number, CUDALAB_HERE) {
    ::cudalab::cudalab_block_vote(op, predicate, file, line | (number & 0x7ff) << 20);
    return (int)::cudalab::current.block_vote;
}
inline void __syncwarp(unsigned mask = 0xffffffffu, CUDALAB_HERE) {
    ::cudalab::cudalab_warp_op(::cudalab::SYNC, mask, 0, 0, file, line);
}
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
    return 1u << ::cudalab::lane();
#endif
}
inline unsigned __lane_id() {
    return ::cudalab::lane();
}

// ------------------------------------------------------------------ atomics

// Kernels poll by operations that change nothing, so these may let other threads run.
template <class T>
inline T cudalab_atomic_old(const void* p, T old, bool changed) {
    if (!changed) {
        CUDALAB_CHANGED_NOTHING((const T*)p);
        ::cudalab::cudalab_spinning();
    }
    return old;
}
template <class T>
inline T cudalab_swapped_old(T* p, T old, bool done) {
    CUDALAB_SWAPPED(p, done);
    if (!done) ::cudalab::cudalab_spinning();
    return old;
}
template <class T, class F>
inline T cudalab_atomic(T* address, F update) {
    CUDALAB_UPDATES(address);
    typedef typename std::conditional<sizeof(T) == 2, uint16_t, unsigned>::type UpTo4;
    typedef typename std::conditional<sizeof(T) == 8, uint64_t, UpTo4>::type Bits;
    static_assert(sizeof(T) == sizeof(Bits), "atomics work on 2, 4 or 8 bytes");
    Bits* bits = (Bits*)address;
    Bits old = __atomic_load_n(bits, __ATOMIC_RELAXED), next;
    do {
        T updated = update(::cudalab::from_bits<T>(old));
        __builtin_memcpy(&next, &updated, sizeof(T));
        if (next == old) return cudalab_atomic_old(address, ::cudalab::from_bits<T>(old), false);
    } while (
        !__atomic_compare_exchange_n(bits, &old, next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return ::cudalab::from_bits<T>(old);
}

#define CUDALAB_ATOMIC_INTEGER(T)                                                               \
    inline T atomicAdd(T* p, T v) {                                                             \
        CUDALAB_UPDATES_IF(v != 0, p);                                                          \
        return cudalab_atomic_old(p, __atomic_fetch_add(p, v, __ATOMIC_RELAXED), v != 0);       \
    }                                                                                           \
    inline T atomicSub(T* p, T v) {                                                             \
        CUDALAB_UPDATES_IF(v != 0, p);                                                          \
        return cudalab_atomic_old(p, __atomic_fetch_sub(p, v, __ATOMIC_RELAXED), v != 0);       \
    }                                                                                           \
    inline T atomicAnd(T* p, T v) {                                                             \
        CUDALAB_UPDATES_IF(v != (T) - 1, p);                                                    \
        return cudalab_atomic_old(p, __atomic_fetch_and(p, v, __ATOMIC_RELAXED), v != (T) - 1); \
    }                                                                                           \
    inline T atomicOr(T* p, T v) {                                                              \
        CUDALAB_UPDATES_IF(v != 0, p);                                                          \
        return cudalab_atomic_old(p, __atomic_fetch_or(p, v, __ATOMIC_RELAXED), v != 0);        \
    }                                                                                           \
    inline T atomicXor(T* p, T v) {                                                             \
        CUDALAB_UPDATES_IF(v != 0, p);                                                          \
        return cudalab_atomic_old(p, __atomic_fetch_xor(p, v, __ATOMIC_RELAXED), v != 0);       \
    }                                                                                           \
    inline T atomicMin(T* p, T v) {                                                             \
        return cudalab_atomic(p, [v](T old) { return v < old ? v : old; });                     \
    }                                                                                           \
    inline T atomicMax(T* p, T v) {                                                             \
        return cudalab_atomic(p, [v](T old) { return v > old ? v : old; });                     \
    }                                                                                           \
    inline T atomicExch(T* p, T v) {                                                            \
        CUDALAB_UPDATES(p);                                                                     \
        T old = __atomic_exchange_n(p, v, __ATOMIC_ACQ_REL);                                    \
        return cudalab_atomic_old(p, old, old != v);                                            \
    }                                                                                           \
    inline T atomicCAS(T* p, T expected, T v) {                                                 \
        CUDALAB_UPDATES(p);                                                                     \
        bool done = __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_ACQ_REL,       \
                                                __ATOMIC_ACQUIRE);                              \
        return cudalab_swapped_old(p, expected, done);                                          \
    }
CUDALAB_ATOMIC_INTEGER(int)
CUDALAB_ATOMIC_INTEGER(unsigned)
CUDALAB_ATOMIC_INTEGER(long long)
CUDALAB_ATOMIC_INTEGER(unsigned long long)
CUDALAB_ATOMIC_INTEGER(unsigned long)
inline float atomicAdd(float* p, float v) {
    return cudalab_atomic(p, [v](float old) { return old + v; });
}
inline double atomicAdd(double* p, double v) {
    return cudalab_atomic(p, [v](double old) { return old + v; });
}
inline float atomicExch(float* p, float v) {
    return ::cudalab::from_bits<float>(atomicExch((unsigned*)p, (unsigned)::cudalab::to_bits(v)));
}
inline unsigned atomicInc(unsigned* p, unsigned limit) {
    return cudalab_atomic(p, [limit](unsigned old) { return old >= limit ? 0 : old + 1; });
}
inline unsigned atomicDec(unsigned* p, unsigned limit) {
    return cudalab_atomic(
        p, [limit](unsigned old) { return old == 0 || old > limit ? limit : old - 1; });
}
#define CUDALAB_ATOMIC_SCOPES(op)        \
    template <class T, class... V>       \
    inline T op##_block(T* p, V... v) {  \
        CUDALAB_IN_BLOCK_ONLY();         \
        return op(p, (T)v...);           \
    }                                    \
    template <class T, class... V>       \
    inline T op##_system(T* p, V... v) { \
        return op(p, (T)v...);           \
    }
CUDALAB_ATOMIC_SCOPES(atomicAdd)
CUDALAB_ATOMIC_SCOPES(atomicSub)
CUDALAB_ATOMIC_SCOPES(atomicMin)
CUDALAB_ATOMIC_SCOPES(atomicMax)
CUDALAB_ATOMIC_SCOPES(atomicAnd)
CUDALAB_ATOMIC_SCOPES(atomicOr)
CUDALAB_ATOMIC_SCOPES(atomicXor)
CUDALAB_ATOMIC_SCOPES(atomicExch)
CUDALAB_ATOMIC_SCOPES(atomicCAS)

// ------------------------------------------------------------------ loads and stores with hints

// Copied as bytes: in check mode, a copy of a vector would report the access a second time.
#define CUDALAB_LOAD(name)                         \
    template <class T>                             \
    inline T name(const T* p) {                    \
        CUDALAB_LOADS(p);                          \
        T value;                                   \
        __builtin_memcpy(&value, p, sizeof value); \
        return value;                              \
    }
CUDALAB_LOAD(__ldg)
CUDALAB_LOAD(__ldca)
CUDALAB_LOAD(__ldcg)
CUDALAB_LOAD(__ldcs)
CUDALAB_LOAD(__ldlu)
template <class T>
inline T __ldcv(const T* p) {
    ::cudalab::cudalab_spinning();
    CUDALAB_LOADS_VOLATILE(p);
    return *(const volatile T*)p;
}
#define CUDALAB_STORE(name)                        \
    template <class T>                             \
    inline void name(T* p, T value) {              \
        CUDALAB_STORES(p);                         \
        __builtin_memcpy(p, &value, sizeof value); \
    }
CUDALAB_STORE(__stwb)
CUDALAB_STORE(__stcg)
CUDALAB_STORE(__stcs)
CUDALAB_STORE(__stwt)

// ------------------------------------------------------------------ asynchronous copies
// The functions of cuda_pipeline.h that begin with __pipeline.

inline void __pipeline_memcpy_async(void* to, const void* from, size_t bytes, size_t zeros = 0) {
    ::cudalab::cudalab_copy_async(to, from, bytes, zeros);
}
inline void __pipeline_commit() {
    ::cudalab::cudalab_close_copies();
}
inline void __pipeline_wait_prior(size_t under_way) {
    ::cudalab::cudalab_wait_for_copies((unsigned)under_way);
}

// ------------------------------------------------------------------ integers and bits

inline int __popc(unsigned x) {
    return __builtin_popcount(x);
}
inline int __popcll(unsigned long long x) {
    return __builtin_popcountll(x);
}
inline int __clz(int x) {
    return x ? __builtin_clz((unsigned)x) : 32;
}
inline int __clzll(long long x) {
    return x ? __builtin_clzll((unsigned long long)x) : 64;
}
inline int __ffs(int x) {
    return __builtin_ffs(x);
}
inline int __ffsll(long long x) {
    return __builtin_ffsll(x);
}
inline unsigned __brev(unsigned x) {
    x = (x & 0x55555555u) << 1 | (x >> 1 & 0x55555555u);
    x = (x & 0x33333333u) << 2 | (x >> 2 & 0x33333333u);
    x = (x & 0x0f0f0f0fu) << 4 | (x >> 4 & 0x0f0f0f0fu);
    return __builtin_bswap32(x);
}
inline unsigned long long __brevll(unsigned long long x) {
    return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32));
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
    uint64_t bytes = (uint64_t)y << 32 | x;
    unsigned result = 0;
    for (int i = 0; i < 4; ++i) {
        unsigned choice = selector >> (4 * i);
        result |= ((unsigned)(bytes >> (8 * (choice & 7))) & 0xff) << (8 * i);
    }
    return result;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)((((uint64_t)high << 32 | low) << (shift & 31)) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)(((uint64_t)high << 32 | low) >> (shift & 31));
}
inline unsigned __umulhi(unsigned a, unsigned b) {
    return (unsigned)((uint64_t)a * b >> 32);
}
inline int __mulhi(int a, int b) {
    return (int)((int64_t)a * b >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
inline int __mul24(int a, int b) {
    return (a << 8 >> 8) * (b << 8 >> 8);
}
inline unsigned __umul24(unsigned a, unsigned b) {
    return (a & 0xffffffu) * (b & 0xffffffu);
}
inline unsigned __sad(int a, int b, unsigned c) {
    return (unsigned)(a > b ? a - b : b - a) + c;
}
inline unsigned __usad(unsigned a, unsigned b, unsigned c) {
    return (a > b ? a - b : b - a) + c;
}
inline int __dp4a(int a, int b, int c) {
    for (int i = 0; i < 4; ++i) c += (int8_t)(a >> (8 * i)) * (int8_t)(b >> (8 * i));
    return c;
}

#define CUDALAB_MIN_MAX(T)             \
    inline constexpr T min(T a, T b) { \
        return b < a ? b : a;          \
    }                                  \
    inline constexpr T max(T a, T b) { \
        return a < b ? b : a;          \
    }
CUDALAB_MIN_MAX(int)
CUDALAB_MIN_MAX(unsigned)
CUDALAB_MIN_MAX(long)
CUDALAB_MIN_MAX(unsigned long)
CUDALAB_MIN_MAX(long long)
CUDALAB_MIN_MAX(unsigned long long)
inline constexpr unsigned min(int a, unsigned b) {
    return min((unsigned)a, b);
}
inline constexpr unsigned min(unsigned a, int b) {
    return min(a, (unsigned)b);
}
inline constexpr unsigned max(int a, unsigned b) {
    return max((unsigned)a, b);
}
inline constexpr unsigned max(unsigned a, int b) {
    return max(a, (unsigned)b);
}
inline float min(float a, float b) {
    return fminf(a, b);
}
inline float max(float a, float b) {
    return fmaxf(a, b);
}
inline double min(double a, double b) {
    return fmin(a, b);
}
inline double max(double a, double b) {
    return fmax(a, b);
}

// ------------------------------------------------------------------ floating point

inline float rsqrtf(float x) {
    return 1.0f / sqrtf(x);
}
inline double rsqrt(double x) {
    return 1.0 / sqrt(x);
}
inline float rcbrtf(float x) {
    return 1.0f / cbrtf(x);
}
inline float __saturatef(float x) {
    return x > 0 ? x < 1 ? x : 1.0f : 0.0f;
}
// The fast intrinsics, which are as accurate here as the host's own functions.
inline float __sinf(float x) {
    return sinf(x);
}
inline float __cosf(float x) {
    return cosf(x);
}
inline float __tanf(float x) {
    return tanf(x);
}
inline float __expf(float x) {
    return expf(x);
}
inline float __exp10f(float x) {
    return powf(10.0f, x);
}
inline float __logf(float x) {
    return logf(x);
}
inline float __log2f(float x) {
    return log2f(x);
}
inline float __log10f(float x) {
    return log10f(x);
}
inline float __powf(float x, float y) {
    return powf(x, y);
}
inline float __fdividef(float a, float b) {
    return a / b;
}
inline void __sincosf(float x, float* s, float* c) {
    *s = sinf(x);
    *c = cosf(x);
}
// Rounded to nearest, never contracted into a fused multiply-add.
inline float __fadd_rn(float a, float b) {
    volatile float r = a + b;
    return r;
}
inline float __fsub_rn(float a, float b) {
    volatile float r = a - b;
    return r;
}
inline float __fmul_rn(float a, float b) {
    volatile float r = a * b;
    return r;
}
inline float __fdiv_rn(float a, float b) {
    return a / b;
}
inline float __fsqrt_rn(float x) {
    return sqrtf(x);
}
inline float __frcp_rn(float x) {
    return 1.0f / x;
}
inline float __frsqrt_rn(float x) {
    return (float)(1.0 / sqrt((double)x));
}
inline float __fmaf_rn(float a, float b, float c) {
    return fmaf(a, b, c);
}
inline double __dadd_rn(double a, double b) {
    volatile double r = a + b;
    return r;
}
inline double __dsub_rn(double a, double b) {
    volatile double r = a - b;
    return r;
}
inline double __dmul_rn(double a, double b) {
    volatile double r = a * b;
    return r;
}
inline double __ddiv_rn(double a, double b) {
    return a / b;
}
inline double __dsqrt_rn(double x) {
    return sqrt(x);
}
inline double __fma_rn(double a, double b, double c) {
    return fma(a, b, c);
}

inline int __float_as_int(float x) {
    return ::cudalab::from_bits<int>(::cudalab::to_bits(x));
}
inline unsigned __float_as_uint(float x) {
    return ::cudalab::from_bits<unsigned>(::cudalab::to_bits(x));
}
inline float __int_as_float(int x) {
    return ::cudalab::from_bits<float>(::cudalab::to_bits(x));
}
inline float __uint_as_float(unsigned x) {
    return ::cudalab::from_bits<float>(::cudalab::to_bits(x));
}
inline long long __double_as_longlong(double x) {
    return ::cudalab::from_bits<long long>(::cudalab::to_bits(x));
}
inline double __longlong_as_double(long long x) {
    return ::cudalab::from_bits<double>(::cudalab::to_bits(x));
}
inline int __double2hiint(double x) {
    return (int)(::cudalab::to_bits(x) >> 32);
}
inline int __double2loint(double x) {
    return (int)::cudalab::to_bits(x);
}
inline double __hiloint2double(int high, int low) {
    return ::cudalab::from_bits<double>((uint64_t)(unsigned)high << 32 | (unsigned)low);
}

// ------------------------------------------------------------------ clocks and the rest

// Nanoseconds of the machine's clock, the same in all blocks: cycles at 1 GHz, which the device
// reports. A thread that waits by the clock lets the others of its block run.
inline long long clock64() {
    return ::cudalab::cudalab_read_clock(nullptr);
}
inline long clock() {
    return (long)clock64();
}
inline void __trap() {
    __builtin_trap();
}
inline void __brkpt() {
    __builtin_trap();
}
#define __builtin_assume(condition) ((void)0)
#define __CUDA_ALIGN__(bytes) __align__(bytes)
