// Check mode: the memory that a launch can reach, by pointers in its arguments, in variables, and
// in the memory that these lead to. What lies elsewhere is hit only by an index out of bounds.
#pragma once

#include "check_state.h"

// Whether an address of a whole program is the host's alone; null for a lab.
extern "C" bool (*cudalab_program_keeps)(const void* address);

namespace cudalab {

// Whether the page of an address is mapped: write(2) fails instead of crashing.
static bool is_mapped(const char* address) {
    static int pipes[2] = {-1, -1};
    if (pipes[0] < 0 && pipe(pipes) != 0) return false;
    if (write(pipes[1], address, 1) != 1) return false;
    char byte;
    return read(pipes[0], &byte, 1) == 1;
}

struct Reach {
    // A kernel of a whole program may use the region, as far as can be told.
    bool includes(unsigned number) {
        if (!run.kernel->arg_bytes || run.regions[number].guard == 0) return true;  // a variable
        if (launch != run.launches) begin();
        if (number >= known.count) return true;
        while (!known[number] && next < todo.count) follow(todo[next++]);
        return known[number] || unclear || scanned > MAX_SCANNED;
    }

    // The kernel has allocated the region itself.
    void allocated(unsigned number) {
        if (!run.kernel->arg_bytes) return;  // of a lab
        if (launch != run.launches) begin();
        while (known.count <= number) known.add(false);
        found(number);
    }

  private:
    static const size_t MAX_SCANNED = 64u << 20;  // bytes; then anything may be reached

    uint64_t launch = 0;
    List<bool> known;  // of each region
    List<unsigned> todo;
    size_t next = 0, scanned = 0;
    bool unclear = false;  // an argument points to memory of the host

    void begin() {
        launch = run.launches;
        known.clear(), todo.clear(), next = scanned = 0, unclear = false;
        for (unsigned i = 0; i < run.regions.count; ++i) known.add(false);
        for (unsigned i = 0; i < run.regions.count; ++i)
            if (run.regions[i].used && run.regions[i].guard == 0) found(i);
        const Kernel& kernel = *run.kernel;
        for (unsigned i = 0; i <= kernel.num_params; ++i) {
            scan((const char*)run.args[i], kernel.arg_bytes[i]);
            if (!(kernel.param_sizes[i] & 128)) continue;
            const char* pointer = *(char**)run.args[i];
            unclear |= pointer && !look_for(pointer) && is_mapped(pointer);
        }
    }
    void found(unsigned number) {
        if (known[number]) return;
        known[number] = true;
        todo.add(number);
    }
    void follow(unsigned number) {
        const Region& r = run.regions[number];
        if (r.used) scan(r.low, (size_t)(r.high - r.low));
    }
    // Pointers lie at multiples of their size; some begin a little before what they mean.
    void scan(const char* from, size_t bytes) {
        scanned += bytes;
        if (scanned > MAX_SCANNED) return;
        const char* const end = from + bytes;
        from += -(uintptr_t)from & 7;
        for (; from + 8 <= end; from += 8) {
            char* pointer;
            memcpy(&pointer, from, sizeof pointer);
            if (pointer) look_for(pointer);
        }
    }
    bool look_for(const char* pointer) {
        bool any = false;
        for (unsigned i = 0; i < run.regions.count; ++i) {
            const Region& r = run.regions[i];
            if (!r.used || pointer < r.low - r.guard / 2 || pointer > r.high) continue;
            found(i);
            any = true;
        }
        return any;
    }
};
static Reach reach;

}  // namespace cudalab
