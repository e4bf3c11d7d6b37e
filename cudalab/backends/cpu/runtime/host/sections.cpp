// Linked last into a program, to end the section of its device variables at the end of a page, so
// that access rights can be set for this section alone.

#include "internal.h"

extern "C" {
extern char __start_cudalab_device[], __stop_cudalab_device[];
extern char __start_cudalab_managed[], __stop_cudalab_managed[];
}

alignas(4096) __attribute__((used)) CUDALAB_DEVICE_DATA static char last_page[4096] = {};
__attribute__((used)) CUDALAB_MANAGED_DATA static char last_managed = 0;

static const bool known = [] {
    cudalab::know_variables({__start_cudalab_device, __stop_cudalab_device},
                            {__start_cudalab_managed, __stop_cudalab_managed});
    return true;
}();
