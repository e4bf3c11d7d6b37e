// The runtime as a kernel's library sees it: where the running thread is, the functions that it may
// call, and how it tells the host about its kernels and variables.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "vectors.h"

// How variables of an OS thread are found. In a program by a constant: g++ 12 loads the address of
// "initial-exec" into vectors as well, and then ld 2.40 does not link it.
#if defined(__PIC__) && !defined(__PIE__)
#define CUDALAB_OF_OS_THREAD __attribute__((tls_model("initial-exec")))  // of a library
#else
#define CUDALAB_OF_OS_THREAD __attribute__((tls_model("local-exec")))
#endif

#pragma GCC visibility push(default)
namespace cudalab {

// What the threads of a launch have done: as much in every build of a kernel, and in any order, as
// far as no order decides what they do.
struct Tally {
    uint64_t barriers, warp_barriers;  // arrivals of threads
    uint64_t updates;                  // atomic ones that change something, whatever is there
    uint64_t swaps;                    // that were carried out, and exchanges
    uint64_t asked;                    // for the lanes that run together, as the build decides
};

// The position of the running thread. One per OS thread, rewritten at every switch. Where the
// built-in variables are variables, they are the only names of what they hold: a compiler takes two
// names for two objects, and may read the one before it writes the other.
struct Current {
#ifdef CUDALAB_BUILTIN_VARIABLES
    unsigned char builtin_thread_idx[12];
    unsigned thread;  // linear index in the block
    unsigned char other_builtins[36];
#else
    uint3 thread_idx;
    unsigned thread;
    uint3 block_idx;
    uint3 block_dim;
    uint3 grid_dim;
#endif
    unsigned block_vote;     // result of the last __syncthreads_count/and/or
    char* dynamic_shared;    // extern __shared__
    uint64_t* warp_results;  // per thread: result of its last warp operation
    char* static_shared;     // near the arrays: their 32-bit addresses count from its window
    Tally tally;             // of the blocks that the OS thread has run
};
static_assert(offsetof(Current, thread) == 12 && offsetof(Current, block_vote) == 52, "");
extern __thread Current current CUDALAB_OF_OS_THREAD;

enum WarpOp : unsigned {
    SYNC,
    SHUFFLE,
    VOTE,
    MATCH_ANY,
    MATCH_ALL,
    ADD,
    MIN_SIGNED,
    MAX_SIGNED,
    MIN_UNSIGNED,
    MAX_UNSIGNED,
    AND,
    OR,
    XOR,
    CONVERGE,  // completes for the lanes that have arrived when no lane of the warp can continue
    TILE,      // a barrier of several warps: `value` of them
};
enum BlockOp : unsigned { NONE, COUNT, ALL, ANY };

// For kernels whose threads are loops (regions.h and loops.h): what the threads of a block bring to
// an operation at which they meet.
struct Operand {
    const void* values;  // of the threads, in their order
    unsigned bytes;      // of a value
    bool one_for_all;    // there is only one
};
struct WarpCall {
    const unsigned *here, *live;  // lanes of each warp: at the call, in the kernel; null: all
    Operand masks, values;
    void* results;
    const char* file;
    int line;
};
enum Shuffle : unsigned { FROM_LANE, FROM_BELOW, FROM_ABOVE, FROM_ACROSS };

// The kernel's own code reads the results after these return: code after the switch to another
// fiber inside them would make the processor mispredict their return.
extern "C" {
void cudalab_block_barrier(const char* file, int place);
void cudalab_block_vote(BlockOp op, int predicate, const char* file, int place);
void cudalab_warp_op(WarpOp op, unsigned mask, uint64_t value, unsigned source, const char* file,
                     int line);
void cudalab_wait_for_lanes(const char* file, int place);
void cudalab_yield();     // let the other threads of the block run
void cudalab_spinning();  // an atomic or fence that may be part of a wait loop
void cudalab_copy_async(void* to, const void* from, size_t bytes, size_t zeros);
void cudalab_close_copies();
void cudalab_wait_for_copies(unsigned under_way);
__attribute__((noreturn)) void cudalab_fail_assertion(const char* condition, const char* file,
                                                      unsigned line) noexcept;
long long cudalab_clock();
long long cudalab_read_clock(const void* at);  // by a kernel; null: at the place of this call
// For kernels whose threads are loops: loops.h and regions.h.
void cudalab_shuffle(const WarpCall* call, Shuffle by, Operand lanes, Operand widths);
void cudalab_combine(const WarpCall* call, WarpOp op, BlockOp vote);
void cudalab_meet(const WarpCall* call);
void cudalab_vote_of_block(const unsigned* here, BlockOp op, Operand predicates, int* results);
void cudalab_disagree(const char* file, int line);
void* cudalab_borrow(size_t bytes);
void cudalab_give_back(size_t bytes);
#ifdef CUDALAB_CHECK
void cudalab_fence(bool to_grid);
unsigned cudalab_active_lanes();
void cudalab_access(const volatile void* p, size_t bytes, unsigned kind, unsigned flags);
void cudalab_in_block_only();  // the scope of the next access, which is atomic
void cudalab_swapped(void* p, size_t bytes, bool done);
void cudalab_changed_nothing(void* p, size_t bytes);
#endif
}
}  // namespace cudalab
#ifdef CUDALAB_BUILTIN_VARIABLES  // other names, in this file the only ones, of what `current`
                                  // holds
#define CUDALAB_BUILTIN(type, name) \
    extern __thread type name __asm__("cudalab_in_" #name) CUDALAB_OF_OS_THREAD
CUDALAB_BUILTIN(uint3, threadIdx);
CUDALAB_BUILTIN(uint3, blockIdx);
CUDALAB_BUILTIN(dim3, blockDim);
CUDALAB_BUILTIN(dim3, gridDim);
#undef CUDALAB_BUILTIN
#define CUDALAB_POSITION_OF(variable, field) ::variable
#else
#define CUDALAB_POSITION_OF(variable, field) ::cudalab::current.field
#endif
#pragma GCC visibility pop
#ifdef CUDALAB_CHECK
#include "locals.h"
#endif

// Check mode must know the accesses that the functions below make for a kernel.
#ifdef CUDALAB_CHECK
#define CUDALAB_FENCED(to_grid) ::cudalab::cudalab_fence(to_grid)
#define CUDALAB_ACCESS(p, kind, flags) ::cudalab::cudalab_access(p, sizeof *(p), kind, flags)
#define CUDALAB_IN_BLOCK_ONLY() ::cudalab::cudalab_in_block_only()
#define CUDALAB_SWAPPED(p, done) ::cudalab::cudalab_swapped((void*)(p), sizeof *(p), done)
#define CUDALAB_CHANGED_NOTHING(p) ::cudalab::cudalab_changed_nothing((void*)(p), sizeof *(p))
#else
#define CUDALAB_FENCED(to_grid) ((void)0)
#define CUDALAB_IN_BLOCK_ONLY() ((void)0)
#define CUDALAB_CHANGED_NOTHING(p) ((void)0)
#ifdef CUDALAB_PROGRAM
#define CUDALAB_ACCESS(p, kind, flags) ((void)0)
#define CUDALAB_SWAPPED(p, done) ((void)0)
#else
#define CUDALAB_ACCESS(p, kind, flags) \
    ((void)((kind) == 4 ? ::cudalab::tally_atomic(flags) : (void)0))
#define CUDALAB_SWAPPED(p, done) ((void)(::cudalab::current.tally.swaps += (done)))
#endif
#endif
#define CUDALAB_LOADS(p) CUDALAB_ACCESS(p, 2, 0)
#define CUDALAB_STORES(p) CUDALAB_ACCESS(p, 3, 0)
#define CUDALAB_UPDATES(p) CUDALAB_ACCESS(p, 4, 1 | ::cudalab::EXCHANGE)
// The others say how a GPU does them in shared memory, too.
#define CUDALAB_SWAPS(p) CUDALAB_ACCESS(p, 4, 1 | ::cudalab::SWAP)
#define CUDALAB_COMPUTES(changes, p) \
    CUDALAB_ACCESS(p, 4, ((changes) ? 1 : 1 | ::cudalab::NO_CHANGE) | ::cudalab::turns_of(p))
// Atomic loads and stores, and those that are volatile.
#define CUDALAB_LOADS_ATOMICALLY(p) CUDALAB_ACCESS(p, 2, 1)
#define CUDALAB_STORES_ATOMICALLY(p) CUDALAB_ACCESS(p, 3, 1)
#define CUDALAB_LOADS_VOLATILE(p) CUDALAB_ACCESS(p, 2, 2)

namespace cudalab {

// How a GPU carries out an atomic operation in shared memory: one lane after the other; by compare
// and swap; in a loop of these, for one number, two of 16 bits, or one of 16 bits; or at once for
// all lanes at a word.
enum Turns : unsigned {
    TURNS = 7 << 8,
    BY_LANE = 0,
    SWAP = 1 << 8,
    LOOP = 2 << 8,
    LOOP_OF_TWO = 3 << 8,
    LOOP_OF_HALF = 4 << 8,
    AT_ONCE = 5 << 8
};
const unsigned NO_CHANGE = 32, EXCHANGE = 1 << 12;  // of an atomic operation

inline void tally_atomic(unsigned flags) {
    if (flags & EXCHANGE)
        ++current.tally.swaps;
    else if (!(flags & NO_CHANGE) && (flags & TURNS) != SWAP)
        ++current.tally.updates;
}

typedef void (*ThreadFn)(void* const* args);
typedef void (*BlockFn)(void* const* args, unsigned threads, const uint3* indices,
                        const bool* fibers);

// What the host needs to launch a kernel: found in the library as cudalab_kernel_<name>.
struct Kernel {
    const char* name;
    ThreadFn thread;  // one thread of the block; null if its threads are loops (regions.h)
    BlockFn block;    // threads in a plain loop, until the block turns to fibers; or all of them
    unsigned num_params;
    const unsigned char* param_sizes;  // bytes; a pointer has its top bit set
    const unsigned* arg_bytes;         // in whole programs: of each parameter, and of the closure
    bool flat;                         // loops for blocks of one dimension
    BlockFn loops;                     // in whole programs: all threads as loops, or null
    bool by_whole_warps;               // loops for blocks whose rows are whole warps
    bool alike;                        // one row of a block does what all of them do
};
// Says that a program counts on lanes that move in step.
void tell_of_steps(const char* file, int line);
struct Symbol {
    void* address;
    size_t bytes;
};

inline void set_thread(const uint3& index, unsigned thread) {
    CUDALAB_POSITION_OF(threadIdx, thread_idx) = index;
    current.thread = thread;
}
inline unsigned lane() {
    return current.thread & 31;
}
inline uint64_t warp_result() {
    return current.warp_results[current.thread];
}

template <class T>
inline CUDALAB_DEDUCED(uint64_t) to_bits(T value) {
    static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
    uint64_t bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(T));
    return bits;
}
template <class T>
inline CUDALAB_DEDUCED(T) from_bits(uint64_t bits) {
    T value;
    __builtin_memcpy(&value, &bits, sizeof(T));
    return value;
}

}  // namespace cudalab
