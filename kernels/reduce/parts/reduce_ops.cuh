// The operation. The case's define, one of OP_SUM, OP_PROD, OP_MIN, OP_MAX, OP_SUMSQ, OP_MEAN and
// OP_DOT, chooses the identity, how two values are combined, how an input is transformed as it is
// loaded, and the last value before it is stored. Every kernel is written once, in these terms.
//
// Integers wrap modulo 2^32 (2^64): signed ones are combined as unsigned, for which that is
// defined. A NaN among floats prevails over every number, even in min and max; -0 and +0 are equal.
#pragma once

template <class V>
__device__ inline V add(V a, V b) {
    return a + b;
}
__device__ inline int add(int a, int b) {
    return (int)((unsigned)a + (unsigned)b);
}
__device__ inline long long add(long long a, long long b) {
    return (long long)((unsigned long long)a + (unsigned long long)b);
}

template <class V>
__device__ inline V multiply(V a, V b) {
    return a * b;
}
__device__ inline int multiply(int a, int b) {
    return (int)((unsigned)a * (unsigned)b);
}
__device__ inline long long multiply(long long a, long long b) {
    return (long long)((unsigned long long)a * (unsigned long long)b);
}

// Only a NaN differs from itself.
template <class V>
__device__ inline V smaller(V a, V b) {
    return a < b || a != a ? a : b;
}
template <class V>
__device__ inline V larger(V a, V b) {
    return a > b || a != a ? a : b;
}

// The last and the first value of each type's order; the argument only names the type.
__device__ inline int last_value(int) {
    return 0x7fffffff;
}
__device__ inline unsigned last_value(unsigned) {
    return 0xffffffffu;
}
__device__ inline long long last_value(long long) {
    return 0x7fffffffffffffffll;
}
__device__ inline float last_value(float) {
    return __int_as_float(0x7f800000);  // infinity
}
__device__ inline double last_value(double) {
    return __longlong_as_double(0x7ff0000000000000ll);
}
template <class V>
__device__ inline V first_value(V) {
    return -last_value((V)0);
}
__device__ inline int first_value(int) {
    return -0x7fffffff - 1;
}
__device__ inline unsigned first_value(unsigned) {
    return 0;
}
__device__ inline long long first_value(long long) {
    return -0x7fffffffffffffffll - 1;
}

// The identity, which changes no value that it is combined with, stands in for missing items.
__device__ inline T identity() {
#if defined(OP_PROD)
    return (T)1;
#elif defined(OP_MIN)
    return last_value((T)0);
#elif defined(OP_MAX)
    return first_value((T)0);
#else
    return (T)0;
#endif
}

__device__ inline T combine(T a, T b) {
#if defined(OP_PROD)
    return multiply(a, b);
#elif defined(OP_MIN)
    return smaller(a, b);
#elif defined(OP_MAX)
    return larger(a, b);
#else
    return add(a, b);
#endif
}

// The value of an item. At level 0 that is an input (x alone, or a pair for the dot product), at
// later levels a partial result, which is not squared again.
__device__ inline T value_of(T x, T y, int level) {
#if defined(OP_SUMSQ)
    return level == 0 ? multiply(x, x) : x;
#elif defined(OP_DOT)
    return level == 0 ? multiply(x, y) : x;
#else
    return x;
#endif
}

// Item i; y is read for the dot product of inputs only. size_t: a matrix may have 2^32 items.
__device__ inline T load(const T* x, const T* y, size_t i, int level) {
#if defined(OP_DOT)
    return level == 0 ? value_of(x[i], y[i], level) : x[i];
#else
    const T item = x[i];
    return value_of(item, item, level);
#endif
}

// The value to store. At the last level `count` is the number of inputs combined, else 0.
__device__ inline T finish(T value, unsigned count) {
#if defined(OP_MEAN)
    return count > 0 ? value / (T)count : value;
#else
    return value;
#endif
}
