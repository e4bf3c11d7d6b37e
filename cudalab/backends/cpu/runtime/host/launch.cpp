// Runs grids, and handles kernels that crash.
//
// A grid runs to its end before the launch returns. runtime.cpp runs it; it is part of this file's
// translation unit, because an error in a program's kernel must end the block, not the process.

// clang-format off
#include "internal.h"
#include "../runtime.cpp"
#include "../divisions.h"
#include "../builtin_names.h"
// clang-format on

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

// ------------------------------------------------------------------ crashes

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
    for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP})
        sigaction(signal, &action, nullptr);
}

// ------------------------------------------------------------------ the pool

static unsigned os_threads() {  // CUDALAB_THREADS, or every core
    if (const char* asked = getenv("CUDALAB_THREADS"))
        if (int threads = atoi(asked)) return (unsigned)(threads > 0 ? threads : 1);
    cpu_set_t cores;
    return sched_getaffinity(0, sizeof cores, &cores) == 0 ? (unsigned)CPU_COUNT(&cores) : 1;
}

static bool start_workers() {
    static bool started = [] {
        if (cudalab_start((int)os_threads(), 2) != 0) return false;
        watch_for_crashes();  // replaces the handlers of cudalab_start
        return true;
    }();
    return started;
}

// Adds OS threads, so that more blocks can run at once. They join through an empty launch.
static bool grow_pool(uint64_t workers) {
    if ((uint64_t)pool.workers >= workers) return true;
    sigset_t all, before;
    sigfillset(&all);
    for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&all, signal);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_mutex_lock(&pool.mutex);
    while ((uint64_t)pool.workers < workers) {
        pthread_t thread;
        if (pthread_create(&thread, nullptr, worker_main, nullptr) != 0) break;
        pthread_detach(thread);
        ++pool.workers;
    }
    pool.launch = {};
    pool.running = pool.workers;
    ++pool.generation;
    pthread_cond_broadcast(&pool.work);
    pthread_mutex_unlock(&pool.mutex);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    while (cudalab_wait(1000) == 0) {
    }
    return (uint64_t)pool.workers >= workers && !pool.launch.failed;
}

// ------------------------------------------------------------------ barriers of a whole grid

static struct GridBarrier {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
    uint64_t blocks, arrived, round, launch;
    bool cooperative;
} grid_barrier;

static thread_local bool block_has_passed;
static thread_local uint64_t last_launch;  // a failed launch may have left the other variable set

static void wait_for_grid(Worker& w, const char* file, int line) {
    GridBarrier& barrier = grid_barrier;
    pthread_mutex_lock(&barrier.mutex);
    uint64_t round = barrier.round;
    if (++barrier.arrived == barrier.blocks) {
        barrier.arrived = 0;
        ++barrier.round;
        pthread_cond_broadcast(&barrier.opened);
    }
    bool hopeless = false;
    while (barrier.round == round && !hopeless) {
        timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 50000000;
        if (until.tv_nsec >= 1000000000) until.tv_nsec -= 1000000000, ++until.tv_sec;
        if (pthread_cond_timedwait(&barrier.opened, &barrier.mutex, &until) == 0) continue;
        // OS threads that have left will not arrive: their blocks have ended.
        hopeless = __atomic_load_n(&pool.launch.failed, __ATOMIC_RELAXED) ||
                   (uint64_t)__atomic_load_n(&pool.running, __ATOMIC_RELAXED) <= barrier.arrived;
    }
    uint64_t waiting = barrier.arrived;
    pthread_mutex_unlock(&barrier.mutex);
    if (hopeless)
        fail(w, "deadlock: %llu of %llu blocks wait at grid.sync() (%s:%d), the others have ended",
             (unsigned long long)waiting, (unsigned long long)barrier.blocks, file, line);
}

bool in_kernel() {
    return worker && worker->kernel;
}
bool in_cooperative_launch() {
    return grid_barrier.cooperative;
}
void sync_grid(const char* file, int line) {
    if (!grid_barrier.cooperative)
        fail(*worker, "grid.sync() (%s:%d) needs cudaLaunchCooperativeKernel", file, line);
    if (last_launch != grid_barrier.launch) {
        last_launch = grid_barrier.launch;
        block_has_passed = false;
    }
    cudalab_block_barrier(file, line);
    if (!block_has_passed) {  // the first thread waits for the whole block
        block_has_passed = true;
        wait_for_grid(*worker, file, line);
    }
    cudalab_block_barrier(file, line);
    block_has_passed = false;
}

// The lanes of the warp that arrive at this line together.
unsigned converged_lanes(const char* file, int line) {
    Worker& w = *worker;
    if (!w.fibers) promote(w);
    const unsigned thread = current.thread;
    w.spins = 0;
    w.site[thread] = {file, line};
    w.op[thread] = CONVERGE;
    w.mask[thread] = bit(thread);
    w.at_warp_op[thread >> 5] |= bit(thread);
    run_next(w, thread, next_thread(w, thread));
    return (unsigned)w.result[thread];
}

// ------------------------------------------------------------------ launches

void watch_memory(const Allocation&, size_t) {}
void unwatch_memory(const Allocation&) {}
void memory_written(const void*, size_t) {}

// Leaks, and failed calls whose result the program can check, are reported only on request.
void report(MessageKind what, const char* text) {
    if (what == MessageKind::LEAK && !getenv("CUDALAB_LEAKS")) return;
    if (what == MessageKind::FAILED_CALL && !getenv("CUDALAB_ERRORS")) return;
    fprintf(stderr, "cudalab: %s\n", text);
}

void refuse_in_kernel(const Config& config, const Kernel& kernel) {
    if (worker && worker->kernel)
        fail(*worker,
             "launches kernel %s: launches from kernels are not supported on the CPU device "
             "(%s:%d)",
             kernel.name, config.file, config.line);
}

cudaError_t execute(Call& call, const Config& config, const Kernel& kernel, void* const* args) {
    uint64_t blocks = (uint64_t)config.grid.x * config.grid.y * config.grid.z;
    if (!start_workers() || (config.cooperative && !grow_pool(blocks)))
        return call.fail(cudaErrorLaunchOutOfResources, "no OS threads for the blocks");
    grid_barrier.cooperative = config.cooperative;
    grid_barrier.blocks = blocks;
    grid_barrier.arrived = 0;
    ++grid_barrier.launch;
    crash_error = cudaErrorLaunchFailure;
    const unsigned grid[] = {config.grid.x, config.grid.y, config.grid.z};
    const unsigned block[] = {config.block.x, config.block.y, config.block.z};
    int state;
    cudalab_launch(&kernel, grid, block, args);
    while ((state = cudalab_wait(1000)) == 0) {
    }
    return state > 0 ? cudaSuccess : call.fail_for_good(crash_error, cudalab_error());
}

}  // namespace cudalab

// assert() in a kernel ends the kernel; in host code it ends the program, as the C library does.
extern "C" void __assert_fail(const char* condition, const char* file, unsigned line,
                              const char* function) __THROW {
    if (worker && worker->kernel) {
        const uint3 &b = current.block_idx, &t = worker->index[current.thread];
        fprintf(stderr, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n",
                file, line, function, b.x, b.y, b.z, t.x, t.y, t.z, condition);
        crash_error = cudaErrorAssert;
        fail(*worker, "assertion `%s` failed at %s:%u", condition, file, line);
    }
    fflush(stdout);
    fprintf(stderr, "%s: %s:%u: %s: Assertion `%s' failed.\n", program_invocation_short_name, file,
            line, function, condition);
    abort();
}
