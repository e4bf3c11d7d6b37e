// Products of tiles, computed once for a warp, with an H200's rounding.
//
// A tensor core adds the products of a block, 16 of half or bfloat16 and 4 of tf32, to the
// accumulator in one go: all of them are cut to 25 bits behind the binary point of the largest
// (the sum of its factors' exponents counts, not its own), added exactly, and the sum is cut to a
// float, or rounded to a half. That order and this rounding were compared with an H200's.

#include "mma.h"

namespace cudalab {

// ------------------------------------------------------------------ rows of tiles as vectors

// The floats in the processor's widest vectors.
#if defined(__AVX512F__)
const unsigned WIDTH = 16;
#elif defined(__AVX__)
const unsigned WIDTH = 8;
#else
const unsigned WIDTH = 4;
#endif

template <class T, unsigned N>
using Vector __attribute__((vector_size(N * sizeof(T)))) = T;

template <class V, class T>
static inline V load(const T* from) {
    V vector;
    __builtin_memcpy(&vector, from, sizeof vector);
    return vector;
}
template <class V, class T>
static inline void store(T* to, V vector) {
    __builtin_memcpy(to, &vector, sizeof vector);
}
template <class V, class From>  // the same bits
static inline V as(From vector) {
    return load<V>((const char*)&vector);
}
template <class V>
static inline V larger(V a, V b) {
    return a > b ? a : b;
}

// ------------------------------------------------------------------ factors

const int OF_ZERO = -1000;  // the exponent of 0: never the largest

// The exponents of floats; that of a subnormal number is the lowest of its format.
template <class Ints>
static inline Ints exponents_of(Ints bits, int lowest = -126) {
    const Ints size = bits & 0x7fffffff, exponent = (size >> 23) - 127;
    return size == 0 ? Ints{} + OF_ZERO : larger(exponent, Ints{} + lowest);
}

// Whether an exponent is that of an infinite or no number (2), or not between -limit and limit (1);
// a bit for each that holds.
template <class Ints>
static inline Ints extremes_of(Ints e, int limit) {
    return ((e == 128) & 2) | (((e >= limit) | (e <= -limit)) & (e != OF_ZERO) & 1);
}

template <class Ints>
static int either(Ints all) {
    int result = 0;
    for (unsigned i = 0; i < sizeof all / 4; ++i) result |= all[i];
    return result;
}

// The values of elements that are stored as bits.
typedef Vector<int, WIDTH> Words;
typedef Vector<float, WIDTH> Values;
static inline Words read_floats(const unsigned char* bits, Number number, unsigned i) {
    if (number == Number::TF32)  // the bits that do not count are ignored
        return load<Words>(bits + 4 * i) & (int)0xffffe000;
    const Words word = __builtin_convertvector(load<Vector<uint16_t, WIDTH>>(bits + 2 * i), Words);
    if (number == Number::BFLOAT16) return word << 16;
    const Words size = word & 0x7fff, special = size >= 0x7c00 & 0x7f800000;
    const Values scaled = as<Values>(size << 13) * 0x1p112f;  // subnormal ones, too
    return (word & 0x8000) << 16 | as<Words>(scaled) | special;
}

static inline void read_floats(Factor& factor, Number number, unsigned elements) {
    const int lowest = number == Number::HALF ? -14 : -126;
    Words top = Words{} + OF_ZERO, bottom = Words{} - OF_ZERO, extremes = {};
    for (unsigned i = 0; i < elements; i += WIDTH) {
        const Words bits = read_floats(factor.bits, number, i);
        const Words exponents = exponents_of(bits, lowest);
        store(factor.floats + i, bits);
        store(factor.exponents + i, __builtin_convertvector(exponents, Vector<short, WIDTH>));
        const Words digits = (bits & 0x7fffff) | 0x800000;
        const Words last = as<Words>(__builtin_convertvector(digits & -digits, Values));
        const Words low = bits << 1 == 0 ? Words{} - OF_ZERO : exponents + (last >> 23) - 127 - 23;
        top = larger(top, exponents);
        bottom = low < bottom ? low : bottom;
        extremes |= extremes_of(exponents, 40);
    }
    factor.top = OF_ZERO, factor.bottom = -OF_ZERO;
    for (unsigned i = 0; i < WIDTH; ++i) {
        factor.top = top[i] > factor.top ? top[i] : factor.top;
        factor.bottom = bottom[i] < factor.bottom ? bottom[i] : factor.bottom;
    }
    if (factor.top == OF_ZERO) factor.top = factor.bottom = 0;
    factor.extremes = either(extremes);
}

void round_to_tf32(Factor& factor, unsigned elements) {
    for (unsigned i = 0; i < elements; i += WIDTH) {
        const Words bits = load<Words>(factor.bits + 4 * i);
        const Words rounded = (bits + 0x1000) & (int)0xffffe000;  // to nearest, ties away from 0
        store(factor.bits + 4 * i, (bits & 0x7f800000) == 0x7f800000 ? bits : rounded);
    }
    factor.is_read = false;
}

static void read(Factor& factor, Number number, unsigned elements) {
    if (factor.is_read) return;
    factor.is_read = true;
    if (number == Number::INT8)
        for (unsigned i = 0; i < elements; ++i) factor.integers[i] = (signed char)factor.bits[i];
    else if (number == Number::UINT8)
        for (unsigned i = 0; i < elements; ++i) factor.integers[i] = factor.bits[i];
    else if (number == Number::HALF)
        read_floats(factor, Number::HALF, elements);
    else if (number == Number::BFLOAT16)
        read_floats(factor, Number::BFLOAT16, elements);
    else
        read_floats(factor, Number::TF32, elements);
}

// ------------------------------------------------------------------ floats

// The sum, cut to a float. If `odd` is set, its last bit tells whether anything is cut off: halves
// are rounded from the exact sum.
template <class Floats, class Ints>
static inline Floats add_and_cut(Floats a, Floats b, bool odd) {
#ifdef __AVX512F__
    if constexpr (sizeof(Floats) == 64) {
        Floats sum;
        asm("vaddps %{rz-sae%}, %1, %2, %0" : "=v"(sum) : "v"(a), "v"(b));
        if (!odd) return sum;
    }
#endif
    const Floats sum = a + b, part = sum - a, error = (a - (sum - part)) + (b - part);
    const Ints too_large = (error < 0 & sum > 0) | (error > 0 & sum < 0);  // -1 where it is
    return as<Floats>((as<Ints>(sum) + too_large) | (error != 0 & (odd ? 1 : 0)));
}

static inline float power(int e) {
    return __uint_as_float((unsigned)(e + 127) << 23);
}

// Products of a few bits that need no cutting, such as those of small integers: ordinary arithmetic
// gives the same. False if that is not known of these tiles; `d` is unchanged then.
template <unsigned COUNT, unsigned W>
static bool multiply_exactly(const Product& product, const Factor& a, const Factor& b,
                             const float* c, float* d) {
    typedef Vector<float, W> Floats;
    typedef Vector<int, W> Ints;
    const unsigned m = product.m, n = product.n, k = product.k;
    const bool odd = product.of_d == Number::HALF;
    // All products are multiples of 2^bottom, less than 2^(top + 2), and 16 of them fit in a float.
    const int top = a.top + b.top, bottom = a.bottom + b.bottom;
    if (top + 6 > bottom + 24) return false;
    // Nothing is cut if no element of c is so large that the products would be, and none has bits
    // that are so low that it would be itself.
    const float limit = power(bottom + 25 < 90 ? bottom + 25 : 90), rounds = 1.5f * power(top - 2);
    Ints outside = {};
    for (unsigned i = 0; i < m * n; i += W) {
        const Floats row = load<Floats>(c + i), size = as<Floats>(as<Ints>(row) & 0x7fffffff);
        outside |= ~(size < limit) | (size < power(top - 2) & (row + rounds) - rounds != row);
    }
    if (either(outside)) return false;
    for (unsigned i = 0; i < m; ++i)
        for (unsigned j = 0; j < n; j += W) {
            Floats row = load<Floats>(c + i * n + j);
            for (unsigned p = 0; p < k; p += COUNT) {
                Floats sums = {};
                for (unsigned q = p; q < p + COUNT; ++q)
                    sums += a.floats[i * k + q] * load<Floats>(b.floats + q * n + j);
                row = add_and_cut<Floats, Ints>(row, sums, odd);
            }
            store(d + i * n + j, row);
        }
    return true;
}

// COUNT products of a row of a with columns of b, cut and added to W elements of c. The products
// and the scale are exact.
template <unsigned COUNT, unsigned W>
static inline Vector<float, W> add_block(const float* a, const float* b, const short* exponents_a,
                                         const short* exponents_b, unsigned n, bool odd,
                                         Vector<float, W> row) {
    typedef Vector<short, W> Shorts;
    typedef Vector<int, W> Ints;
    typedef Vector<float, W> Floats;
    Shorts largest = __builtin_convertvector(exponents_of(as<Ints>(row)), Shorts);
    for (unsigned k = 0; k < COUNT; ++k)
        largest = larger(largest, load<Shorts>(exponents_b + k * n) + exponents_a[k]);
    Ints top = __builtin_convertvector(largest, Ints);
    top = top < OF_ZERO + 200 ? Ints{} : top;  // a sum of zeros
    const Floats scale = as<Floats>((25 - top + 127) << 23);
    // Two sums, so that 8 products and the accumulator fit in an int.
    Ints low = __builtin_convertvector(row * scale, Ints), high = {};
    for (unsigned k = 0; k < COUNT / 2; ++k) {
        const unsigned l = k + COUNT / 2;
        low += __builtin_convertvector(a[k] * load<Floats>(b + k * n) * scale, Ints);
        high += __builtin_convertvector(a[l] * load<Floats>(b + l * n) * scale, Ints);
    }
    const Ints above = (low >> 12) + (high >> 12), below = (low & 0xfff) + (high & 0xfff);
    const Floats sum = add_and_cut<Floats, Ints>(__builtin_convertvector(above, Floats) * 0x1p12f,
                                                 __builtin_convertvector(below, Floats), odd);
    return sum * as<Floats>((top - 25 + 127) << 23);
}

template <unsigned COUNT, unsigned W>
static void add_blocks(const Product& product, const Factor& a, const Factor& b, const float* c,
                       float* d) {
    const unsigned n = product.n, k = product.k;
    const bool odd = product.of_d == Number::HALF;
    for (unsigned i = 0; i < product.m; ++i)
        for (unsigned j = 0; j < n; j += W) {
            auto row = load<Vector<float, W>>(c + i * n + j);
            for (unsigned p = 0; p < k; p += COUNT)
                row = add_block<COUNT, W>(a.floats + i * k + p, b.floats + p * n + j,
                                          a.exponents + i * k + p, b.exponents + p * n + j, n, odd,
                                          row);
            store(d + i * n + j, row);
        }
}

// To a float, towards 0, or so that its last bit tells whether anything is cut off.
static float cut(double x, bool odd) {
    const uint64_t bits = to_bits(x), below = bits & 0x1fffffff;
    const float nearest = (float)from_bits<double>((bits - below) | (odd && below ? 1 << 29 : 0));
    const bool too_large = fabs((double)nearest) > fabs(x) && nearest - nearest == 0;  // subnormal
    const float result = __uint_as_float(__float_as_uint(nearest) - too_large);
    return result == 0 ? 0 : result;
}

// The same in doubles, for numbers whose products or scale would not be exact in a float.
static float add_far_block(unsigned count, const float* a, const float* b, const short* exponents_a,
                           const short* exponents_b, unsigned n, bool odd, float c) {
    if (c - c != 0) return c;
    int top = exponents_of(Vector<int, 4>{} + __float_as_int(c))[0];
    for (unsigned k = 0; k < count; ++k) {
        const int exponent = exponents_a[k] + exponents_b[k * n];
        top = exponent > top ? exponent : top;
    }
    if (top < OF_ZERO + 200) return 0;  // a sum of zeros
    const double scale = from_bits<double>((uint64_t)(25 - top + 1023) << 52);
    long long sum = (int)(c * scale);
    for (unsigned k = 0; k < count; ++k) sum += (int)((double)a[k] * b[k * n] * scale);
    return cut((double)sum / scale, odd);
}
static void add_far_blocks(const Product& product, const Factor& a, const Factor& b, const float* c,
                           float* d) {
    const unsigned n = product.n, k = product.k, count = k == 8 ? 4 : 16;
    const bool odd = product.of_d == Number::HALF;
    for (unsigned i = 0; i < product.m; ++i)
        for (unsigned j = 0; j < n; ++j) {
            float element = c[i * n + j];
            for (unsigned p = 0; p < k; p += count)
                element = add_far_block(count, a.floats + i * k + p, b.floats + p * n + j,
                                        a.exponents + i * k + p, b.exponents + p * n + j, n, odd,
                                        element);
            d[i * n + j] = element;
        }
}

template <unsigned COUNT, unsigned W>
static void multiply_floats(const Product& product, const Factor& a, const Factor& b,
                            const float* c, float* d) {
    const unsigned m = product.m, n = product.n, k = product.k;
    int found = a.extremes | b.extremes;
    if (!found && multiply_exactly<COUNT, W>(product, a, b, c, d)) return;
    Vector<int, W> of_c = {};
    for (unsigned i = 0; i < m * n; i += W)
        of_c |= extremes_of(exponents_of(load<Vector<int, W>>(c + i)), 90);
    found |= either(of_c);
    float special[256];  // what is infinite or no number in these sums is so in any order
    if (found >= 2) {
        const auto sign = [](float x) { return x - x == 0 ? (float)((x > 0) - (x < 0)) : x; };
        for (unsigned i = 0; i < m; ++i)
            for (unsigned j = 0; j < n; ++j) {
                float sum = sign(c[i * n + j]);
                for (unsigned p = 0; p < k; ++p)
                    sum += sign(a.floats[i * k + p]) * sign(b.floats[p * n + j]);
                special[i * n + j] = sum;
            }
    }
    if (found)
        add_far_blocks(product, a, b, c, d);
    else
        add_blocks<COUNT, W>(product, a, b, c, d);
    if (found >= 2)
        for (unsigned i = 0; i < m * n; ++i)
            if (special[i] - special[i] != 0) d[i] = special[i];
}

// ------------------------------------------------------------------ integers and doubles

template <unsigned W>
static void multiply_integers(const Product& product, const Factor& a, const Factor& b,
                              const Sums& c, Sums& d) {
    typedef Vector<int, W> Ints;
    const unsigned n = product.n, k = product.k;
    for (unsigned i = 0; i < product.m; ++i)
        for (unsigned j = 0; j < n; j += W) {
            const Ints before = load<Ints>(c.integers + i * n + j);
            Ints sums = {};
            for (unsigned p = 0; p < k; ++p)
                sums += a.integers[i * k + p] * load<Ints>(b.integers + p * n + j);
            const Ints after = before + sums;
            // Where the sum has another sign than both, it does not fit.
            const Ints wrong = ((after ^ before) & (after ^ sums)) >> 31;
            const Ints limit = (before >> 31) ^ INT_MAX;
            store(d.integers + i * n + j, product.saturates ? wrong ? limit : after : after);
        }
}

// a * b + c, rounded once. A vector's operators would do if no option forbade them to fuse.
template <class Doubles>
static inline Doubles fused(Doubles a, Doubles b, Doubles c) {
#ifdef __FMA__
    asm("vfmadd231pd %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
#else
    for (unsigned i = 0; i < sizeof c / sizeof(double); ++i) c[i] = fma(a[i], b[i], c[i]);
#endif
    return c;
}

// Each element is a chain of fused multiply-adds.
static void multiply_doubles(const Factor& a, const Factor& b, const Sums& c, Sums& d) {
    typedef Vector<double, WIDTH / 2> Doubles;
    for (unsigned j = 0; j < 8; j += WIDTH / 2) {
        Doubles columns[4];
        for (unsigned p = 0; p < 4; ++p) columns[p] = load<Doubles>(b.doubles + p * 8 + j);
        for (unsigned i = 0; i < 8; ++i) {
            Doubles row = load<Doubles>(c.doubles + i * 8 + j);
            for (unsigned p = 0; p < 4; ++p)  // a number minus 0 is itself, -0 too
                row = fused(a.doubles[i * 4 + p] - Doubles{}, columns[p], row);
            store(d.doubles + i * 8 + j, row);
        }
    }
}

void multiply(const Product& product, Factor& a, Factor& b, const Sums& c, Sums& d) {
    if (lanes_are_missing) __trap();
    if (product.number == Number::DOUBLE) return multiply_doubles(a, b, c, d);
    const unsigned m = product.m, n = product.n, k = product.k;
    read(a, product.number, m * k);
    read(b, product.number, k * n);
    if (product.number == Number::INT8 || product.number == Number::UINT8) {
        const auto multiply = n < WIDTH ? multiply_integers<8> : multiply_integers<WIDTH>;
        return multiply(product, a, b, c, d);
    }
    const auto multiply = k == 8      ? multiply_floats<4, WIDTH>
                          : n < WIDTH ? multiply_floats<16, 8>
                                      : multiply_floats<16, WIDTH>;
    multiply(product, a, b, c.floats, d.floats);
    if (product.of_d == Number::HALF)
        for (unsigned i = 0; i < m * n; ++i)  // and no negative zeros
            d.floats[i] = Half::value(Half::bits(d.floats[i])) + 0.0f;
}

}  // namespace cudalab
