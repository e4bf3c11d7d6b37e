// Declarations shared by the parts of the host side.
#pragma once

#include <pthread.h>

#include "cuda_runtime.h"
#include "pages.h"

// A function that runs, or an object that is made, before all constructors of the program: those of
// its global objects may use the GPU.
#define CUDALAB_BEFORE_PROGRAM __attribute__((constructor(101)))
#define CUDALAB_MADE_BEFORE_PROGRAM __attribute__((init_priority(101)))

namespace cudalab {

struct Place {
    const char* file;
    int line;
};
// The stack of a call by a library's code, such as Thrust's, or null; and the line of the program
// that called the library, which takes a while to find.
struct Callers;
const Callers* callers_in_library(Place place);
Place first_of(const Callers& callers);

// One call of the API: holds the lock, knows the caller's line, and records the returned error.
// While a grid runs, the host thread that has launched it holds the lock; kernels have another one,
// and need both once the device's own thread looks after the grid (background.cpp).
class Call {
  public:
    enum Where { ON_HOST, ANYWHERE };  // most functions cannot be called in kernels
    Call(const char* name, Place place, Where where = ON_HOST);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    // The permanent error of an earlier kernel, which every call returns, or cudaSuccess.
    cudaError_t pending();
    // The same for calls that are not permitted while a stream is captured, such as cudaMalloc.
    cudaError_t pending_for_host();  // for calls by which the host waits
    cudaError_t pending_or_unsafe();
    cudaError_t pending_after_all_work();  // for calls that free memory
    cudaError_t fail(cudaError_t error, const char* why, ...) __attribute__((format(printf, 3, 4)));
    // For errors that end the device's work: reported on stderr at once.
    cudaError_t fail_for_good(cudaError_t error, const char* why);

    bool is_launch() const { return name[0] == 'l'; }
    bool is_asynchronous() const;  // the host does not wait for the work: launches, cuda…Async
    const char* const name;        // "launch", or the function's
    const Place place;
    const bool of_kernel;       // a kernel makes the call
    const bool is_thrown_away;  // nobody looks at the result
  private:
    void unlock();
    const Where where;
    bool locks_both = false;
};

// For a thread that has the lock: releases it until another thread has news.
void wait_for_news();
void tell_news();
void let_kernels_share_lock(bool on);
// Releases the lock while it exists.
class Unlocked {
  public:
    Unlocked();
    ~Unlocked();

  private:
    const unsigned times;
};

// For the driver interface: its calls of the runtime leave the runtime's state as it is.
class OfDriver {
  public:
    OfDriver();
    ~OfDriver();

  private:
    const cudaError_t last_error;
};
bool runtime_is_used();  // whether the program itself has called the runtime
void forget_errors();    // of this thread, and a permanent one

// ------------------------------------------------------------------ memory.cpp

enum class Kind { DEVICE, MANAGED, PINNED, REGISTERED, VARIABLE };

struct MemoryPool {  // the counters of a memory pool, in bytes
    size_t used, used_high, reserved, reserved_high, threshold;
    MemoryPool* next;
};
struct Hints {  // about managed memory: the program's advice, by the number of a device
    bool read_mostly = false;
    int preferred = cudaInvalidDeviceId, accessed_by = cudaInvalidDeviceId,
        prefetched = cudaInvalidDeviceId;
};
struct Allocation {
    uintptr_t begin;
    size_t bytes;
    Kind kind;
    unsigned flags;
    Place place;
    Hints hints = {};
    MemoryPool* pool = nullptr;
    bool of_graph = false;
    bool is_given_back = false;  // in vain: the device has failed before
    const Callers* callers = callers_in_library(place);
    Place where() const { return callers ? first_of(*callers) : place; }
};

// While an object exists, device memory can be read and written; otherwise any access faults.
// Kernels cannot write to constants. ALL waits for all work that has been submitted; who opens
// memory for COPY has seen to the order.
class Access {
  public:
    enum By { ALL, COPY, KERNEL };
    explicit Access(By by = ALL);
    ~Access();
    Access(const Access&) = delete;
    Access& operator=(const Access&) = delete;

  private:
    const By by;
};

void keep_accessible(bool on);  // through several calls

size_t device_bytes();  // its size: CUDALAB_DEVICE_MEMORY, or half of the machine's memory
size_t free_bytes();
// The live allocation that contains the address or ends there, or null.
const Allocation* find_allocation(const void* address);
bool is_device_address(const void* address);  // in the arena or a device variable
struct Section {
    const char *begin, *end;
};
void know_variables(Section device, Section constants, Section managed);
Section device_variables();
Section constants();
Section managed_variables();
bool is_constant(const void* address);  // in a __constant__ variable
bool is_code(const void* address);      // whether there is code of the process
// The bytes of a string literal, from there on, which may be copied from now on; 0 if it is none.
size_t know_literal(const void* text);
bool is_symbol(const void* address);  // a __device__, __constant__ or __managed__ variable
void name_variable(const void* address, size_t bytes,
                   Place place);  // called when its address is known
// Whether `bytes` from `pointer` lie in one allocation that the device can access; if not, why.
bool reaches(const void* pointer, size_t bytes, char* why, size_t size);
// Whether the host may read or write there: anything but device memory; if not, why.
bool is_for_host(const void* pointer, char* why, size_t size);
// Why a kernel may not dereference this pointer, or null if it may.
// What may be an address: the heap or a stack of the host, or memory that kernels may use.
enum class Word { NUMBER, DEVICE, HOST };
Word read_word(const void* word);
const char* why_not_for_kernels(const void* pointer, char* text, size_t size);
void describe_device_address(const void* address, char* text, size_t size);
cudaError_t allocate(Call& call, void** pointer, size_t bytes, MemoryPool* pool = nullptr);
// Frees the allocation that begins at `pointer`, if it is of one of these kinds.
cudaError_t release(Call& call, void* pointer, bool pinned);
cudaError_t not_released(const void* pointer, cudaError_t error);  // returns the error
// Addresses of memory that graphs allocate and free when they run.
void* reserve(size_t bytes);
void unreserve(void* address, size_t bytes);
cudaError_t allocate_reserved(Call& call, void* address, size_t bytes);
bool is_reserved(const void* address);        // where a graph's memory begins
bool is_reserved_range(const void* address);  // anywhere in it
bool is_live(const void* address);
size_t live_of_graphs();                    // the bytes of their memory that is allocated
extern MemoryPool* memory_pools;            // all of them
void trim(MemoryPool& pool, size_t bytes);  // gives back what exceeds this size and is not used
void keep_to_thresholds();                  // what synchronising does to the pools
void free_all();
void tell_leaks();

// ------------------------------------------------------------------ background.cpp

void wait_for_all_work();  // of all streams
// A kernel that a GPU might run beside the one that waits, such as "add (a.cu:12)", or "".
void describe_next_launch(char* text, size_t size);

// ------------------------------------------------------------------ functions.cpp

size_t static_shared(const void*);  // bytes of the __shared__ variables of a kernel
// Whether an instruction belongs to the program's own functions. The first one finds these; signal
// handlers may call the second.
void know_kernel_code();
bool is_kernel_code(const void* pc);
typedef void (*Visitor)(const char* mangled_name, const void* address, size_t bytes);
void for_each_variable(Section section, Visitor visit);
// In no section: of a function, a template, or inline, and those that never change.
void for_each_variable_apart(Visitor visit);

// ------------------------------------------------------------------ launch.cpp, or observe.cpp

void watch_for_crashes();                        // the signal handlers
extern __thread bool kernel_prints;              // stdout is locked by a kernel
extern __thread bool kernel_is_silent;           // what it prints has been printed before
[[noreturn]] void stop_kernel(const char* why);  // that calls this
// One grid runs at a time; the device claims to hold `resident` of its blocks at once.
cudaError_t start_grid(Call& call, const Config& config, const Kernel& kernel, void* const* args,
                       uint64_t resident);
enum class Progress {
    RUNS,
    WAITS,  // all its threads wait, perhaps for the host
    ENDED,
};
// Looks after the grid for a moment. Where the host waits for it, too, a deadlock ends it.
Progress continue_grid(bool host_waits);
cudaError_t end_grid(Call& call);  // the result of a grid that has ended
void leave_grid();                 // the host goes on, and the device's own thread looks after it
bool start_os_thread(void* (*main)(void*));
// Memory that kernels may use from now on, may no longer use, and that has been written.
void watch_memory(const Allocation& memory, size_t guard);
void unwatch_memory(const Allocation& memory);
void memory_written(const void* address, size_t bytes);
// Other data for kernels than the program gives them, where a judge wants that: memory.cpp.
extern bool kernels_get_other_data;
void change_copied_data(void* target, const void* source, size_t bytes);
void change_shared_data();                    // before a launch
void library_writes(bool begins);             // what host code writes until it ends
void heap_grows(void* memory, size_t bytes);  // in a kernel; only in check mode
typedef void HeapFree(void* memory);
void heap_shrinks(void* memory, HeapFree* release);
// A message for the user.
enum class MessageKind {
    FAILED_KERNEL,
    UNREAD_ERROR,
    LEAK,
    FAILED_CALL,
    OVERRUN,
    REFUSAL,
    ERRORS_READ,    // the program has asked for the error of the calls that failed
    UNREAD_CALL,    // failed, its result was thrown away, and nobody has asked for the error
    UNWRITTEN,      // a copy brings the host what nobody has written
    EARLY_TIME,     // of an event for which the host has not waited
    UNAWAITED,      // a kernel that may still run when the program ends
    UNREAD_RESULT,  // of a kernel, in memory that nothing reads any more
    TIME_READ,      // between two events
    BYTE_FILL,      // with a value that is no byte
};
void report(MessageKind what, const char* text);
void tell_of_host_address(Place place, const char* kernel, unsigned argument, const void* address);
// assert() in host code, as the C library ends it.
[[noreturn]] void fail_host_assertion(const char* condition, const char* file, unsigned line,
                                      const char* function);

// ------------------------------------------------------------------ the device's properties

const unsigned MULTIPROCESSORS = 16;  // the same on every machine, so that programs behave alike
const unsigned THREADS_PER_MULTIPROCESSOR = 2048, BLOCKS_PER_MULTIPROCESSOR = 32;
const size_t SHARED_PER_MULTIPROCESSOR = 228 << 10, SHARED_OPTIN = 227 << 10,
             SHARED_DEFAULT = 48 << 10, SHARED_RESERVED = 1 << 10;

}  // namespace cudalab
