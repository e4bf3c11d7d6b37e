// Check mode: the functions of the C library that set a variable, for kernels: what they set is
// seen here.
#pragma once

#include <math.h>

namespace cudalab {

#define CUDALAB_SETS(name, of, Number, Other)              \
    inline Number cudalab_##name(Number x, Other* other) { \
        Other value;                                       \
        const Number result = ::of(x, &value);             \
        *other = value;                                    \
        return result;                                     \
    }
CUDALAB_SETS(modf, modff, float, float)
CUDALAB_SETS(modf, modf, double, double)
CUDALAB_SETS(modff, modff, float, float)
CUDALAB_SETS(frexp, frexpf, float, int)
CUDALAB_SETS(frexp, frexp, double, int)
CUDALAB_SETS(frexpf, frexpf, float, int)
#undef CUDALAB_SETS

#define CUDALAB_SETS(name, of, Number)                             \
    inline Number cudalab_##name(Number x, Number y, int* other) { \
        int value;                                                 \
        const Number result = ::of(x, y, &value);                  \
        *other = value;                                            \
        return result;                                             \
    }
CUDALAB_SETS(remquo, remquof, float)
CUDALAB_SETS(remquo, remquo, double)
CUDALAB_SETS(remquof, remquof, float)
#undef CUDALAB_SETS

#define CUDALAB_SETS(name, Number)                                       \
    inline void cudalab_##name(Number x, Number* sine, Number* cosine) { \
        Number a, b;                                                     \
        ::name(x, &a, &b);                                               \
        *sine = a, *cosine = b;                                          \
    }
CUDALAB_SETS(sincos, double)
CUDALAB_SETS(sincosf, float)
#undef CUDALAB_SETS

}  // namespace cudalab
