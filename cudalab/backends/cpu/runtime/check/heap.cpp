// In check mode: the functions by which a program's own code allocates, copies and sets memory, and
// reads and writes files, so that it is observed there, too. They are hidden: others use those of
// the C library.

#include <dlfcn.h>

#include "internal.h"

extern "C" {
// The runtime of check mode (check.cpp).
void cudalab_moved(void* to, const void* from, size_t bytes);
void cudalab_set(void* p, int value, size_t bytes);
void cudalab_host_uses(const void* p, size_t bytes, int stores);
}

// Declares a function of this file that takes the place of the one called `symbol`.
#define HIDES(symbol) __asm__(symbol) __attribute__((visibility("hidden")))
// That other function; without a C++ library `new` is `malloc`.
template <class Type>
static Type* original(const char* symbol, const char* otherwise) {
    void* found = dlsym(RTLD_NEXT, symbol);
    return (Type*)(found ? found : dlsym(RTLD_NEXT, otherwise));
}

typedef void* Allocate(size_t bytes);

static void* observed(Allocate* allocate, size_t bytes) {
    void* memory = allocate(bytes);
    if (memory && cudalab::cudalab_in_kernel()) cudalab::heap_grows(memory, bytes);
    return memory;
}
static void observed(cudalab::HeapFree* release, void* memory) {
    if (memory && cudalab::cudalab_in_kernel()) return cudalab::heap_shrinks(memory, release);
    release(memory);
}

#define ALLOCATES(name, symbol)                                               \
    void* name(size_t bytes) HIDES(symbol);                                   \
    void* name(size_t bytes) {                                                \
        static Allocate* const hidden = original<Allocate>(symbol, "malloc"); \
        return observed(hidden, bytes);                                       \
    }
#define FREES(name, symbol)                                                      \
    void name(void* memory) HIDES(symbol);                                       \
    void name(void* memory) {                                                    \
        static auto* const hidden = original<cudalab::HeapFree>(symbol, "free"); \
        observed(hidden, memory);                                                \
    }
ALLOCATES(allocate, "malloc")
ALLOCATES(allocate_object, "_Znwm")
ALLOCATES(allocate_array, "_Znam")
FREES(release, "free")
FREES(release_object, "_ZdlPv")
FREES(release_array, "_ZdaPv")
// With the size.
void release_known_object(void* memory, size_t) HIDES("_ZdlPvm");
void release_known_object(void* memory, size_t) {
    release_object(memory);
}
void release_known_array(void* memory, size_t) HIDES("_ZdaPvm");
void release_known_array(void* memory, size_t) {
    release_array(memory);
}

void* copy(void* to, const void* from, size_t bytes) HIDES("memcpy");
void* copy(void* to, const void* from, size_t bytes) {
    cudalab_moved(to, from, bytes);
    return to;
}
void* move(void* to, const void* from, size_t bytes) HIDES("memmove");
void* move(void* to, const void* from, size_t bytes) {
    cudalab_moved(to, from, bytes);
    return to;
}
void* set(void* p, int value, size_t bytes) HIDES("memset");
void* set(void* p, int value, size_t bytes) {
    cudalab_set(p, value, bytes);
    return p;
}
size_t write_items(const void* from, size_t bytes, size_t count, FILE* file) HIDES("fwrite");
size_t write_items(const void* from, size_t bytes, size_t count, FILE* file) {
    static auto* const hidden = original<decltype(fwrite)>("fwrite", "fwrite");
    cudalab_host_uses(from, bytes * count, false);
    return hidden(from, bytes, count, file);
}
size_t read_items(void* to, size_t bytes, size_t count, FILE* file) HIDES("fread");
size_t read_items(void* to, size_t bytes, size_t count, FILE* file) {
    static auto* const hidden = original<decltype(fread)>("fread", "fread");
    cudalab_host_uses(to, bytes * count, true);
    return hidden(to, bytes, count, file);
}
