// The jumps of XORWOW: each is the square of the one before.

#include <pthread.h>
#include <stdlib.h>

#include "curand_kernel.h"

namespace cudalab {

static Jump* all;

static void compute_all() {
    const int count = 67 + 64;
    all = (Jump*)malloc(count * sizeof(Jump));
    for (int j = 0; j < 160; ++j) {
        curandStateXORWOW state = {};
        state.v[j / 32] = 1u << j % 32;
        curand(&state);
        memcpy(all[0].column[j], state.v, sizeof state.v);
    }
    for (int power = 1; power < count; ++power)
        for (int j = 0; j < 160; ++j) {
            memcpy(all[power].column[j], all[power - 1].column[j], sizeof all[power].column[j]);
            all[power - 1].apply(all[power].column[j]);
        }
}

const Jump* xorwow_jumps() {
    static pthread_once_t once = PTHREAD_ONCE_INIT;  // kernels call this from many threads
    pthread_once(&once, compute_all);
    return all;
}

}  // namespace cudalab
