// The jumps of XORWOW: each is the square of the one before.

#include <stdlib.h>

#include "curand_kernel.h"

const cudalab::Jump* cudalab::xorwow_jumps() {
    static const Jump* const jumps = [] {
        const int count = 67 + 64;
        Jump* all = (Jump*)malloc(count * sizeof(Jump));
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
        return all;
    }();
    return jumps;
}
