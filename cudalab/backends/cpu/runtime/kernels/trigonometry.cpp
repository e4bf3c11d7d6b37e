// sinf and cosf in kernels, in the same steps as on a GPU and so with the same bits. Host code
// keeps the host's functions, whose last bits differ.
//
// The argument minus a multiple of pi/2 goes into one of two polynomials; the multiple's last two
// bits select the polynomial and the sign. Every constant is a separate float, and every fmaf
// rounds once: neither may be written differently.

#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "internal.h"

static const float LARGEST = 105615;  // up to here pi/2 in three floats is precise enough

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

// A large argument minus `quadrant` times pi/2, with as many bits of 2/pi as are needed.
static float reduce_large(float x, int& quadrant) {
    static const uint32_t two_over_pi[] = {0x3c439041, 0xdb629599, 0xf534ddc0,
                                           0xfc2757d1, 0x4e441529, 0xa2f9836e};
    const uint32_t mantissa = bits_of(x) << 8 | 0x80000000u;
    const unsigned exponent = (bits_of(x) >> 23 & 0xff) - 128, shift = exponent & 31;
    uint32_t product[7];
    uint64_t sum = 0;
    for (int i = 0; i < 6; ++i) {
        sum += (uint64_t)two_over_pi[i] * mantissa;
        product[i] = (uint32_t)sum;
        sum >>= 32;
    }
    product[6] = (uint32_t)sum;
    const uint32_t* top = product + 6 - (exponent >> 5);
    uint32_t high = top[0], low = top[-1];
    if (shift) {
        high = high << shift | low >> (32 - shift);
        low = low << shift | top[-2] >> (32 - shift);
    }
    const uint64_t quarters = (uint64_t)high << 32 | low;  // of a turn: two bits, then a fraction
    const int64_t fraction = (int64_t)(quarters << 2);
    const bool past_half = fraction < 0, negative = x < 0;  // the nearest quarter is counted
    quadrant = (int)(quarters >> 62) + past_half;
    if (negative) quadrant = -quadrant;
    const float rest = (float)((double)(past_half ? ~fraction : fraction) * 0x1.921fb54442d19p-64);
    return past_half != negative ? -rest : rest;
}

static float sine_of(float x, int quarters) {
    int quadrant = (int)lrintf(x * 0x1.45f306p-1f);
    const float multiple = (float)quadrant;
    float rest = fmaf(multiple, -0x1.921fb4p+0f, x);
    rest = fmaf(multiple, -0x1.4442d0p-24f, rest);
    rest = fmaf(multiple, -0x1.84698ap-48f, rest);
    if (!(fabsf(x) < LARGEST)) {
        if (isinf(x) || isnan(x)) return x * 0.0f;
        rest = reduce_large(x, quadrant);
    }
    quadrant += quarters;
    const float square = rest * rest;
    float factor, polynomial;
    if (quadrant & 1) {
        factor = 1;
        polynomial = fmaf(0x1.9758p-16f, square, -0x1.6c0fdap-10f);
        polynomial = fmaf(polynomial, square, 0x1.555576p-5f);
        polynomial = fmaf(polynomial, square, -0x1.fffffep-2f);
    } else {
        factor = rest;
        polynomial = fmaf(-0x1.9a82a6p-13f, square, 0x1.110bc8p-7f);
        polynomial = fmaf(polynomial, square, -0x1.55555p-3f);
    }
    const float sine = fmaf(polynomial, fmaf(square, factor, 0.0f), factor);
    return quadrant & 2 ? fmaf(sine, -1.0f, 0.0f) : sine;
}

// The C library's function of this name, for the host code.
typedef float (*Function)(float);
static Function of_host(const char* name) {
    void* function = dlsym(RTLD_DEFAULT, name);
    // What calls no other function of the mathematical library is linked without it.
    if (!function) function = dlsym(dlopen("libm.so.6", RTLD_LAZY), name);
    return (Function)function;
}
static float sine(float x) {
    if (cudalab::cudalab_in_kernel()) return sine_of(x, 0);
    static const Function function = of_host("sinf");
    return function(x);
}
static float cosine(float x) {
    if (cudalab::cudalab_in_kernel()) return sine_of(x, 1);
    static const Function function = of_host("cosf");
    return function(x);
}

// They replace the C library's functions in this program; host code gets those by name.
#define IN_PLACE_OF(name) asm(#name) __attribute__((visibility("hidden")))
extern "C" {
float cudalab_sinf(float x) IN_PLACE_OF(sinf);
float cudalab_cosf(float x) IN_PLACE_OF(cosf);
void cudalab_sincosf(float x, float* of_sine, float* of_cosine) IN_PLACE_OF(sincosf);
}
float cudalab_sinf(float x) {
    return sine(x);
}
float cudalab_cosf(float x) {
    return cosine(x);
}
void cudalab_sincosf(float x, float* of_sine,
                     float* of_cosine) {  // compilers combine both into this
    *of_sine = sine(x);
    *of_cosine = cosine(x);
}
