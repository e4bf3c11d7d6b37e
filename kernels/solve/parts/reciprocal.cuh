#pragma once

// 1 / x for a normal x up to 2^126, rounded twice at most: without the branches that division has.
__device__ inline float reciprocal(float x) {
#ifdef CUDALAB_CPU
    return 1 / x;
#else
    float result;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
#endif
}
__device__ inline double reciprocal(double x) {
    return 1 / x;
}
