// Random numbers in kernels: XORWOW (curandState) and Philox4x32-10, with cuRAND's sequences.
//
// XORWOW is Marsaglia's xorshift of 160 bits plus a Weyl sequence. A subsequence begins 2^67
// numbers after the previous one; the step is linear over bits, so a jump is a product with a
// matrix. Philox encrypts a counter (Salmon and others, 2011): jumping is counting.
#pragma once
#define CURAND_KERNEL_H_

#include "cuda_runtime.h"
#include "cudalab/curand_types.h"
#include "curand.h"

struct curandStateXORWOW {
    unsigned d, v[5];
    cudalab::Spare spare, spare_double;
    float normal;
    double normal_double;
};
typedef curandStateXORWOW curandStateXORWOW_t;
typedef curandStateXORWOW curandState_t;
typedef curandStateXORWOW curandState;

struct curandStatePhilox4_32_10 {
    unsigned counter[4], key[2], output[4];
    unsigned used;  // numbers of the output
    cudalab::Spare spare, spare_double;
    float normal;
    double normal_double;
};
typedef curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;

namespace cudalab {

void xorwow_jump(unsigned v[5], unsigned long long count, int power);  // by count * 2^power numbers

inline void philox(const unsigned counter[4], const unsigned key[2], unsigned output[4]) {
    unsigned c[4] = {counter[0], counter[1], counter[2], counter[3]}, k[2] = {key[0], key[1]};
    for (int round = 0; round < 10; ++round) {
        const uint64_t a = (uint64_t)0xD2511F53u * c[0], b = (uint64_t)0xCD9E8D57u * c[2];
        const unsigned next[4] = {(unsigned)(b >> 32) ^ c[1] ^ k[0], (unsigned)b,
                                  (unsigned)(a >> 32) ^ c[3] ^ k[1], (unsigned)a};
        memcpy(c, next, sizeof c);
        k[0] += 0x9E3779B9u;
        k[1] += 0xBB67AE85u;
    }
    memcpy(output, c, sizeof c);
}
inline void count_up(unsigned counter[4], unsigned long long by, int word) {
    for (unsigned long long carry = by; carry && word < 4; ++word, carry >>= 32) {
        const uint64_t sum = (uint64_t)counter[word] + (unsigned)carry;
        counter[word] = (unsigned)sum;
        carry += (sum >> 32) << 32;
    }
}

}  // namespace cudalab

inline unsigned curand(curandStateXORWOW* state) {
    unsigned* v = state->v;
    const unsigned t = v[0] ^ (v[0] >> 2);
    v[0] = v[1], v[1] = v[2], v[2] = v[3], v[3] = v[4];
    v[4] = (v[4] ^ (v[4] << 4)) ^ (t ^ (t << 1));
    state->d += 362437;
    return v[4] + state->d;
}
inline void skipahead(unsigned long long count, curandStateXORWOW* state) {
    cudalab::xorwow_jump(state->v, count, 0);
    state->d += 362437u * (unsigned)count;
}
inline void skipahead_sequence(unsigned long long count, curandStateXORWOW* state) {
    cudalab::xorwow_jump(state->v, count, 67);
}
inline void curand_init(unsigned long long seed, unsigned long long subsequence,
                        unsigned long long offset, curandStateXORWOW* state) {
    const unsigned low = (unsigned)seed ^ 0xaad26b49u, high = (unsigned)(seed >> 32) ^ 0xf7dcefddu;
    const unsigned a = 1099087573u * low, b = 2591861531u * high;
    *state = {6615241u + b + a,
              {123456789u + a, 362436069u ^ a, 521288629u + b, 88675123u ^ b, 5783321u + a},
              {},
              {},
              0,
              0};
    skipahead_sequence(subsequence, state);
    skipahead(offset, state);
}

inline unsigned curand(curandStatePhilox4_32_10* state) {
    if (state->used == 4) {
        cudalab::count_up(state->counter, 1, 0);
        cudalab::philox(state->counter, state->key, state->output);
        state->used = 0;
    }
    return state->output[state->used++];
}
inline uint4 curand4(curandStatePhilox4_32_10* state) {
    const unsigned x = curand(state), y = curand(state), z = curand(state), w = curand(state);
    return {x, y, z, w};
}
inline void skipahead(unsigned long long count, curandStatePhilox4_32_10* state) {
    const unsigned long long position = state->used + (count & 3);
    cudalab::count_up(state->counter, count / 4 + position / 4, 0);
    state->used = (unsigned)position % 4;
    cudalab::philox(state->counter, state->key, state->output);
}
inline void skipahead_sequence(unsigned long long count, curandStatePhilox4_32_10* state) {
    cudalab::count_up(state->counter, count, 2);
    cudalab::philox(state->counter, state->key, state->output);
}
inline void curand_init(unsigned long long seed, unsigned long long subsequence,
                        unsigned long long offset, curandStatePhilox4_32_10* state) {
    *state = {};
    state->key[0] = (unsigned)seed;
    state->key[1] = (unsigned)(seed >> 32);
    skipahead_sequence(subsequence, state);
    skipahead(offset, state);
}

#include "cudalab/curand_mrg.h"
#include "cudalab/curand_sobol.h"

// ------------------------------------------------------------------ distributions

template <class State>
inline float curand_uniform(State* state) {  // in (0, 1]
    const float unit = 2.3283064e-10f;
    return (float)curand(state) * unit + unit / 2;
}
namespace cudalab {
template <class State>
inline double precise_uniform(State* state) {    // all bits of a double, from two numbers
    const double unit = 1.1102230246251565e-16;  // 2^-53
    const unsigned x = curand(state), y = curand(state);
    const uint64_t bits = (uint64_t)x ^ ((uint64_t)y << (53 - 32));
    return (double)bits * unit + unit / 2;
}
inline double precise_uniform(curandStateMRG32k3a* state) {
    return curand_uniform_double(state);
}
}  // namespace cudalab

inline double curand_uniform_double(curandStateXORWOW* state) {
    return cudalab::precise_uniform(state);
}
inline double curand_uniform_double(curandStatePhilox4_32_10* state) {
    const double unit = 2.3283064365386963e-10;  // 2^-32
    return (double)curand(state) * unit + unit;
}
// Box and Muller: two normal numbers at a time, the second is stored for the next call.
template <class State>
inline float2 curand_normal2(State* state) {
    const float unit = 2.3283064e-10f, turn = unit * 6.2831855f;
    const unsigned x = curand(state), y = curand(state);
    const float u = (float)x * unit + unit / 2, angle = (float)y * turn + turn / 2;
    const float radius = sqrtf(-2.0f * logf(u));
    return {radius * sinf(angle), radius * cosf(angle)};
}
template <class State>
inline float curand_normal(State* state) {
    if (cudalab::take_spare(state->spare, cudalab::Spare::NORMAL)) return state->normal;
    const float2 pair = curand_normal2(state);
    state->normal = pair.y;
    return pair.x;
}
template <class State>
inline double2 curand_normal2_double(State* state) {
    const double u = cudalab::precise_uniform(state);
    const double angle = 2 * cudalab::precise_uniform(state);
    const double radius = sqrt(-2.0 * log(u));
    double2 pair;
    sincospi(angle, &pair.x, &pair.y);
    return {radius * pair.x, radius * pair.y};
}
template <class State>
inline double curand_normal_double(State* state) {
    if (cudalab::take_spare(state->spare_double, cudalab::Spare::NORMAL))
        return state->normal_double;
    const double2 pair = curand_normal2_double(state);
    state->normal_double = pair.y;
    return pair.x;
}
template <class State>
inline float2 curand_log_normal2(State* state, float mean, float deviation) {
    const float2 pair = curand_normal2(state);
    return {expf(mean + deviation * pair.x), expf(mean + deviation * pair.y)};
}
template <class State>
inline float curand_log_normal(State* state, float mean, float deviation) {
    if (cudalab::take_spare(state->spare, cudalab::Spare::LOG_NORMAL)) return state->normal;
    const float2 pair = curand_log_normal2(state, mean, deviation);
    state->normal = pair.y;
    return pair.x;
}
template <class State>
inline float4 curand_log_normal4(State* state, float mean, float deviation) {
    const float2 a = curand_log_normal2(state, mean, deviation);
    const float2 b = curand_log_normal2(state, mean, deviation);
    return {a.x, a.y, b.x, b.y};
}
template <class State>
inline double2 curand_log_normal2_double(State* state, double mean, double deviation) {
    const double2 pair = curand_normal2_double(state);
    return {exp(mean + deviation * pair.x), exp(mean + deviation * pair.y)};
}
template <class State>
inline double curand_log_normal_double(State* state, double mean, double deviation) {
    if (cudalab::take_spare(state->spare_double, cudalab::Spare::LOG_NORMAL))
        return state->normal_double;
    const double2 pair = curand_log_normal2_double(state, mean, deviation);
    state->normal_double = pair.y;
    return pair.x;
}
template <class State>
inline double2 curand_uniform2_double(State* state) {
    const double x = cudalab::precise_uniform(state);
    return {x, cudalab::precise_uniform(state)};
}
template <class State>
inline float4 curand_uniform4(State* state) {
    const float x = curand_uniform(state), y = curand_uniform(state), z = curand_uniform(state);
    return {x, y, z, curand_uniform(state)};
}
template <class State>
inline float4 curand_normal4(State* state) {
    const float2 a = curand_normal2(state), b = curand_normal2(state);
    return {a.x, a.y, b.x, b.y};
}

// Poisson numbers: Knuth's product of uniform numbers for a small mean, a normal number for a great
// one. A GPU's method in between is not known well enough to have its numbers.
template <class State>
inline unsigned curand_poisson(State* state, double mean) {
    if (mean > 4000) return (unsigned)(sqrt(mean) * curand_normal_double(state) + mean + 0.5);
    if (mean >= 64) {
        fputs(
            "cudalab: not supported on the CPU device: curand_poisson with a mean from 64 to "
            "4000\n",
            stderr);
        __trap();
    }
    unsigned count = 0;
    float product = expf((float)mean);
    while ((product *= curand_uniform(state)) > 1) ++count;
    return count;
}
template <class State>
inline uint4 curand_poisson4(State* state, double mean) {
    if (mean > 4000) {
        const float4 normal = curand_normal4(state);
        const double deviation = sqrt(mean), middle = mean + 0.5;
        return {
            (unsigned)(deviation * normal.x + middle), (unsigned)(deviation * normal.y + middle),
            (unsigned)(deviation * normal.z + middle), (unsigned)(deviation * normal.w + middle)};
    }
    const unsigned x = curand_poisson(state, mean), y = curand_poisson(state, mean);
    const unsigned z = curand_poisson(state, mean);
    return {x, y, z, curand_poisson(state, mean)};
}
