// Conversions and shifts that have a value on a GPU and none in C++. The rewriter puts these in
// place of those in device code that may need them.
#pragma once

#include <type_traits>

#include "../../kernels/conversions.h"

// Check mode looks for the line that calls them, so there they are calls.
#ifdef CUDALAB_CHECK
#define CUDALAB_INLINE inline constexpr
#else
#define CUDALAB_INLINE inline constexpr __attribute__((always_inline))
#endif

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

// Numbers are taken by value, so that the statement itself reads them: where memory is observed,
// the access has its line. Classes are taken as they are, for they may convert only objects that
// are not constant.
template <class E>
constexpr bool is_object = std::is_class<E>::value || std::is_union<E>::value;
#define CUDALAB_NUMBER(E) class E, std::enable_if_t<!is_object<E>, int> = 0
#define CUDALAB_OBJECT(E) class E, std::enable_if_t<is_object<E>, int> = 0

// (T)value
template <class T, CUDALAB_NUMBER(E)>
CUDALAB_INLINE T cudalab_cast(E value) {
    if constexpr (saturates<T, E>)
        return saturated<Bare<T>>(value);
    else
        return (T)value;
}
template <class T, CUDALAB_OBJECT(E)>
CUDALAB_INLINE T cudalab_cast(const E& value) {
    if constexpr (is_half<T, E>)
        return from_half<Bare<T>>((float)value);
    else
        return (T) const_cast<E&>(value);
}

// A value on its way to an object of type T: converted if that is an integer, else as it is.
template <class T>
constexpr bool is_integer = std::is_integral<Bare<T>>::value;
template <class T, CUDALAB_NUMBER(E)>
CUDALAB_INLINE std::enable_if_t<is_integer<T>, Bare<T>> cudalab_fit(E value) {
    return ::cudalab::cudalab_cast<Bare<T>>(value);
}
template <class T, CUDALAB_OBJECT(E)>
CUDALAB_INLINE std::enable_if_t<is_integer<T>, Bare<T>> cudalab_fit(const E& value) {
    return ::cudalab::cudalab_cast<Bare<T>>(value);
}
template <class T, class E>
CUDALAB_INLINE std::enable_if_t<!is_integer<T>, E&&> cudalab_fit(E&& value) {
    return static_cast<E&&>(value);
}

// A vector such as uchar4.
template <class V, class... E>
CUDALAB_INLINE V cudalab_make(E... values) {
    return {cudalab_cast<decltype(V::x)>(values)...};
}

// cudalab_into(object) += value
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
CUDALAB_INLINE Target<T> cudalab_into(T& object) {
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
    CUDALAB_INLINE std::enable_if_t<std::is_scalar<N>::value, Places<N>> operator+(N count) const {
        return {count};
    }
    template <class N>  // an object, which the program's own operator may change
    CUDALAB_INLINE std::enable_if_t<!std::is_scalar<Bare<N>>::value, Places<N>> operator+(
        N&& object) const {
        return {static_cast<N&&>(object)};
    }
};
constexpr By cudalab_by{};
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
        return static_cast<T&&>(value) << static_cast<N&&>(places.count);
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
        return static_cast<T&&>(value) >> static_cast<N&&>(places.count);
    }
}
template <class T, class N>
CUDALAB_INLINE decltype(auto) operator<<=(T& value, Places<N> places) {
    if constexpr (is_number<T> && is_number<N>)
        return value = (Bare<T>)(value << places);
    else
        return value <<= static_cast<N&&>(places.count);
}
template <class T, class N>
CUDALAB_INLINE decltype(auto) operator>>=(T& value, Places<N> places) {
    if constexpr (is_number<T> && is_number<N>)
        return value = (Bare<T>)(value >> places);
    else
        return value >>= static_cast<N&&>(places.count);
}

// Ends a kernel that needs a conversion or a shift that the compiler has refused.
__attribute__((visibility("default"))) void cudalab_refuse_arithmetic(const char* place);

// A divisor that may be zero: `a / zero_too ->* b`, for processors that go on with another value
// than a GPU does. (`->*` binds more tightly than `/`.)
void tell_of_division(const char* file, int line);
template <class D>
struct Divisor {
    D value;
    const char* file;
    int line;
};
struct ZeroToo {
    const char* file;
    int line;
    template <class D>
    CUDALAB_INLINE std::enable_if_t<std::is_scalar<D>::value, Divisor<D>> operator->*(
        D value) const {
        return {value, file, line};
    }
    template <class D>
    CUDALAB_INLINE std::enable_if_t<!std::is_scalar<Bare<D>>::value, Divisor<D>> operator->*(
        D&& object) const {
        return {static_cast<D&&>(object), file, line};
    }
};
#define cudalab_zero_too                   \
    ZeroToo {                              \
        __builtin_FILE(), __builtin_LINE() \
    }

// All bits set; a GPU divides 64-bit numbers that fit into 32 bits as such.
template <class R, class T>
inline R divided_by_zero(T value, const char* file, int line) {
    tell_of_division(file, line);
    return sizeof(R) == 8 && (uint64_t)value >> 32 == 0 ? (R)0xffffffff : (R) ~(R)0;
}
#define CUDALAB_DIVIDE(sign)                                                     \
    template <class T, class D>                                                  \
    CUDALAB_INLINE decltype(auto) operator sign(T&& value, Divisor<D> by) {      \
        if constexpr (is_number<T> && is_number<D>) {                            \
            typedef decltype(value sign by.value) R;                             \
            return by.value ? (R)(value sign by.value)                           \
                            : divided_by_zero<R>((R)value, by.file, by.line);    \
        } else {                                                                 \
            return static_cast<T&&>(value) sign static_cast<D&&>(by.value);      \
        }                                                                        \
    }                                                                            \
    template <class T, class D>                                                  \
    CUDALAB_INLINE decltype(auto) operator sign## = (T & value, Divisor<D> by) { \
        if constexpr (is_number<T> && is_number<D>)                              \
            return value = (Bare<T>)(value sign by);                             \
        else                                                                     \
            return value sign## = static_cast<D&&>(by.value);                    \
    }
CUDALAB_DIVIDE(/)
CUDALAB_DIVIDE(%)
#undef CUDALAB_DIVIDE

}  // namespace cudalab
