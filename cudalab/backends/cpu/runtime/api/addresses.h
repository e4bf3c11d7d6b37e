// The meaning of an address: in which allocation or variable it lies, and who may use it. Part of
// memory.cpp.
#pragma once

#include <link.h>

#include "arena.h"
#include "list.h"

namespace cudalab {

static const Allocation* find_in(const Allocations& map, uintptr_t address, bool with_end) {
    const Allocations::Entry* next = map.upper_bound(address);
    if (next == map.begin()) return nullptr;
    const Allocation& found = next[-1].value;
    size_t offset = address - found.begin;
    return offset < found.bytes || (with_end && offset == found.bytes) ? &found : nullptr;
}
const Allocation* find_allocation(const void* address) {
    return find_in(memory.live, (uintptr_t)address, true);
}
static bool in_arena(uintptr_t address) {
    return memory.arena && address - (uintptr_t)memory.arena < memory.size;
}
static bool is_in(const Section& section, const void* address) {
    return (const char*)address >= section.begin && (const char*)address < section.end;
}
static bool is_variable(const void* address) {
    return is_in(memory.device, address) || is_in(memory.constants, address);
}
bool is_symbol(const void* address) {
    return is_variable(address) || is_in(memory.managed, address);
}
void know_variables(Section device, Section constants, Section managed) {
    memory.device = device;
    memory.constants = constants;
    memory.managed = managed;
}

Section device_variables() {
    return memory.device;
}
Section constants() {
    return memory.constants;
}
Section managed_variables() {
    return memory.managed;
}
bool is_constant(const void* address) {
    return is_in(memory.constants, address);
}

// The rights of the part of a loaded file that contains the address; 0 if none does.
static unsigned rights_of_file(const void* address) {
    return (unsigned)dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* wanted) {
            for (int i = 0; i < info->dlpi_phnum; ++i) {
                const auto& part = info->dlpi_phdr[i];
                const uintptr_t begin = info->dlpi_addr + part.p_vaddr;
                if (part.p_type == PT_LOAD && (uintptr_t)wanted - begin < part.p_memsz)
                    return (int)part.p_flags;
            }
            return 0;
        },
        (void*)address);
}
bool is_code(const void* address) {
    return rights_of_file(address) & PF_X;
}

// String literals of kernels that the program has asked about. Those of host code look the same.
static List<Section> literals;
size_t know_literal(const void* text) {
    if (rights_of_file(text) != PF_R) return 0;
    const Section literal = {(const char*)text, (const char*)text + strlen((const char*)text) + 1};
    literals.add(literal);
    return (size_t)(literal.end - literal.begin);
}
static bool is_in_literal(const void* pointer, size_t bytes) {
    for (const Section& each : literals)
        if (is_in(each, pointer)) return bytes <= (size_t)(each.end - (const char*)pointer);
    return false;
}
bool is_device_address(const void* address) {
    return in_arena((uintptr_t)address) || is_variable(address);
}

void describe_device_address(const void* pointer, char* text, size_t size) {
    uintptr_t address = (uintptr_t)pointer;
    if (is_variable(pointer)) {
        snprintf(text, size, "it belongs to a __device__ or __constant__ variable");
        return;
    }
    if (const Allocation* in = find_in(memory.live, address, false)) {
        snprintf(text, size, "it is byte %zu of the %zu allocated at %s:%d",
                 (size_t)(address - in->begin), in->bytes, in->where().file, in->where().line);
        return;
    }
    if (const Allocation* in = find_in(memory.freed, address, false)) {
        snprintf(text, size, "it is byte %zu of the %zu allocated at %s:%d, and freed since",
                 (size_t)(address - in->begin), in->bytes, in->where().file, in->where().line);
        return;
    }
    const Allocations::Entry* next = memory.live.upper_bound(address);
    if (next != memory.live.begin() && in_arena(address)) {
        const Allocation& before = next[-1].value;
        if (in_arena(before.begin)) {
            snprintf(text, size, "it is %zu bytes past the end of the %zu allocated at %s:%d",
                     (size_t)(address - before.begin - before.bytes), before.bytes,
                     before.where().file, before.where().line);
            return;
        }
    }
    if (next != memory.live.end() && in_arena(next->key)) {
        const Allocation& behind = next->value;
        snprintf(text, size, "it is %zu bytes before the %zu allocated at %s:%d",
                 (size_t)(behind.begin - address), behind.bytes, behind.where().file,
                 behind.where().line);
        return;
    }
    snprintf(text, size, "no allocation contains it");
}

const char* why_not_for_kernels(const void* pointer, char* text, size_t size) {
    if (!pointer || find_allocation(pointer)) return nullptr;
    if (is_in(memory.managed, pointer)) return nullptr;
    if (in_arena((uintptr_t)pointer)) {
        if (!find_in(memory.freed, (uintptr_t)pointer, false)) return nullptr;
        int used = snprintf(text, size, "points to freed memory: ");
        describe_device_address(pointer, text + used, size - (size_t)used);
    } else if (is_variable(pointer)) {
        snprintf(text, size,
                 "is the host's name of a __device__ or __constant__ variable: kernels use the "
                 "variable itself, or the address from cudaGetSymbolAddress");
    } else if (is_code(pointer)) {
        return nullptr;  // a device function
    } else {
        snprintf(text, size,
                 "points to host memory (%p): a kernel needs memory from cudaMalloc, "
                 "cudaMallocManaged or cudaHostAlloc",
                 pointer);
    }
    return text;
}

Word read_word(const void* word) {
    const uintptr_t address = (uintptr_t)word;
    if (address >> 32 == 0 || address >> 47) return Word::NUMBER;  // numbers, most likely
    if (is_device_address(word) || find_allocation(word) || is_in(memory.managed, word))
        return Word::DEVICE;
    unsigned char resident;
    const bool is_mapped = mincore((void*)(address / PAGE * PAGE), 1, &resident) == 0;
    return is_mapped && !rights_of_file(word) ? Word::HOST : Word::NUMBER;
}

bool reaches(const void* pointer, size_t bytes, char* why, size_t size) {
    const Allocation* in = find_in(memory.live, (uintptr_t)pointer, false);
    if (!in && is_in_literal(pointer, bytes)) return true;
    if (!in) {
        if (is_variable(pointer))
            snprintf(why, size,
                     "is a __device__ or __constant__ variable: cudaMemcpyToSymbol and "
                     "cudaMemcpyFromSymbol copy those");
        else if (in_arena((uintptr_t)pointer)) {
            int used = snprintf(why, size, "is not device memory: ");
            describe_device_address(pointer, why + used, size - (size_t)used);
        } else
            snprintf(why, size, "is host memory (%p)", pointer);
        return false;
    }
    size_t left = in->begin + in->bytes - (uintptr_t)pointer;
    if (bytes <= left) return true;
    snprintf(why, size, "has %zu bytes left of the %zu allocated at %s:%d, but %zu are copied",
             left, in->bytes, in->where().file, in->where().line, bytes);
    return false;
}

bool is_for_host(const void* pointer, char* why, size_t size) {
    if (!pointer) {
        snprintf(why, size, "is null");
        return false;
    }
    if (!is_device_address(pointer)) return true;
    int used = snprintf(why, size, "is device memory: ");
    describe_device_address(pointer, why + used, size - (size_t)used);
    return false;
}

}  // namespace cudalab
