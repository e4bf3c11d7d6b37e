// Linked last into a program, to end the sections of its device variables and its constants at the
// end of a page, so that access rights can be set for these sections alone.

#include "internal.h"

extern "C" {
extern char __start_cudalab_device[], __stop_cudalab_device[];
extern char __start_cudalab_constant[], __stop_cudalab_constant[];
extern char __start_cudalab_managed[], __stop_cudalab_managed[];
}

#define LAST_PAGE alignas(cudalab::PAGE) __attribute__((used))
LAST_PAGE CUDALAB_DEVICE_DATA static char cudalab_last_page[cudalab::PAGE] = {};
LAST_PAGE CUDALAB_CONSTANT_DATA static char cudalab_last_constants[cudalab::PAGE] = {};
__attribute__((used)) CUDALAB_MANAGED_DATA static char cudalab_last_managed = 0;

CUDALAB_BEFORE_PROGRAM static void tell_of_variables() {
    cudalab::know_variables({__start_cudalab_device, __stop_cudalab_device},
                            {__start_cudalab_constant, __stop_cudalab_constant},
                            {__start_cudalab_managed, __stop_cudalab_managed});
}
