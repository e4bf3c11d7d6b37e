// Copies by all threads of a group, carried out when it waits for them.
#pragma once

#include "cooperative_groups.h"

namespace cooperative_groups {

template <class Group, class T>
inline void memcpy_async(const Group& group, T* target, const T* source, size_t bytes) {
    const size_t items = bytes / sizeof(T);
    for (size_t i = group.thread_rank(); i < items; i += group.size())
        ::cudalab::cudalab_copy_async(target + i, source + i, sizeof(T), 0);
    ::cudalab::cudalab_close_copies();
}
template <class Group>
inline void wait(const Group& group, CUDALAB_HERE) {
    ::cudalab::cudalab_wait_for_copies(0);
    group.sync(file, line);
}

template <unsigned under_way, class Group>
inline void wait_prior(const Group& group, CUDALAB_HERE) {
    ::cudalab::cudalab_wait_for_copies(under_way);
    group.sync(file, line);
}

}  // namespace cooperative_groups
