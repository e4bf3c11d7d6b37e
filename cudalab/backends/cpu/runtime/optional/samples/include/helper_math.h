// Arithmetic with CUDA's vectors, field by field, as NVIDIA's samples have it.
#pragma once
#include <cmath>

#include "cuda_runtime.h"

typedef unsigned int uint;
typedef unsigned short ushort;

#define CUDALAB_VECTOR inline __host__ __device__

// Vectors of one number, and of other vectors. What is missing is 0, what is too much is left out.
#define CUDALAB_MADE(T, S, A, B)                            \
    CUDALAB_VECTOR T##2 make_##T##2(S s) {                  \
        return make_##T##2(s, s);                           \
    }                                                       \
    CUDALAB_VECTOR T##2 make_##T##2(T##3 a) {               \
        return make_##T##2(a.x, a.y);                       \
    }                                                       \
    CUDALAB_VECTOR T##2 make_##T##2(A##2 a) {               \
        return make_##T##2((S)a.x, (S)a.y);                 \
    }                                                       \
    CUDALAB_VECTOR T##2 make_##T##2(B##2 a) {               \
        return make_##T##2((S)a.x, (S)a.y);                 \
    }                                                       \
    CUDALAB_VECTOR T##3 make_##T##3(S s) {                  \
        return make_##T##3(s, s, s);                        \
    }                                                       \
    CUDALAB_VECTOR T##3 make_##T##3(T##2 a) {               \
        return make_##T##3(a.x, a.y, 0);                    \
    }                                                       \
    CUDALAB_VECTOR T##3 make_##T##3(T##2 a, S s) {          \
        return make_##T##3(a.x, a.y, s);                    \
    }                                                       \
    CUDALAB_VECTOR T##3 make_##T##3(T##4 a) {               \
        return make_##T##3(a.x, a.y, a.z);                  \
    }                                                       \
    CUDALAB_VECTOR T##3 make_##T##3(A##3 a) {               \
        return make_##T##3((S)a.x, (S)a.y, (S)a.z);         \
    }                                                       \
    CUDALAB_VECTOR T##3 make_##T##3(B##3 a) {               \
        return make_##T##3((S)a.x, (S)a.y, (S)a.z);         \
    }                                                       \
    CUDALAB_VECTOR T##4 make_##T##4(S s) {                  \
        return make_##T##4(s, s, s, s);                     \
    }                                                       \
    CUDALAB_VECTOR T##4 make_##T##4(T##3 a) {               \
        return make_##T##4(a.x, a.y, a.z, 0);               \
    }                                                       \
    CUDALAB_VECTOR T##4 make_##T##4(T##3 a, S s) {          \
        return make_##T##4(a.x, a.y, a.z, s);               \
    }                                                       \
    CUDALAB_VECTOR T##4 make_##T##4(A##4 a) {               \
        return make_##T##4((S)a.x, (S)a.y, (S)a.z, (S)a.w); \
    }                                                       \
    CUDALAB_VECTOR T##4 make_##T##4(B##4 a) {               \
        return make_##T##4((S)a.x, (S)a.y, (S)a.z, (S)a.w); \
    }
CUDALAB_MADE(float, float, int, uint)
CUDALAB_MADE(int, int, float, uint)
CUDALAB_MADE(uint, uint, float, int)

// What one function makes of the fields of one, two or three vectors, and what they sum up to.
namespace cudalab_samples {
#define CUDALAB_FIELDS(T, S)                                                                \
    template <class F, class... V>                                                          \
    CUDALAB_VECTOR T##2 each(F f, T##2 a, V... b) {                                         \
        return make_##T##2(f(a.x, b.x...), f(a.y, b.y...));                                 \
    }                                                                                       \
    template <class F, class... V>                                                          \
    CUDALAB_VECTOR T##3 each(F f, T##3 a, V... b) {                                         \
        return make_##T##3(f(a.x, b.x...), f(a.y, b.y...), f(a.z, b.z...));                 \
    }                                                                                       \
    template <class F, class... V>                                                          \
    CUDALAB_VECTOR T##4 each(F f, T##4 a, V... b) {                                         \
        return make_##T##4(f(a.x, b.x...), f(a.y, b.y...), f(a.z, b.z...), f(a.w, b.w...)); \
    }                                                                                       \
    CUDALAB_VECTOR S product(T##2 a, T##2 b) {                                              \
        return a.x * b.x + a.y * b.y;                                                       \
    }                                                                                       \
    CUDALAB_VECTOR S product(T##3 a, T##3 b) {                                              \
        return a.x * b.x + a.y * b.y + a.z * b.z;                                           \
    }                                                                                       \
    CUDALAB_VECTOR S product(T##4 a, T##4 b) {                                              \
        return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;                               \
    }
CUDALAB_FIELDS(float, float)
CUDALAB_FIELDS(int, int)
CUDALAB_FIELDS(uint, uint)
}  // namespace cudalab_samples

#define CUDALAB_OPERATOR(V, S, sign)                                           \
    CUDALAB_VECTOR V operator sign(V a, V b) {                                 \
        return cudalab_samples::each([](S x, S y) { return x sign y; }, a, b); \
    }                                                                          \
    CUDALAB_VECTOR V operator sign(V a, S b) {                                 \
        return a sign make_##V(b);                                             \
    }                                                                          \
    CUDALAB_VECTOR V operator sign(S a, V b) {                                 \
        return make_##V(a) sign b;                                             \
    }                                                                          \
    CUDALAB_VECTOR void operator sign## = (V & a, V b) {                       \
        a = a sign b;                                                          \
    }                                                                          \
    CUDALAB_VECTOR void operator sign## = (V & a, S b) {                       \
        a = a sign b;                                                          \
    }

// For all vectors.
#define CUDALAB_OF_ANY(V, S, smaller, larger)                                         \
    CUDALAB_OPERATOR(V, S, +)                                                         \
    CUDALAB_OPERATOR(V, S, -)                                                         \
    CUDALAB_OPERATOR(V, S, *)                                                         \
    CUDALAB_VECTOR V smaller(V a, V b) {                                              \
        return cudalab_samples::each([](S x, S y) { return ::smaller(x, y); }, a, b); \
    }                                                                                 \
    CUDALAB_VECTOR V larger(V a, V b) {                                               \
        return cudalab_samples::each([](S x, S y) { return ::larger(x, y); }, a, b);  \
    }                                                                                 \
    CUDALAB_VECTOR V clamp(V v, V a, V b) {                                           \
        return larger(a, smaller(v, b));                                              \
    }                                                                                 \
    CUDALAB_VECTOR V clamp(V v, S a, S b) {                                           \
        return clamp(v, make_##V(a), make_##V(b));                                    \
    }                                                                                 \
    CUDALAB_VECTOR S dot(V a, V b) {                                                  \
        return cudalab_samples::product(a, b);                                        \
    }
#define CUDALAB_OF_SIGNED(V, S, absolute)                                      \
    CUDALAB_VECTOR V operator-(V a) {                                          \
        return cudalab_samples::each([](S x) { return -x; }, a);               \
    }                                                                          \
    CUDALAB_VECTOR V absolute(V a) {                                           \
        return cudalab_samples::each([](S x) { return (S)::absolute(x); }, a); \
    }
#define CUDALAB_OF_FLOATS(V)                                                                \
    CUDALAB_OF_ANY(V, float, fminf, fmaxf)                                                  \
    CUDALAB_OF_SIGNED(V, float, fabs)                                                       \
    CUDALAB_OPERATOR(V, float, /)                                                           \
    CUDALAB_VECTOR V floorf(V v) {                                                          \
        return cudalab_samples::each([](float x) { return ::floorf(x); }, v);               \
    }                                                                                       \
    CUDALAB_VECTOR V fmodf(V a, V b) {                                                      \
        return cudalab_samples::each([](float x, float y) { return ::fmodf(x, y); }, a, b); \
    }                                                                                       \
    CUDALAB_VECTOR V fracf(V v) {                                                           \
        return v - floorf(v);                                                               \
    }                                                                                       \
    CUDALAB_VECTOR V lerp(V a, V b, float t) {                                              \
        return a + t * (b - a);                                                             \
    }                                                                                       \
    CUDALAB_VECTOR float length(V v) {                                                      \
        return sqrtf(dot(v, v));                                                            \
    }                                                                                       \
    CUDALAB_VECTOR V normalize(V v) {                                                       \
        return v * rsqrtf(dot(v, v));                                                       \
    }                                                                                       \
    CUDALAB_VECTOR V smoothstep(V a, V b, V x) {                                            \
        const V y = clamp((x - a) / (b - a), 0.f, 1.f);                                     \
        return y * y * (make_##V(3.f) - make_##V(2.f) * y);                                 \
    }
#define CUDALAB_OF_INTEGERS(V) CUDALAB_OF_ANY(V, int, min, max) CUDALAB_OF_SIGNED(V, int, abs)

CUDALAB_VECTOR float lerp(float a, float b, float t) {
    return a + t * (b - a);
}
CUDALAB_VECTOR float clamp(float f, float a, float b) {
    return fmaxf(a, fminf(f, b));
}
CUDALAB_VECTOR int clamp(int f, int a, int b) {
    return max(a, min(f, b));
}
CUDALAB_VECTOR uint clamp(uint f, uint a, uint b) {
    return max(a, min(f, b));
}
CUDALAB_VECTOR float fracf(float v) {
    return v - floorf(v);
}
CUDALAB_VECTOR float smoothstep(float a, float b, float x) {
    const float y = clamp((x - a) / (b - a), 0.f, 1.f);
    return y * y * (3.f - 2.f * y);
}

CUDALAB_OF_FLOATS(float2)
CUDALAB_OF_FLOATS(float3)
CUDALAB_OF_FLOATS(float4)
CUDALAB_OF_INTEGERS(int2)
CUDALAB_OF_INTEGERS(int3)
CUDALAB_OF_INTEGERS(int4)
CUDALAB_OF_ANY(uint2, uint, min, max)
CUDALAB_OF_ANY(uint3, uint, min, max)
CUDALAB_OF_ANY(uint4, uint, min, max)

CUDALAB_VECTOR float3 reflect(float3 i, float3 n) {
    return i - 2.f * n * dot(n, i);
}
CUDALAB_VECTOR float3 cross(float3 a, float3 b) {
    return make_float3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
#undef CUDALAB_MADE
#undef CUDALAB_FIELDS
#undef CUDALAB_OPERATOR
#undef CUDALAB_OF_ANY
#undef CUDALAB_OF_SIGNED
#undef CUDALAB_OF_FLOATS
#undef CUDALAB_OF_INTEGERS
#undef CUDALAB_VECTOR
