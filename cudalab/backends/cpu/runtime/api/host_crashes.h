// Crashes of host code: the line, and what was wrong. Part of launch.cpp and of observe.cpp.
#pragma once

#include <signal.h>
#include <ucontext.h>

#include "callers.h"

namespace cudalab {

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
    const char *interrupted = interrupted_at(context),
               *const sp = stack_pointer(*(const ucontext_t*)context);
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
