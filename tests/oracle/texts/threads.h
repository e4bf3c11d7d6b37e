// CUDA's words for plain C++, for kernels that others have written. One thread runs at a time, until
// it meets a barrier or ends, and blocks run one after another, so that shared memory is static.
#include <ucontext.h>

#include <climits>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>
#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __noinline__
#define __shared__ static

struct dim3 {
    unsigned x, y, z;
};
static dim3 gridDim, blockDim, blockIdx;
static dim3 threadIdx;
struct Thread {
    ucontext_t here;
    std::vector<char> stack;
    bool ended;
};
static ucontext_t turns;
static Thread* now;
static void __syncthreads() {
    swapcontext(&now->here, &turns);
}
static void __threadfence() {}
static void __threadfence_block() {
    __threadfence();
}

#define ATOMIC(name, next)  \
    template <class T, class V> \
    T name(T* at, V by) {    \
        const T old = *at;   \
        *at = (T)(next);     \
        return old;          \
    }
ATOMIC(atomicAdd, old + (T)by)
ATOMIC(atomicSub, old - (T)by)
ATOMIC(atomicAnd, old & (T)by)
ATOMIC(atomicOr, old | (T)by)
ATOMIC(atomicXor, old ^ (T)by)
ATOMIC(atomicExch, (T)by)
ATOMIC(atomicMin, old < (T)by ? old : (T)by)
ATOMIC(atomicMax, old > (T)by ? old : (T)by)
template <class T, class V>
T atomicCAS(T* at, V seen, V by) {
    const T old = *at;
    if (old == (T)seen) *at = (T)by;
    return old;
}

// Vectors.
#define VECTORS_OF(T, name)                                             \
    struct name##2 {                                                    \
        T x, y;                                                         \
    };                                                                  \
    struct name##3 {                                                    \
        T x, y, z;                                                      \
    };                                                                  \
    struct name##4 {                                                    \
        T x, y, z, w;                                                   \
    };                                                                  \
    static name##2 make_##name##2(T x, T y) {                           \
        return {x, y};                                                  \
    }                                                                   \
    static name##3 make_##name##3(T x, T y, T z) {                      \
        return {x, y, z};                                               \
    }                                                                   \
    static name##4 make_##name##4(T x, T y, T z, T w) {                 \
        return {x, y, z, w};                                            \
    }
VECTORS_OF(signed char, char)
VECTORS_OF(unsigned char, uchar)
VECTORS_OF(short, short)
VECTORS_OF(unsigned short, ushort)
VECTORS_OF(int, int)
VECTORS_OF(unsigned, uint)
VECTORS_OF(long, long)
VECTORS_OF(unsigned long, ulong)

static void cudaMallocManaged(void* at, size_t bytes) {
    *(void**)at = calloc(bytes, 1);
}
static int cudaDeviceSynchronize() {
    return 0;
}
static std::function<void()> kernel_of_all;
static void begin() {
    kernel_of_all();
    now->ended = true;
    swapcontext(&now->here, &turns);
}
static void run(std::function<void()> kernel, dim3 grid, dim3 block) {
    gridDim = grid, blockDim = block, kernel_of_all = kernel;
    std::vector<Thread> all(block.x * block.y * block.z);
    for (Thread& one : all) one.stack.resize(1 << 18);
    for (unsigned b = 0; b < grid.x * grid.y * grid.z; ++b) {
        blockIdx = {b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y};
        for (Thread& one : all) {
            getcontext(&one.here);
            one.here.uc_stack.ss_sp = one.stack.data();
            one.here.uc_stack.ss_size = one.stack.size();
            makecontext(&one.here, begin, 0);
            one.ended = false;
        }
        for (bool some = true; some;) {
            some = false;
            for (unsigned t = 0; t < all.size(); ++t) {
                if (all[t].ended) continue;
                threadIdx = {t % block.x, t / block.x % block.y, t / block.x / block.y};
                now = &all[t], some = true;
                swapcontext(&turns, &now->here);
            }
        }
    }
}
#define LAUNCH(kernel, grid, block, ...) run([=] { kernel(__VA_ARGS__); }, grid, block)
