// Jumps of random numbers' generators: products with powers of the matrix of one step. Each power
// is the square of the one before.

#include <pthread.h>
#include <stdlib.h>

#include "curand_kernel.h"

namespace cudalab {

// ------------------------------------------------------------------ XORWOW

// A step, or several, on 160 bits: image[i][j] is word i of the image of bit j.
struct Jump {
    unsigned image[5][160];

    void apply(unsigned v[5]) const {
        unsigned mask[160];
        for (int word = 0; word < 5; ++word)
            for (int bit = 0; bit < 32; ++bit) mask[32 * word + bit] = -(v[word] >> bit & 1);
        for (int word = 0; word < 5; ++word) {
            unsigned sum = 0;
            for (int j = 0; j < 160; ++j) sum ^= image[word][j] & mask[j];
            v[word] = sum;
        }
    }
    void set(int j, const unsigned v[5]) {
        for (int word = 0; word < 5; ++word) image[word][j] = v[word];
    }
};

static Jump* jumps;  // by 2^0, 2^1, ... 2^(67 + 63) numbers

static void compute_jumps() {
    const int count = 67 + 64;
    jumps = (Jump*)malloc(count * sizeof(Jump));
    for (int j = 0; j < 160; ++j) {
        curandStateXORWOW state = {};
        state.v[j / 32] = 1u << j % 32;
        curand(&state);
        jumps[0].set(j, state.v);
    }
    for (int power = 1; power < count; ++power) {
        const Jump& before = jumps[power - 1];
        for (int j = 0; j < 160; ++j) {
            unsigned v[5];
            for (int word = 0; word < 5; ++word) v[word] = before.image[word][j];
            before.apply(v);
            jumps[power].set(j, v);
        }
    }
}

void xorwow_jump(unsigned v[5], unsigned long long count, int power) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;  // kernels call this from many threads
    pthread_once(&once, compute_jumps);
    for (const Jump* jump = jumps + power; count; count >>= 1, ++jump)
        if (count & 1) jump->apply(v);
}

// ------------------------------------------------------------------ MRG32k3a

struct MrgMatrix {
    uint64_t at[3][3];

    MrgMatrix squared(uint64_t prime) const {
        MrgMatrix product;
        for (int i = 0; i < 3; ++i)
            for (int j = 0; j < 3; ++j) {
                uint64_t sum = 0;
                for (int k = 0; k < 3; ++k) sum = (sum + at[i][k] * at[k][j] % prime) % prime;
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

static const int MRG_POWERS = 127 + 64;
static MrgMatrix mrg_powers[MRG_POWERS][2];

static void compute_mrg_powers() {
    mrg_powers[0][0] = {{{0, 1, 0}, {0, 0, 1}, {MRG_PRIME_1 - 810728, 1403580, 0}}};
    mrg_powers[0][1] = {{{0, 1, 0}, {0, 0, 1}, {MRG_PRIME_2 - 1370589, 0, 527612}}};
    for (int i = 1; i < MRG_POWERS; ++i) {
        mrg_powers[i][0] = mrg_powers[i - 1][0].squared(MRG_PRIME_1);
        mrg_powers[i][1] = mrg_powers[i - 1][1].squared(MRG_PRIME_2);
    }
}

void mrg_jump(unsigned s1[3], unsigned s2[3], unsigned long long count, int power) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, compute_mrg_powers);
    for (; count; count >>= 1, ++power) {
        if (!(count & 1)) continue;
        mrg_powers[power][0].apply(s1, MRG_PRIME_1);
        mrg_powers[power][1].apply(s2, MRG_PRIME_2);
    }
}

}  // namespace cudalab
