#pragma once

// 1 / x for a normal x below 2^126, rounded twice at most: without the branch that division has.
__device__ inline float reciprocal(float x) {
    return __fdividef(1.0f, x);
}
__device__ inline double reciprocal(double x) {
    return 1 / x;
}
