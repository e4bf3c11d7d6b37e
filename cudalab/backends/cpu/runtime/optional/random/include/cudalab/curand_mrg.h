// MRG32k3a (L'Ecuyer, 1999): the difference of two linear recurrences of order three, each modulo a
// prime near 2^32. A jump is a product with a power of the recurrence's matrix.
#pragma once

#include "curand_types.h"

struct curandStateMRG32k3a {
    unsigned s1[3], s2[3];
    cudalab::Spare spare, spare_double;
    float normal;
    double normal_double;
};
typedef curandStateMRG32k3a curandStateMRG32k3a_t;

namespace cudalab {

constexpr uint64_t MRG_PRIME_1 = 4294967087u, MRG_PRIME_2 = 4294944443u;

// By count * 2^power numbers.
void mrg_jump(unsigned s1[3], unsigned s2[3], unsigned long long count, int power);

// The next number, in [1, MRG_PRIME_1].
inline uint64_t mrg_next(curandStateMRG32k3a* state) {
    unsigned *s = state->s1, *t = state->s2;
    const uint64_t p = (1403580ull * s[1] + 810728ull * (MRG_PRIME_1 - s[0])) % MRG_PRIME_1;
    const uint64_t q = (527612ull * t[2] + 1370589ull * (MRG_PRIME_2 - t[0])) % MRG_PRIME_2;
    s[0] = s[1], s[1] = s[2], s[2] = (unsigned)p;
    t[0] = t[1], t[1] = t[2], t[2] = (unsigned)q;
    return p > q ? p - q : p + MRG_PRIME_1 - q;
}

}  // namespace cudalab

inline unsigned curand(curandStateMRG32k3a* state) {
    return (unsigned)((double)cudalab::mrg_next(state) * 1.000000048662);  // to all of 32 bits
}
inline double curand_uniform_double(curandStateMRG32k3a* state) {
    return (double)cudalab::mrg_next(state) * 2.3283065498378288e-10;
}
inline float curand_uniform(curandStateMRG32k3a* state) {
    return (float)curand_uniform_double(state);
}
inline float2 curand_normal2(curandStateMRG32k3a* state) {
    const float u = curand_uniform(state), angle = curand_uniform(state) * 6.2831855f;
    const float radius = sqrtf(-2.0f * logf(u));
    return {radius * sinf(angle), radius * cosf(angle)};
}
inline void skipahead(unsigned long long count, curandStateMRG32k3a* state) {
    cudalab::mrg_jump(state->s1, state->s2, count, 0);
}
inline void skipahead_subsequence(unsigned long long count, curandStateMRG32k3a* state) {
    cudalab::mrg_jump(state->s1, state->s2, count, 76);
}
inline void skipahead_sequence(unsigned long long count, curandStateMRG32k3a* state) {
    cudalab::mrg_jump(state->s1, state->s2, count, 127);
}
inline void curand_init(unsigned long long seed, unsigned long long subsequence,
                        unsigned long long offset, curandStateMRG32k3a* state) {
    *state = {{12345, 12345, 12345}, {12345, 12345, 12345}, {}, {}, 0, 0};
    if (seed) {
        const uint64_t low = (unsigned)seed ^ 0x55555555u;
        const uint64_t high = (unsigned)(seed >> 32) ^ 0xaaaaaaaau;
        for (int i = 0; i < 3; ++i) {
            state->s1[i] = (unsigned)((i == 1 ? high : low) * 12345 % cudalab::MRG_PRIME_1);
            state->s2[i] = (unsigned)((i == 1 ? low : high) * 12345 % cudalab::MRG_PRIME_2);
        }
    }
    skipahead_subsequence(subsequence, state);
    skipahead(offset, state);
}
