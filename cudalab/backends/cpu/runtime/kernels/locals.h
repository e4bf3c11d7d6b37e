// Check mode: local variables between zones, which language/local_variables.py makes of those of
// kernels. check_locals.h knows which of their bytes have a value.
#pragma once

#include "../include/cudalab/arithmetic_results.h"

namespace cudalab {

extern "C" void cudalab_local(void* zone, size_t zone_bytes, size_t bytes, int has_value,
                              const char* name);
extern "C" void cudalab_lend(const volatile void* variable);

const unsigned LOCAL_ZONE = 64;  // bytes, on either side
template <class Type>
struct LocalElement {
    // Classes have constructors and padding.
    static const bool IS_CLASS = __is_class(Type) || __is_union(Type);
};
template <class Type, size_t n>
struct LocalElement<Type[n]> : LocalElement<Type> {};

template <class Type, bool HAS_VALUE>
struct alignas(alignof(Type)) LocalZone {
    char zone[LOCAL_ZONE];
    LocalZone(const char* name) {
        cudalab_local(this, sizeof *this, sizeof(Type), HAS_VALUE, name);
    }
};
struct LocalEnd {
    char zone[LOCAL_ZONE];
    LocalEnd() {}  // or it would be set to zero
};

// Without an initializer.
template <class Type>
struct LocalVariable {
    LocalZone<Type, LocalElement<Type>::IS_CLASS> before;
    Type value;
    LocalEnd behind;
    LocalVariable(const char* name) : before(name) {}
};
// With one.
template <class Type>
struct LocalValue {
    LocalZone<Type, true> before;
    Type value;
    LocalEnd behind;
    template <class Value>
    LocalValue(const char* name, Value&& value) : before(name), value(value) {}
};
// An aggregate.
template <class Type>
struct LocalArray {
    LocalZone<Type, true> before;
    Type value;
    LocalEnd behind;
};

// A variable that is read next, though it may have no value.
template <class Type>
inline Type& cudalab_as_it_is(Type& variable) {
    cudalab_lend(&variable);
    return variable;
}

}  // namespace cudalab
