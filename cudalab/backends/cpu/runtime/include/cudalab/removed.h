// What CUDA has removed and programs of courses use: warp functions without a mask, whose lanes are
// those that come there together.
#pragma once

template <class T>
inline T __shfl(T value, int source, int width = 32, CUDALAB_HERE) {
    const unsigned lanes = ::cudalab::converged_lanes(file, line);
    return __shfl_sync(lanes, value, source, width, file, line);
}
template <class T>
inline T __shfl_up(T value, unsigned delta, int width = 32, CUDALAB_HERE) {
    const unsigned lanes = ::cudalab::converged_lanes(file, line);
    return __shfl_up_sync(lanes, value, delta, width, file, line);
}
template <class T>
inline T __shfl_down(T value, unsigned delta, int width = 32, CUDALAB_HERE) {
    const unsigned lanes = ::cudalab::converged_lanes(file, line);
    return __shfl_down_sync(lanes, value, delta, width, file, line);
}
template <class T>
inline T __shfl_xor(T value, int lane_mask, int width = 32, CUDALAB_HERE) {
    const unsigned lanes = ::cudalab::converged_lanes(file, line);
    return __shfl_xor_sync(lanes, value, lane_mask, width, file, line);
}
inline int __any(int predicate, CUDALAB_HERE) {
    return __any_sync(::cudalab::converged_lanes(file, line), predicate, file, line);
}
inline int __all(int predicate, CUDALAB_HERE) {
    return __all_sync(::cudalab::converged_lanes(file, line), predicate, file, line);
}
inline unsigned __ballot(int predicate, CUDALAB_HERE) {
    return __ballot_sync(::cudalab::converged_lanes(file, line), predicate, file, line);
}
