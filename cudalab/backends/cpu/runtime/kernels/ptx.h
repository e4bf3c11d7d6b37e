// The functions that language/ptx puts in place of PTX instructions, where neither C++ nor CUDA
// has a word for them.
#pragma once

#include <time.h>

#include "cudalab_cpu.h"
#include "integers.h"

namespace cudalab {
namespace ptx {

template <class T>
using Bits = typename std::make_unsigned<T>::type;

// ------------------------------------------------------------------ registers

// A register as an operand of another type: numbers of integers, the bits of floats.
template <class To, class From>
inline To as(From from) {
    if constexpr (std::is_integral<To>::value && std::is_integral<From>::value) {
        return (To)from;
    } else if constexpr (std::is_same<To, From>::value) {
        return from;
    } else {
        To to = 0;
        __builtin_memcpy(&to, &from, sizeof(To) < sizeof(From) ? sizeof(To) : sizeof(From));
        return to;
    }
}
// An output of the statement; it may be a pointer.
template <class To, class From>
inline void store(To& to, From from) {
    to = (To)from;
}
inline bool& ignored() {
    static __thread bool flag;
    return flag;
}
// Two or four registers as one, the first in its lowest bits.
template <class... Parts>
inline unsigned long long joined(Parts... parts) {
    const unsigned width = (8 * (sizeof(parts) + ...)) / sizeof...(parts);
    unsigned long long result = 0;
    unsigned shift = 0;
    ((result |= to_bits(parts) << shift, shift += width), ...);
    return result;
}
template <class Part, class T>
inline Part part(T value, int i) {
    return as<Part>(to_bits(value) >> (8 * sizeof(Part) * i));
}

// ------------------------------------------------------------------ integers

template <class T>
inline T least(T a, T b) {
    if constexpr (std::is_floating_point<T>::value) return (T)fmin(a, b);
    return b < a ? b : a;
}
template <class T>
inline T greatest(T a, T b) {
    if constexpr (std::is_floating_point<T>::value) return (T)fmax(a, b);
    return a < b ? b : a;
}
template <class T>
inline T magnitude(T x) {
    if constexpr (std::is_floating_point<T>::value) return (T)fabs(x);
    return x < 0 ? -x : x;
}
inline int clamped(long long x) {
    return x > INT_MAX ? INT_MAX : x < INT_MIN ? INT_MIN : (int)x;
}
template <class T>
inline int leading_zeros(T x) {
    return sizeof(T) == 8 ? __clzll((long long)x) : __clz((int)x);
}
template <class T>
inline T reversed(T x) {
    return sizeof(T) == 8 ? (T)__brevll((unsigned long long)x) : (T)__brev((unsigned)x);
}
// The position of the highest bit that is no sign, or all ones.
template <class T>
inline unsigned find_leading(T x) {
    return 8 * sizeof(T) - 1 - (unsigned)leading_zeros(x < 0 ? (T)~x : x);
}
template <class T>
inline unsigned leading_shift(T x) {
    const unsigned position = find_leading(x);
    return position == ~0u ? ~0u : 8 * sizeof(T) - 1 - position;
}
template <class T>
inline T shift_left(T x, unsigned count) {
    return count >= 8 * sizeof(T) ? 0 : (T)(x << count);
}
template <class T>
inline T shift_right(T x, unsigned count) {
    return (T)(x >> (count >= 8 * sizeof(T) ? 8 * sizeof(T) - 1 : count)) >>
           (count >= 8 * sizeof(T) ? 1 : 0);
}
// `count` bits of x, from bit `first` on; a signed field keeps its sign.
template <class T>
inline T extract(T x, unsigned first, unsigned count) {
    const unsigned width = 8 * sizeof(T);
    first &= 0xff, count &= 0xff;
    if (count == 0) return 0;
    const unsigned last = first + count > width ? width - 1 : first + count - 1;
    const Bits<T> bits = first >= width ? 0 : (Bits<T>)x >> first;
    const bool sign = (T)-1 < 0 && ((Bits<T>)x >> last & 1);
    const Bits<T> mask = count >= width ? ~(Bits<T>)0 : ((Bits<T>)1 << count) - 1;
    const Bits<T> kept =
        first + count > width ? first >= width ? 0 : mask & (~(Bits<T>)0 >> first) : mask;
    return (T)((bits & kept) | (sign ? ~kept : 0));
}
// `y` with `count` bits of x in the place of those from bit `first` on.
template <class T>
inline T insert(T x, T y, unsigned first, unsigned count) {
    const unsigned width = 8 * sizeof(T);
    first &= 0xff, count &= 0xff;
    if (first >= width) return y;
    const Bits<T> mask = (count >= width ? ~(Bits<T>)0 : ((Bits<T>)1 << count) - 1) << first;
    return (T)(((Bits<T>)x << first & mask) | ((Bits<T>)y & ~mask));
}
// prmt: a selector's top bit asks for the sign of the byte, eight times.
inline unsigned permute(unsigned x, unsigned y, unsigned selector) {
    const unsigned bytes = __byte_perm(x, y, selector), signs = bytes >> 7 & 0x01010101;
    const unsigned wanted = (selector >> 3 & 1) | (selector >> 7 & 1) << 8 |
                            (selector >> 11 & 1) << 16 | (selector >> 15 & 1) << 24;
    return (bytes & ~(wanted * 0xff)) | (signs & wanted) * 0xff;
}
// Bit by bit, the entry of `table` that the bits of a, b and c number.
inline unsigned lookup(unsigned a, unsigned b, unsigned c, unsigned table) {
    unsigned result = 0;
    for (int i = 0; i < 8; ++i)
        if (table >> i & 1) result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return result;
}
inline unsigned high_product(unsigned a, unsigned b) {
    return __umulhi(a, b);
}
inline int high_product(int a, int b) {
    return __mulhi(a, b);
}
inline unsigned long long high_product(unsigned long long a, unsigned long long b) {
    return __umul64hi(a, b);
}
inline long long high_product(long long a, long long b) {
    return __mul64hi(a, b);
}
// Sums and differences with a carry.
template <class T>
inline T sum(T a, T b, bool carry, bool& out) {
    const T both = (T)(a + b), all = (T)(both + carry);
    out = both < a || all < both;
    return all;
}
template <class T>
inline T difference(T a, T b, bool borrow, bool& out) {
    const T both = (T)(a - b), all = (T)(both - borrow);
    out = a < b || both < (T)borrow;
    return all;
}

// ------------------------------------------------------------------ conversions and floats

// A float without fraction as an integer: the nearest that there is.
template <class I, class F>
inline I whole(F x) {
    if constexpr (sizeof(I) >= 4) {
        I result = saturated<I>(x);
        __asm__("" : "+r"(result));  // g++ would turn (float)(int)x into a rounding, which keeps -0
        return result;
    }
    const double top = (double)((1u << (8 * sizeof(I) - ((I)-1 < (I)0))) - 1);
    const double bottom = (I)-1 < (I)0 ? -top - 1 : 0;
    return (I)((double)x > top ? top : (double)x < bottom ? bottom : x == x ? (double)x : 0);
}
// An integer as another, which may be too small for it.
template <class To, class From>
inline To clamped_to(From x) {
    const __int128 top = ((__int128)1 << (8 * sizeof(To) - ((To)-1 < (To)0))) - 1;
    const __int128 bottom = (To)-1 < (To)0 ? -top - 1 : 0, value = x;
    return (To)(value > top ? top : value < bottom ? bottom : value);
}
// A float that is too small for a normal one as 0.
inline float flushed(float x) {
    return fabsf(x) < 1.17549435e-38f ? copysignf(0.0f, x) : x;
}

// ------------------------------------------------------------------ memory

template <bool shared, class Register>
inline char* pointer(Register address) {
    return shared ? (char*)__cvta_shared_to_generic((size_t)address) : (char*)(size_t)address;
}
template <class T>
inline T load(const char* address, int i) {
    return __ldca((const T*)address + i);
}
template <class T>
inline T load_now(const char* address, int i) {
    ::cudalab::cudalab_spinning();
    CUDALAB_LOADS_ATOMICALLY((const T*)address + i);
    const T value = *((const volatile T*)address + i);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return value;
}
// A value that was read in this order: what follows comes behind it.
template <class T>
inline T acquired(T value, bool to_grid) {
    (void)to_grid;
    CUDALAB_FENCED(to_grid);
    return value;
}
template <class T>
inline void save(char* address, int i, T value) {
    __stwb((T*)address + i, value);
}
template <class T>
inline void save_now(char* address, int i, T value) {
    __atomic_thread_fence(__ATOMIC_RELEASE);
    CUDALAB_STORES_ATOMICALLY((T*)address + i);
    *((volatile T*)address + i) = value;
}

// ------------------------------------------------------------------ warps and the machine

// shfl.sync in its four modes; `bounds` has the last lane and the mask of segments.
inline unsigned shuffle(int mode, unsigned value, unsigned delta, unsigned bounds, unsigned mask,
                        bool& inside, CUDALAB_HERE) {
    const unsigned lane = ::cudalab::lane(), segments = bounds >> 8 & 31;
    const unsigned last = (lane & segments) | (bounds & 31 & ~segments);
    const unsigned first = lane & segments;
    delta &= 31;
    const unsigned source = mode == 0   ? first | (delta & ~segments)
                            : mode == 1 ? lane - delta
                            : mode == 2 ? lane + delta
                                        : lane ^ delta;
    inside = mode == 1 ? (int)source >= (int)last : source <= last;
    cudalab_warp_op(SHUFFLE, mask, value, inside ? source : lane, file, line);
    return (unsigned)warp_result();
}
const unsigned MULTIPROCESSORS = 16;
// Blocks are dealt out to the multiprocessors in turn.
inline unsigned multiprocessor() {
    const uint3& block = CUDALAB_POSITION_OF(blockIdx, block_idx);
    const auto& grid = CUDALAB_POSITION_OF(gridDim, grid_dim);
    return ((block.z * grid.y + block.y) * grid.x + block.x) % MULTIPROCESSORS;
}
inline unsigned long long global_timer() {
    ::cudalab::cudalab_spinning();
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (unsigned long long)now.tv_sec * 1000000000ull + (unsigned long long)now.tv_nsec;
}

}  // namespace ptx
}  // namespace cudalab
