// cub::DeviceRadixSort: a stable sort by some bits of the keys, by Thrust.
#pragma once

#include <thrust/copy.h>
#include <thrust/sort.h>

#include <cub/util_type.cuh>

#include "cudalab/cub_device.h"

CUB_NAMESPACE_BEGIN
namespace detail {

// Compares the bits [first, end) of keys, in their order as numbers.
template <class Key>
struct BitsLess {
    typedef typename Traits<Key>::UnsignedBits Bits;
    Bits mask;
    bool descending;

    BitsLess(int first, int end, bool descending_) : descending(descending_) {
        const int width = 8 * (int)sizeof(Bits);
        const Bits below = end >= width ? ~(Bits)0 : (Bits)(((Bits)1 << end) - 1);
        mask = first >= width ? 0 : (Bits)(below >> first << first);
    }
    Bits bits_of(const Key& key) const {
        Bits bits;
        __builtin_memcpy(&bits, &key, sizeof bits);
        if (is_floating && bits == (Bits)((Bits)1 << (8 * sizeof(Bits) - 1))) bits = 0;  // -0
        return Traits<Key>::TwiddleIn(bits) & mask;
    }
    bool operator()(const Key& a, const Key& b) const {
        return descending ? bits_of(b) < bits_of(a) : bits_of(a) < bits_of(b);
    }
    static constexpr bool is_floating = ::cuda::std::is_floating_point_v<Key>;
};

template <class Key, class Number>
void sort_keys(const Key* in, Key* out, Number n, int first, int end, bool descending) {
    thrust::copy(thrust::device, in, in + n, out);
    thrust::stable_sort(thrust::device, out, out + n, BitsLess<Key>(first, end, descending));
}
template <class Key, class Value, class Number>
void sort_pairs(const Key* in, Key* out, const Value* values_in, Value* values, Number n, int first,
                int end, bool descending) {
    thrust::copy(thrust::device, in, in + n, out);
    thrust::copy(thrust::device, values_in, values_in + n, values);
    thrust::stable_sort_by_key(thrust::device, out, out + n, values,
                               BitsLess<Key>(first, end, descending));
}

}  // namespace detail

struct DeviceRadixSort {
#define CUDALAB_RADIX_SORT(Suffix, descending)                                                    \
    template <class Key, class Number>                                                            \
    static cudaError_t SortKeys##Suffix(void* temporary, size_t& bytes, const Key* in, Key* out,  \
                                        Number n, int first = 0, int end = 8 * sizeof(Key),       \
                                        cudaStream_t = nullptr) {                                 \
        return detail::run_with_temporary(                                                        \
            temporary, bytes, [&] { detail::sort_keys(in, out, n, first, end, descending); });    \
    }                                                                                             \
    template <class Key, class Number>                                                            \
    static cudaError_t SortKeys##Suffix(void* temporary, size_t& bytes, DoubleBuffer<Key>& keys,  \
                                        Number n, int first = 0, int end = 8 * sizeof(Key),       \
                                        cudaStream_t = nullptr) {                                 \
        return detail::run_with_temporary(temporary, bytes, [&] {                                 \
            detail::sort_keys(keys.Current(), keys.Alternate(), n, first, end, descending);       \
            keys.selector ^= 1;                                                                   \
        });                                                                                       \
    }                                                                                             \
    template <class Key, class Value, class Number>                                               \
    static cudaError_t SortPairs##Suffix(void* temporary, size_t& bytes, const Key* in, Key* out, \
                                         const Value* values_in, Value* values, Number n,         \
                                         int first = 0, int end = 8 * sizeof(Key),                \
                                         cudaStream_t = nullptr) {                                \
        return detail::run_with_temporary(temporary, bytes, [&] {                                 \
            detail::sort_pairs(in, out, values_in, values, n, first, end, descending);            \
        });                                                                                       \
    }                                                                                             \
    template <class Key, class Value, class Number>                                               \
    static cudaError_t SortPairs##Suffix(void* temporary, size_t& bytes, DoubleBuffer<Key>& keys, \
                                         DoubleBuffer<Value>& values, Number n, int first = 0,    \
                                         int end = 8 * sizeof(Key), cudaStream_t = nullptr) {     \
        return detail::run_with_temporary(temporary, bytes, [&] {                                 \
            detail::sort_pairs(keys.Current(), keys.Alternate(), values.Current(),                \
                               values.Alternate(), n, first, end, descending);                    \
            keys.selector ^= 1, values.selector ^= 1;                                             \
        });                                                                                       \
    }
    CUDALAB_RADIX_SORT(, false)
    CUDALAB_RADIX_SORT(Descending, true)
#undef CUDALAB_RADIX_SORT
};

CUB_NAMESPACE_END
