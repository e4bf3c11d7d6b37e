// Linked last into a program: where its variables of the device are. The last page ends their
// section at the end of a page, so that access rights can be set for all of it and nothing else.

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
