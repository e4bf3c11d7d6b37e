// The type and the functions of a 16-bit format. No include guard: cuda_fp16.h and cuda_bf16.h
// each include this once, with the following macros.
//
//   CUDALAB_FLOAT, CUDALAB_FLOAT2, CUDALAB_RAW, CUDALAB_RAW2   the types
//   CUDALAB_FORMAT                                             Half or Bfloat16 of narrow.h
//   CUDALAB_NAME(before, after)                                a name that says the type

struct CUDALAB_RAW {
    unsigned short x;
};
struct alignas(4) CUDALAB_RAW2 {
    unsigned short x, y;
};

struct CUDALAB_FLOAT {
    CUDALAB_FLOAT() = default;
    CUDALAB_FLOAT(const CUDALAB_RAW& raw) : __x(raw.x) {}
    CUDALAB_FLOAT(float value) : __x(cudalab::CUDALAB_FORMAT::bits(value)) {}
    CUDALAB_FLOAT(double value) : CUDALAB_FLOAT(cudalab::odd_float(value)) {}
    CUDALAB_FLOAT(short value) : CUDALAB_FLOAT((float)value) {}
    CUDALAB_FLOAT(unsigned short value) : CUDALAB_FLOAT((float)value) {}
    CUDALAB_FLOAT(int value) : CUDALAB_FLOAT((double)value) {}
    CUDALAB_FLOAT(unsigned value) : CUDALAB_FLOAT((double)value) {}
    CUDALAB_FLOAT(long value) : CUDALAB_FLOAT((long long)value) {}
    CUDALAB_FLOAT(unsigned long value) : CUDALAB_FLOAT((unsigned long long)value) {}
    CUDALAB_FLOAT(long long value) : CUDALAB_FLOAT(cudalab::odd_double(value)) {}
    CUDALAB_FLOAT(unsigned long long value) : CUDALAB_FLOAT(cudalab::odd_double(value)) {}
    operator float() const { return cudalab::CUDALAB_FORMAT::value(__x); }
    operator CUDALAB_RAW() const { return {__x}; }
    CUDALAB_FLOAT& operator+=(CUDALAB_FLOAT b) { return *this = (float)*this + (float)b; }
    CUDALAB_FLOAT& operator-=(CUDALAB_FLOAT b) { return *this = (float)*this - (float)b; }
    CUDALAB_FLOAT& operator*=(CUDALAB_FLOAT b) { return *this = (float)*this * (float)b; }
    CUDALAB_FLOAT& operator/=(CUDALAB_FLOAT b) { return *this = (float)*this / (float)b; }
    CUDALAB_FLOAT& operator++() { return *this += 1.0f; }
    CUDALAB_FLOAT& operator--() { return *this -= 1.0f; }
    CUDALAB_FLOAT operator++(int) {
        const CUDALAB_FLOAT before = *this;
        return ++*this, before;
    }
    CUDALAB_FLOAT operator--(int) {
        const CUDALAB_FLOAT before = *this;
        return --*this, before;
    }

  protected:
    unsigned short __x;
};
struct alignas(4) CUDALAB_FLOAT2 {
    CUDALAB_FLOAT x, y;
    CUDALAB_FLOAT2() = default;
    CUDALAB_FLOAT2(CUDALAB_FLOAT a, CUDALAB_FLOAT b) : x(a), y(b) {}
    CUDALAB_FLOAT2(const CUDALAB_RAW2& raw) : x(CUDALAB_RAW{raw.x}), y(CUDALAB_RAW{raw.y}) {}
    operator CUDALAB_RAW2() const { return {((CUDALAB_RAW)x).x, ((CUDALAB_RAW)y).x}; }
    CUDALAB_FLOAT2& operator+=(CUDALAB_FLOAT2 b) { return x += b.x, y += b.y, *this; }
    CUDALAB_FLOAT2& operator-=(CUDALAB_FLOAT2 b) { return x -= b.x, y -= b.y, *this; }
    CUDALAB_FLOAT2& operator*=(CUDALAB_FLOAT2 b) { return x *= b.x, y *= b.y, *this; }
    CUDALAB_FLOAT2& operator/=(CUDALAB_FLOAT2 b) { return x /= b.x, y /= b.y, *this; }
};

// ------------------------------------------------------------------ conversions

inline unsigned short CUDALAB_NAME(__, _as_ushort)(CUDALAB_FLOAT a) {
    return ((CUDALAB_RAW)a).x;
}
inline short CUDALAB_NAME(__, _as_short)(CUDALAB_FLOAT a) {
    return (short)((CUDALAB_RAW)a).x;
}
inline CUDALAB_FLOAT CUDALAB_NAME(__ushort_as_, )(unsigned short bits) {
    return CUDALAB_RAW{bits};
}
inline CUDALAB_FLOAT CUDALAB_NAME(__short_as_, )(short bits) {
    return CUDALAB_RAW{(unsigned short)bits};
}
inline float CUDALAB_NAME(__, 2float)(CUDALAB_FLOAT a) {
    return (float)a;
}
inline CUDALAB_FLOAT CUDALAB_NAME(__float2, )(float a) {
    return a;
}
inline CUDALAB_FLOAT CUDALAB_NAME(__double2, )(double a) {
    return a;
}

// From float and integers. `exact` does not round where it matters: see narrow.h.
#define CUDALAB_TO_NARROW(from, T, exact)                              \
    inline CUDALAB_FLOAT CUDALAB_NAME(__##from##2, _rn)(T a) {         \
        return a;                                                      \
    }                                                                  \
    inline CUDALAB_FLOAT CUDALAB_NAME(__##from##2, _rz)(T a) {         \
        return CUDALAB_RAW{cudalab::narrowed<cudalab::CUDALAB_FORMAT>( \
            cudalab::odd_float(exact(a)), cudalab::TO_ZERO_16)};       \
    }                                                                  \
    inline CUDALAB_FLOAT CUDALAB_NAME(__##from##2, _rd)(T a) {         \
        return CUDALAB_RAW{cudalab::narrowed<cudalab::CUDALAB_FORMAT>( \
            cudalab::odd_float(exact(a)), cudalab::DOWN_16)};          \
    }                                                                  \
    inline CUDALAB_FLOAT CUDALAB_NAME(__##from##2, _ru)(T a) {         \
        return CUDALAB_RAW{cudalab::narrowed<cudalab::CUDALAB_FORMAT>( \
            cudalab::odd_float(exact(a)), cudalab::UP_16)};            \
    }
CUDALAB_TO_NARROW(float, float, (double))
CUDALAB_TO_NARROW(short, short, (double))
CUDALAB_TO_NARROW(ushort, unsigned short, (double))
CUDALAB_TO_NARROW(int, int, (double))
CUDALAB_TO_NARROW(uint, unsigned, (double))
CUDALAB_TO_NARROW(ll, long long, cudalab::odd_double)
CUDALAB_TO_NARROW(ull, unsigned long long, cudalab::odd_double)
#undef CUDALAB_TO_NARROW

#define CUDALAB_FROM_NARROW(to, T)                           \
    inline T CUDALAB_NAME(__, 2##to##_rn)(CUDALAB_FLOAT a) { \
        return cudalab::whole<T>(rintf((float)a));           \
    }                                                        \
    inline T CUDALAB_NAME(__, 2##to##_rz)(CUDALAB_FLOAT a) { \
        return cudalab::whole<T>((float)a);                  \
    }                                                        \
    inline T CUDALAB_NAME(__, 2##to##_rd)(CUDALAB_FLOAT a) { \
        return cudalab::whole<T>(floorf((float)a));          \
    }                                                        \
    inline T CUDALAB_NAME(__, 2##to##_ru)(CUDALAB_FLOAT a) { \
        return cudalab::whole<T>(ceilf((float)a));           \
    }
CUDALAB_FROM_NARROW(char, signed char)
CUDALAB_FROM_NARROW(uchar, unsigned char)
CUDALAB_FROM_NARROW(short, short)
CUDALAB_FROM_NARROW(ushort, unsigned short)
CUDALAB_FROM_NARROW(int, int)
CUDALAB_FROM_NARROW(uint, unsigned)
CUDALAB_FROM_NARROW(ll, long long)
CUDALAB_FROM_NARROW(ull, unsigned long long)
#undef CUDALAB_FROM_NARROW

// ------------------------------------------------------------------ pairs

inline CUDALAB_FLOAT2 CUDALAB_NAME(make_, 2)(CUDALAB_FLOAT a, CUDALAB_FLOAT b) {
    return {a, b};
}
inline CUDALAB_FLOAT2 CUDALAB_NAME(__halves2, 2)(CUDALAB_FLOAT a, CUDALAB_FLOAT b) {
    return {a, b};
}
inline CUDALAB_FLOAT2 CUDALAB_NAME(__float2, 2_rn)(float a) {
    return {a, a};
}
inline CUDALAB_FLOAT2 CUDALAB_NAME(__floats2, 2_rn)(float a, float b) {
    return {a, b};
}
inline CUDALAB_FLOAT2 CUDALAB_NAME(__float22, 2_rn)(float2 a) {
    return {a.x, a.y};
}
inline float2 CUDALAB_NAME(__, 22float2)(CUDALAB_FLOAT2 a) {
    return {(float)a.x, (float)a.y};
}
inline CUDALAB_FLOAT CUDALAB_NAME(__low2, )(CUDALAB_FLOAT2 a) {
    return a.x;
}
inline CUDALAB_FLOAT CUDALAB_NAME(__high2, )(CUDALAB_FLOAT2 a) {
    return a.y;
}
inline CUDALAB_FLOAT2 CUDALAB_NAME(__low2, 2)(CUDALAB_FLOAT2 a) {
    return {a.x, a.x};
}
inline CUDALAB_FLOAT2 CUDALAB_NAME(__high2, 2)(CUDALAB_FLOAT2 a) {
    return {a.y, a.y};
}
inline CUDALAB_FLOAT2 CUDALAB_NAME(__lows2, 2)(CUDALAB_FLOAT2 a, CUDALAB_FLOAT2 b) {
    return {a.x, b.x};
}
inline CUDALAB_FLOAT2 CUDALAB_NAME(__highs2, 2)(CUDALAB_FLOAT2 a, CUDALAB_FLOAT2 b) {
    return {a.y, b.y};
}
inline CUDALAB_FLOAT2 __lowhigh2highlow(CUDALAB_FLOAT2 a) {
    return {a.y, a.x};
}
inline float __low2float(CUDALAB_FLOAT2 a) {
    return (float)a.x;
}
inline float __high2float(CUDALAB_FLOAT2 a) {
    return (float)a.y;
}

// ------------------------------------------------------------------ comparisons

inline bool __hisnan(CUDALAB_FLOAT a) {
    return (float)a != (float)a;
}
inline int __hisinf(CUDALAB_FLOAT a) {
    return (float)a == INFINITY ? 1 : (float)a == -INFINITY ? -1 : 0;
}
inline CUDALAB_FLOAT2 __hisnan2(CUDALAB_FLOAT2 a) {
    return {(float)__hisnan(a.x), (float)__hisnan(a.y)};
}
// Ordered, and unordered: true where one side is not a number.
#define CUDALAB_COMPARE(name, ...)                                                            \
    inline bool __h##name(CUDALAB_FLOAT a_, CUDALAB_FLOAT b_) {                               \
        const float a = a_, b = b_;                                                           \
        return __VA_ARGS__;                                                                   \
    }                                                                                         \
    inline CUDALAB_FLOAT2 __h##name##2(CUDALAB_FLOAT2 a, CUDALAB_FLOAT2 b) {                  \
        return {(float)__h##name(a.x, b.x), (float)__h##name(a.y, b.y)};                      \
    }                                                                                         \
    inline unsigned __h##name##2_mask(CUDALAB_FLOAT2 a, CUDALAB_FLOAT2 b) {                   \
        return (__h##name(a.x, b.x) ? 0xffffu : 0) | (__h##name(a.y, b.y) ? 0xffff0000u : 0); \
    }                                                                                         \
    inline bool __hb##name##2(CUDALAB_FLOAT2 a, CUDALAB_FLOAT2 b) {                           \
        return __h##name(a.x, b.x) && __h##name(a.y, b.y);                                    \
    }
CUDALAB_COMPARE(eq, a == b)
CUDALAB_COMPARE(ne, a<b || a> b)
CUDALAB_COMPARE(lt, a < b)
CUDALAB_COMPARE(le, a <= b)
CUDALAB_COMPARE(gt, a > b)
CUDALAB_COMPARE(ge, a >= b)
CUDALAB_COMPARE(equ, !(a < b || a > b))
CUDALAB_COMPARE(neu, a != b)
CUDALAB_COMPARE(ltu, !(a >= b))
CUDALAB_COMPARE(leu, !(a > b))
CUDALAB_COMPARE(gtu, !(a <= b))
CUDALAB_COMPARE(geu, !(a < b))
#undef CUDALAB_COMPARE
#define CUDALAB_COMPARE(op)                                       \
    inline bool operator op(CUDALAB_FLOAT a, CUDALAB_FLOAT b) {   \
        return (float)a op(float) b;                              \
    }                                                             \
    inline bool operator op(CUDALAB_FLOAT2 a, CUDALAB_FLOAT2 b) { \
        return a.x op b.x && a.y op b.y;                          \
    }
CUDALAB_COMPARE(==)
CUDALAB_COMPARE(!=)
CUDALAB_COMPARE(<)
CUDALAB_COMPARE(<=)
CUDALAB_COMPARE(>)
CUDALAB_COMPARE(>=)
#undef CUDALAB_COMPARE

// ------------------------------------------------------------------ arithmetic

// A function of one, two or three numbers, and the same for pairs.
#define CUDALAB_ARITHMETIC1(name, name2, ...)       \
    inline CUDALAB_FLOAT name(CUDALAB_FLOAT a) {    \
        return __VA_ARGS__;                         \
    }                                               \
    inline CUDALAB_FLOAT2 name2(CUDALAB_FLOAT2 a) { \
        return {name(a.x), name(a.y)};              \
    }
#define CUDALAB_ARITHMETIC2(name, name2, ...)                         \
    inline CUDALAB_FLOAT name(CUDALAB_FLOAT a, CUDALAB_FLOAT b) {     \
        return __VA_ARGS__;                                           \
    }                                                                 \
    inline CUDALAB_FLOAT2 name2(CUDALAB_FLOAT2 a, CUDALAB_FLOAT2 b) { \
        return {name(a.x, b.x), name(a.y, b.y)};                      \
    }
#define CUDALAB_ARITHMETIC3(name, name2, ...)                                           \
    inline CUDALAB_FLOAT name(CUDALAB_FLOAT a, CUDALAB_FLOAT b, CUDALAB_FLOAT c) {      \
        return __VA_ARGS__;                                                             \
    }                                                                                   \
    inline CUDALAB_FLOAT2 name2(CUDALAB_FLOAT2 a, CUDALAB_FLOAT2 b, CUDALAB_FLOAT2 c) { \
        return {name(a.x, b.x, c.x), name(a.y, b.y, c.y)};                              \
    }

CUDALAB_ARITHMETIC2(operator+, operator+, (float)a + (float)b)
CUDALAB_ARITHMETIC2(operator-, operator-, (float)a - (float)b)
CUDALAB_ARITHMETIC2(operator*, operator*, (float)a*(float)b)
CUDALAB_ARITHMETIC2(operator/, operator/, (float)a / (float)b)
CUDALAB_ARITHMETIC1(__hneg, __hneg2, CUDALAB_RAW{(unsigned short)(((CUDALAB_RAW)a).x ^ 0x8000)})
CUDALAB_ARITHMETIC1(__habs, __habs2, CUDALAB_RAW{(unsigned short)(((CUDALAB_RAW)a).x & 0x7fff)})
inline CUDALAB_FLOAT operator+(CUDALAB_FLOAT a) {
    return a;
}
inline CUDALAB_FLOAT operator-(CUDALAB_FLOAT a) {
    return __hneg(a);
}
inline CUDALAB_FLOAT2 operator-(CUDALAB_FLOAT2 a) {
    return __hneg2(a);
}

CUDALAB_ARITHMETIC2(__hadd, __hadd2, a + b)
CUDALAB_ARITHMETIC2(__hsub, __hsub2, a - b)
CUDALAB_ARITHMETIC2(__hmul, __hmul2, a* b)
CUDALAB_ARITHMETIC2(__hdiv, __h2div, a / b)
CUDALAB_ARITHMETIC2(__hadd_rn, __hadd2_rn, a + b)
CUDALAB_ARITHMETIC2(__hsub_rn, __hsub2_rn, a - b)
CUDALAB_ARITHMETIC2(__hmul_rn, __hmul2_rn, a* b)
CUDALAB_ARITHMETIC2(__hadd_sat, __hadd2_sat, __saturatef(a + b))
CUDALAB_ARITHMETIC2(__hsub_sat, __hsub2_sat, __saturatef(a - b))
CUDALAB_ARITHMETIC2(__hmul_sat, __hmul2_sat, __saturatef(a* b))
CUDALAB_ARITHMETIC3(__hfma, __hfma2, cudalab::odd_fma((float)a, (float)b, (float)c))
CUDALAB_ARITHMETIC3(__hfma_sat, __hfma2_sat, __saturatef(__hfma(a, b, c)))
CUDALAB_ARITHMETIC3(__hfma_relu, __hfma2_relu,
                    (float)__hfma(a, b, c) < 0 ? CUDALAB_FLOAT(0.0f) : __hfma(a, b, c))
// The product of two complex numbers, plus a third.
inline CUDALAB_FLOAT2 __hcmadd(CUDALAB_FLOAT2 a, CUDALAB_FLOAT2 b, CUDALAB_FLOAT2 c) {
    return {__hfma(-a.y, b.y, __hfma(a.x, b.x, c.x)), __hfma(a.y, b.x, __hfma(a.x, b.y, c.y))};
}

// -0 is less than 0.
CUDALAB_ARITHMETIC2(__hmax, __hmax2,
                    __hisnan(a)                                              ? b
                    : __hisnan(b) || a > b || (a == b && !signbit((float)a)) ? a
                                                                             : b)
CUDALAB_ARITHMETIC2(__hmin, __hmin2,
                    __hisnan(a)                                             ? b
                    : __hisnan(b) || a < b || (a == b && signbit((float)a)) ? a
                                                                            : b)
CUDALAB_ARITHMETIC2(__hmax_nan, __hmax2_nan,
                    __hisnan(a) || __hisnan(b) ? CUDALAB_FLOAT(CUDALAB_RAW{0x7fff}) : __hmax(a, b))
CUDALAB_ARITHMETIC2(__hmin_nan, __hmin2_nan,
                    __hisnan(a) || __hisnan(b) ? CUDALAB_FLOAT(CUDALAB_RAW{0x7fff}) : __hmin(a, b))

CUDALAB_ARITHMETIC1(hceil, h2ceil, ceilf((float)a))
CUDALAB_ARITHMETIC1(hfloor, h2floor, floorf((float)a))
CUDALAB_ARITHMETIC1(hrint, h2rint, rintf((float)a))
CUDALAB_ARITHMETIC1(htrunc, h2trunc, truncf((float)a))
CUDALAB_ARITHMETIC1(hsqrt, h2sqrt, sqrtf((float)a))
CUDALAB_ARITHMETIC1(hrsqrt, h2rsqrt, 1.0 / sqrt((double)(float)a))
CUDALAB_ARITHMETIC1(hrcp, h2rcp, 1.0f / (float)a)
CUDALAB_ARITHMETIC1(hexp, h2exp, expf((float)a))
CUDALAB_ARITHMETIC1(hexp2, h2exp2, exp2f((float)a))
CUDALAB_ARITHMETIC1(hexp10, h2exp10, exp10f((float)a))
CUDALAB_ARITHMETIC1(hlog, h2log, logf((float)a))
CUDALAB_ARITHMETIC1(hlog2, h2log2, log2f((float)a))
CUDALAB_ARITHMETIC1(hlog10, h2log10, log10f((float)a))
CUDALAB_ARITHMETIC1(hsin, h2sin, sin((double)(float)a))
CUDALAB_ARITHMETIC1(hcos, h2cos, cos((double)(float)a))
CUDALAB_ARITHMETIC1(htanh, h2tanh, tanhf((float)a))
CUDALAB_ARITHMETIC1(htanh_approx, h2tanh_approx, tanhf((float)a))
#undef CUDALAB_ARITHMETIC1
#undef CUDALAB_ARITHMETIC2
#undef CUDALAB_ARITHMETIC3

// ------------------------------------------------------------------ atomics

inline CUDALAB_FLOAT atomicAdd(CUDALAB_FLOAT* address, CUDALAB_FLOAT value) {
    return cudalab_atomic(address, [value](CUDALAB_FLOAT old) { return old + value; });
}
inline CUDALAB_FLOAT2 atomicAdd(CUDALAB_FLOAT2* address, CUDALAB_FLOAT2 value) {
    return cudalab_atomic(address, [value](CUDALAB_FLOAT2 old) { return old + value; });
}

#undef CUDALAB_FLOAT
#undef CUDALAB_FLOAT2
#undef CUDALAB_RAW
#undef CUDALAB_RAW2
#undef CUDALAB_FORMAT
#undef CUDALAB_NAME
