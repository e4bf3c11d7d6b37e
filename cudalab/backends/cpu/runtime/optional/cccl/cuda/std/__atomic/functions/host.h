// Atomic operations of libcu++ by the compiler's functions. What may be part of a wait loop lets
// the other threads of its block run now and then, as CUDA's own atomics do, and check mode sees
// all.
#pragma once

namespace cudalab {
template <class T>
inline void atomic_begins(T* p, int order) {
    ordered(order);
    CUDALAB_UPDATES(p);
}
template <class T>
inline void atomic_fetch_begins(T* p, int order) {
    ordered(order);
    CUDALAB_COMPUTES(true, p);
}
template <class T>
inline void atomic_swap_begins(T* p, int order) {
    ordered(order);
    CUDALAB_SWAPS(p);
}
template <class T>
inline void atomic_load_begins(T* p, int order) {
    ordered(order);
    CUDALAB_LOADS_ATOMICALLY(p);
}
template <class T>
inline void atomic_store_begins(T* p, int order) {
    ordered(order);
    CUDALAB_STORES_ATOMICALLY(p);
}
inline bool atomic_ends(int order, bool done) {
    ordered(order);
    cudalab_spinning();
    return done;
}
template <class T>
inline bool swap_ends(T* p, int order, bool done) {
    CUDALAB_SWAPPED(p, done);
    return atomic_ends(order, done);
}
}  // namespace cudalab

// A macro is not expanded within itself, so these call the functions of the same name.
#define __atomic_store(p, value, order) \
    (::cudalab::atomic_store_begins(p, order), __atomic_store(p, value, order))
#define __atomic_load(p, result, order)                                        \
    (::cudalab::atomic_load_begins(p, order), __atomic_load(p, result, order), \
     ::cudalab::atomic_ends(order, true))
#define __atomic_exchange(p, value, result, order)                                   \
    (::cudalab::atomic_begins(p, order), __atomic_exchange(p, value, result, order), \
     ::cudalab::atomic_ends(order, true))
#define __atomic_compare_exchange(p, expected, value, weak, order, otherwise) \
    (::cudalab::atomic_swap_begins(p, order),                                 \
     ::cudalab::swap_ends(p, order,                                           \
                          __atomic_compare_exchange(p, expected, value, weak, order, otherwise)))
#define __atomic_fetch_add(p, value, order) \
    (::cudalab::atomic_fetch_begins(p, order), __atomic_fetch_add(p, value, order))
#define __atomic_fetch_sub(p, value, order) \
    (::cudalab::atomic_fetch_begins(p, order), __atomic_fetch_sub(p, value, order))
#define __atomic_fetch_and(p, value, order) \
    (::cudalab::atomic_fetch_begins(p, order), __atomic_fetch_and(p, value, order))
#define __atomic_fetch_or(p, value, order) \
    (::cudalab::atomic_fetch_begins(p, order), __atomic_fetch_or(p, value, order))
#define __atomic_fetch_xor(p, value, order) \
    (::cudalab::atomic_fetch_begins(p, order), __atomic_fetch_xor(p, value, order))

#include_next <cuda/std/__atomic/functions/host.h>

#undef __atomic_store
#undef __atomic_load
#undef __atomic_exchange
#undef __atomic_compare_exchange
#undef __atomic_fetch_add
#undef __atomic_fetch_sub
#undef __atomic_fetch_and
#undef __atomic_fetch_or
#undef __atomic_fetch_xor
