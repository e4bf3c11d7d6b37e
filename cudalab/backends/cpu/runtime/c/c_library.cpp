// Functions of the C library that kernels may call, too, where they mean something else.

#include <stdarg.h>

#include "order.h"

using namespace cudalab;

// In a kernel the low part of clock64(), in cycles; else the processor time of the process.
extern "C" clock_t cudalab_clock_here() __THROW {
    if (cudalab_in_kernel()) return (clock_t)cudalab_read_clock(__builtin_return_address(0));
    timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return used.tv_sec * CLOCKS_PER_SEC + used.tv_nsec / (1000000000 / CLOCKS_PER_SEC);
}

// The number of arguments that a format asks for.
static int count_arguments(const char* format) {
    int count = 0;
    for (const char* at = format; (at = strchr(at, '%')); ++at) {
        if (at[1] == '%') {
            ++at;
            continue;
        }
        ++count;
        const size_t length = strcspn(at, "diouxXeEfFgGaAcspn");
        for (size_t i = 1; i < length; ++i) count += at[i] == '*';
        at += length;
        if (!*at) break;
    }
    return count;
}

namespace cudalab {
__thread bool kernel_prints, kernel_is_silent;
}
// In a kernel the result is the number of arguments; else that of the characters.
extern "C" int cudalab_printf_here(const char* format, ...) {
    va_list values;
    va_start(values, format);
    kernel_prints = cudalab_in_kernel();
    if (kernel_prints) kernel_has_printed();
    const int length = kernel_is_silent ? 0 : vprintf(format, values);
    const bool printed_in_kernel = kernel_prints;
    kernel_prints = false;
    va_end(values);
    return printed_in_kernel && length >= 0 ? count_arguments(format) : length;
}
