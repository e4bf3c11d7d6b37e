// What cannot have a GPU's arithmetic ends the program, by `refuse` of launch.cpp or observe.cpp,
// or the launch of a lab's kernel, by that of runtime.cpp: statements in which the compiler refuses
// cudalab/arithmetic.h, and conversions of floating-point numbers that do not fit into an integer,
// where nothing of it is in place. The compiler calls this before it converts as the processor
// does.
#pragma once

#include <stdint.h>
#include <string.h>

namespace cudalab {

__attribute__((visibility("default"))) void cudalab_refuse_arithmetic(const char* place) {
    refuse(place,
           "the conversions or shifts of this statement cannot be given a GPU's values\nHint: "
           "split it into simpler statements, with variables of plain types");
}
static void cudalab_refuse_conversion(const char* place) {
    refuse(place,
           "a floating-point number that does not fit into an integer is converted here without a "
           "cast, and would have another value than on a GPU\nHint: write the cast: (int)x");
}

// As compilers describe a conversion to the functions of a sanitizer.
struct DescribedType {
    uint16_t kind, info;
    char name[1];  // and more of them
};
struct DescribedCast {
    const char* file;
    unsigned line, column;
    const DescribedType *from, *to;
};

// The runtime's own headers convert what fits, or what has no value on a GPU either.
static bool is_of_runtime(const char* file) {
    static const char own[] = __FILE__;
    static const size_t length = sizeof own - sizeof "grids/unfitting.h";
    return strncmp(file, own, length) == 0;
}

// Whether the processor and a GPU convert it alike: to fewer than 32 bits, by way of 32.
static bool converts_alike(const DescribedCast& cast, uintptr_t given) {
    const bool is_signed = cast.to->info & 1;
    if (cast.from->info > 64 || cast.to->info >> 1 > 4) return false;
    double value;
    if (cast.from->info == 32) {
        const uint32_t bits = (uint32_t)given;
        float narrow;
        memcpy(&narrow, &bits, sizeof narrow);
        value = narrow;
    } else {
        memcpy(&value, &given, sizeof value);
    }
    return value > (is_signed ? -2147483649.0 : -1.0) && value < 2147483648.0;
}

}  // namespace cudalab

extern "C" __attribute__((weak, visibility("default"))) void __ubsan_handle_float_cast_overflow(
    void* data, uintptr_t value) {
    using namespace cudalab;
    const DescribedCast& cast = *(const DescribedCast*)data;
    if (!cudalab_in_kernel() || is_of_runtime(cast.file) || converts_alike(cast, value)) return;
    char place[400];
    snprintf(place, sizeof place, "%s:%u", cast.file, cast.line);
    cudalab_refuse_conversion(place);
}
