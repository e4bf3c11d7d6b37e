// Sobol's sequences of 32 and 64 bits: number i is the sum, without carries, of the direction
// vectors that the bits of i in Gray's code select.
#pragma once

#include "curand_types.h"

template <class T, int BITS>
struct cudalab_SobolState {
    T x, offset, i, directions[BITS];
};
typedef cudalab_SobolState<unsigned, 32> curandStateSobol32;
typedef curandStateSobol32 curandStateSobol32_t;
typedef cudalab_SobolState<unsigned long long, 64> curandStateSobol64;
typedef curandStateSobol64 curandStateSobol64_t;

namespace cudalab {
template <class T>
struct SameType {  // the compiler does not deduce T from it
    typedef T type;
};
}  // namespace cudalab

template <class T, int BITS>
inline void skipahead(unsigned long long count, cudalab_SobolState<T, BITS>* state) {
    state->i += (T)count;
    state->x = state->offset;
    const T gray = state->i ^ (state->i >> 1);
    for (int bit = 0; bit < BITS; ++bit)
        if (gray >> bit & 1) state->x ^= state->directions[bit];
}
template <class T, int BITS>
inline void curand_init(const typename cudalab::SameType<T>::type* directions,
                        unsigned long long offset, cudalab_SobolState<T, BITS>* state) {
    for (int bit = 0; bit < BITS; ++bit) state->directions[bit] = directions[bit];
    state->i = state->offset = 0;
    skipahead(offset, state);
}
template <class T, int BITS>
inline T curand(cudalab_SobolState<T, BITS>* state) {
    const T x = state->x;
    const int lowest = __builtin_ctzll(~(unsigned long long)state->i);  // the bit that changes
    if (lowest < BITS) state->x ^= state->directions[lowest];
    ++state->i;
    return x;
}
inline float curand_uniform(curandStateSobol64* state) {
    const float unit = 2.3283064e-10f;
    return (float)(unsigned)(curand(state) >> 32) * unit + unit / 2;
}
inline double curand_uniform_double(curandStateSobol32* state) {
    const double unit = 2.3283064365386963e-10;  // 2^-32
    return (double)curand(state) * unit + unit;
}
inline double curand_uniform_double(curandStateSobol64* state) {
    const double unit = 1.1102230246251565e-16;  // 2^-53
    return (double)(curand(state) >> 11) * unit + unit / 2;
}

namespace cudalab {
// The normal number that x is as a share of 2^32: numbers above the middle are mirrored, which
// keeps their precision.
inline double normal_of(unsigned x) {
    const bool above = x > 0x80000000u;
    const double unit = 2.3283064365386963e-10;
    const double share = (double)(above ? ~x : x) * unit + unit / 2;
    const double size = 1.4142135623730951 * erfcinv(2 * share);
    return above ? size : -size;
}
inline double normal_of(unsigned long long x) {
    x >>= 11;
    const bool above = x > 1ull << 52;
    const double unit = 1.1102230246251565e-16;
    const double share = (double)(above ? (1ull << 53) - 1 - x : x) * unit + unit / 2;
    const double size = 1.4142135623730951 * erfcinv(2 * share);
    return above ? size : -size;
}
}  // namespace cudalab

inline float curand_normal(curandStateSobol32* state) {
    return (float)cudalab::normal_of(curand(state));
}
inline float curand_normal(curandStateSobol64* state) {
    return (float)cudalab::normal_of((unsigned)(curand(state) >> 32));
}
template <class T, int BITS>
inline double curand_normal_double(cudalab_SobolState<T, BITS>* state) {
    return cudalab::normal_of(curand(state));
}
