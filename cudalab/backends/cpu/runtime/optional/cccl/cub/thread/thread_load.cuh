// Loads with a hint for the caches, which there are none of.
#pragma once

#include <cuda/std/__iterator/concepts.h>
#include <cuda/std/__memory/pointer_traits.h>

#include <cub/util_ptx.cuh>
#include <cub/util_type.cuh>

CUB_NAMESPACE_BEGIN

enum CacheLoadModifier {
    LOAD_DEFAULT,
    LOAD_CA,
    LOAD_CG,
    LOAD_CS,
    LOAD_CV,
    LOAD_LDG,
    LOAD_VOLATILE,
};

// A load that sees what others have written may be part of a wait loop.
template <CacheLoadModifier MODIFIER, class Iterator>
detail::it_value_t<Iterator> ThreadLoad(Iterator from) {
    if (MODIFIER == LOAD_CG || MODIFIER == LOAD_CV || MODIFIER == LOAD_VOLATILE) {
        ::cudalab::cudalab_spinning();
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    }
    return *from;
}

template <int COUNT, CacheLoadModifier MODIFIER, class T>
void UnrolledThreadLoad(const T* from, T* to) {
    for (int i = 0; i < COUNT; ++i) to[i] = ThreadLoad<MODIFIER>(from + i);
}
template <int COUNT, class Iterator, class T>
void UnrolledCopy(Iterator from, T* to) {
    for (int i = 0; i < COUNT; ++i) to[i] = from[i];
}

CUB_NAMESPACE_END
