// Associative, commutative operators and their identities, for scans and reductions of any element
// type: op(identity, x) is x, so the identity stands in for missing items.
//
// Min and Max give NaN when an operand is NaN, as a sum does: a plain comparison would keep or drop
// it depending on the order of the operands, and the answer must not depend on that.
#pragma once

template <class V>
struct Limits;  // the maximum and the minimum; infinities if the type has them
template <>
struct Limits<int> {
    static __device__ int greatest() { return 0x7fffffff; }
    static __device__ int least() { return -0x7fffffff - 1; }
};
template <>
struct Limits<unsigned> {
    static __device__ unsigned greatest() { return 0xffffffffu; }
    static __device__ unsigned least() { return 0; }
};
template <>
struct Limits<long long> {
    static __device__ long long greatest() { return 0x7fffffffffffffffll; }
    static __device__ long long least() { return -0x7fffffffffffffffll - 1; }
};
template <>
struct Limits<unsigned long long> {
    static __device__ unsigned long long greatest() { return ~0ull; }
    static __device__ unsigned long long least() { return 0; }
};
template <>
struct Limits<float> {
    static __device__ float greatest() { return __int_as_float(0x7f800000); }
    static __device__ float least() { return -greatest(); }
};
template <>
struct Limits<double> {
    static __device__ double greatest() { return __longlong_as_double(0x7ff0000000000000ll); }
    static __device__ double least() { return -greatest(); }
};

// Integers wrap: signed ones are added as unsigned, for which that is defined.
template <class V>
struct Sum {
    static __device__ V identity() { return (V)0; }
    __device__ V operator()(V left, V right) const { return left + right; }
};
template <>
struct Sum<int> {
    static __device__ int identity() { return 0; }
    __device__ int operator()(int left, int right) const {
        return (int)((unsigned)left + (unsigned)right);
    }
};
template <>
struct Sum<long long> {
    static __device__ long long identity() { return 0; }
    __device__ long long operator()(long long left, long long right) const {
        return (long long)((unsigned long long)left + (unsigned long long)right);
    }
};

// Only a NaN differs from itself.
template <class V>
struct Min {
    static __device__ V identity() { return Limits<V>::greatest(); }
    __device__ V operator()(V left, V right) const {
        return right < left || right != right ? right : left;
    }
};
template <class V>
struct Max {
    static __device__ V identity() { return Limits<V>::least(); }
    __device__ V operator()(V left, V right) const {
        return left < right || right != right ? right : left;
    }
};
