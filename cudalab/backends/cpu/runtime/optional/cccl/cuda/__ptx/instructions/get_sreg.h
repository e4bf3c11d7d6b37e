// The special registers of PTX that kernels read.
#pragma once

#include <cuda/std/cstdint>

_CCCL_BEGIN_NAMESPACE_CUDA_PTX

inline uint32_t get_sreg_laneid() {
    return ::cudalab::lane();
}
inline uint32_t get_sreg_lanemask_eq() {
    return 1u << ::cudalab::lane();
}
inline uint32_t get_sreg_lanemask_lt() {
    return get_sreg_lanemask_eq() - 1;
}
inline uint32_t get_sreg_lanemask_le() {
    return get_sreg_lanemask_lt() | get_sreg_lanemask_eq();
}
inline uint32_t get_sreg_lanemask_gt() {
    return ~get_sreg_lanemask_le();
}
inline uint32_t get_sreg_lanemask_ge() {
    return ~get_sreg_lanemask_lt();
}

#define CUDALAB_REGISTERS(name, value)      \
    inline uint32_t get_sreg_##name##_x() { \
        return value.x;                     \
    }                                       \
    inline uint32_t get_sreg_##name##_y() { \
        return value.y;                     \
    }                                       \
    inline uint32_t get_sreg_##name##_z() { \
        return value.z;                     \
    }
CUDALAB_REGISTERS(tid, ::threadIdx)
CUDALAB_REGISTERS(ntid, ::blockDim)
CUDALAB_REGISTERS(ctaid, ::blockIdx)
CUDALAB_REGISTERS(nctaid, ::gridDim)
#undef CUDALAB_REGISTERS

_CCCL_END_NAMESPACE_CUDA_PTX
