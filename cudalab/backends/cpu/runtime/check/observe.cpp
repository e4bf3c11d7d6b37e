// Runs grids in check mode, controlled by Python; takes the place of launch.cpp.

#include "callers.h"
#include "layout.h"
#include "order.h"
#include "sorted_map.h"
#include "work.h"

extern "C" {
// The runtime of check mode (check.cpp).
unsigned cudalab_check_add(char* low, size_t bytes, size_t guard, unsigned space, int with_cells);
void cudalab_check_remove(unsigned number);
void cudalab_check_freed(unsigned number, void* memory);
void cudalab_check_written(unsigned number);
void cudalab_check_part_written(unsigned number, size_t offset, size_t bytes);
size_t cudalab_check_unwritten(unsigned number, size_t offset, size_t bytes, size_t* first,
                               bool* has_none);
const char* cudalab_check_error();
bool cudalab_check_reached_outside();
unsigned cudalab_active_lanes();
void cudalab_grid_barrier();
void cudalab_check_library(int begins);
void cudalab_check_division();
__attribute__((noreturn)) void cudalab_fail_assertion(const char* condition, const char* file,
                                                      unsigned line) noexcept;
}

namespace cudalab {

// The description of a launch, and of memory that kernels may use, for Python.
struct ObservedLaunch {
    const Kernel* kernel;
    void* const* args;
    unsigned grid[3], block[3];
    size_t shared;
    const char* file;
    int line;
    int cooperative;
};
struct ObservedMemory {
    uintptr_t begin;
    size_t bytes;
    const char* file;
    int line;
    unsigned region;
};

extern "C" const unsigned* cudalab_observe_layout(unsigned* count) {
    static Layout layout;
    if (layout.count == 0) {
        typedef ObservedLaunch L;
        layout.add(&L::kernel, &L::args, &L::grid, &L::block, &L::shared, &L::file, &L::line,
                   &L::cooperative);
        typedef ObservedMemory M;
        layout.add(&M::begin, &M::bytes, &M::file, &M::line, &M::region);
    }
    *count = layout.count;
    return layout.values;
}

typedef int (*Observer)(const ObservedLaunch* launch);
typedef void (*Teller)(int what, const char* text);
static Observer observer;
static Teller teller;
static bool detects, cooperative, launching, assertion_failed;
static SortedMap<ObservedMemory> observed;

void watch_memory(const Allocation& memory, size_t guard) {
    unsigned region = cudalab_check_add((char*)memory.begin, memory.bytes, guard, 0, detects);
    observed[memory.begin] = {memory.begin, memory.bytes, memory.where().file, memory.where().line,
                              region};
    if (memory.kind != Kind::DEVICE) cudalab_check_written(region);  // the host may have written
    if (detects) order_begins(memory, region);
}
void unwatch_memory(const Allocation& memory) {
    auto found = observed.find(memory.begin);
    if (found == observed.end()) return;
    cudalab_check_remove(found->value.region);
    observed.erase(found);
    order_ends(memory);
}
static const ObservedMemory* find_observed(const void* address) {
    auto next = observed.upper_bound((uintptr_t)address);
    if (next == observed.begin()) return nullptr;
    const ObservedMemory& found = next[-1].value;
    return (uintptr_t)address - found.begin < found.bytes ? &found : nullptr;
}
void memory_written(const void* address, size_t bytes) {
    if (const ObservedMemory* in = find_observed(address))
        cudalab_check_part_written(in->region, (uintptr_t)address - in->begin, bytes);
    order_write(address, bytes);
}

// Watches what becomes of the first copy of each call that brings the host what nobody has written.
void copied_to_host(const Call& call, const Copy& copy) {
    static SortedMap<bool> told;
    const size_t rows = copy.height * copy.depth;
    const size_t extent =
        (copy.depth - 1) * copy.target_slice + (copy.height - 1) * copy.target_pitch + copy.width;
    order_copied_to_host(copy.target, extent);
    const ObservedMemory* in = find_observed(copy.source);
    const uintptr_t caller = (uintptr_t)call.place.file + (uintptr_t)call.place.line;
    if (!detects || !in || told.find(caller) != told.end()) return;
    size_t first = 0, unwritten = 0;
    bool* const has_none = (bool*)calloc(extent, 1);
    if (!has_none) abort();
    for (size_t slice = 0; slice < copy.depth; ++slice)
        for (size_t row = 0; row < copy.height; ++row) {
            const size_t begin = (uintptr_t)copy.source - in->begin + slice * copy.source_slice +
                                 row * copy.source_pitch;
            size_t at;
            const size_t more = cudalab_check_unwritten(
                in->region, begin, copy.width, &at,
                has_none + slice * copy.target_slice + row * copy.target_pitch);
            if (more && !unwritten) first = at;
            unwritten += more;
        }
    if (!unwritten) return free(has_none);
    told[caller] = true;
    char text[600];
    snprintf(
        text, sizeof text,
        "%s copies %zu bytes to the host, and nobody has written %zu of them: the first is byte "
        "%zu of the %zu allocated at %s:%d",
        call.name, copy.width * rows, unwritten, first, in->bytes, in->file, in->line);
    order_unwritten({(uintptr_t)copy.target, extent, has_none, false, call.place, strdup(text)});
}

void library_writes(bool begins) {
    cudalab_check_library(begins);
}

// What kernels allocate.
struct HeapPiece {
    unsigned region;
    size_t bytes;
};
static SortedMap<HeapPiece> heap;  // by address
void heap_grows(void* memory, size_t bytes) {
    heap[(uintptr_t)memory] = {cudalab_check_add((char*)memory, bytes, 0, 0, detects), bytes};
}
// What they have freed since the launch began stays allocated as long, so that its use is seen.
struct Kept {
    void* memory;
    HeapFree* release;
};
static List<Kept> kept;
const size_t MOST_KEPT = 64 << 20;  // bytes
static size_t bytes_kept;
static void release_kept() {
    for (const Kept& each : kept) each.release(each.memory);
    kept.clear();
    bytes_kept = 0;
}
void heap_shrinks(void* memory, HeapFree* release) {
    auto found = heap.find((uintptr_t)memory);
    if (found == heap.end()) return cudalab_check_freed(~0u, memory);
    const HeapPiece piece = found->value;
    heap.erase(found);
    cudalab_check_freed(piece.region, memory);
    if (bytes_kept + piece.bytes > MOST_KEPT) return release(memory);
    bytes_kept += piece.bytes;
    kept.add({memory, release});
}

void report(MessageKind what, const char* text) {
    teller((int)what, text);
}

// ------------------------------------------------------------------ crashes of the host

static const int CRASHES[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
static int crash_file = 2;
static char signal_stack[64 << 10];  // of the main thread, which may have used up its own

static void on_crash(int signal, siginfo_t* info, void* context) {
    static int crashes;  // to describe one may be another
    struct sigaction standard;
    memset(&standard, 0, sizeof standard);
    standard.sa_handler = SIG_DFL;
    sigaction(signal, &standard, nullptr);
    if (!cudalab_in_kernel() && __atomic_fetch_add(&crashes, 1, __ATOMIC_RELAXED) == 0) {
        alarm(20);  // if a lock is held for ever
        host_crashed(crash_file, signal, info, context);
    }
    if (info->si_code <= 0) raise(signal);  // else the instruction is executed again
}

// The program's own handlers come before these, and those of check mode, too, while a grid runs.
void watch_for_crashes() {
    void* frame;
    backtrace(&frame, 1);  // loads its library now: a signal handler must not
    stack_t alternate;
    memset(&alternate, 0, sizeof alternate);
    alternate.ss_sp = signal_stack;
    alternate.ss_size = sizeof signal_stack;
    sigaltstack(&alternate, nullptr);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_crash;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (int signal : CRASHES) sigaction(signal, &action, nullptr);
}

// ------------------------------------------------------------------ grids

void tell_of_host_address(Place, const char*, unsigned, const void*) {}  // where it is followed
void tell_of_division(const char*, int) {
    if (cudalab_in_kernel()) cudalab_check_division();
}
static void refuse(const char* place, const char* why) {
    report(MessageKind::REFUSAL, place);
    fflush(stdout);
    fprintf(stderr, "Error: %s: not supported on the CPU device: %s\n", place, why);
    _exit(125);
}
bool cudalab_in_kernel() {  // only the thread that runs kernels has such a position
    return launching && current.block_dim.x != 0;
}
bool in_cooperative_launch() {
    return cooperative;
}
void sync_grid(const char*, int) {
    cudalab_grid_barrier();
}
void arrive_at_grid(const char*, int) {}  // blocks run one after another up to the wait
void wait_for_grid(const char*, int) {
    cudalab_grid_barrier();
}
unsigned converged_lanes(const char*, int) {
    return cudalab_active_lanes();
}
void stop_kernel(const char* why) {
    report(MessageKind::FAILED_KERNEL, why);
    __builtin_trap();
}

// An observed grid runs to its end at once: one that waits for the host is a finding.
cudaError_t start_grid(Call& call, const Config& config, const Kernel& kernel, void* const* args,
                       uint64_t) {
    cooperative = config.cooperative;
    const ObservedLaunch launch = {&kernel,
                                   args,
                                   {config.grid.x, config.grid.y, config.grid.z},
                                   {config.block.x, config.block.y, config.block.z},
                                   config.shared,
                                   config.file,
                                   config.line,
                                   config.cooperative};
    launching = true;
    assertion_failed = false;
    const int failed = observer(&launch);
    launching = false;
    release_kept();
    order_kernel();
    if (!failed) return cudaSuccess;
    return call.fail_for_good(assertion_failed                  ? cudaErrorAssert
                              : cudalab_check_reached_outside() ? cudaErrorIllegalAddress
                                                                : cudaErrorLaunchFailure,
                              cudalab_check_error());
}
Progress continue_grid(bool) {
    return Progress::ENDED;
}
cudaError_t end_grid(Call&) {
    return cudaSuccess;
}
void leave_grid() {}
bool start_os_thread(void* (*)(void*)) {
    return false;
}

}  // namespace cudalab

using namespace cudalab;

// assert() in a kernel is a finding; in host code it ends the program, as the C library does.
extern "C" void cudalab_assert_fail(const char* condition, const char* file, unsigned line,
                                    const char* function) {
    if (cudalab_in_kernel()) {
        assertion_failed = true;
        cudalab_fail_assertion(condition, file, line);
    }
    fail_host_assertion(condition, file, line, function);
}

// What check.cpp asks of a program.
extern "C" void (*cudalab_program_refuses)(const char* place, const char* why);
extern "C" bool (*cudalab_program_keeps)(const void* address);
// Begins to observe; what host code that crashes has done is written to a file.
extern "C" void cudalab_observe(Observer on_launch, Teller on_news, int detect, int file) {
    observer = on_launch;
    teller = on_news;
    detects = detect;
    cudalab_program_refuses = refuse;
    cudalab_program_keeps = [](const void* address) { return !is_device_address(address); };
    crash_file = file;
    watch_for_crashes();
}
extern "C" void cudalab_variables(Visitor visit) {
    for_each_variable(device_variables(), visit);
    for_each_variable(constants(), visit);
    for_each_variable(managed_variables(), visit);
    for_each_variable_apart(visit);
}
// The allocation that contains an address, or null.
extern "C" const ObservedMemory* cudalab_observed_memory(const void* address) {
    return find_observed(address);
}
