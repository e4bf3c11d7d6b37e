// CUDA's mathematical functions at edges and at usual arguments, in as many digits as a GPU and
// the host's own library share; and half precision and bfloat16, bit by bit.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>

const int POINTS = 12;
__constant__ double points[POINTS] = {0.0,          -0.0, 0.5,  -0.5, 1.0,      -1.25,
                                      0.0009765625, 3.75, -7.0, 25.5, INFINITY, NAN};

// The functions of one argument, of float and of double.
#define FUNCTIONS(F)                                                                          \
    F(cospi)                                                                                  \
    F(cyl_bessel_i0)                                                                          \
    F(cyl_bessel_i1) F(erfcinv) F(erfcx) F(erfinv) F(exp10) F(normcdf) F(normcdfinv) F(rcbrt) \
        F(rsqrt) F(sinpi) F(j0) F(j1) F(y0) F(y1) F(erf) F(erfc) F(tgamma) F(lgamma) F(logb)  \
            F(cbrt) F(exp2) F(expm1) F(log1p) F(acosh) F(asinh) F(atanh)

__device__ float float_point(int i) {
    return (float)points[i];
}
#define APPLY(name)                          \
    for (int i = 0; i < POINTS; ++i) {       \
        *floats++ = name##f(float_point(i)); \
        *doubles++ = name(points[i]);        \
    }
__global__ void functions(float* floats, double* doubles){FUNCTIONS(APPLY)}

__global__ void several(float* floats, double* doubles) {
    for (int i = 0; i < POINTS; ++i) {
        const double x = points[i], y = points[(i + 3) % POINTS], z = points[(i + 5) % POINTS];
        const float a = (float)x, b = (float)y, c = (float)z;
        const double vector[] = {x, y, z};
        const float vectorf[] = {a, b, c};
        float sine, cosine;
        double dsine, dcosine;
        sincospif(a, &sine, &cosine);
        sincospi(x, &dsine, &dcosine);
        *floats++ = sine, *floats++ = cosine, *doubles++ = dsine, *doubles++ = dcosine;
        sincosf(a, &sine, &cosine);
        sincos(x, &dsine, &dcosine);
        *floats++ = sine, *floats++ = cosine, *doubles++ = dsine, *doubles++ = dcosine;
        *floats++ = norm3df(a, b, c), *floats++ = rnorm3df(a, b, c);
        *floats++ = norm4df(a, b, c, 2.0f), *floats++ = rnorm4df(a, b, c, 2.0f);
        *floats++ = normf(3, vectorf), *floats++ = rnormf(3, vectorf), *floats++ = rhypotf(a, b);
        *floats++ = jnf(3, a + 1), *floats++ = ynf(3, a + 10), *floats++ = fdividef(a, b);
        *doubles++ = norm3d(x, y, z), *doubles++ = rnorm3d(x, y, z);
        *doubles++ = norm4d(x, y, z, 2.0), *doubles++ = rnorm4d(x, y, z, 2.0);
        *doubles++ = norm(3, vector), *doubles++ = rnorm(3, vector), *doubles++ = rhypot(x, y);
        *doubles++ = jn(3, x + 1), *doubles++ = yn(3, x + 10), *doubles++ = fmod(x, y);
    }
}
const int SEVERAL = 14;

// ------------------------------------------------------------------ 16 bits

template <class T>
struct Format;
template <>
struct Format<__half> {
    typedef __half2 Pair;
    static __device__ unsigned bits(__half x) { return __half_as_ushort(x); }
    static __device__ __half of(unsigned b) { return __ushort_as_half((unsigned short)b); }
    static __device__ __half2 pair(__half a, __half b) { return __halves2half2(a, b); }
    static __device__ __half from(float x, int mode) {
        return mode == 0   ? __float2half_rn(x)
               : mode == 1 ? __float2half_rz(x)
               : mode == 2 ? __float2half_rd(x)
                           : __float2half_ru(x);
    }
    static __device__ __half from(double x) { return __double2half(x); }
    static __device__ __half from(int x) { return __int2half_rn(x); }
    static __device__ __half from(long long x) { return __ll2half_rn(x); }
    static __device__ __half from(unsigned x) { return __uint2half_ru(x); }
    static __device__ long long whole(__half x, int kind) {
        return kind == 0   ? __half2int_rn(x)
               : kind == 1 ? __half2int_rz(x)
               : kind == 2 ? __half2int_rd(x)
               : kind == 3 ? (long long)__half2uint_rn(x)
               : kind == 4 ? __half2short_rn(x)
               : kind == 5 ? __half2ll_rz(x)
               : kind == 6 ? __half2uchar_rz(x)
                           : __half2ushort_ru(x);
    }
};
template <>
struct Format<__nv_bfloat16> {
    typedef __nv_bfloat162 Pair;
    static __device__ unsigned bits(__nv_bfloat16 x) { return __bfloat16_as_ushort(x); }
    static __device__ __nv_bfloat16 of(unsigned b) {
        return __ushort_as_bfloat16((unsigned short)b);
    }
    static __device__ __nv_bfloat162 pair(__nv_bfloat16 a, __nv_bfloat16 b) {
        return __halves2bfloat162(a, b);
    }
    static __device__ __nv_bfloat16 from(float x, int mode) {
        return mode == 0   ? __float2bfloat16_rn(x)
               : mode == 1 ? __float2bfloat16_rz(x)
               : mode == 2 ? __float2bfloat16_rd(x)
                           : __float2bfloat16_ru(x);
    }
    static __device__ __nv_bfloat16 from(double x) { return __double2bfloat16(x); }
    static __device__ __nv_bfloat16 from(int x) { return __int2bfloat16_rn(x); }
    static __device__ __nv_bfloat16 from(long long x) { return __ll2bfloat16_rn(x); }
    static __device__ __nv_bfloat16 from(unsigned x) { return __uint2bfloat16_ru(x); }
    static __device__ long long whole(__nv_bfloat16 x, int kind) {
        return kind == 0   ? __bfloat162int_rn(x)
               : kind == 1 ? __bfloat162int_rz(x)
               : kind == 2 ? __bfloat162int_rd(x)
               : kind == 3 ? (long long)__bfloat162uint_rn(x)
               : kind == 4 ? __bfloat162short_rn(x)
               : kind == 5 ? __bfloat162ll_rz(x)
               : kind == 6 ? __bfloat162uchar_rz(x)
                           : __bfloat162ushort_ru(x);
    }
};

struct Checksum {
    unsigned *next, sum;
    __device__ void add(unsigned bits) { sum = (sum ^ bits) * 0x01000193u ^ sum >> 15; }
    // What is not a number counts as its format's canonical one.
    template <class T>
    __device__ void add_float(T x) {
        add(__hisnan(x) ? 0x7fffu : Format<T>::bits(x));
    }
    template <class T>
    __device__ void add_pair(T x) {
        add_float(__low2(x));
        add_float(__high2(x));
    }
    static __device__ __half __low2(__half2 x) { return __low2half(x); }
    static __device__ __half __high2(__half2 x) { return __high2half(x); }
    static __device__ __nv_bfloat16 __low2(__nv_bfloat162 x) { return __low2bfloat16(x); }
    static __device__ __nv_bfloat16 __high2(__nv_bfloat162 x) { return __high2bfloat16(x); }
    __device__ void end() {
        *next++ = sum;
        sum = 0x811c9dc5u;
    }
};

__device__ unsigned random_word(unsigned i) {
    i = (i ^ i >> 16) * 0x7feb352du;
    i = (i ^ i >> 15) * 0x846ca68bu;
    return i ^ i >> 16;
}

#define EACH(n, ...)                                                                         \
    for (unsigned i = 0; i < n; ++i) {                                                       \
        const unsigned random = random_word(i);                                              \
        const T a = Format<T>::of(i * 13), b = Format<T>::of(random & 0xffff);               \
        const T c = Format<T>::of(random >> 16);                                             \
        const typename Format<T>::Pair p = Format<T>::pair(a, b), q = Format<T>::pair(b, c); \
        (void)a, (void)b, (void)c, (void)p, (void)q;                                         \
        __VA_ARGS__;                                                                         \
    }                                                                                        \
    sum.end();
template <class T>
__global__ void narrow(unsigned* sums) {
    Checksum sum = {sums, 0x811c9dc5u};
    const unsigned n = 5041;
    EACH(n, const float x = __uint_as_float(random);
         for (int mode = 0; mode < 4; ++mode) sum.add_float(Format<T>::from(x, mode)))
    EACH(n, sum.add_float(Format<T>::from(__longlong_as_double(
                (long long)(0x3700000000000000ull + (random >> 4)) ^ (long long)i << 50))))
    EACH(n, sum.add_float(Format<T>::from((int)random >> i % 31));
         sum.add_float(Format<T>::from((unsigned)random >> i % 31));
         sum.add_float(Format<T>::from((long long)random << 31 >> i % 61 | (random & 1))))
    EACH(
        n, for (int kind = 0; kind < 8; ++kind) {
            const long long whole = Format<T>::whole(a, kind);
            sum.add((unsigned)whole ^ (unsigned)(whole >> 32));
        })
    EACH(n, sum.add_float(__hadd(a, b)); sum.add_float(__hsub(b, c)))
    EACH(n, sum.add_float(__hmul(a, b)); sum.add_float(__hmul_sat(b, c)))
    EACH(n, sum.add_float(__hdiv(a, b)); sum.add_float(__hadd_sat(a, b)))
    EACH(n, sum.add_float(__hfma(a, b, c)); sum.add_float(__hfma_sat(a, b, c));
         sum.add_float(__hfma_relu(a, b, c)))
    EACH(n, sum.add_float(__hfma(a, Format<T>::from(1.0f, 0), b));
         sum.add_float(__hfma(b, a, Format<T>::from(1.0f, 0))))
    EACH(n, sum.add(__heq(a, b) + 2 * __hne(b, c) + 4 * __hlt(a, b) + 8 * __hge(b, c)))
    EACH(n, sum.add(__hequ(a, b) + 2 * __hneu(b, c) + 4 * __hltu(a, b) + 8 * __hgeu(b, c)))
    EACH(n, sum.add_float(__hmax(a, b)); sum.add_float(__hmin(a, b));
         sum.add_float(__hmax_nan(b, c)); sum.add_float(__hmin_nan(b, c)))
    EACH(n, sum.add_pair(__hadd2(p, q)); sum.add_pair(__hsub2(p, q)); sum.add_pair(__hmul2(p, q));
         sum.add_pair(__h2div(p, q)); sum.add_pair(__hfma2(p, q, p)))
    EACH(n, sum.add_pair(__heq2(p, q)); sum.add_pair(__hgt2(p, q)); sum.add(__hbeq2(p, q));
         sum.add(__hlt2_mask(p, q)); sum.add(__hgeu2_mask(p, q)))
    EACH(n, sum.add_pair(__habs2(p)); sum.add_pair(__hneg2(q)); sum.add_pair(__hmax2(p, q));
         sum.add_pair(__hmin2_nan(p, q)); sum.add_pair(__hisnan2(p)); sum.add(__hisinf(a) + 1))
    EACH(n, sum.add_float(hceil(a)); sum.add_float(hfloor(a)); sum.add_float(hrint(a));
         sum.add_float(htrunc(a)))
    EACH(n, sum.add_float(hsqrt(a)); sum.add_float(hrcp(a)))
    EACH(n, sum.add_float(hrsqrt(a)))
    EACH(n, sum.add_float(hexp(a)))
    EACH(n, sum.add_float(hexp2(a)))
    EACH(n, sum.add_float(hexp10(a)))
    EACH(n, sum.add_float(hlog(a)))
    EACH(n, sum.add_float(hlog2(a)))
    EACH(n, sum.add_float(hlog10(a)))
    EACH(n, sum.add_float(hsin(a)))
    EACH(n, sum.add_float(hcos(a)))
    EACH(n, sum.add_float(a + b); sum.add_float(b - c); sum.add(a < b); sum.add_pair(p * q))
    EACH(n, sum.add_float(hrsqrt(a)); sum.add_float(htanh(a)); sum.add_pair(__hcmadd(p, q, p)))
    EACH(200, sum.add_float(T(0.1f * i)); sum.add_float(T((int)i * 7)); sum.add((int)(float)a < 5))
}
// Threads of a warp exchange 16-bit numbers and add them atomically.
template <class T>
__global__ void together(unsigned* sums) {
    __shared__ T total;
    __shared__ typename Format<T>::Pair totals;
    const T one = Format<T>::from(1.0f, 0), mine = Format<T>::from((int)threadIdx.x);
    if (threadIdx.x == 0) total = one, totals = Format<T>::pair(one, mine);
    __syncthreads();
    atomicAdd(&total, mine);
    atomicAdd(&totals, Format<T>::pair(one, mine));
    __syncthreads();
    Checksum sum = {sums + threadIdx.x, 0x811c9dc5u};
    sum.add_float(total);
    sum.add_pair(totals);
    sum.add_float(__shfl_xor_sync(~0u, mine, 5));
    sum.add_float(__shfl_up_sync(~0u, mine, 3));
    sum.add_pair(__shfl_down_sync(~0u, Format<T>::pair(mine, one), 1));
    sum.end();
}
const int NARROW = 29, LANES = 32;

int main() {
    const char* const names[] = {
#define NAME(f) #f,
        FUNCTIONS(NAME)};
    const int count = sizeof names / sizeof *names;
    float* floats;
    double* doubles;
    unsigned* sums;
    cudaMallocManaged(&floats, (count + SEVERAL) * POINTS * sizeof *floats);
    cudaMallocManaged(&doubles, (count + SEVERAL) * POINTS * sizeof *doubles);
    cudaMallocManaged(&sums, 2 * (NARROW + LANES) * sizeof *sums);
    functions<<<1, 1>>>(floats, doubles);
    several<<<1, 1>>>(floats + count * POINTS, doubles + count * POINTS);
    narrow<__half><<<1, 1>>>(sums);
    narrow<__nv_bfloat16><<<1, 1>>>(sums + NARROW);
    together<__half><<<1, LANES>>>(sums + 2 * NARROW);
    together<__nv_bfloat16><<<1, LANES>>>(sums + 2 * NARROW + LANES);
    const cudaError_t error = cudaDeviceSynchronize();
    if (error != cudaSuccess) printf("%s\n", cudaGetErrorString(error));
    for (int i = 0; i < count + SEVERAL; ++i) {
        printf("%s", i < count ? names[i] : "several");
        for (int j = 0; j < POINTS; ++j) {
            const float x = floats[i * POINTS + j];
            const double y = doubles[i * POINTS + j];
            if (std::isnan(x) && std::isnan(y))
                printf(" nan");
            else
                printf(" %.4g %.10g", x, y);
        }
        puts("");
    }
    for (int i = 0; i < 2 * (NARROW + LANES); ++i)
        printf("%08x%c", sums[i], i % 10 == 9 ? '\n' : ' ');
    puts("");
    return 0;
}
