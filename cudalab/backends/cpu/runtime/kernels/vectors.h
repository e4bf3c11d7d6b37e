// CUDA's vector types, such as float4, and dim3.
#pragma once

#include <stddef.h>

// In check mode a copy is a function that reports its access once: compilers copy structs in
// pieces, or without a hook.
#if defined(CUDALAB_CHECK) && !defined(CUDALAB_RUNTIME)
extern "C" void cudalab_copied(void* to, const void* from, size_t bytes);
#define CUDALAB_COPIES(type, parameters, ...)      \
    type() = default;                              \
    constexpr type parameters : __VA_ARGS__ {}     \
    type(const type& from) {                       \
        cudalab_copied(this, &from, sizeof(type)); \
    }                                              \
    type& operator=(const type& from) {            \
        cudalab_copied(this, &from, sizeof(type)); \
        return *this;                              \
    }
#else
#define CUDALAB_COPIES(...)
#endif

#define CUDALAB_VECTOR(T, name, bytes1, bytes2, bytes3, bytes4)                           \
    struct alignas(bytes1) name##1 {                                                      \
        T x;                                                                              \
        CUDALAB_COPIES(name##1, (T a), x(a))                                              \
    };                                                                                    \
    struct alignas(bytes2) name##2 {                                                      \
        T x, y;                                                                           \
        CUDALAB_COPIES(name##2, (T a, T b = 0), x(a), y(b))                               \
    };                                                                                    \
    struct alignas(bytes3) name##3 {                                                      \
        T x, y, z;                                                                        \
        CUDALAB_COPIES(name##3, (T a, T b = 0, T c = 0), x(a), y(b), z(c))                \
    };                                                                                    \
    struct alignas(bytes4) name##4 {                                                      \
        T x, y, z, w;                                                                     \
        CUDALAB_COPIES(name##4, (T a, T b = 0, T c = 0, T d = 0), x(a), y(b), z(c), w(d)) \
    };                                                                                    \
    static inline name##1 make_##name##1(T x) {                                           \
        return {x};                                                                       \
    }                                                                                     \
    static inline name##2 make_##name##2(T x, T y) {                                      \
        return {x, y};                                                                    \
    }                                                                                     \
    static inline name##3 make_##name##3(T x, T y, T z) {                                 \
        return {x, y, z};                                                                 \
    }                                                                                     \
    static inline name##4 make_##name##4(T x, T y, T z, T w) {                            \
        return {x, y, z, w};                                                              \
    }
CUDALAB_VECTOR(signed char, char, 1, 2, 1, 4)
CUDALAB_VECTOR(unsigned char, uchar, 1, 2, 1, 4)
CUDALAB_VECTOR(short, short, 2, 4, 2, 8)
CUDALAB_VECTOR(unsigned short, ushort, 2, 4, 2, 8)
CUDALAB_VECTOR(int, int, 4, 8, 4, 16)
CUDALAB_VECTOR(unsigned int, uint, 4, 8, 4, 16)
CUDALAB_VECTOR(long, long, 8, 16, 8, 16)
CUDALAB_VECTOR(unsigned long, ulong, 8, 16, 8, 16)
CUDALAB_VECTOR(long long, longlong, 8, 16, 8, 16)
CUDALAB_VECTOR(unsigned long long, ulonglong, 8, 16, 8, 16)
CUDALAB_VECTOR(float, float, 4, 8, 4, 16)
CUDALAB_VECTOR(double, double, 8, 16, 8, 16)

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};
