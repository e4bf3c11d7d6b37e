// Stores with a hint for the caches, which there are none of.
#pragma once

#include <cub/util_ptx.cuh>
#include <cub/util_type.cuh>

CUB_NAMESPACE_BEGIN

enum CacheStoreModifier {
    STORE_DEFAULT,
    STORE_WB,
    STORE_CG,
    STORE_CS,
    STORE_WT,
    STORE_VOLATILE,
};

template <CacheStoreModifier MODIFIER, class Iterator, class T>
void ThreadStore(Iterator to, T value) {
    *to = value;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

CUB_NAMESPACE_END
