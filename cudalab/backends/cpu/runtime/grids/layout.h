// How structures lie in memory that Python reads and writes, too: layout.py compares its own.
#pragma once

namespace cudalab {

struct Layout {
    unsigned values[256];
    unsigned count = 0;

    // Adds the size of a structure, and where its members begin and how long they are.
    template <class T, class... Members>
    void add(Members T::*... members) {
        alignas(T) static char memory[sizeof(T)];
        T* one = (T*)memory;
        values[count++] = sizeof(T);
        ((values[count++] = (char*)&(one->*members) - memory,
          values[count++] = sizeof(one->*members)),
         ...);
    }
};

}  // namespace cudalab
