// Conversions, shifts and divisions beyond what C++ defines: a GPU has a value
// for each of them.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>

typedef long long int64;
typedef unsigned long long uint64;

// ------------------------------------------------------------------ floating
// point to integer

template <class F>
struct Converted {
    signed char c;
    unsigned char uc;
    short s;
    unsigned short us;
    int i;
    unsigned u;
    int64 l;
    uint64 ul;
    bool b;
    long from_sum;
    int array[4];
};

template <class F>
__device__ int implicit(F x) {
    return x;
}
template <class T, class F>
__device__ T cast(F x) {
    return static_cast<T>(x);
}

template <class F>
__global__ void convert(const F* values, Converted<F>* out) {
    const F x = values[threadIdx.x];
    Converted<F>& to = out[threadIdx.x];
    to.c = (signed char)x;
    to.uc = x;
    to.s = cast<short>(x);
    to.us = (unsigned short)x;
    to.i = implicit(x);
    to.u = (unsigned)x;
    to.l = (int64)x;
    to.ul = cast<uint64>(x);
    to.b = x;
    to.from_sum = 1;
    to.from_sum += x;                                          // in F, then converted
    for (int i = 0; i < 4; ++i) to.array[i] = x * (F)(i - 1);  // compilers use vectors here
}

template <class F>
void convert_all(const F* values, int count) {
    F* d;
    Converted<F>*d_out, out[32];
    cudaMalloc(&d, 32 * sizeof *d);
    cudaMalloc(&d_out, sizeof out);
    cudaMemcpy(d, values, count * sizeof *d, cudaMemcpyHostToDevice);
    convert<<<1, count>>>(d, d_out);
    cudaMemcpy(out, d_out, sizeof out, cudaMemcpyDeviceToHost);
    for (int i = 0; i < count; ++i) {
        const Converted<F>& to = out[i];
        printf("%-12.9g %d %u %d %u %d %u %lld %llu %d, %ld, %d %d %d %d\n", (double)values[i],
               to.c, to.uc, to.s, to.us, to.i, to.u, to.l, to.ul, to.b, to.from_sum, to.array[0],
               to.array[1], to.array[2], to.array[3]);
    }
    cudaFree(d);
    cudaFree(d_out);
}

// ------------------------------------------------------------------ intrinsics

struct Rounded {
    int i[4];
    unsigned u[4];
    int64 l[4];
    uint64 ul[4];
};
__global__ void round_floats(const float* values, Rounded* out) {
    const float x = values[threadIdx.x];
    out[threadIdx.x] = {
        {__float2int_rn(x), __float2int_rz(x), __float2int_rd(x), __float2int_ru(x)},
        {__float2uint_rn(x), __float2uint_rz(x), __float2uint_rd(x), __float2uint_ru(x)},
        {__float2ll_rn(x), __float2ll_rz(x), __float2ll_rd(x), __float2ll_ru(x)},
        {__float2ull_rn(x), __float2ull_rz(x), __float2ull_rd(x), __float2ull_ru(x)}};
}
__global__ void round_doubles(const double* values, Rounded* out) {
    const double x = values[threadIdx.x];
    out[threadIdx.x] = {
        {__double2int_rn(x), __double2int_rz(x), __double2int_rd(x), __double2int_ru(x)},
        {__double2uint_rn(x), __double2uint_rz(x), __double2uint_rd(x), __double2uint_ru(x)},
        {__double2ll_rn(x), __double2ll_rz(x), __double2ll_rd(x), __double2ll_ru(x)},
        {__double2ull_rn(x), __double2ull_rz(x), __double2ull_rd(x), __double2ull_ru(x)}};
}
template <class F>
void round_all(void (*kernel)(const F*, Rounded*), const F* values, int count) {
    F* d;
    Rounded *d_out, out[32];
    cudaMalloc(&d, 32 * sizeof *d);
    cudaMalloc(&d_out, sizeof out);
    cudaMemcpy(d, values, count * sizeof *d, cudaMemcpyHostToDevice);
    kernel<<<1, count>>>(d, d_out);
    cudaMemcpy(out, d_out, sizeof out, cudaMemcpyDeviceToHost);
    for (int i = 0; i < count; ++i) {
        const Rounded& to = out[i];
        printf("%-12.9g", (double)values[i]);
        for (int each : to.i) printf(" %d", each);
        for (unsigned each : to.u) printf(" %u", each);
        for (int64 each : to.l) printf(" %lld", each);
        for (uint64 each : to.ul) printf(" %llu", each);
        printf("\n");
    }
    cudaFree(d);
    cudaFree(d_out);
}

struct ToFloat {
    float from_int[4], from_unsigned[4], from_ll[4], from_ull[4], from_double[4];
    double int_to_double, unsigned_to_double, ll_to_double[4], ull_to_double[4];
};
__global__ void to_float(const int64* values, ToFloat* out) {
    const int64 x = values[threadIdx.x];
    const double d = (double)x * 1.000000001;
    const int i = (int)x;
    const unsigned u = (unsigned)x;
    const uint64 ul = (uint64)x;
    out[threadIdx.x] = {
        {__int2float_rn(i), __int2float_rz(i), __int2float_rd(i), __int2float_ru(i)},
        {__uint2float_rn(u), __uint2float_rz(u), __uint2float_rd(u), __uint2float_ru(u)},
        {__ll2float_rn(x), __ll2float_rz(x), __ll2float_rd(x), __ll2float_ru(x)},
        {__ull2float_rn(ul), __ull2float_rz(ul), __ull2float_rd(ul), __ull2float_ru(ul)},
        {__double2float_rn(d), __double2float_rz(d), __double2float_rd(d), __double2float_ru(d)},
        __int2double_rn(i),
        __uint2double_rn(u),
        {__ll2double_rn(x), __ll2double_rz(x), __ll2double_rd(x), __ll2double_ru(x)},
        {__ull2double_rn(ul), __ull2double_rz(ul), __ull2double_rd(ul), __ull2double_ru(ul)}};
}

// ------------------------------------------------------------------ shifts

struct Shifted {
    int left, right;
    unsigned u_left, u_right;
    int64 l_left, l_right;
    uint64 ul_left, ul_right;
    int from_char, from_short, compound;
};
__global__ void shift(const int* counts, Shifted* out, int value, int64 wide) {
    const int n = counts[threadIdx.x];
    Shifted& to = out[threadIdx.x];
    to.left = value << n;
    to.right = value >> n;
    to.u_left = (unsigned)value << n;
    to.u_right = (unsigned)value >> n;
    to.l_left = wide << n;
    to.l_right = wide >> n;
    to.ul_left = (uint64)wide << n;
    to.ul_right = (uint64)wide >> n;
    to.from_char = (signed char)value << n;
    to.from_short = (short)value >> n;
    to.compound = value;
    to.compound <<= n;
    to.compound |= 1 << (n & 31);  // never out of range
    to.compound ^= (unsigned)value >> (32 - n);
}

// ------------------------------------------------------------------ divisions

template <class T>
__global__ void quotients(const T* a, T b, T* out) {
    out[threadIdx.x] = a[threadIdx.x] / b;
}
template <class T>
__global__ void remainders(const T* a, T b, T* out) {
    T rest = a[threadIdx.x];
    rest %= b;
    out[threadIdx.x] = rest;
}
template <class T>
void divide_all(const char* name, T least) {
    const T a[] = {(T)0, (T)1, (T)-1, (T)5, (T)-5, (T)1000003, (T)~least, least};
    T *d, *d_out, out[8];
    cudaMalloc(&d, sizeof a);
    cudaMalloc(&d_out, sizeof out);
    cudaMemcpy(d, a, sizeof a, cudaMemcpyHostToDevice);
    for (int divisor = 0; divisor >= -1; --divisor) {
        printf("%s by %lld:", name, (int64)(T)divisor);
        quotients<<<1, 8>>>(d, (T)divisor, d_out);
        cudaMemcpy(out, d_out, sizeof out, cudaMemcpyDeviceToHost);
        for (T each : out) printf(" %lld", (int64)each);
        printf(", rest");
        remainders<<<1, 8>>>(d, (T)divisor, d_out);
        cudaMemcpy(out, d_out, sizeof out, cudaMemcpyDeviceToHost);
        for (T each : out) printf(" %lld", (int64)each);
        printf("\n");
    }
    cudaFree(d);
    cudaFree(d_out);
}

// ------------------------------------------------------------------ the rest

__global__ void convert_halves(const float* values, int4* out) {
    const __half x = __float2half(values[threadIdx.x]);
    const unsigned u = (unsigned)x;
    const short s = x;
    out[threadIdx.x] = make_int4((int)x, (int)u, s, (signed char)x);
}

__global__ void print(int* out) {
    out[0] = printf("no arguments\n");
    out[1] = printf("%d\n", 7);
    out[2] = printf("%s %d %.1f\n", "three", 2, 1.0);
    out[3] = printf("%d of two\n", 1, 2);
}

// ------------------------------------------------------------------ in macros

#define TO_INT(x) ((int)(x))
#define TO_UNSIGNED(x) ((unsigned)(x))
#define BYTE(x) ((unsigned char)(x))
#define LEFT(x, n) \
    ((x) << (n))
#define RIGHT(x, n) ((x) >> (n))
#define STORE(p, x) (p) = (x)
#define BOTH(p, x, n) do { int v = (x); (p) = LEFT(v, n); } while (0)  // two of them
#define CALL(x) static_cast<int>(x)
#if LEFT(1, 3) != 8
#error "macros keep their meaning in directives"
#endif

__global__ void use_macros(int* out, float big, float nan, int n) {
    out[0] = TO_INT(big);
    out[1] = TO_INT(-big);
    out[2] = TO_INT(nan);
    out[3] = TO_UNSIGNED(-1.5f * big);
    out[4] = TO_UNSIGNED(big);
    out[5] = BYTE(300.0f + n - n);
    out[6] = BYTE(-1.0f * n);
    out[7] = LEFT(1, n);
    out[8] = LEFT(1u, n + 1);
    out[9] = RIGHT(-8, n);
    int i = 10;
    out[i++] = RIGHT(0x80000000u, n);
    STORE(out[i++], big);
    BOTH(out[i++], big, n - 1);
    out[i++] = CALL(big);
    out[i++] = CALL(nan);
    int shifted = 5;
    shifted <<= LEFT(1, 5);
    out[i] = shifted;
}

int main() {
    const float floats[] = {0.f,           -0.f,    0.5f,  -0.5f,        0.99999994f,  -0.99999994f,
                            1.5f,          2.5f,    -2.5f, 127.9f,       128.f,        -129.f,
                            255.9f,        256.f,   300.f, -300.f,       32768.f,      65535.9f,
                            65536.f,       70000.f, 1e9f,  -1e9f,        2147483520.f, 2147483648.f,
                            -2147483648.f, 3e9f,    -3e9f, 4294967040.f, 4294967296.f, 1e20f,
                            -1e20f,        INFINITY};
    const float more[] = {-INFINITY,
                          NAN,
                          9223371487098961920.f,
                          9223372036854775808.f,
                          -9223372036854775808.f,
                          18446742974197923840.f,
                          18446744073709551616.f,
                          1e-40f,
                          -1.f,
                          8388609.f,
                          33554436.f};
    const double doubles[] = {0.,
                              -0.5,
                              2147483646.5,
                              2147483647.,
                              2147483647.5,
                              2147483648.,
                              -2147483648.5,
                              -2147483649.,
                              4294967295.5,
                              4294967296.,
                              -1.,
                              1e18,
                              9223372036854774784.,
                              9223372036854775808.,
                              -9223372036854775808.,
                              -1e19,
                              1e19,
                              18446744073709549568.,
                              18446744073709551616.,
                              1e300,
                              -1e300,
                              INFINITY,
                              -INFINITY,
                              NAN,
                              127.5,
                              -128.5,
                              -129.,
                              255.5,
                              256.,
                              40000.,
                              70000.,
                              0.49999999999999994};
    convert_all(floats, 32);
    convert_all(more, 11);
    convert_all(doubles, 32);
    round_all(round_floats, floats, 32);
    round_all(round_floats, more, 11);
    round_all(round_doubles, doubles, 32);

    const int64 integers[] = {0,
                              16777217,
                              -16777217,
                              33554435,
                              2147483647,
                              -2147483647 - 1,
                              4294967295,
                              9007199254740993,
                              -9007199254740995,
                              9223372036854775807,
                              -9223372036854775807 - 1,
                              -1,
                              1ll << 40,
                              123456789012345678};
    const int count = sizeof integers / sizeof *integers;
    int64* d_integers;
    ToFloat *d_floats, h_floats[count];
    cudaMalloc(&d_integers, sizeof integers);
    cudaMalloc(&d_floats, sizeof h_floats);
    cudaMemcpy(d_integers, integers, sizeof integers, cudaMemcpyHostToDevice);
    to_float<<<1, count>>>(d_integers, d_floats);
    cudaMemcpy(h_floats, d_floats, sizeof h_floats, cudaMemcpyDeviceToHost);
    for (int i = 0; i < count; ++i) {
        const ToFloat& to = h_floats[i];
        printf("%lld", integers[i]);
        for (float each : to.from_int) printf(" %a", each);
        for (float each : to.from_unsigned) printf(" %a", each);
        for (float each : to.from_ll) printf(" %a", each);
        for (float each : to.from_ull) printf(" %a", each);
        for (float each : to.from_double) printf(" %a", each);
        printf(" %a %a", to.int_to_double, to.unsigned_to_double);
        for (double each : to.ll_to_double) printf(" %a", each);
        for (double each : to.ull_to_double) printf(" %a", each);
        printf("\n");
    }

    const int counts[] = {0,   1,   5,   7,       8,          15, 16,  31,
                          32,  33,  40,  62,      63,         64, 65,  100,
                          255, 256, 257, 1 << 20, 2147483647, -1, -32, -2147483647 - 1};
    const int shifts = sizeof counts / sizeof *counts;
    int* d_counts;
    Shifted *d_shifted, shifted[shifts];
    cudaMalloc(&d_counts, sizeof counts);
    cudaMalloc(&d_shifted, sizeof shifted);
    cudaMemcpy(d_counts, counts, sizeof counts, cudaMemcpyHostToDevice);
    for (int negative = 0; negative < 2; ++negative) {
        const int64 value = negative ? -0x123456789abcdef5 : 0x123456789abcdef5;
        shift<<<1, shifts>>>(d_counts, d_shifted, negative ? -1234567 : 0x12345679, value);
        cudaMemcpy(shifted, d_shifted, sizeof shifted, cudaMemcpyDeviceToHost);
        for (int i = 0; i < shifts; ++i) {
            const Shifted& s = shifted[i];
            printf("by %d: %x %x %x %x %llx %llx %llx %llx %x %x %x\n", counts[i], s.left, s.right,
                   s.u_left, s.u_right, s.l_left, s.l_right, s.ul_left, s.ul_right, s.from_char,
                   s.from_short, s.compound);
        }
    }

    divide_all<int>("int", -2147483647 - 1);
    divide_all<unsigned>("unsigned", 0);
    divide_all<int64>("long long", -9223372036854775807 - 1);
    divide_all<uint64>("unsigned long long", 0);
    divide_all<short>("short", -32768);
    divide_all<unsigned short>("unsigned short", 0);
    divide_all<signed char>("signed char", -128);
    divide_all<unsigned char>("unsigned char", 0);

    const float halves[] = {300, -300, 40000, 65504, INFINITY, -INFINITY, NAN, 2.5f};
    float* d_halves;
    int4 *d_converted, converted[8];
    cudaMalloc(&d_halves, sizeof halves);
    cudaMalloc(&d_converted, sizeof converted);
    cudaMemcpy(d_halves, halves, sizeof halves, cudaMemcpyHostToDevice);
    convert_halves<<<1, 8>>>(d_halves, d_converted);
    cudaMemcpy(converted, d_converted, sizeof converted, cudaMemcpyDeviceToHost);
    for (const int4& each : converted)
        printf("half %d %u %d %d\n", each.x, (unsigned)each.y, each.z, each.w);

    int *d_used, used[LEFT(1, 4)];
    cudaMalloc(&d_used, sizeof used);
    use_macros<<<1, 1>>>(d_used, 1e20f, NAN, 32);
    cudaMemcpy(used, d_used, sizeof used, cudaMemcpyDeviceToHost);
    printf("macros %d:", TO_INT(2.5f));
    for (int each : used) printf(" %d", each);
    printf("\n");

    int *d_printed, printed[4];
    cudaMalloc(&d_printed, sizeof printed);
    print<<<1, 1>>>(d_printed);
    cudaMemcpy(printed, d_printed, sizeof printed, cudaMemcpyDeviceToHost);
    printf("printf: %d %d %d %d\n", printed[0], printed[1], printed[2], printed[3]);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    return 0;
}
