// The atomic operations beyond those of accesses.h: more types, more scopes, and nvcc's own
// built-ins. All threads see one memory: scopes make a difference in check mode only.
#pragma once

#include "cudalab_cpu.h"

// ------------------------------------------------------------------ more types

inline unsigned short atomicCAS(unsigned short* p, unsigned short expected, unsigned short v) {
    CUDALAB_SWAPS(p);
    const bool done =
        __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    return cudalab_swapped_old(p, expected, done);
}
// Each component is added atomically, not the vector as a whole.
inline float2 atomicAdd(float2* p, float2 v) {
    const float x = atomicAdd(&p->x, v.x), y = atomicAdd(&p->y, v.y);
    return {x, y};
}
inline float4 atomicAdd(float4* p, float4 v) {
    const float x = atomicAdd(&p->x, v.x), y = atomicAdd(&p->y, v.y);
    const float z = atomicAdd(&p->z, v.z), w = atomicAdd(&p->w, v.w);
    return {x, y, z, w};
}
CUDALAB_ATOMIC_SCOPES(atomicInc)
CUDALAB_ATOMIC_SCOPES(atomicDec)

// ------------------------------------------------------------------ __nv_atomic_…

#define __NV_ATOMIC_RELAXED __ATOMIC_RELAXED
#define __NV_ATOMIC_CONSUME __ATOMIC_CONSUME
#define __NV_ATOMIC_ACQUIRE __ATOMIC_ACQUIRE
#define __NV_ATOMIC_RELEASE __ATOMIC_RELEASE
#define __NV_ATOMIC_ACQ_REL __ATOMIC_ACQ_REL
#define __NV_ATOMIC_SEQ_CST __ATOMIC_SEQ_CST
#define __NV_THREAD_SCOPE_THREAD 0
#define __NV_THREAD_SCOPE_BLOCK 1
#define __NV_THREAD_SCOPE_CLUSTER 2
#define __NV_THREAD_SCOPE_DEVICE 3
#define __NV_THREAD_SCOPE_SYSTEM 4

namespace cudalab {
// An order but the relaxed one makes what was written before visible to who reads the value.
inline void ordered(int order, int scope = __NV_THREAD_SCOPE_SYSTEM) {
    (void)scope;
    if (order != __NV_ATOMIC_RELAXED) CUDALAB_FENCED(scope > __NV_THREAD_SCOPE_BLOCK);
}
inline void scoped(int scope) {
    if (scope <= __NV_THREAD_SCOPE_BLOCK) CUDALAB_IN_BLOCK_ONLY();
}
template <class T>
using Plain = typename std::remove_volatile<T>::type;
// The atomic operations above have this many types; others of the same size stand for them.
template <class T>
using AtomicOf = typename std::conditional<
    std::is_floating_point<T>::value, T,
    typename std::conditional<
        sizeof(T) == 8,
        typename std::conditional<std::is_signed<T>::value, long long, unsigned long long>::type,
        typename std::conditional<std::is_signed<T>::value, int, unsigned>::type>::type>::type;
}  // namespace cudalab

template <class T>
inline T __nv_atomic_load_n(const T* p, int order, int scope = __NV_THREAD_SCOPE_SYSTEM) {
    ::cudalab::cudalab_spinning();
    ::cudalab::scoped(scope);
    CUDALAB_LOADS_ATOMICALLY((T*)p);
    T value;
    __atomic_load((T*)p, &value, __ATOMIC_SEQ_CST);
    ::cudalab::ordered(order, scope);
    return value;
}
template <class T>
inline void __nv_atomic_load(const T* p, T* result, int order,
                             int scope = __NV_THREAD_SCOPE_SYSTEM) {
    *result = __nv_atomic_load_n(p, order, scope);
}
template <class T>
inline void __nv_atomic_store_n(T* p, ::cudalab::Plain<T> value, int order,
                                int scope = __NV_THREAD_SCOPE_SYSTEM) {
    ::cudalab::ordered(order, scope);
    ::cudalab::scoped(scope);
    CUDALAB_STORES_ATOMICALLY(p);
    __atomic_store(p, &value, __ATOMIC_SEQ_CST);
}
template <class T>
inline void __nv_atomic_store(T* p, T* value, int order, int scope = __NV_THREAD_SCOPE_SYSTEM) {
    __nv_atomic_store_n(p, *value, order, scope);
}
template <class T>
inline T __nv_atomic_exchange_n(T* p, ::cudalab::Plain<T> value, int order,
                                int scope = __NV_THREAD_SCOPE_SYSTEM) {
    ::cudalab::ordered(order, scope);
    ::cudalab::scoped(scope);
    CUDALAB_UPDATES(p);
    T old;
    __atomic_exchange(p, &value, &old, __ATOMIC_SEQ_CST);
    ::cudalab::ordered(order, scope);
    return old;
}
template <class T>
inline void __nv_atomic_exchange(T* p, T* value, T* result, int order,
                                 int scope = __NV_THREAD_SCOPE_SYSTEM) {
    *result = __nv_atomic_exchange_n(p, *value, order, scope);
}
template <class T>
inline bool __nv_atomic_compare_exchange(T* p, T* expected, T* value, bool, int order, int,
                                         int scope = __NV_THREAD_SCOPE_SYSTEM) {
    ::cudalab::ordered(order, scope);
    ::cudalab::scoped(scope);
    CUDALAB_SWAPS(p);
    const bool done =
        __atomic_compare_exchange(p, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    CUDALAB_SWAPPED(p, done);
    ::cudalab::ordered(order, scope);
    if (!done) ::cudalab::cudalab_spinning();
    return done;
}
template <class T>
inline bool __nv_atomic_compare_exchange_n(T* p, T* expected, ::cudalab::Plain<T> value, bool weak,
                                           int success, int failure,
                                           int scope = __NV_THREAD_SCOPE_SYSTEM) {
    return __nv_atomic_compare_exchange(p, expected, &value, weak, success, failure, scope);
}
#define CUDALAB_NV_ATOMIC(op, function)                                         \
    template <class T>                                                          \
    inline T __nv_atomic_fetch_##op(T* p, ::cudalab::Plain<T> value, int order, \
                                    int scope = __NV_THREAD_SCOPE_SYSTEM) {     \
        typedef ::cudalab::AtomicOf<T> As;                                      \
        ::cudalab::ordered(order, scope);                                       \
        ::cudalab::scoped(scope);                                               \
        const T old = (T)function((As*)p, (As)value);                           \
        ::cudalab::ordered(order, scope);                                       \
        return old;                                                             \
    }                                                                           \
    template <class T>                                                          \
    inline void __nv_atomic_##op(T* p, ::cudalab::Plain<T> value, int order,    \
                                 int scope = __NV_THREAD_SCOPE_SYSTEM) {        \
        __nv_atomic_fetch_##op(p, value, order, scope);                         \
    }
CUDALAB_NV_ATOMIC(add, atomicAdd)
CUDALAB_NV_ATOMIC(sub, atomicSub)
CUDALAB_NV_ATOMIC(and, atomicAnd)
CUDALAB_NV_ATOMIC(or, atomicOr)
CUDALAB_NV_ATOMIC(xor, atomicXor)
CUDALAB_NV_ATOMIC(min, atomicMin)
CUDALAB_NV_ATOMIC(max, atomicMax)
#undef CUDALAB_NV_ATOMIC
inline void __nv_atomic_thread_fence(int, int scope = __NV_THREAD_SCOPE_SYSTEM) {
    if (scope <= __NV_THREAD_SCOPE_BLOCK)
        __threadfence_block();
    else
        __threadfence();
}
