// Products of tiles, computed once for a warp, with an H200's rounding.
//
// A tensor core adds the products of a block, 16 of half or bfloat16 and 4 of tf32, to the
// accumulator in one go: all of them are cut to 25 bits behind the binary point of the largest
// (the sum of its factors' exponents counts, not its own), added exactly, and the sum is cut to a
// float. That order and this rounding were compared with an H200's.

#include "mma.h"

namespace cudalab {

const unsigned MOST = 256;  // elements of a factor of half, or of an accumulator: 32 * 16 at most
struct Tiles {
    const TileProduct* lanes[32];
    unsigned arrived;
};
static __thread Tiles tiles[32];  // of the warps of this OS thread's block

// ------------------------------------------------------------------ gathering

template <class To, class From, class Convert>
static void gather(const TileProduct* const* lanes, const void* TileProduct::* of, unsigned count,
                   To* to, Convert convert) {
    for (unsigned lane = 0; lane < 32; ++lane) {
        const From* from = (const From*)(lanes[lane]->*of);
        for (unsigned i = 0; i < count / 32; ++i) to[lane * (count / 32) + i] = convert(from[i]);
    }
}
static void gather_floats(const TileProduct* const* lanes, const void* TileProduct::* of,
                          Number number, unsigned count, float* to) {
    if (number == Number::HALF)
        gather<float, uint16_t>(lanes, of, count, to, Half::value);
    else if (number == Number::BFLOAT16)
        gather<float, uint16_t>(lanes, of, count, to, Bfloat16::value);
    else  // tf32: the bits that do not count are ignored
        gather<float, unsigned>(lanes, of, count, to,
                                [](unsigned bits) { return __uint_as_float(bits & 0xffffe000); });
}

// ------------------------------------------------------------------ floats

// To a float, towards 0.
static float cut(double x) {
    const uint64_t bits = to_bits(x);
    return (float)from_bits<double>(bits & ~0x1fffffffull);
}

const int OF_ZERO = -1000;  // the exponent of 0: never the largest

// That of a subnormal number is the lowest of its format.
static int exponent_of(float x, int lowest = -126) {
    const int bits = (int)(__float_as_uint(x) >> 23 & 0xff);
    return x == 0 ? OF_ZERO : bits - 127 > lowest ? bits - 127 : lowest;
}

// Whether an exponent is that of an infinite or no number (2), or not between -limit and limit (1).
static int extremes(const int* exponents, unsigned count, int limit) {
    int result = 0;
    for (unsigned i = 0; i < count; ++i) {
        const int e = exponents[i];
        result |= (e == 128) * 2 | (((e >= limit) | (e <= -limit)) & (e != OF_ZERO));
    }
    return result;
}

// The products of COUNT factors with rows of b, added to a row of N elements. F is float where the
// products and the scale fit, double otherwise; the products are exact in both.
template <class F, unsigned COUNT, unsigned N>
static void add_block(const float* a, const float* b, const int* exponents_a,
                      const int* exponents_b, float* row) {
    int top[N], low[N], high[N];
    F scale[N];
    for (unsigned j = 0; j < N; ++j) top[j] = exponent_of(row[j]);
    for (unsigned k = 0; k < COUNT; ++k)
        for (unsigned j = 0; j < N; ++j) {
            const int exponent = exponents_a[k] + exponents_b[k * N + j];
            top[j] = exponent > top[j] ? exponent : top[j];
        }
    for (unsigned j = 0; j < N; ++j) {
        if (top[j] < OF_ZERO + 200) top[j] = 0;  // a sum of zeros
        if constexpr (sizeof(F) == 4)
            scale[j] = __uint_as_float((unsigned)(25 - top[j] + 127) << 23);
        else
            scale[j] = from_bits<double>((uint64_t)(25 - top[j] + 1023) << 52);
    }
    // Two sums, so that 8 products and the accumulator fit in an int.
    for (unsigned j = 0; j < N; ++j) low[j] = (int)((F)row[j] * scale[j]), high[j] = 0;
    for (unsigned k = 0; k < COUNT / 2; ++k)
        for (unsigned j = 0; j < N; ++j) {
            low[j] += (int)((F)a[k] * (F)b[k * N + j] * scale[j]);
            const unsigned l = k + COUNT / 2;
            high[j] += (int)((F)a[l] * (F)b[l * N + j] * scale[j]);
        }
    for (unsigned j = 0; j < N; ++j) {
        const double unit = from_bits<double>((uint64_t)(top[j] - 25 + 1023) << 52);
        row[j] = cut(((double)low[j] + high[j]) * unit);
    }
}

template <unsigned COUNT, unsigned N>
static void multiply_floats(unsigned m, unsigned k, const float* a, const float* b, float* c,
                            int lowest) {
    int exponents_a[2 * MOST], exponents_b[2 * MOST], exponents_c[MOST];
    for (unsigned i = 0; i < m * k; ++i) exponents_a[i] = exponent_of(a[i], lowest);
    for (unsigned i = 0; i < k * N; ++i) exponents_b[i] = exponent_of(b[i], lowest);
    for (unsigned i = 0; i < m * N; ++i) exponents_c[i] = exponent_of(c[i]);
    const int found = extremes(exponents_a, m * k, 40) | extremes(exponents_b, k * N, 40) |
                      extremes(exponents_c, m * N, 90);
    float plain[MOST];  // what is infinite or no number in these sums is so in any order
    if (found >= 2) {
        for (unsigned i = 0; i < m * N; ++i) plain[i] = c[i];
        for (unsigned i = 0; i < m; ++i)
            for (unsigned p = 0; p < k; ++p)
                for (unsigned j = 0; j < N; ++j) plain[i * N + j] += a[i * k + p] * b[p * N + j];
    }
    const auto add = found ? add_block<double, COUNT, N> : add_block<float, COUNT, N>;
    for (unsigned i = 0; i < m; ++i)
        for (unsigned p = 0; p < k; p += COUNT)
            add(a + i * k + p, b + p * N, exponents_a + i * k + p, exponents_b + p * N, c + i * N);
    if (found >= 2)
        for (unsigned i = 0; i < m * N; ++i)
            if (plain[i] - plain[i] != 0) c[i] = plain[i];
}

static void floats(const TileProduct* const* lanes) {
    const TileProduct& first = *lanes[0];
    const unsigned m = first.m, n = first.n, k = first.k;
    float a[2 * MOST], b[2 * MOST], c[MOST];
    gather_floats(lanes, &TileProduct::a, first.number, m * k, a);
    gather_floats(lanes, &TileProduct::b, first.number, k * n, b);
    if (first.c_is_half)
        gather_floats(lanes, &TileProduct::c, Number::HALF, m * n, c);
    else
        gather<float, float>(lanes, &TileProduct::c, m * n, c, [](float x) { return x; });
    const int lowest = first.number == Number::HALF ? -14 : -126;
    if (k == 8)
        multiply_floats<4, 16>(m, k, a, b, c, lowest);
    else if (n == 16)
        multiply_floats<16, 16>(m, k, a, b, c, lowest);
    else if (n == 8)
        multiply_floats<16, 8>(m, k, a, b, c, lowest);
    else
        multiply_floats<16, 32>(m, k, a, b, c, lowest);
    for (unsigned lane = 0; lane < 32; ++lane)
        for (unsigned i = 0; i < 8; ++i) {
            if (first.d_is_half)
                ((uint16_t*)lanes[lane]->d)[i] = Half::bits(c[lane * 8 + i]);
            else
                ((float*)lanes[lane]->d)[i] = c[lane * 8 + i];
        }
}

// ------------------------------------------------------------------ integers and doubles

template <class T>
static void integers(const TileProduct* const* lanes) {
    const TileProduct& first = *lanes[0];
    const unsigned m = first.m, n = first.n, k = first.k;
    int a[2 * MOST], b[2 * MOST];
    long long c[MOST];
    gather<int, T>(lanes, &TileProduct::a, m * k, a, [](T x) { return (int)x; });
    gather<int, T>(lanes, &TileProduct::b, k * n, b, [](T x) { return (int)x; });
    gather<long long, int>(lanes, &TileProduct::c, m * n, c, [](int x) { return x; });
    for (unsigned i = 0; i < m; ++i) {
        int row[32] = {};
        for (unsigned p = 0; p < k; ++p)
            for (unsigned j = 0; j < n; ++j) row[j] += a[i * k + p] * b[p * n + j];
        for (unsigned j = 0; j < n; ++j) {
            long long sum = c[i * n + j] + row[j];
            if (first.saturates) sum = sum > INT_MAX ? INT_MAX : sum < INT_MIN ? INT_MIN : sum;
            ((int*)lanes[(i * n + j) / 8]->d)[(i * n + j) % 8] = (int)sum;
        }
    }
}

// Each element is a chain of fused multiply-adds.
static void doubles(const TileProduct* const* lanes) {
    double a[32], b[32], c[64];
    const auto same = [](double x) { return x; };
    gather<double, double>(lanes, &TileProduct::a, 32, a, same);
    gather<double, double>(lanes, &TileProduct::b, 32, b, same);
    gather<double, double>(lanes, &TileProduct::c, 64, c, same);
    for (unsigned i = 0; i < 8; ++i)
        for (unsigned p = 0; p < 4; ++p)
            for (unsigned j = 0; j < 8; ++j)
                c[i * 8 + j] = fma(a[i * 4 + p], b[p * 8 + j], c[i * 8 + j]);
    for (unsigned i = 0; i < 64; ++i) ((double*)lanes[i / 2]->d)[i % 2] = c[i];
}

// ------------------------------------------------------------------ all lanes together

void multiply_tiles(TileProduct& mine) {
    Tiles& of_warp = tiles[current.thread / 32];
    if (of_warp.arrived >> lane() & 1) of_warp.arrived = 0;  // left by a kernel that has failed
    of_warp.arrived |= 1u << lane();
    of_warp.lanes[lane()] = &mine;
    if (of_warp.arrived != ~0u) return;
    of_warp.arrived = 0;
    if (mine.number == Number::DOUBLE)
        doubles(of_warp.lanes);
    else if (mine.number == Number::INT8)
        integers<signed char>(of_warp.lanes);
    else if (mine.number == Number::UINT8)
        integers<unsigned char>(of_warp.lanes);
    else
        floats(of_warp.lanes);
    for (const TileProduct* each : of_warp.lanes) const_cast<TileProduct*>(each)->done = true;
}

}  // namespace cudalab
