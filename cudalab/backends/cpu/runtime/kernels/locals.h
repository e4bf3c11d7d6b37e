// Check mode: local variables between zones, which language/local_variables.py makes of those of
// kernels. check_locals.h knows which of their bytes have a value.
#pragma once

#include "../include/cudalab/arithmetic_results.h"

namespace cudalab {

// Of a byte of a stack. What has no value is filled with UNSET; of an object, a copy may read some
// of that. COPIED: it came with others, perhaps from where it had no value, or a constructor was to
// set it: it has a value if it is not UNSET any more. CONSTRUCTED: likewise, but it was not filled.
// HANDED_ON: COPIED, but a number. FILLED: of what begins, which is COPIED then.
enum LocalState : unsigned char {
    NOT_KNOWN,
    BEFORE,
    BEHIND,
    COPIED,
    CONSTRUCTED,
    HANDED_ON,
    NO_VALUE,
    NO_FIELD,
    HAS_VALUE,
    FILLED
};
extern "C" void cudalab_local(void* zone, size_t zone_bytes, size_t bytes, LocalState state,
                              const char* name);
extern "C" void cudalab_local_without_zones(void* variable, size_t bytes, LocalState state,
                                            const char* name);
extern "C" void cudalab_lend(const volatile void* variable);

const unsigned LOCAL_ZONE = 64;  // bytes, on either side
template <class Type>
struct LocalElement {
    static const bool IS_CLASS = __is_class(Type) || __is_union(Type);
    static const LocalState STATE = !IS_CLASS                         ? NO_VALUE
                                    : __is_empty(Type)                ? HAS_VALUE
                                    : __has_trivial_constructor(Type) ? NO_FIELD
                                                                      : FILLED;
    static const LocalState GIVEN = !IS_CLASS || __is_empty(Type)     ? HAS_VALUE
                                    : __has_trivial_constructor(Type) ? COPIED
                                                                      : CONSTRUCTED;
};
template <class Type, size_t n>
struct LocalElement<Type[n]> : LocalElement<Type> {};

template <class Type, LocalState STATE, size_t ALIGN = alignof(Type)>
struct alignas(ALIGN) LocalZone {
    char zone[LOCAL_ZONE];
    LocalZone(const char* name) { cudalab_local(this, sizeof *this, sizeof(Type), STATE, name); }
};
struct LocalEnd {
    char zone[LOCAL_ZONE];
    LocalEnd() {}  // or it would be set to zero
};

// Of an object whose fields have no value: what is no field is set, as nobody else does.
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
        cudalab_lend(plain);  // what lies around fields of bits is read
        __builtin_clear_padding(plain);
        cudalab_lend(nullptr);
    }
};
#endif
// Without an initializer.
template <class Type, size_t ALIGN = alignof(Type)>
struct LocalVariable {
    static const LocalState STATE = LocalElement<Type>::STATE;
    LocalZone<Type, STATE, ALIGN> before;
    Type value;
    LocalEnd behind;
    LocalVariable(const char* name) : before(name) {
        LocalPadding<STATE == NO_FIELD&& __is_trivially_copyable(Type)>::find(value);
    }
};
// With one.
template <class Type>
struct LocalValue {
    LocalZone<Type, LocalElement<Type>::GIVEN> before;
    Type value;
    LocalEnd behind;
    template <class Value>
    LocalValue(const char* name, Value&& value) : before(name), value(value) {}
};
// By a constructor.
template <class Type, size_t ALIGN = alignof(Type)>
struct LocalObject {
    LocalZone<Type, FILLED, ALIGN> before;
    Type value;
    LocalEnd behind;
    template <class... Values>
    LocalObject(const char* name, Values&&... values)
        : before(name), value(static_cast<Values&&>(values)...) {}
};
// An aggregate, or an object whose initializer makes it in its place, perhaps before all else.
template <class Type, size_t ALIGN = alignof(Type)>
struct LocalArray {
    LocalZone<Type, LocalElement<Type>::GIVEN, ALIGN> before;
    Type value;
    LocalEnd behind;
};
#ifdef __cpp_deduction_guides
// Of the type of its initializer.
template <class Type>
struct LocalAuto {
    LocalZone<Type, LocalElement<Type>::GIVEN> before;
    Type value;
    LocalEnd behind;
};
struct LocalName {
    LocalName(const char*);
};
template <class Type>
LocalAuto(LocalName, Type) -> LocalAuto<Type>;
#endif
// One that a jump may lead past, and a parameter: what comes before and behind it is not known.
template <class Type>
inline void cudalab_begins(const char* name, Type& variable) {
    const LocalState state = LocalElement<Type>::STATE;
    if (state != FILLED)
        cudalab_local_without_zones((void*)&variable, sizeof variable, state, name);
}
template <class Type>
inline void cudalab_given(const char* name, Type& parameter) {
    if (LocalElement<Type>::GIVEN != HAS_VALUE)
        cudalab_local_without_zones((void*)&parameter, sizeof parameter, COPIED, name);
}

// A variable that is read next, though it may have no value.
template <class Type>
inline Type& cudalab_as_it_is(Type& variable) {
    cudalab_lend(&variable);
    return variable;
}

}  // namespace cudalab
