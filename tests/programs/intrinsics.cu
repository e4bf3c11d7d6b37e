// Integer, SIMD, conversion and rounding intrinsics over edges and random words: a checksum each,
// which must be that of a GPU.
#include <cuda_runtime.h>

#include <cstdio>

// The first words are edges of bytes, halves, integers and floats; the others are random.
__device__ unsigned word(unsigned i) {
    const unsigned edges[] = {0u,          1u,          2u,          0x7fu,       0x80u,
                              0xffu,       0x7fffu,     0x8000u,     0xffffu,     0x7fffffffu,
                              0x80000000u, 0xffffffffu, 0x80808080u, 0x7f7f7f7fu, 0x80008000u,
                              0x7fff7fffu, 0x01ff00feu, 0x00010001u, 0x3f800000u, 0xbf000000u,
                              0x7f800000u, 0xff800000u, 0x7fc00000u, 0x00000001u, 0x007fffffu,
                              0x4effffffu, 0x4f000000u, 0x4f800000u, 0xcf000000u, 0x5f000000u};
    if (i < sizeof edges / sizeof *edges) return edges[i];
    i = (i ^ i >> 16) * 0x7feb352du;
    i = (i ^ i >> 15) * 0x846ca68bu;
    return i ^ i >> 16;
}
// A float of moderate size where `i` is odd, any float where it is even.
__device__ float number(unsigned i) {
    const unsigned bits = word(i);
    return __uint_as_float(i % 2 ? (bits & 0x87ffffffu) + 0x3c000000u : bits);
}
__device__ double large_number(unsigned i) {
    unsigned long long bits = (unsigned long long)word(i + 32) << 32 | word(3 * i + 40);
    if (i % 2) bits = (bits & 0x80ffffffffffffffull) + 0x3f80000000000000ull;
    if (i % 8 == 2) bits = (unsigned long long)word(i) << 32;
    if (i % 8 == 4) return number(i);
    return __longlong_as_double((long long)bits);
}

// All results as 64 bits; what is not a number has many representations.
__device__ unsigned long long as_bits(int x) {
    return (unsigned)x;
}
__device__ unsigned long long as_bits(unsigned x) {
    return x;
}
__device__ unsigned long long as_bits(long long x) {
    return (unsigned long long)x;
}
__device__ unsigned long long as_bits(unsigned long long x) {
    return x;
}
__device__ unsigned long long as_bits(float x) {
    return x == x ? __float_as_uint(x) : 1;
}
__device__ unsigned long long as_bits(double x) {
    return x == x ? (unsigned long long)__double_as_longlong(x) : 1;
}

struct Checksum {
    unsigned* next;
    unsigned sum;
    template <class T>
    __device__ void add(T result) {
        const unsigned long long bits = as_bits(result);
        sum = (sum ^ (unsigned)bits) * 0x01000193u;
        sum = (sum ^ (unsigned)(bits >> 32)) * 0x01000193u ^ sum >> 15;
    }
    __device__ void end() {
        *next++ = sum;
        sum = 0x811c9dc5u;
    }
};

#define UNARY_SIMD(F) \
    F(__vabs2) F(__vabs4) F(__vabsss2) F(__vabsss4) F(__vneg2) F(__vneg4) F(__vnegss2) F(__vnegss4)
#define BINARY_SIMD(F)                                                                             \
    F(__vabsdiffs2)                                                                                \
    F(__vabsdiffs4) F(__vabsdiffu2) F(__vabsdiffu4) F(__vadd2) F(__vadd4) F(__vaddss2)             \
        F(__vaddss4) F(__vaddus2) F(__vaddus4) F(__vavgs2) F(__vavgs4) F(__vavgu2) F(__vavgu4) F(  \
            __vcmpeq2) F(__vcmpeq4) F(__vcmpges2) F(__vcmpges4) F(__vcmpgeu2) F(__vcmpgeu4)        \
            F(__vcmpgts2) F(__vcmpgts4) F(__vcmpgtu2) F(__vcmpgtu4) F(__vcmples2) F(__vcmples4) F( \
                __vcmpleu2) F(__vcmpleu4) F(__vcmplts2) F(__vcmplts4) F(__vcmpltu2) F(__vcmpltu4)  \
                F(__vcmpne2) F(__vcmpne4) F(__vhaddu2) F(__vhaddu4) F(__vmaxs2) F(__vmaxs4)        \
                    F(__vmaxu2) F(__vmaxu4) F(__vmins2) F(__vmins4) F(__vminu2) F(__vminu4)        \
                        F(__vsads2) F(__vsads4) F(__vsadu2) F(__vsadu4) F(__vseteq2) F(__vseteq4)  \
                            F(__vsetges2) F(__vsetges4) F(__vsetgeu2) F(__vsetgeu4) F(__vsetgts2)  \
                                F(__vsetgts4) F(__vsetgtu2) F(__vsetgtu4) F(__vsetles2)            \
                                    F(__vsetles4) F(__vsetleu2) F(__vsetleu4) F(__vsetlts2)        \
                                        F(__vsetlts4) F(__vsetltu2) F(__vsetltu4) F(__vsetne2)     \
                                            F(__vsetne4) F(__vsub2) F(__vsub4) F(__vsubss2)        \
                                                F(__vsubss4) F(__vsubus2) F(__vsubus4)             \
                                                    F(__vimax_s32_relu) F(__vimin_s32_relu)        \
                                                        F(__vimax_s16x2_relu)                      \
                                                            F(__vimin_s16x2_relu)
#define TERNARY_SIMD(F)                                                                         \
    F(__viaddmax_s32)                                                                           \
    F(__viaddmax_u32) F(__viaddmax_s16x2) F(__viaddmax_u16x2) F(__viaddmax_s32_relu)            \
        F(__viaddmax_s16x2_relu) F(__viaddmin_s32) F(__viaddmin_u32) F(__viaddmin_s16x2)        \
            F(__viaddmin_u16x2) F(__viaddmin_s32_relu) F(__viaddmin_s16x2_relu) F(__vimax3_s32) \
                F(__vimax3_u32) F(__vimax3_s16x2) F(__vimax3_u16x2) F(__vimax3_s32_relu)        \
                    F(__vimax3_s16x2_relu) F(__vimin3_s32) F(__vimin3_u32) F(__vimin3_s16x2)    \
                        F(__vimin3_u16x2) F(__vimin3_s32_relu) F(__vimin3_s16x2_relu)
#define PREDICATED_SIMD(F) F(__vibmax_s32) F(__vibmin_s32) F(__vibmax_u32) F(__vibmin_u32)
#define PREDICATED_HALVES(F) F(__vibmax_s16x2) F(__vibmin_s16x2) F(__vibmax_u16x2) F(__vibmin_u16x2)
#define UNARY_INTEGER(F)                                                              \
    F(__popc)                                                                         \
    F(__clz) F(__ffs) F(__brev) F(__int_as_float) F(__int2float_rn) F(__int2float_rz) \
        F(__int2float_rd) F(__int2float_ru) F(__uint2float_rn) F(__uint2float_rz)     \
            F(__uint2float_rd) F(__uint2float_ru) F(__int2double_rn) F(__uint2double_rn)
#define BINARY_INTEGER(F) \
    F(__mulhi)            \
    F(__umulhi) F(__mul24) F(__umul24) F(__hadd) F(__rhadd) F(__uhadd) F(__urhadd) F(umin) F(umax)
#define TERNARY_INTEGER(F)                                                                 \
    F(__byte_perm)                                                                         \
    F(__funnelshift_l) F(__funnelshift_r) F(__funnelshift_lc) F(__funnelshift_rc) F(__sad) \
        F(__usad) F(__dp4a) F(__dp2a_lo) F(__dp2a_hi)
#define UNARY_LONG(F)                                                                            \
    F(__popcll)                                                                                  \
    F(__clzll) F(__ffsll) F(__brevll) F(__ll2float_rn) F(__ll2float_rz) F(__ll2float_rd)         \
        F(__ll2float_ru) F(__ull2float_rn) F(__ull2float_rz) F(__ull2float_rd) F(__ull2float_ru) \
            F(__ll2double_rn) F(__ll2double_rz) F(__ll2double_rd) F(__ll2double_ru)              \
                F(__ull2double_rn) F(__ull2double_rz) F(__ull2double_rd) F(__ull2double_ru)
#define BINARY_LONG(F) F(__mul64hi) F(__umul64hi) F(llmin) F(llmax) F(ullmin) F(ullmax)
#define FROM_FLOAT(F)                                                                            \
    F(__float2int_rn)                                                                            \
    F(__float2int_rz) F(__float2int_rd) F(__float2int_ru) F(__float2uint_rn) F(__float2uint_rz)  \
        F(__float2uint_rd) F(__float2uint_ru) F(__float2ll_rn) F(__float2ll_rz) F(__float2ll_rd) \
            F(__float2ll_ru) F(__float2ull_rn) F(__float2ull_rz) F(__float2ull_rd)               \
                F(__float2ull_ru) F(__float_as_int) F(__float_as_uint) F(__frcp_rn) F(__frcp_rz) \
                    F(__frcp_rd) F(__frcp_ru) F(__fsqrt_rn) F(__fsqrt_rz) F(__fsqrt_rd)          \
                        F(__fsqrt_ru) F(__frsqrt_rn) F(__saturatef)
#define FROM_DOUBLE(F)                                                                             \
    F(__double2int_rn)                                                                             \
    F(__double2int_rz) F(__double2int_rd) F(__double2int_ru) F(__double2uint_rn)                   \
        F(__double2uint_rz) F(__double2uint_rd) F(__double2uint_ru) F(__double2ll_rn)              \
            F(__double2ll_rz) F(__double2ll_rd) F(__double2ll_ru) F(__double2ull_rn)               \
                F(__double2ull_rz) F(__double2ull_rd) F(__double2ull_ru) F(__double2float_rn)      \
                    F(__double2float_rz) F(__double2float_rd) F(__double2float_ru)                 \
                        F(__double2hiint) F(__double2loint) F(__drcp_rn) F(__drcp_rz) F(__drcp_rd) \
                            F(__drcp_ru) F(__dsqrt_rn) F(__dsqrt_rz) F(__dsqrt_rd) F(__dsqrt_ru)
#define BINARY_FLOAT(F)                                                                            \
    F(__fadd_rn)                                                                                   \
    F(__fadd_rz) F(__fadd_rd) F(__fadd_ru) F(__fsub_rn) F(__fsub_rz) F(__fsub_rd) F(__fsub_ru)     \
        F(__fmul_rn) F(__fmul_rz) F(__fmul_rd) F(__fmul_ru) F(__fdiv_rn) F(__fdiv_rz) F(__fdiv_rd) \
            F(__fdiv_ru)
#define BINARY_DOUBLE(F)                                                                           \
    F(__dadd_rn)                                                                                   \
    F(__dadd_rz) F(__dadd_rd) F(__dadd_ru) F(__dsub_rn) F(__dsub_rz) F(__dsub_rd) F(__dsub_ru)     \
        F(__dmul_rn) F(__dmul_rz) F(__dmul_rd) F(__dmul_ru) F(__ddiv_rn) F(__ddiv_rz) F(__ddiv_rd) \
            F(__ddiv_ru)
#define TERNARY_FLOAT(F) F(__fmaf_rn) F(__fmaf_rz) F(__fmaf_rd) F(__fmaf_ru)
#define TERNARY_DOUBLE(F) F(__fma_rn) F(__fma_rz) F(__fma_rd) F(__fma_ru)

const unsigned WORDS = 160;
#define SUM(call)                              \
    for (unsigned i = 0; i < WORDS * 4; ++i) { \
        const unsigned j = i % 30, k = i / 30; \
        (void)j, (void)k;                      \
        sum.add(call);                         \
    }                                          \
    sum.end();
#define UNARY(f) SUM(f(word(i)))
#define BINARY(f) SUM(f(word(j), word(k)))
#define TERNARY(f) SUM(f(word(j), word(k), word(j * 5 + k)))
#define LONG(i) ((unsigned long long)word(i) << 32 | word((i) * 7 + 3))
#define WIDE(f) SUM(f(LONG(i)))
#define WIDE_BINARY(f) SUM(f(LONG(j), LONG(k)))
#define FLOAT(f) SUM(f(number(i)))
#define DOUBLE(f) SUM(f(large_number(i)))
#define FLOATS(f) SUM(f(number(j), number(k)))
#define DOUBLES(f) SUM(f(large_number(j), large_number(k)))
#define FLOATS3(f) SUM(f(number(j), number(k), number(j * 5 + k)))
#define DOUBLES3(f) SUM(f(large_number(j), large_number(k), large_number(j * 5 + k)))
#define PREDICATED(f)                                   \
    for (unsigned i = 0; i < WORDS * 4; ++i) {          \
        bool first;                                     \
        sum.add(f(word(i % 30), word(i / 30), &first)); \
        sum.add((int)first);                            \
    }                                                   \
    sum.end();
#define PREDICATED2(f)                                       \
    for (unsigned i = 0; i < WORDS * 4; ++i) {               \
        bool high, low;                                      \
        sum.add(f(word(i % 30), word(i / 30), &high, &low)); \
        sum.add(2 * high + low);                             \
    }                                                        \
    sum.end();

#define GROUPS(G)                                     \
    G(halves_and_bytes, UNARY_SIMD, UNARY)            \
    G(pairs, BINARY_SIMD, BINARY)                     \
    G(triples, TERNARY_SIMD, TERNARY)                 \
    G(predicates, PREDICATED_SIMD, PREDICATED)        \
    G(two_predicates, PREDICATED_HALVES, PREDICATED2) \
    G(integers, UNARY_INTEGER, UNARY)                 \
    G(two_integers, BINARY_INTEGER, BINARY)           \
    G(three_integers, TERNARY_INTEGER, TERNARY)       \
    G(longs, UNARY_LONG, WIDE)                        \
    G(two_longs, BINARY_LONG, WIDE_BINARY)            \
    G(floats, FROM_FLOAT, FLOAT)                      \
    G(doubles, FROM_DOUBLE, DOUBLE)                   \
    G(two_floats, BINARY_FLOAT, FLOATS)               \
    G(two_doubles, BINARY_DOUBLE, DOUBLES)            \
    G(three_floats, TERNARY_FLOAT, FLOATS3)           \
    G(three_doubles, TERNARY_DOUBLE, DOUBLES3)

#define KERNEL(name, functions, apply)      \
    __global__ void name(unsigned* sums) {  \
        Checksum sum = {sums, 0x811c9dc5u}; \
        functions(apply)                    \
    }
__global__ void various(unsigned* sums) {
    Checksum sum = {sums, 0x811c9dc5u};
    SUM(__fns(word(j), word(k) % 32, (int)(i % 9) - 4))
    SUM(__dp4a(word(j), word(k), i) + (unsigned)__dp2a_lo((int)word(j), (int)word(k), 5))
    SUM(__hiloint2double((int)word(j), (int)word(k)))
    SUM(__longlong_as_double((long long)LONG(i)))
    SUM(min((long long)word(j), (long long)LONG(k)))
}

GROUPS(KERNEL)

#define NAME(f) #f,
#define NAMES(name, functions, apply) functions(NAME)
#define RUN(name, functions, apply)                    \
    name<<<1, 1>>>(sums + done);                       \
    {                                                  \
        const char* const names[] = {functions(NAME)}; \
        done += sizeof names / sizeof *names;          \
    }

int main() {
    const char* const names[] = {GROUPS(NAMES) "__fns", "__dp4a+__dp2a_lo", "__hiloint2double",
                                 "__longlong_as_double", "min"};
    const unsigned count = sizeof names / sizeof *names;
    unsigned *sums, done = 0;
    cudaMallocManaged(&sums, sizeof(unsigned) * count);
    GROUPS(RUN)
    various<<<1, 1>>>(sums + done);
    const cudaError_t error = cudaDeviceSynchronize();
    if (error != cudaSuccess) printf("%s\n", cudaGetErrorString(error));
    for (unsigned i = 0; i < count; ++i)
        printf("%08x %s%c", sums[i], names[i], i % 4 == 3 || i + 1 == count ? '\n' : ' ');
    return 0;
}
