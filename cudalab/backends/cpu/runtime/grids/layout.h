// How structures lie in memory that Python reads and writes, too: layout.py compares its own.
#pragma once

#include <type_traits>

namespace cudalab {

// What a member is; of an array, what its elements are. layout.py has the same order.
enum class MemberType : unsigned { STRUCTURE, POINTER, BOOL, CHAR, FLOATING, SIGNED, UNSIGNED };

template <class Member>
constexpr MemberType type_of() {
    typedef std::remove_cv_t<std::remove_all_extents_t<Member>> T;
    return std::is_class_v<T>            ? MemberType::STRUCTURE
           : std::is_pointer_v<T>        ? MemberType::POINTER
           : std::is_same_v<T, bool>     ? MemberType::BOOL
           : std::is_same_v<T, char>     ? MemberType::CHAR
           : std::is_floating_point_v<T> ? MemberType::FLOATING
           : std::is_signed_v<T>         ? MemberType::SIGNED
                                         : MemberType::UNSIGNED;
}

struct Layout {
    unsigned values[1024];
    unsigned count = 0;

    // Adds the size of a structure; and where its members begin, how long they are, and what.
    template <class T, class... Members>
    void add(Members T::*... members) {
        alignas(T) static char memory[sizeof(T)];
        T* one = (T*)memory;
        values[count++] = sizeof(T);
        ((values[count++] = (char*)&(one->*members) - memory,
          values[count++] = sizeof(one->*members), values[count++] = (unsigned)type_of<Members>()),
         ...);
    }
};

}  // namespace cudalab
