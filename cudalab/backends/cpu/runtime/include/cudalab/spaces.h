// The kinds of memory that an address may lie in, for a kernel.
//
// Addresses of shared memory have 32 bits in PTX: they are offsets in a window, where dynamic
// shared memory has a place of its own. Arrays have the alignment there that they have in memory,
// so that an address may be combined with others bit by bit.
#pragma once

#pragma GCC visibility push(default)
namespace cudalab {
bool is_shared(const void* address);    // functions.cpp
bool is_constant(const void* address);  // memory.cpp
}  // namespace cudalab
#pragma GCC visibility pop

namespace cudalab {

const size_t STATIC_WINDOW = 0x20000000, DYNAMIC_WINDOW = 0x40000000, DYNAMIC_MOST = 256 << 10;
const uintptr_t WINDOW_ALIGNMENT = 4096;
const size_t STACK_MOST = 4 << 20;  // of a thread

inline char* static_window() {
    return (char*)((uintptr_t)current.static_shared & -WINDOW_ALIGNMENT);
}

inline bool is_local(const void* address) {
    return (uintptr_t)address - (uintptr_t)__builtin_frame_address(0) < STACK_MOST;
}

}  // namespace cudalab

inline unsigned __isShared(const void* address) {
    return ::cudalab::is_shared(address);
}
inline unsigned __isConstant(const void* address) {
    return ::cudalab::is_constant(address);
}
inline unsigned __isLocal(const void* address) {
    return ::cudalab::is_local(address) && !__isShared(address);
}
inline unsigned __isGlobal(const void* address) {
    return !__isShared(address) && !__isConstant(address) && !::cudalab::is_local(address);
}

inline size_t __cvta_generic_to_shared(const void* address) {
    const size_t in_dynamic = (size_t)((const char*)address - ::cudalab::current.dynamic_shared);
    if (in_dynamic < ::cudalab::DYNAMIC_MOST) return ::cudalab::DYNAMIC_WINDOW + in_dynamic;
    return (size_t)((const char*)address - ::cudalab::static_window()) + ::cudalab::STATIC_WINDOW;
}
inline void* __cvta_shared_to_generic(size_t offset) {
    if (offset >= ::cudalab::DYNAMIC_WINDOW)
        return ::cudalab::current.dynamic_shared + (offset - ::cudalab::DYNAMIC_WINDOW);
    return ::cudalab::static_window() + (ptrdiff_t)(offset - ::cudalab::STATIC_WINDOW);
}
#define CUDALAB_SPACE(space)                                       \
    inline size_t __cvta_generic_to_##space(const void* address) { \
        return (size_t)address;                                    \
    }                                                              \
    inline void* __cvta_##space##_to_generic(size_t address) {     \
        return (void*)address;                                     \
    }
CUDALAB_SPACE(global)
CUDALAB_SPACE(local)
CUDALAB_SPACE(constant)
CUDALAB_SPACE(grid_constant)
#undef CUDALAB_SPACE
