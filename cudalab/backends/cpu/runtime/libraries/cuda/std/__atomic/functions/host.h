// Atomic operations of libcu++. A load or an exchange may be part of a wait loop, so it lets the
// other threads of its block run now and then, as CUDA's own atomics do.
#pragma once

// A macro is not expanded within itself, so these call the compiler's functions.
#define __atomic_load(...) (__atomic_load(__VA_ARGS__), ::cudalab::cudalab_spinning())
#define __atomic_exchange(...) (__atomic_exchange(__VA_ARGS__), ::cudalab::cudalab_spinning())
#define __atomic_compare_exchange(...) \
    (__atomic_compare_exchange(__VA_ARGS__) || (::cudalab::cudalab_spinning(), false))
#include_next <cuda/std/__atomic/functions/host.h>
#undef __atomic_load
#undef __atomic_exchange
#undef __atomic_compare_exchange
