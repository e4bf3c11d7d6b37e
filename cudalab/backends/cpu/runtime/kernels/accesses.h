// Accesses to memory other than plain loads and stores: atomic ones, those with hints for the
// cache, and asynchronous copies. atomics.h has more for whole programs.
#pragma once

#include <type_traits>

#include "runtime.h"

// ------------------------------------------------------------------ atomics

namespace cudalab {
template <class T>
constexpr CUDALAB_DEDUCED(Turns) turns_of(T*) {
    if (std::is_integral<T>::value && sizeof(T) == 4) return BY_LANE;
    if (sizeof(T) == 2) return LOOP_OF_HALF;
    return std::is_arithmetic<T>::value ? LOOP : LOOP_OF_TWO;
}
}  // namespace cudalab

// Kernels poll by operations that change nothing, so these may let other threads run.
template <class T>
inline CUDALAB_DEDUCED(T) cudalab_atomic_old(const void* p, T old, bool changed) {
    if (!changed) {
        CUDALAB_CHANGED_NOTHING((const T*)p);
        ::cudalab::cudalab_spinning();
    }
    return old;
}
template <class T>
inline CUDALAB_DEDUCED(T) cudalab_swapped_old(T* p, T old, bool done) {
    CUDALAB_SWAPPED(p, done);
    if (!done) ::cudalab::cudalab_spinning();
    return old;
}
template <class T, class F>
inline CUDALAB_DEDUCED(T) cudalab_atomic(T* address, F update) {
    CUDALAB_COMPUTES(true, address);
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
        CUDALAB_COMPUTES(v != 0, p);                                                            \
        return cudalab_atomic_old(p, __atomic_fetch_add(p, v, __ATOMIC_RELAXED), v != 0);       \
    }                                                                                           \
    inline T atomicSub(T* p, T v) {                                                             \
        CUDALAB_COMPUTES(v != 0, p);                                                            \
        return cudalab_atomic_old(p, __atomic_fetch_sub(p, v, __ATOMIC_RELAXED), v != 0);       \
    }                                                                                           \
    inline T atomicAnd(T* p, T v) {                                                             \
        CUDALAB_COMPUTES(v != (T) - 1, p);                                                      \
        return cudalab_atomic_old(p, __atomic_fetch_and(p, v, __ATOMIC_RELAXED), v != (T) - 1); \
    }                                                                                           \
    inline T atomicOr(T* p, T v) {                                                              \
        CUDALAB_COMPUTES(v != 0, p);                                                            \
        return cudalab_atomic_old(p, __atomic_fetch_or(p, v, __ATOMIC_RELAXED), v != 0);        \
    }                                                                                           \
    inline T atomicXor(T* p, T v) {                                                             \
        CUDALAB_COMPUTES(v != 0, p);                                                            \
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
        CUDALAB_SWAPS(p);                                                                       \
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
