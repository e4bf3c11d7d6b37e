// PTX's shuffles. `bounds` holds, as PTX has it, the bits of a lane that say to which group of
// lanes it belongs (from bit 8 on) and the last lane in a group that may be read (the first one for
// `up`).
#pragma once

#include <cuda/std/cstdint>

_CCCL_BEGIN_NAMESPACE_CUDA_PTX

struct ShuffleBounds {
    int lane, group, last;
    explicit ShuffleBounds(uint32_t bounds)
        : lane((int)::cudalab::lane()),
          group((int)(bounds >> 8 & 31)),
          last((lane & group) | ((int)bounds & ~group & 31)) {}
};
// A lane whose source is out of bounds gets its own value.
template <class T>
T shfl_sync_from(int source, T value, bool inside, bool& valid, int lane, uint32_t mask) {
    valid = inside;
    return __shfl_sync(mask, value, inside ? source : lane);
}
template <class T>
T shfl_sync_idx(T value, bool& valid, uint32_t index, uint32_t bounds, uint32_t mask) {
    const ShuffleBounds b(bounds);
    const int source = (b.lane & b.group) | ((int)index & ~b.group & 31);
    return shfl_sync_from(source, value, source <= b.last, valid, b.lane, mask);
}
template <class T>
T shfl_sync_up(T value, bool& valid, uint32_t offset, uint32_t bounds, uint32_t mask) {
    const ShuffleBounds b(bounds);
    const int source = b.lane - (int)offset;
    return shfl_sync_from(source, value, source >= b.last, valid, b.lane, mask);
}
template <class T>
T shfl_sync_down(T value, bool& valid, uint32_t offset, uint32_t bounds, uint32_t mask) {
    const ShuffleBounds b(bounds);
    const int source = b.lane + (int)offset;
    return shfl_sync_from(source, value, source <= b.last, valid, b.lane, mask);
}
template <class T>
T shfl_sync_bfly(T value, bool& valid, uint32_t bits, uint32_t bounds, uint32_t mask) {
    const ShuffleBounds b(bounds);
    const int source = b.lane ^ (int)bits;
    return shfl_sync_from(source, value, source <= b.last, valid, b.lane, mask);
}

_CCCL_END_NAMESPACE_CUDA_PTX
