// Crashes: the signal handlers that name the kernel, the thread and the line. Part of launch.cpp.
#pragma once

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <spawn.h>
#include <sys/wait.h>
#include <ucontext.h>

#include <initializer_list>
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#else
static int backtrace(void**, int) {
    return 0;
}
#endif

namespace cudalab {

static cudaError_t crash_error;  // the error of the kernel that failed

// Whether a line from addr2line, such as "a.cu:12", is in one of the program's own files and not in
// the system's or this runtime's, parts of which the compiler inlines.
static bool is_own_line(const char* line) {
    for (const char* foreign : {"??", "/usr/include/", "/usr/local/include/", "/usr/lib/"})
        if (!strncmp(line, foreign, strlen(foreign))) return false;
    for (const char* foreign : {"/cpu/runtime/", "/include/c++/", "/lib/gcc/", "/ziglang/lib/"})
        if (strstr(line, foreign)) return false;
    return *line != 0;
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
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    char tool[] = "addr2line", inlined[] = "-i", what[] = "-e", executable[32];
    // Not by its name: another process may have compiled the program again since.
    snprintf(executable, sizeof executable, "/proc/%d/exe", (int)getpid());
    char* arguments[] = {tool, inlined, what, executable, offset, nullptr};
    pid_t child;
    char said[8192];
    size_t used = 0;
    if (posix_spawnp(&child, tool, &actions, nullptr, arguments, environ) == 0) {
        close(ends[1]);
        ssize_t got;
        while (used + 1 < sizeof said &&
               (got = read(ends[0], said + used, sizeof said - used - 1)) > 0)
            used += (size_t)got;
        waitpid(child, nullptr, 0);
    } else {
        close(ends[1]);
    }
    close(ends[0]);
    said[used] = 0;
    char *rest = said, *line;
    while ((line = strsep(&rest, "\n")) && !is_own_line(line)) {  // from the innermost outwards
    }
    if (!line) return;
    line[strcspn(line, " (")] = 0;
    char here[4096];
    size_t length = getcwd(here, sizeof here) ? strlen(here) : 0;
    if (length && !strncmp(line, here, length) && line[length] == '/') line += length + 1;
    snprintf(text, size, "%s", line);
}

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

// The line of the program's own code in which a signal arrived, such as "a.cu:12: ", or "".
static void where_crashed(const void* context, char* text, size_t size) {
    void* frames[32];
    int count = backtrace(frames, 32);
    const char* interrupted = interrupted_at(context);
    Dl_info own, other;
    bool behind = false;  // the frames before it belong to the handler
    text[0] = 0;
    if (!dladdr((void*)where_crashed, &own)) return;
    for (int i = 0; i < count; ++i) {
        const char* at = (const char*)frames[i];
        behind |= at == interrupted || !interrupted;
        if (!behind || !dladdr(at, &other) || other.dli_fbase != own.dli_fbase) continue;
        find_line(at == interrupted ? at : at - 1, text, size - 2);
        if (!*text) continue;
        strcat(text, ": ");
        return;
    }
    text[0] = 0;
}

// Whether the user has not been told yet of what happens at a place in the code, which `key`
// identifies. Only the first few places are told of.
static bool is_news(uintptr_t key) {
    static uintptr_t told[64];
    static unsigned count;
    pthread_mutex_lock(&pool.mutex);
    bool is_new = count < sizeof told / sizeof *told;
    for (unsigned i = 0; i < count; ++i) is_new &= told[i] != key;
    if (is_new) told[count++] = key;
    pthread_mutex_unlock(&pool.mutex);
    return is_new;
}
static uintptr_t hash(const char* text) {
    uintptr_t sum = 0;
    while (*text) sum = sum * 31 + (unsigned char)*text++;
    return sum;
}

// Tells what the running thread of a kernel does that C++ does not define.
static void tell(Worker& w, const char* place, const char* what) {
    const uint3 &b = current.block_idx, &t = w.index[current.thread];
    fprintf(stderr, "cudalab: %skernel %s, block (%u,%u,%u), thread (%u,%u,%u): %s\n", place,
            w.kernel->name, b.x, b.y, b.z, t.x, t.y, t.z, what);
}

// Whether the kernel can go on behind a division that the processor has refused.
static bool divide(Worker& w, void* context) {
    Division division;
    if (!read_division(context, division)) return false;
    if (!division.divisor && is_news((uintptr_t)interrupted_at(context))) {
        char place[300], what[100];
        where_crashed(context, place, sizeof place);
        const uint64_t bits = ~0ull >> (64 - 8 * division.bytes);
        snprintf(what, sizeof what, "integer division by zero, which gives %#llx on a GPU",
                 (unsigned long long)(division.quotient & bits));
        if (!*place || is_news(hash(place))) tell(w, place, what);
    }
    complete(division, context);
    return true;
}

static void unblock(int signal) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

static void kernel_crashed(Worker& w, int signal, siginfo_t* info, const void* context) {
    char place[300], what[400];
    where_crashed(context, place, sizeof place);
    crash_error = cudaErrorLaunchFailure;
    if (signal == SIGFPE) {
        snprintf(what, sizeof what, "an arithmetic instruction failed");
    } else if (signal == SIGILL || signal == SIGTRAP) {
        snprintf(what, sizeof what, "__trap(), or unreachable code");
    } else if (is_in_stacks(w, (uintptr_t)info->si_addr)) {
        crash_error = cudaErrorIllegalAddress;
        snprintf(what, sizeof what,
                 "stack overflow: local variables and recursion have %zu KB per thread",
                 LOCAL_MEMORY >> 10);
    } else if (is_constant(info->si_addr)) {
        snprintf(what, sizeof what, "a kernel writes to a __constant__ variable");
    } else if (!info->si_addr) {
        // The processor gives no address for a misaligned access.
        crash_error =
            info->si_code == SEGV_MAPERR ? cudaErrorIllegalAddress : cudaErrorMisalignedAddress;
        snprintf(what, sizeof what,
                 crash_error == cudaErrorIllegalAddress
                     ? "a null pointer is dereferenced"
                     : "a misaligned or invalid address is dereferenced");
    } else {
        crash_error = cudaErrorIllegalAddress;
        int used = snprintf(what, sizeof what, "access to address %p", info->si_addr);
        if (is_device_address(info->si_addr)) {
            used += snprintf(what + used, sizeof what - used, ": ");
            describe_device_address(info->si_addr, what + used, sizeof what - used);
        }
    }
    const uint3& t = w.index[current.thread];
    unblock(signal);
    fail(w, "thread (%u,%u,%u): %s%s", t.x, t.y, t.z, place, what);
}

// Reports that host code has dereferenced a device pointer, and lets the signal end the program.
static void host_touched_device(siginfo_t* info, const void* context) {
    char place[300], what[300], text[800];
    where_crashed(context, place, sizeof place);
    describe_device_address(info->si_addr, what, sizeof what);
    int length = snprintf(text, sizeof text,
                          "cudalab: %shost code dereferences the device pointer %p: %s\n"
                          "         host and device memory are separate: copy with cudaMemcpy, or "
                          "allocate with cudaMallocManaged\n",
                          place, info->si_addr, what);
    if (write(2, text, (size_t)length) < 0) return;
}

static void on_crash(int signal, siginfo_t* info, void* context) {
    if (signal == SIGFPE && worker && worker->kernel && divide(*worker, context)) return;
    if (worker && worker->kernel) kernel_crashed(*worker, signal, info, context);
    if ((signal == SIGSEGV || signal == SIGBUS) && is_device_address(info->si_addr))
        host_touched_device(info, context);
    struct sigaction standard;
    memset(&standard, 0, sizeof standard);
    standard.sa_handler = SIG_DFL;
    sigaction(signal, &standard, nullptr);
    unblock(signal);
    raise(signal);
}

void watch_for_crashes() {
    void* frame;
    backtrace(&frame, 1);  // loads its library now: a signal handler must not
    static char stack[64 << 10];
    stack_t alternate;
    memset(&alternate, 0, sizeof alternate);
    alternate.ss_sp = stack;
    alternate.ss_size = sizeof stack;
    sigaltstack(&alternate, nullptr);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_crash;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (int signal : CRASHES) sigaction(signal, &action, nullptr);
}

}  // namespace cudalab
