// threadIdx and the other built-in variables for whole programs: other names for the fields of
// `current`. Included where `current` is defined.
#pragma once

#include <stddef.h>

#define CUDALAB_ALIAS(name, offset)                            \
    asm(".globl cudalab_in_" #name "\n.type cudalab_in_" #name \
        ",%tls_object\n"                                       \
        ".size cudalab_in_" #name ",12\n.set cudalab_in_" #name ",_ZN7cudalab7currentE+" #offset);
CUDALAB_ALIAS(threadIdx, 0)
CUDALAB_ALIAS(blockIdx, 16)
CUDALAB_ALIAS(blockDim, 28)
CUDALAB_ALIAS(gridDim, 40)
static_assert(offsetof(cudalab::Current, thread_idx) == 0, "");
static_assert(offsetof(cudalab::Current, block_idx) == 16, "");
static_assert(offsetof(cudalab::Current, block_dim) == 28, "");
static_assert(offsetof(cudalab::Current, grid_dim) == 40, "");
#undef CUDALAB_ALIAS
