// Conversions and shifts that have a value on a GPU and none in C++. The rewriter puts these in
// place of those in device code that may need them.
#pragma once

#include <type_traits>

#include "../../conversions.h"

#define CUDALAB_INLINE inline constexpr __attribute__((always_inline))

namespace cudalab {

template <class T>
using Bare = typename std::remove_cv<typename std::remove_reference<T>::type>::type;
template <class T, class E>
constexpr bool saturates =
    std::is_integral<Bare<T>>::value && !std::is_same<Bare<T>, bool>::value &&
    std::is_floating_point<Bare<E>>::value;

// Half precision and bfloat16 convert like this, also to types of fewer than 32 bits.
template <class T, class E>
constexpr bool is_half = std::is_integral<Bare<T>>::value && !std::is_same<Bare<T>, bool>::value &&
                         std::is_class<Bare<E>>::value && sizeof(Bare<E>) == 2 &&
                         std::is_convertible<const Bare<E>&, float>::value;
template <class T>
CUDALAB_INLINE T from_half(float value) {
    constexpr T least = (T)-1 < (T)0 ? (T)((T)1 << (8 * sizeof(T) - 1)) : (T)0, most = (T)~least;
    if constexpr (sizeof(T) < 4)
        return value >= (float)most ? most : value <= (float)least ? least : saturated<T>(value);
    else
        return saturated<T>(value);
}

// (T)value
template <class T, class E>
CUDALAB_INLINE T cast(const E& value) {
    if constexpr (saturates<T, E>)
        return saturated<Bare<T>>((Bare<E>)value);
    else if constexpr (is_half<T, E>)
        return from_half<Bare<T>>((float)value);
    else
        return (T)value;
}

// A value on its way to an object of type T: converted if it must be, else as it is.
template <class T, class E>
CUDALAB_INLINE decltype(auto) fit(E&& value) {
    if constexpr (saturates<T, E>)
        return saturated<Bare<T>>((Bare<E>)value);
    else if constexpr (is_half<T, E>)
        return from_half<Bare<T>>((float)value);
    else
        return static_cast<E&&>(value);
}

// A vector such as uchar4.
template <class V, class... E>
CUDALAB_INLINE V make(const E&... values) {
    return {cast<decltype(V::x)>(values)...};
}

// into(object) += value
template <class T>
struct Target {
    T& object;
#define CUDALAB_UPDATE(sign)                                                \
    template <class E>                                                      \
    CUDALAB_INLINE decltype(auto) operator sign## = (E && value) {          \
        if constexpr (saturates<T, E>)                                      \
            return object = saturated<Bare<T>>(object sign(Bare<E>) value); \
        else                                                                \
            return object sign## = static_cast<E&&>(value);                 \
    }
    CUDALAB_UPDATE(+)
    CUDALAB_UPDATE(-)
    CUDALAB_UPDATE(*)
    CUDALAB_UPDATE(/)
#undef CUDALAB_UPDATE
};
template <class T>
CUDALAB_INLINE Target<T> into(T& object) {
    return {object};
}

// The number of places to shift by: `a << by + n`. It reaches as far as the operand does, for `+`
// binds more tightly than `<<`.
template <class N>
struct Places {
    N count;
};
struct By {
    template <class N>
    CUDALAB_INLINE Places<N> operator+(N count) const {
        return {count};
    }
};
constexpr By by{};
template <class N, class M>
CUDALAB_INLINE auto operator+(Places<N> places, M more) {
    return Places<decltype(places.count + more)>{places.count + more};
}
template <class N, class M>
CUDALAB_INLINE auto operator-(Places<N> places, M less) {
    return Places<decltype(places.count - less)>{places.count - less};
}

template <class T>
constexpr bool is_number = std::is_integral<Bare<T>>::value || std::is_enum<Bare<T>>::value;

template <class T, class N>
CUDALAB_INLINE decltype(auto) operator<<(T&& value, Places<N> places) {
    if constexpr (is_number<T> && is_number<N>) {
        auto number = +value;
        typedef typename std::make_unsigned<decltype(number)>::type Bits;
        const unsigned count = (unsigned)places.count;
        return count < 8 * sizeof number ? (decltype(number))((Bits)number << count)
                                         : decltype(number)();
    } else {
        return static_cast<T&&>(value) << places.count;
    }
}
template <class T, class N>
CUDALAB_INLINE decltype(auto) operator>>(T&& value, Places<N> places) {
    if constexpr (is_number<T> && is_number<N>) {
        auto number = +value;
        const unsigned count = (unsigned)places.count, bits = 8 * sizeof number;
        if constexpr (decltype(number)(-1) < decltype(number)(0))
            return number >> (count < bits ? count : bits - 1);  // the sign remains
        else
            return count < bits ? number >> count : decltype(number)();
    } else {
        return static_cast<T&&>(value) >> places.count;
    }
}
template <class T, class N>
CUDALAB_INLINE decltype(auto) operator<<=(T& value, Places<N> places) {
    if constexpr (is_number<T> && is_number<N>)
        return value = (Bare<T>)(value << places);
    else
        return value <<= places.count;
}
template <class T, class N>
CUDALAB_INLINE decltype(auto) operator>>=(T& value, Places<N> places) {
    if constexpr (is_number<T> && is_number<N>)
        return value = (Bare<T>)(value >> places);
    else
        return value >>= places.count;
}

}  // namespace cudalab
