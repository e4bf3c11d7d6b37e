// Mathematical functions of CUDA that a host's library lacks. Those of one float are computed in
// double and rounded.
#pragma once

#include "cudalab_cpu.h"

namespace cudalab {

constexpr double PI = 3.14159265358979323846;
constexpr double REST_OF_PI = 1.2246467991473532e-16;  // pi minus PI
constexpr double TWO_BY_ROOT_PI = 1.1283791670955126;

// The sine of pi times x, where |x| is at most 1/4, and the cosine.
inline double sine_of_turn(double x) {
    return sin(fma(x, PI, x * REST_OF_PI));
}
inline double cosine_of_turn(double x) {
    return cos(x * PI);
}

// exp(x * x), though the rounded square would be wrong in the exponent.
inline double exp_of_square(double x, double sign) {
    const double square = x * x, error = fma(x, x, -square);
    return exp(sign * square) * (1 + sign * error);
}

// The argument of erf or erfc whose value is given, close to `y`; Halley's method.
inline double refine_inverse(double y, double error) {
    const double step = error / (TWO_BY_ROOT_PI * exp(-y * y));
    return y - step / (1 + y * step);
}

// A modified Bessel function of the first kind and of the given order, 0 or 1.
inline double bessel_i(int order, double x) {
    const double size = fabs(x), sign = order ? copysign(1.0, x) : 1;
    if (size <= 20) {
        const double quarter = x * x / 4;
        double term = order ? size / 2 : 1, sum = term;
        for (int k = 1; term > sum * 1e-17; ++k) sum += term *= quarter / ((double)k * (k + order));
        return sign * sum;
    }
    if (size == (double)INFINITY || x != x) return sign * x * x;
    double term = 1, sum = 1;
    for (int k = 1; k < 30 && fabs(term) > 1e-17; ++k) {
        const double odd = 2 * k - 1;
        sum += term *= (odd * odd - 4 * order) / (k * 8 * size);
    }
    const double root = exp(size / 2);  // its square may be too large
    return sign * (root / sqrt(2 * PI * size) * sum * root);
}

}  // namespace cudalab

// ------------------------------------------------------------------ powers and roots

inline double rcbrt(double x) {
    return 1 / cbrt(x);
}
inline double norm3d(double a, double b, double c) {
    return hypot(hypot(a, b), c);
}
inline double norm4d(double a, double b, double c, double d) {
    return hypot(hypot(a, b), hypot(c, d));
}
inline double norm(int count, const double* p) {
    double result = 0;
    for (int i = 0; i < count; ++i) result = hypot(result, p[i]);
    return result;
}
inline float norm3df(float a, float b, float c) {
    return (float)norm3d(a, b, c);
}
inline float norm4df(float a, float b, float c, float d) {
    return (float)norm4d(a, b, c, d);
}
inline float normf(int count, const float* p) {
    double result = 0;
    for (int i = 0; i < count; ++i) result = hypot(result, (double)p[i]);
    return (float)result;
}
inline double rhypot(double a, double b) {
    return 1 / hypot(a, b);
}
inline float rhypotf(float a, float b) {
    return (float)rhypot(a, b);
}
inline double rnorm3d(double a, double b, double c) {
    return 1 / norm3d(a, b, c);
}
inline float rnorm3df(float a, float b, float c) {
    return (float)rnorm3d(a, b, c);
}
inline double rnorm4d(double a, double b, double c, double d) {
    return 1 / norm4d(a, b, c, d);
}
inline float rnorm4df(float a, float b, float c, float d) {
    return (float)rnorm4d(a, b, c, d);
}
inline double rnorm(int count, const double* p) {
    return 1 / norm(count, p);
}
inline float rnormf(int count, const float* p) {
    double result = 0;
    for (int i = 0; i < count; ++i) result = hypot(result, (double)p[i]);
    return (float)(1 / result);
}
inline float fdividef(float a, float b) {
    return a / b;
}

// ------------------------------------------------------------------ multiples of pi

inline double sinpi(double x) {
    const double turns = remainder(x, 2), size = fabs(turns);
    if (size <= 0.25 || x != x || turns != turns) return ::cudalab::sine_of_turn(turns);
    if (size == 1) return copysign(0.0, x);
    const double result =
        size < 0.75 ? ::cudalab::cosine_of_turn(0.5 - size) : ::cudalab::sine_of_turn(1 - size);
    return copysign(result, turns);
}
inline double cospi(double x) {
    const double size = fabs(remainder(x, 2));
    if (size <= 0.25) return ::cudalab::cosine_of_turn(size);
    return size < 0.75 ? ::cudalab::sine_of_turn(0.5 - size) : -::cudalab::cosine_of_turn(1 - size);
}
inline float sinpif(float x) {
    return (float)sinpi(x);
}
inline float cospif(float x) {
    return (float)cospi(x);
}
inline void sincospif(float x, float* s, float* c) {
    *s = sinpif(x);
    *c = cospif(x);
}
inline void sincospi(double x, double* s, double* c) {
    *s = sinpi(x);
    *c = cospi(x);
}

// ------------------------------------------------------------------ the normal distribution

inline double erfcx(double x) {
    if (x < 10) return ::cudalab::exp_of_square(x, 1) * erfc(x);
    const double square = 2 * x * x;
    double term = 1, sum = 1;
    for (int k = 1; k < 20 && fabs(term) > 1e-17; ++k) sum += term *= -(2 * k - 1) / square;
    return sum * (::cudalab::TWO_BY_ROOT_PI / 2) / x;
}
inline float erfcxf(float x) {
    return (float)erfcx(x);
}
inline double erfcinv(double x) {
    if (!(x > 0 && x < 2))
        return x == 0 ? (double)INFINITY : x == 2 ? -(double)INFINITY : (double)NAN;
    if (x == 1) return 0;
    // The tail: a first approximation by the leading term of the asymptotic series.
    const double tail = x < 1 ? x : 2 - x;
    double y;
    if (tail < 0.5) {
        const double t = sqrt(-2 * log(tail / 2));
        y = (t - (2.30753 + t * 0.27061) / (1 + t * (0.99229 + t * 0.04481))) * 0.70710678118654752;
        for (int i = 0; i < 3; ++i) y = ::cudalab::refine_inverse(y, tail - erfc(y));
        return x < 1 ? y : -y;
    }
    const double rest = 1 - x;  // exact
    y = rest * 0.88622692545275801;
    for (int i = 0; i < 4; ++i) y = ::cudalab::refine_inverse(y, erf(y) - rest);
    return y;
}
inline float erfcinvf(float x) {
    return (float)erfcinv(x);
}
inline double erfinv(double x) {
    const double size = fabs(x);
    if (size > 0.5) return copysign(erfcinv(1 - size), x);
    double y = x * 0.88622692545275801;
    if (size < 1e-9) return y;
    for (int i = 0; i < 3; ++i) y = ::cudalab::refine_inverse(y, erf(y) - x);
    return y;
}
inline float erfinvf(float x) {
    return (float)erfinv(x);
}
inline double normcdf(double x) {
    const double root = 0.70710678118654757, rest_of_root = -4.8336466567264567e-17;
    const double y = -x * root, error = fma(-x, root, -y) - x * rest_of_root;
    if (fabs(x) > 40) return x < 0 ? 0 : 1;
    return 0.5 * (erfc(y) - error * ::cudalab::TWO_BY_ROOT_PI * exp(-y * y));
}
inline float normcdff(float x) {
    return (float)normcdf(x);
}
inline double normcdfinv(double x) {
    return 0 - 1.4142135623730951 * erfcinv(2 * x);
}
inline float normcdfinvf(float x) {
    return (float)normcdfinv(x);
}

// ------------------------------------------------------------------ Bessel functions

inline double cyl_bessel_i0(double x) {
    return ::cudalab::bessel_i(0, x);
}
inline double cyl_bessel_i1(double x) {
    return ::cudalab::bessel_i(1, x);
}
inline float cyl_bessel_i0f(float x) {
    return (float)cyl_bessel_i0(x);
}
inline float cyl_bessel_i1f(float x) {
    return (float)cyl_bessel_i1(x);
}
