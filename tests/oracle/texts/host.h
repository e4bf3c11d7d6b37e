// What CUDA alone defines, as plain C++ for one thread.
#include <cmath>
#include <cstdio>
#include <cstring>
#define FN
#define BOTH
#define DEVICE static
#define CONSTANT static const
#define __noinline__
#define __forceinline__
#define __align__(n)
struct Index {
    unsigned x, y, z;
};
static Index threadIdx, blockIdx, blockDim, gridDim;
static void enter(unsigned t) {
    threadIdx = {t % blockDim.x, t / blockDim.x % blockDim.y, t / (blockDim.x * blockDim.y)};
}
static void H_launch(unsigned x, unsigned y, unsigned bx, unsigned by, unsigned bz) {
    gridDim = {x, y, 1};
    blockDim = {bx, by, bz};
}

// Built-in types and functions.
struct int2 {
    int x, y;
};
struct uchar4 {
    unsigned char x, y, z, w;
};
static int2 make_int2(int x, int y) {
    return {x, y};
}
static uchar4 make_uchar4(unsigned char x, unsigned char y, unsigned char z, unsigned char w) {
    return {x, y, z, w};
}
template <class To, class From>
To same_bits(From v) {
    To to;
    memcpy(&to, &v, sizeof to);
    return to;
}
static float __int_as_float(int v) {
    return same_bits<float>(v);
}
static int __float_as_int(float v) {
    return same_bits<int>(v);
}
static double __longlong_as_double(long long v) {
    return same_bits<double>(v);
}
static long long __double_as_longlong(double v) {
    return same_bits<long long>(v);
}

// Shifts by any number, and conversions of any number.
int H_shl(int a, int n) {
    return n > 31 ? 0 : (int)((unsigned)a << n);
}
int H_shr(int a, int n) {
    return a >> (n > 31 ? 31 : n);
}
unsigned H_shl(unsigned a, int n) {
    return n > 31 ? 0u : a << n;
}
unsigned H_shr(unsigned a, int n) {
    return n > 31 ? 0u : a >> n;
}
long long H_shl(long long a, int n) {
    return n > 63 ? 0 : (long long)((unsigned long long)a << n);
}
long long H_shr(long long a, int n) {
    return a >> (n > 63 ? 63 : n);
}
unsigned long long H_shl(unsigned long long a, int n) {
    return n > 63 ? 0ull : a << n;
}
unsigned long long H_shr(unsigned long long a, int n) {
    return n > 63 ? 0ull : a >> n;
}
template <class I>
I H_to(double number, bool single = false);
template <>
int H_to<int>(double f, bool single) {
    if (f != f) return single ? 0 : -2147483647 - 1;
    return f >= 2147483648.0 ? 2147483647 : f <= -2147483648.0 ? -2147483647 - 1 : (int)f;
}
template <>
unsigned H_to<unsigned>(double f, bool single) {
    if (f != f) return single ? 0u : 0x80000000u;
    return f >= 4294967296.0 ? 4294967295u : f <= 0.0 ? 0u : (unsigned)f;
}
template <>
long long H_to<long long>(double f, bool) {
    if (f != f || f < -9223372036854775808.0) return -9223372036854775807ll - 1;
    return f >= 9223372036854775808.0 ? 9223372036854775807ll : (long long)f;
}
template <>
unsigned long long H_to<unsigned long long>(double f, bool) {
    if (f != f) return 0x8000000000000000ull;
    return f >= 18446744073709551616.0 ? 0xffffffffffffffffull
           : f <= 0.0                  ? 0ull
                                       : (unsigned long long)f;
}
template <>
short H_to<short>(double f, bool single) {
    return (short)H_to<int>(f, single);
}
template <>
unsigned short H_to<unsigned short>(double f, bool single) {
    return (unsigned short)H_to<unsigned>(f, single);
}
template <>
signed char H_to<signed char>(double f, bool single) {
    return (signed char)H_to<int>(f, single);
}
template <>
unsigned char H_to<unsigned char>(double f, bool single) {
    return (unsigned char)H_to<unsigned>(f, single);
}
template <class I>
I H_to(float number) {
    return H_to<I>((double)number, true);
}
int whole(int v);
long long whole(long long v);
unsigned whole(unsigned v);
unsigned long long whole(unsigned long long v);
namespace nested {
int shifted(int a, int n) {
    return H_shl(a, n) ^ H_shr(a, n);
}
}  // namespace nested
template <class T>
T moved(T value, int n) {
    return (T)H_shl(+value, n) ^ (T)H_shr(+value, n);
}
#define SHIFTED(a, b) H_shl(a, (b) & 63)

static int __popc(unsigned v) {
    int n = 0;
    for (int i = 0; i < 32; ++i) n += v >> i & 1;
    return n;
}
static int __clz(int v) {
    for (int i = 0; i < 32; ++i)
        if ((unsigned)v >> (31 - i) & 1) return i;
    return 32;
}
static int __ffs(int v) {
    for (int i = 0; i < 32; ++i)
        if ((unsigned)v >> i & 1) return i + 1;
    return 0;
}
static unsigned __brev(unsigned v) {
    unsigned r = 0;
    for (int i = 0; i < 32; ++i) r |= (v >> i & 1) << (31 - i);
    return r;
}
static int __mulhi(int a, int b) {
    return (int)(((long long)a * b) >> 32);
}
static unsigned __umulhi(unsigned a, unsigned b) {
    return (unsigned)((unsigned long long)a * b >> 32);
}
static int __mul24(int a, int b) {  // the products of the low 24 bits, with their sign
    const long long x = (a & 0xffffff) - (a >> 23 & 1) * 0x1000000;
    const long long y = (b & 0xffffff) - (b >> 23 & 1) * 0x1000000;
    return (int)(x * y);
}
static unsigned __umul24(unsigned a, unsigned b) {
    return (a & 0xffffff) * (b & 0xffffff);
}
static int __popcll(unsigned long long v) {
    return __popc((unsigned)v) + __popc((unsigned)(v >> 32));
}
static int __clzll(long long v) {
    const int high = __clz((int)(v >> 32));
    return high < 32 ? high : 32 + __clz((int)v);
}
static int __ffsll(long long v) {
    const int low = __ffs((int)v), high = __ffs((int)(v >> 32));
    return low ? low : high ? 32 + high : 0;
}
static unsigned long long __brevll(unsigned long long v) {
    unsigned long long r = 0;
    for (int i = 0; i < 64; ++i) r = r * 2 + (v >> i & 1);
    return r;
}
static unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    const unsigned long long al = a & 0xffffffff, ah = a >> 32, bl = b & 0xffffffff, bh = b >> 32;
    const unsigned long long middle = ah * bl + (al * bl >> 32), other = al * bh;
    return ah * bh + (middle >> 32) + (((middle & 0xffffffff) + other) >> 32);
}
static unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
    const unsigned long long bytes = (unsigned long long)y << 32 | x;
    unsigned r = 0;
    for (int i = 0; i < 4; ++i) r |= (unsigned)(bytes >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i;
    return r;
}
static unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)(((unsigned long long)high << 32 | low) << (shift & 31) >> 32);
}
static unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)(((unsigned long long)high << 32 | low) >> (shift & 31));
}
static unsigned __sad(int a, int b, unsigned c) {
    return c + (unsigned)(a < b ? (long long)b - a : (long long)a - b);
}
static unsigned __usad(unsigned a, unsigned b, unsigned c) {
    return c + (a < b ? b - a : a - b);
}
static int __dp4a(int a, int b, int c) {
    unsigned r = (unsigned)c;
    for (int i = 0; i < 32; i += 8) r += (unsigned)((signed char)(a >> i) * (signed char)(b >> i));
    return (int)r;
}
static int min(int a, int b) {
    return b < a ? b : a;
}
static int max(int a, int b) {
    return b > a ? b : a;
}
static void __threadfence() {}
template <class T>
T atomicAdd(T* at, T v) {
    const T old = *at;
    *at = old + v;
    return old;
}
static int atomicAdd(int* at, int v) {
    const int old = *at;
    *at = (int)((unsigned)old + (unsigned)v);
    return old;
}
static void atomicSub(int* at, int v) {
    *at = (int)((unsigned)*at - (unsigned)v);
}
template <class T, class V>
void atomicMax(T* at, V v) {
    if ((T)v > *at) *at = (T)v;
}
template <class T, class V>
void atomicMin(T* at, V v) {
    if ((T)v < *at) *at = (T)v;
}
template <class T, class V>
void atomicOr(T* at, V v) {
    *at |= (T)v;
}
static void atomicXor(int* at, int v) {
    *at ^= v;
}
static void atomicAnd(int* at, int v) {
    *at &= v;
}
static void atomicExch(int* at, int v) {
    *at = v;
}
static void atomicDec(unsigned* at, unsigned limit) {
    *at = *at == 0 || *at > limit ? limit : *at - 1;
}
static void atomicInc(unsigned* at, unsigned limit) {
    *at = *at >= limit ? 0 : *at + 1;
}
static int atomicCAS(int* at, int seen, int v) {
    const int old = *at;
    if (old == seen) *at = v;
    return old;
}

// What a lane has from those lanes of its warp whose `in` is `side`.
#define LANES for (int i = 0; i < 32; ++i) if (in[i] == side)
#define COLLECTIVE(name, R, start, step)                             \
    template <class T>                                               \
    R name(const T* v, const int* in, int side, int lane) {          \
        R r = start;                                                 \
        LANES { step; }                                              \
        return r;                                                    \
    }
COLLECTIVE(H_ballot, int, 0, r |= (int)((unsigned)(v[i] != 3) << i))
COLLECTIVE(H_any, int, 0, r |= v[i] == 3)
COLLECTIVE(H_every, int, 1, r &= v[i] != 3)
COLLECTIVE(H_first, T, v[lane], if (lane >= 0) { r = v[i]; lane = -1; })
COLLECTIVE(H_last, T, v[lane], r = v[i])
COLLECTIVE(H_own, T, v[lane], (void)0)
COLLECTIVE(H_rank, int, 0, r += i < lane)
COLLECTIVE(H_same, int, 0, r |= (int)((unsigned)(((int)v[i] & 3) == ((int)v[lane] & 3)) << i))
COLLECTIVE(H_sum, unsigned, 0, r += (unsigned)v[i])
COLLECTIVE(H_min, int, 2147483647, if ((int)v[i] < r) r = (int)v[i])
COLLECTIVE(H_max, int, -2147483647 - 1, if ((int)v[i] > r) r = (int)v[i])
COLLECTIVE(H_or, unsigned, 0, r |= (unsigned)v[i])
COLLECTIVE(H_xor, unsigned, 0, r ^= (unsigned)v[i])
COLLECTIVE(H_and, unsigned, 0xffffffffu, r &= (unsigned)v[i])
COLLECTIVE(H_least, unsigned, 0xffffffffu, if ((unsigned)v[i] < r) r = (unsigned)v[i])
COLLECTIVE(H_most, unsigned, 0, if ((unsigned)v[i] > r) r = (unsigned)v[i])
COLLECTIVE(H_alike, int, 1, r &= ((int)v[i] & 1) == ((int)v[lane] & 1))
template <class T>
T H_next(const T* v, const int* in, int side, int lane) {
    for (int i = 1; i <= 32; ++i)
        if (in[(lane + i) % 32] == side) return v[(lane + i) % 32];
    return v[lane];
}
// Sums of a whole warp as shuffles down make them, and as all lanes have them.
template <class T>
T H_down_sum(const T* v, int lane) {
    T now[32], next[32];
    for (int i = 0; i < 32; ++i) now[i] = v[i];
    for (int d = 16; d > 0; d /= 2) {
        for (int i = 0; i < 32; ++i) next[i] = now[i] + now[i + d < 32 ? i + d : i];
        memcpy(now, next, sizeof now);
    }
    return now[lane];
}
template <class T>
T H_total(const T* v, int) {
    T r = 0;
    for (int i = 0; i < 32; ++i) r += v[i];
    return r;
}
