// Keys as bit patterns, and the digits of a pattern.
//
// A radix sort orders unsigned numbers. ordered_bits() maps a key to the unsigned number with the
// same place in the order: int has its sign bit flipped; float and double have all bits flipped
// when negative, else the sign bit: -NaN < -inf < ... < -0 < +0 < ... < +inf < +NaN.
// from_ordered_bits<Key>() is the inverse, bit for bit, so NaN payloads survive.
#pragma once

__device__ inline unsigned ordered_bits(unsigned key) {
    return key;
}
__device__ inline unsigned long long ordered_bits(unsigned long long key) {
    return key;
}
__device__ inline unsigned ordered_bits(int key) {
    return (unsigned)key ^ 0x80000000u;
}
__device__ inline unsigned ordered_bits(float key) {
    unsigned bits = __float_as_uint(key);
    return bits ^ (bits >> 31 ? 0xffffffffu : 0x80000000u);
}
__device__ inline unsigned long long ordered_bits(double key) {
    unsigned long long bits = (unsigned long long)__double_as_longlong(key);
    return bits ^ (bits >> 63 ? ~0ull : 1ull << 63);
}

template <class Key>
using OrderedBits = decltype(ordered_bits(Key()));

template <class Key>
__device__ Key from_ordered_bits(OrderedBits<Key> bits);
template <>
__device__ inline unsigned from_ordered_bits<unsigned>(unsigned bits) {
    return bits;
}
template <>
__device__ inline unsigned long long from_ordered_bits<unsigned long long>(
    unsigned long long bits) {
    return bits;
}
template <>
__device__ inline int from_ordered_bits<int>(unsigned bits) {
    return (int)(bits ^ 0x80000000u);
}
template <>
__device__ inline float from_ordered_bits<float>(unsigned bits) {
    return __uint_as_float(bits ^ (bits >> 31 ? 0x80000000u : 0xffffffffu));
}
template <>
__device__ inline double from_ordered_bits<double>(unsigned long long bits) {
    return __longlong_as_double((long long)(bits ^ (bits >> 63 ? 1ull << 63 : ~0ull)));
}

// The digit of `width` bits that starts at bit `shift`.
template <class Bits>
__device__ inline unsigned digit_at(Bits bits, int shift, int width) {
    return (unsigned)(bits >> shift) & ((1u << width) - 1);
}
