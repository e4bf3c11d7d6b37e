// Check mode: local variables between zones, which language/local_variables.py makes of those of
// kernels. check_locals.h knows which of their bytes have a value.
#pragma once

#include "../include/cudalab/arithmetic_results.h"

namespace cudalab {

// Of a byte of a stack. A constructor may set bytes where it is not seen; of an object whose fields
// have NO_FIELD, a copy may read some without a value.
enum LocalState : unsigned char {
    NOT_KNOWN,
    BEFORE,
    BEHIND,
    CONSTRUCTED,
    NO_VALUE,
    NO_FIELD,
    HAS_VALUE
};
extern "C" void cudalab_local(void* zone, size_t zone_bytes, size_t bytes, LocalState state,
                              const char* name);
extern "C" void cudalab_padding(void* object, size_t bytes);
extern "C" void cudalab_lend(const volatile void* variable);

const unsigned LOCAL_ZONE = 64;  // bytes, on either side
template <class Type>
struct LocalElement {
    static const bool IS_CLASS = __is_class(Type) || __is_union(Type);
    static const LocalState STATE = !IS_CLASS                         ? NO_VALUE
                                    : __is_empty(Type)                ? HAS_VALUE
                                    : __has_trivial_constructor(Type) ? NO_FIELD
                                                                      : CONSTRUCTED;
};
template <class Type, size_t n>
struct LocalElement<Type[n]> : LocalElement<Type> {};

template <class Type, LocalState STATE>
struct alignas(alignof(Type)) LocalZone {
    char zone[LOCAL_ZONE];
    LocalZone(const char* name) { cudalab_local(this, sizeof *this, sizeof(Type), STATE, name); }
};
struct LocalEnd {
    char zone[LOCAL_ZONE];
    LocalEnd() {}  // or it would be set to zero
};

// Of an object whose fields have no value: what is no field needs none.
template <bool HAS_FIELDS>
struct LocalPadding {
    template <class Type>
    static void find(const volatile Type&) {}
};
#if __has_builtin(__builtin_clear_padding)
template <>
struct LocalPadding<true> {
    template <class Type>
    static void find(const volatile Type& object) {
        Type* const plain = const_cast<Type*>(&object);
        __builtin_clear_padding(plain);
        cudalab_padding(plain, sizeof object);
    }
};
#endif
// Without an initializer.
template <class Type>
struct LocalVariable {
    static const LocalState STATE = LocalElement<Type>::STATE;
    LocalZone<Type, STATE> before;
    Type value;
    LocalEnd behind;
    LocalVariable(const char* name) : before(name) {
        LocalPadding<STATE == NO_FIELD&& __is_trivially_copyable(Type)>::find(value);
    }
};
// With one.
template <class Type>
struct LocalValue {
    LocalZone<Type, HAS_VALUE> before;
    Type value;
    LocalEnd behind;
    template <class Value>
    LocalValue(const char* name, Value&& value) : before(name), value(value) {}
};
// An aggregate.
template <class Type>
struct LocalArray {
    LocalZone<Type, HAS_VALUE> before;
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
