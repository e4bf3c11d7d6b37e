// The lines of the program's own files that addresses of its code come from, and crashes of host
// code. Part of launch.cpp, and of observe.cpp.
#pragma once

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <initializer_list>
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#else
static int backtrace(void**, int) {
    return 0;
}
#endif

#include "internal.h"
#include "sorted_map.h"

namespace cudalab {

// Whether a line, such as "a.cu:12", is in the code of a library that the compiler reads as text.
static bool is_library_line(const char* line) {
    return strstr(line, "/include/cccl/") || strstr(line, "/cpu/runtime/optional/cccl/");
}

// Whether a line from addr2line, such as "a.cu:12", is in one of the program's own files and not in
// the system's or this runtime's, parts of which the compiler inlines.
static bool is_own_line(const char* line) {
    for (const char* foreign : {"??", "/usr/include/", "/usr/local/include/", "/usr/lib/"})
        if (!strncmp(line, foreign, strlen(foreign))) return false;
    for (const char* foreign :
         {"/cpu/runtime/", "/include/c++/", "/include/bits/", "/lib/gcc/", "/ziglang/lib/"})
        if (strstr(line, foreign)) return false;
    return *line != 0 && !is_library_line(line);
}

// The line of the program's own files that an address of its code comes from, or "".
static void find_line(const void* pc, char* text, size_t size) {
    text[0] = 0;
    Dl_info program;
    if (!dladdr(pc, &program)) return;
    char offset[32];
    bool fixed = !strncmp((const char*)program.dli_fbase, ELFMAG, SELFMAG) &&
                 ((const ElfW(Ehdr)*)program.dli_fbase)->e_type == ET_EXEC;
    snprintf(offset, sizeof offset, "%#zx",
             (size_t)((uintptr_t)pc - (fixed ? 0 : (uintptr_t)program.dli_fbase)));
    int ends[2];
    if (pipe(ends) != 0) return;
    Dl_info own;
    const bool elsewhere = dladdr((void*)find_line, &own) && own.dli_fbase != program.dli_fbase;
    // Not by its name: another process may have compiled the program again since.
    const int program_file = open(elsewhere ? program.dli_fname : "/proc/self/exe", O_RDONLY);
    char tool[] = "addr2line", inlined[] = "-i", what[] = "-e", executable[32];
    snprintf(executable, sizeof executable, "/proc/self/fd/%d", program_file);
    char* arguments[] = {tool, inlined, what, executable, offset, nullptr};
    char said[8192];
    size_t used = 0;
    const pid_t child = vfork();  // not fork or posix_spawn: the heap may be damaged, or locked
    if (child == 0) {
        const int nowhere = open("/dev/null", O_WRONLY);
        dup2(ends[1], 1);
        dup2(nowhere, 2);
        close(ends[0]);
#if defined(__aarch64__)
        execvp("aarch64-linux-gnu-addr2line", arguments);  // where the processor is emulated
#endif
        execvp(tool, arguments);
        _exit(127);
    }
    close(ends[1]);
    close(program_file);
    ssize_t got;
    while (used + 1 < sizeof said && (got = read(ends[0], said + used, sizeof said - used - 1)) > 0)
        used += (size_t)got;
    if (child > 0) waitpid(child, nullptr, 0);
    close(ends[0]);
    said[used] = 0;
    char *rest = said, *line;
    while ((line = strsep(&rest, "\n")) && !is_own_line(line)) {  // from the innermost outwards
    }
    if (!line) return;
    if (char* more = strstr(line, " (discriminator")) *more = 0;
    char here[4096];
    size_t length = getcwd(here, sizeof here) ? strlen(here) : 0;
    if (length && !strncmp(line, here, length) && line[length] == '/') line += length + 1;
    snprintf(text, size, "%s", line);
}

// The stack of a call from a library, and the line of the program that it began with.
struct Callers {
    void* frames[24];
    int count;
    Place place;
};

const Callers* callers_in_library(Place place) {
    static SortedMap<Callers*> known;  // by a hash of the frames
    if (!place.file || !is_library_line(place.file)) return nullptr;
    Callers now;
    now.count = backtrace(now.frames, sizeof now.frames / sizeof *now.frames);
    uintptr_t hash = 0;
    for (int i = 0; i < now.count; ++i) hash = hash * 31 + (uintptr_t)now.frames[i];
    Callers*& callers = known[hash];
    if (!callers) {
        callers = (Callers*)malloc(sizeof now);
        if (!callers) abort();
        *callers = now;
        callers->place = {nullptr, 0};
    }
    return callers;
}
Place first_of(const Callers& callers) {
    Place& place = const_cast<Callers&>(callers).place;
    char line[300] = "";
    for (int i = 0; i < callers.count && !place.file && !*line; ++i)
        find_line((const char*)callers.frames[i] - 1, line, sizeof line);
    if (!place.file) {
        char* colon = strrchr(line, ':');
        if (colon) *colon = 0;
        place = {colon ? strdup(line) : "a library", colon ? atoi(colon + 1) : 0};
    }
    return place;
}

// ------------------------------------------------------------------ crashes of host code

// The instruction at which a signal arrived; null on processors that are not supported.
static const char* interrupted_at(const void* context) {
#if defined(__x86_64__)
    return (const char*)((const ucontext_t*)context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (const char*)((const ucontext_t*)context)->uc_mcontext.pc;
#else
    return (void)context, nullptr;
#endif
}

// The stack pointer at that moment, likewise.
static const char* stack_pointer(const ucontext_t& context) {
#if defined(__x86_64__)
    return (const char*)context.uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
    return (const char*)context.uc_mcontext.sp;
#else
    return (void)context, nullptr;
#endif
}

// The line of the program's own code in which a signal arrived, such as "a.cu:12: ", or "".
static void where_crashed(const void* context, char* text, size_t size) {
    text[0] = 0;
    void* frames[32];
    int count = 0;
    const char *interrupted = interrupted_at(context), *const sp = stack_pointer(
                                                           *(const ucontext_t*)context);
    bool behind = !sp;  // the frames before it belong to the handler
    if (!sp || is_code(interrupted)) {
        count = backtrace(frames, 32);
    } else {
        behind = true;  // a call through a wrong pointer: its caller is on the stack
        frames[count++] = *(void**)sp;
    }
    Dl_info own, other;  // the program's own library is the one with its variables
    if (!dladdr(device_variables().begin, &own)) return;
    for (int i = 0; i < count; ++i) {
        const char* at = (const char*)frames[i];
        behind |= at == interrupted;
        if (!behind || !dladdr(at, &other) || other.dli_fbase != own.dli_fbase) continue;
        find_line(at == interrupted ? at : at - 1, text, size - 2);
        if (!*text) continue;
        strcat(text, ": ");
        return;
    }
    text[0] = 0;
}

// Writes what host code has done to a file; the signal ends the program afterwards.
static void host_crashed(int file, int signal, siginfo_t* info, const void* context) {
    char place[300], what[300], text[900];
    const char *advice = "", *const address = (const char*)info->si_addr,
               *const sp = stack_pointer(*(const ucontext_t*)context);
    where_crashed(context, place, sizeof place);
    if (signal == SIGFPE) {
        snprintf(what, sizeof what, "host code divides an integer by zero");
    } else if (signal == SIGILL || signal == SIGTRAP) {
        snprintf(what, sizeof what,
                 "host code reaches a trap, such as the end of a function without return");
    } else if (is_device_address(address)) {
        const int used =
            snprintf(what, sizeof what, "host code dereferences the device pointer %p: ", address);
        describe_device_address(address, what + used, sizeof what - (size_t)used);
        advice =
            "         host and device memory are separate: copy with cudaMemcpy, or "
            "allocate with cudaMallocManaged\n";
    } else if (sp && address && (size_t)(address - sp + 65536) < 131072) {
        snprintf(what, sizeof what,
                 "host code has used up its stack: deep recursion, or large arrays");
    } else if (address) {
        snprintf(what, sizeof what, "host code accesses the invalid address %p", address);
    } else {  // the processor gives no address for some invalid ones
        snprintf(what, sizeof what, "host code dereferences %s pointer",
                 info->si_code == SEGV_MAPERR ? "a null" : "an invalid");
    }
    const int length = snprintf(text, sizeof text, "cudalab: %s%s\n%s", place, what, advice);
    if (write(file, text, (size_t)length) < 0) return;
}

}  // namespace cudalab
