// Magnitudes as integers in the same order, so that their maximum can be an integer operation. A
// NaN is above all numbers.
#pragma once
template <unsigned BYTES>
struct SizeBitsOf {
    using type = unsigned long long;
};
template <>
struct SizeBitsOf<4> {
    using type = unsigned;
};
using SizeBits = SizeBitsOf<sizeof(T)>::type;
