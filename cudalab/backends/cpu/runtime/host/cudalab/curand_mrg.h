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

struct MrgMatrix {
    uint64_t at[3][3];
    MrgMatrix times(const MrgMatrix& other, uint64_t prime) const {
        MrgMatrix product;
        for (int i = 0; i < 3; ++i)
            for (int j = 0; j < 3; ++j) {
                uint64_t sum = 0;
                for (int k = 0; k < 3; ++k) sum = (sum + at[i][k] * other.at[k][j] % prime) % prime;
                product.at[i][j] = sum;
            }
        return product;
    }
    void apply(unsigned s[3], uint64_t prime) const {
        uint64_t sum[3] = {};
        for (int i = 0; i < 3; ++i)
            for (int k = 0; k < 3; ++k) sum[i] = (sum[i] + at[i][k] * s[k] % prime) % prime;
        for (int i = 0; i < 3; ++i) s[i] = (unsigned)sum[i];
    }
};

// Jumps by count * 2^power numbers.
inline void mrg_jump(curandStateMRG32k3a* state, unsigned long long count, int power) {
    MrgMatrix a = {{{0, 1, 0}, {0, 0, 1}, {MRG_PRIME_1 - 810728, 1403580, 0}}};
    MrgMatrix b = {{{0, 1, 0}, {0, 0, 1}, {MRG_PRIME_2 - 1370589, 0, 527612}}};
    while (count) {
        if (power-- <= 0) {
            if (count & 1) {
                a.apply(state->s1, MRG_PRIME_1);
                b.apply(state->s2, MRG_PRIME_2);
            }
            count >>= 1;
        }
        if (count) {
            a = a.times(a, MRG_PRIME_1);
            b = b.times(b, MRG_PRIME_2);
        }
    }
}

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
    cudalab::mrg_jump(state, count, 0);
}
inline void skipahead_subsequence(unsigned long long count, curandStateMRG32k3a* state) {
    cudalab::mrg_jump(state, count, 76);
}
inline void skipahead_sequence(unsigned long long count, curandStateMRG32k3a* state) {
    cudalab::mrg_jump(state, count, 127);
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
