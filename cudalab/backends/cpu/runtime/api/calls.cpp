// Calls of the runtime API: the lock that they hold, and the errors that they return.
//
// The call that causes an error returns it, and it remains the last error until the program reads
// it. An error in a running kernel is permanent: every later call returns it.

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "order.h"

namespace cudalab {

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
                       lock_of_kernels = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static thread_local unsigned times_locked;  // by this thread: the lock
static bool kernels_share_lock;
static thread_local cudaError_t last_error = cudaSuccess;
static cudaError_t for_good = cudaSuccess;

// The last error of a launch until the program reads it.
static struct Unread {
    cudaError_t error;
    Place place;
    char why[400];
} unread;
// The first of the calls that failed though the program throws their results away.
static struct {
    unsigned count;
    char text[700];
} unread_calls;
static thread_local bool next_is_thrown_away;
void cudalab_thrown_away() {
    next_is_thrown_away = true;
}

static bool is_forked;  // from a process that has used the device: a GPU's driver refuses that
static void become_child() {
    is_forked = true;
    lock = lock_of_kernels = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
}

void fail_host_assertion(const char* condition, const char* file, unsigned line,
                         const char* function) {
    fflush(stdout);
    fprintf(stderr, "%s: %s:%u: %s: Assertion `%s' failed.\n", program_invocation_short_name, file,
            line, function, condition);
    abort();
}

static void at_exit() {
    if (is_forked) return;  // what is left is the parent's
    {
        Call call("exit", {});
        wait_for_all_work();
    }
    program_ends();
    if (unread.error) {
        char text[700];
        snprintf(text, sizeof text,
                 "%s:%d: the launch failed and the program never called cudaGetLastError(): %s "
                 "(%s): %s",
                 unread.place.file, unread.place.line, cudaGetErrorName(unread.error),
                 cudaGetErrorString(unread.error), unread.why);
        report(MessageKind::UNREAD_ERROR, text);
    }
    if (unread_calls.count) report(MessageKind::UNREAD_CALL, unread_calls.text);
    tell_leaks();
}

// The last errors of a kernel's threads.
static thread_local struct {
    uint64_t grid;
    uint3 block;
    cudaError_t errors[1024];
} of_block;
static cudaError_t& error_of_thread() {
    const uint3 &block = current.block_idx, &known = of_block.block;
    if (of_block.grid != grids_begun || block.x != known.x || block.y != known.y ||
        block.z != known.z) {
        memset(of_block.errors, 0, sizeof of_block.errors);
        of_block.grid = grids_begun;
        of_block.block = block;
    }
    return of_block.errors[current.thread];
}

static bool is_used;
static thread_local bool of_driver;
OfDriver::OfDriver() : last_error(cudalab::last_error) {
    of_driver = true;
}
OfDriver::~OfDriver() {
    of_driver = false;
    cudalab::last_error = last_error;
}
bool runtime_is_used() {
    return is_used;
}

Call::Call(const char* name_, Place place_, Where where_)
    : name(name_),
      place(place_),
      of_kernel(cudalab_in_kernel()),
      is_thrown_away(!of_kernel && next_is_thrown_away),
      where(where_) {
    if (of_kernel) {
        pthread_mutex_lock(&lock_of_kernels);
        locks_both = kernels_share_lock;
        if (locks_both) pthread_mutex_lock(&lock);
        return;
    }
    next_is_thrown_away = false;
    pthread_mutex_lock(&lock);
    ++times_locked;
    is_used |= !of_driver;
    static const int registered = atexit(at_exit) + pthread_atfork(nullptr, nullptr, become_child);
    (void)registered;
}
Call::~Call() {
    unlock();
}
void Call::unlock() {
    if (!of_kernel) --times_locked;
    if (!of_kernel || locks_both) pthread_mutex_unlock(&lock);
    if (of_kernel) pthread_mutex_unlock(&lock_of_kernels);
}

// ------------------------------------------------------------------ the lock

static pthread_cond_t news = PTHREAD_COND_INITIALIZER;

static unsigned release_lock(unsigned left) {
    const unsigned times = times_locked - left;
    for (; times_locked > left; --times_locked) pthread_mutex_unlock(&lock);
    return times;
}
static void take_lock(unsigned times) {
    for (; times; --times, ++times_locked) pthread_mutex_lock(&lock);
}
void wait_for_news() {
    const unsigned times = release_lock(1);
    pthread_cond_wait(&news, &lock);
    take_lock(times);
}
void tell_news() {
    pthread_cond_broadcast(&news);
}
void let_kernels_share_lock(bool on) {
    pthread_mutex_lock(&lock_of_kernels);
    kernels_share_lock = on;
    pthread_mutex_unlock(&lock_of_kernels);
}
Unlocked::Unlocked() : times(release_lock(0)) {}
Unlocked::~Unlocked() {
    take_lock(times);
}

// ------------------------------------------------------------------ the errors of a call

bool Call::is_asynchronous() const {
    return is_launch() || strstr(name, "Async");
}
cudaError_t Call::pending() {
    if (of_kernel && where == ON_HOST) {
        char why[400];
        snprintf(why, sizeof why, "%s:%d: %s cannot be called in a kernel, and nvcc rejects it%s",
                 place.file, place.line, name,
                 strcmp(name, "cudaDeviceSynchronize")
                     ? ""
                     : " (kernels cannot wait since CUDA 12; a "
                       "launch into cudaStreamTailLaunch runs "
                       "when the grid and its children are done)");
        unlock();
        stop_kernel(why);
    }
    if (of_kernel) return cudaSuccess;
    if (is_forked && !for_good)
        return fail_for_good(cudaErrorInitializationError,
                             "a forked process cannot use the device that its parent has used");
    if (for_good) last_error = for_good;
    return for_good;
}
// A device that has failed does nothing any more: the host need not wait for it.
cudaError_t Call::pending_for_host() {
    const cudaError_t error = pending();
    if (error) host_waits();
    return error;
}
cudaError_t Call::pending_or_unsafe() {
    if (cudaError_t error = pending()) return error;
    return captures ? captures->forbid_unsafe(*this) : cudaSuccess;
}
cudaError_t Call::pending_after_all_work() {
    if (cudaError_t error = pending_or_unsafe()) return error;
    if (!of_kernel) {
        wait_for_all_work();
        host_waits();
    }
    return pending();
}

static unsigned holders;  // loops that keep the device's memory accessible
static bool is_held;
static void hold(bool on) {
    if (on != is_held) keep_accessible(is_held = on);
}
cudalab_Held::cudalab_Held() {
    Call call("a loop", {});
    if (!holders++ && !last_error && !for_good) hold(true);
}
cudalab_Held::~cudalab_Held() {
    Call call("a loop", {});
    if (!--holders) hold(false);
}

cudaError_t Call::fail(cudaError_t error, const char* why, ...) {
    char text[sizeof unread.why];
    va_list values;
    va_start(values, why);
    vsnprintf(text, sizeof text, why, values);
    va_end(values);
    char message[700];
    const Callers* callers = callers_in_library(place);
    const Place shown = callers ? first_of(*callers) : place;
    snprintf(message, sizeof message, "%s:%d: %s: %s: %s", shown.file, shown.line, name,
             cudaGetErrorName(error), text);
    report(MessageKind::FAILED_CALL, message);
    if (of_kernel) return error_of_thread() = error;
    hold(false);
    if (is_launch()) {
        unread.error = error;
        unread.place = place;
        memcpy(unread.why, text, sizeof text);
    }
    if (is_thrown_away && error != cudaErrorNotSupported && !unread_calls.count++)
        snprintf(unread_calls.text, sizeof unread_calls.text,
                 "%s:%d: %s failed and the program does not look at its result: %s (%s): %s",
                 shown.file, shown.line, name, cudaGetErrorName(error), cudaGetErrorString(error),
                 text);
    return last_error = error;
}
cudaError_t Call::fail_for_good(cudaError_t error, const char* why) {
    char message[1400];
    snprintf(message, sizeof message, "%s:%d: %s: %s", place.file, place.line,
             cudaGetErrorName(error), why);
    report(MessageKind::FAILED_KERNEL, message);
    unread.error = cudaSuccess;
    hold(false);
    return last_error = for_good = error;
}
void not_launched(const char* launch, const char* file, int line) {
    Call(launch, {file, line}, Call::ANYWHERE)
        .fail(cudaErrorMissingConfiguration,
              "%s was called as a function, without <<<grid, block>>>, and did not run",
              launch + sizeof "launch of");
}
bool without_launch(bool is_one, const char* launch, const char* file, int line) noexcept {
    if (is_one) not_launched(launch, file, line);
    return is_one;
}
void forget_errors() {
    for_good = last_error = cudaSuccess;
}

cudaError_t invalid_value(const char* name, const char* why, const char* file, int line) {
    return Call(name, {file, line}, Call::ANYWHERE).fail(cudaErrorInvalidValue, "%s", why);
}

}  // namespace cudalab

using namespace cudalab;

// ------------------------------------------------------------------ read by the program

cudaError_t cudaPeekAtLastError() {
    Call call("cudaPeekAtLastError", {}, Call::ANYWHERE);
    if (call.of_kernel) return error_of_thread();
    unread.error = cudaSuccess;
    unread_calls.count = 0;
    if (last_error) report(MessageKind::ERRORS_READ, "");
    return call.pending() ? for_good : last_error;
}
cudaError_t cudaGetLastError() {
    Call call("cudaGetLastError", {}, Call::ANYWHERE);
    const cudaError_t error = cudaPeekAtLastError();
    (call.of_kernel ? error_of_thread() : last_error) = call.of_kernel ? cudaSuccess : for_good;
    return error;
}
const char* cudaGetErrorString(cudaError_t error) {
    switch (error) {
#define CUDALAB_ERROR_WORDS(name, number, words) \
    case name:                                   \
        return words;
        CUDALAB_ERRORS(CUDALAB_ERROR_WORDS)
    }
    return "unrecognized error code";
}
const char* cudaGetErrorName(cudaError_t error) {
    switch (error) {
#define CUDALAB_ERROR_NAME(name, number, words) \
    case name:                                  \
        return #name;
        CUDALAB_ERRORS(CUDALAB_ERROR_NAME)
    }
    return "unrecognized error code";
}
