// Check mode: the hooks that carry out atomic operations.
#pragma once

#include "check_hooks.h"

namespace cudalab {

// Atomics of the header: their accesses are already recorded, here they are only carried out.
#define ATOMICS(bits, T)                                                                           \
    EXPORT T __tsan_atomic##bits##_load(const volatile T* p, int) {                                \
        return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                               \
    }                                                                                              \
    EXPORT void __tsan_atomic##bits##_store(volatile T* p, T v, int) {                             \
        __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                                  \
    }                                                                                              \
    EXPORT T __tsan_atomic##bits##_exchange(volatile T* p, T v, int) {                             \
        return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);                                        \
    }                                                                                              \
    EXPORT T __tsan_atomic##bits##_fetch_add(volatile T* p, T v, int) {                            \
        return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST);                                         \
    }                                                                                              \
    EXPORT T __tsan_atomic##bits##_fetch_sub(volatile T* p, T v, int) {                            \
        return __atomic_fetch_sub(p, v, __ATOMIC_SEQ_CST);                                         \
    }                                                                                              \
    EXPORT T __tsan_atomic##bits##_fetch_and(volatile T* p, T v, int) {                            \
        return __atomic_fetch_and(p, v, __ATOMIC_SEQ_CST);                                         \
    }                                                                                              \
    EXPORT T __tsan_atomic##bits##_fetch_or(volatile T* p, T v, int) {                             \
        return __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST);                                          \
    }                                                                                              \
    EXPORT T __tsan_atomic##bits##_fetch_xor(volatile T* p, T v, int) {                            \
        return __atomic_fetch_xor(p, v, __ATOMIC_SEQ_CST);                                         \
    }                                                                                              \
    EXPORT int __tsan_atomic##bits##_compare_exchange_strong(volatile T* p, T* expected, T v, int, \
                                                             int) {                                \
        checked_by_host(p);                                                                        \
        return __atomic_compare_exchange_n(p, expected, v, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
    }                                                                                              \
    EXPORT int __tsan_atomic##bits##_compare_exchange_weak(volatile T* p, T* expected, T v, int,   \
                                                           int) {                                  \
        checked_by_host(p);                                                                        \
        return __atomic_compare_exchange_n(p, expected, v, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
    }                                                                                              \
    EXPORT T __tsan_atomic##bits##_compare_exchange_val(volatile T* p, T expected, T v, int,       \
                                                        int) {                                     \
        checked_by_host(p);                                                                        \
        __atomic_compare_exchange_n(p, &expected, v, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);       \
        return expected;                                                                           \
    }
ATOMICS(8, uint8_t)
ATOMICS(16, uint16_t)
ATOMICS(32, uint32_t) ATOMICS(64, uint64_t) EXPORT void __tsan_atomic_thread_fence(int) {}
EXPORT void __tsan_atomic_signal_fence(int) {}

}  // namespace cudalab
