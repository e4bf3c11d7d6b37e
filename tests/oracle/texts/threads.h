// CUDA's words for plain C++, with an OS thread for each thread of a block: for kernels that others
// have written. Blocks run one after another, so that shared memory is static.
#include <pthread.h>

#include <climits>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
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
static thread_local dim3 threadIdx;
static pthread_barrier_t everyone;
static void __syncthreads() {
    pthread_barrier_wait(&everyone);
}
static void __threadfence() {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
static void __threadfence_block() {
    __threadfence();
}

template <class T, class V>
T atomicAdd(T* at, V by) {
    return __atomic_fetch_add(at, (T)by, __ATOMIC_SEQ_CST);
}
template <class T, class V>
T atomicSub(T* at, V by) {
    return __atomic_fetch_sub(at, (T)by, __ATOMIC_SEQ_CST);
}
template <class T, class V>
T atomicAnd(T* at, V by) {
    return __atomic_fetch_and(at, (T)by, __ATOMIC_SEQ_CST);
}
template <class T, class V>
T atomicOr(T* at, V by) {
    return __atomic_fetch_or(at, (T)by, __ATOMIC_SEQ_CST);
}
template <class T, class V>
T atomicXor(T* at, V by) {
    return __atomic_fetch_xor(at, (T)by, __ATOMIC_SEQ_CST);
}
template <class T, class V>
T atomicExch(T* at, V by) {
    return __atomic_exchange_n(at, (T)by, __ATOMIC_SEQ_CST);
}
template <class T, class V>
T atomicCAS(T* at, V seen, V by) {
    T old = (T)seen;
    __atomic_compare_exchange_n(at, &old, (T)by, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return old;
}
template <class T, class V>
T atomicMin(T* at, V by) {
    T old = *at;
    while (!__atomic_compare_exchange_n(at, &old, old < (T)by ? old : (T)by, false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    }
    return old;
}
template <class T, class V>
T atomicMax(T* at, V by) {
    T old = *at;
    while (!__atomic_compare_exchange_n(at, &old, old > (T)by ? old : (T)by, false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    }
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
template <class Kernel>
void run(Kernel kernel, dim3 grid, dim3 block) {
    gridDim = grid, blockDim = block;
    const unsigned threads = block.x * block.y * block.z;
    pthread_barrier_init(&everyone, nullptr, threads);
    for (unsigned b = 0; b < grid.x * grid.y * grid.z; ++b) {
        blockIdx = {b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y};
        std::vector<std::thread> all;
        for (unsigned t = 0; t < threads; ++t)
            all.emplace_back([=] {
                threadIdx = {t % block.x, t / block.x % block.y, t / block.x / block.y};
                kernel();
            });
        for (std::thread& one : all) one.join();
    }
}
#define LAUNCH(kernel, grid, block, ...) run([=] { kernel(__VA_ARGS__); }, grid, block)
