// Copies by all threads of a group, complete when `wait` returns.
#pragma once

#include "../cooperative_groups.h"

namespace cooperative_groups {

template <class Group, class T>
inline void memcpy_async(const Group& group, T* target, const T* source, size_t bytes) {
    const size_t items = bytes / sizeof(T);
    for (size_t i = group.thread_rank(); i < items; i += group.size()) target[i] = source[i];
}
template <class Group>
inline void wait(const Group& group, CUDALAB_HERE) {
    group.sync(file, line);
}

}  // namespace cooperative_groups
