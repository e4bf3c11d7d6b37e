// The CUDA runtime API for files in C, as far as they call it: its functions have C's symbols,
// which c/c_calls.cpp defines.
#pragma once

#include <stddef.h>

#include "c_calls.h"
#include "types.h"

#define CUDART_VERSION 13000
#define CUDA_VERSION CUDART_VERSION
#define CUDARTAPI
#define CUDART_CB
#define __host__

typedef struct dim3 {
    unsigned x, y, z;
} dim3;

#define CUDALAB_VECTORS(name, type, pair, quad)                            \
    typedef struct name##1 {                                               \
        type x;                                                            \
    }                                                                      \
    name##1;                                                               \
    typedef struct name##2 {                                               \
        type x, y;                                                         \
    }                                                                      \
    __attribute__((aligned(pair))) name##2;                                \
    typedef struct name##3 {                                               \
        type x, y, z;                                                      \
    }                                                                      \
    name##3;                                                               \
    typedef struct name##4 {                                               \
        type x, y, z, w;                                                   \
    }                                                                      \
    __attribute__((aligned(quad))) name##4;                                \
    static inline name##1 make_##name##1(type x) {                         \
        const name##1 made = {x};                                          \
        return made;                                                       \
    }                                                                      \
    static inline name##2 make_##name##2(type x, type y) {                 \
        const name##2 made = {x, y};                                       \
        return made;                                                       \
    }                                                                      \
    static inline name##3 make_##name##3(type x, type y, type z) {         \
        const name##3 made = {x, y, z};                                    \
        return made;                                                       \
    }                                                                      \
    static inline name##4 make_##name##4(type x, type y, type z, type w) { \
        const name##4 made = {x, y, z, w};                                 \
        return made;                                                       \
    }
CUDALAB_VECTORS(char, signed char, 2, 4)
CUDALAB_VECTORS(uchar, unsigned char, 2, 4)
CUDALAB_VECTORS(short, short, 4, 8)
CUDALAB_VECTORS(ushort, unsigned short, 4, 8)
CUDALAB_VECTORS(int, int, 8, 16)
CUDALAB_VECTORS(uint, unsigned, 8, 16)
CUDALAB_VECTORS(long, long, 16, 16)
CUDALAB_VECTORS(ulong, unsigned long, 16, 16)
CUDALAB_VECTORS(longlong, long long, 16, 16)
CUDALAB_VECTORS(ulonglong, unsigned long long, 16, 16)
CUDALAB_VECTORS(float, float, 8, 16)
CUDALAB_VECTORS(double, double, 16, 16)
#undef CUDALAB_VECTORS

#define CUDALAB_C_CALL(name, parameters, ...) cudaError_t name parameters;
CUDALAB_C_CALLS(CUDALAB_C_CALL)
#undef CUDALAB_C_CALL
#define CUDALAB_C_CALL(name) cudaError_t name(void);
CUDALAB_C_CALLS_OF_NOTHING(CUDALAB_C_CALL)
#undef CUDALAB_C_CALL
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
cudaError_t cudaProfilerStart(void);
cudaError_t cudaProfilerStop(void);
const char* cudaGetErrorString(cudaError_t error);
const char* cudaGetErrorName(cudaError_t error);
cudaError_t cudaFuncSetCacheConfig(const void* kernel, enum cudaFuncCache config);

void cudalab_c_thrown_away(void);  // the next call's result is

// Each call says where it is.
void cudalab_called_at(const char* file, int line);
#define CUDALAB_CALLED(call) (cudalab_called_at(__FILE__, __LINE__), call)
#define cudaGetDeviceCount(...) CUDALAB_CALLED(cudaGetDeviceCount(__VA_ARGS__))
#define cudaSetDevice(...) CUDALAB_CALLED(cudaSetDevice(__VA_ARGS__))
#define cudaGetDevice(...) CUDALAB_CALLED(cudaGetDevice(__VA_ARGS__))
#define cudaGetDeviceProperties(...) CUDALAB_CALLED(cudaGetDeviceProperties(__VA_ARGS__))
#define cudaDeviceGetAttribute(...) CUDALAB_CALLED(cudaDeviceGetAttribute(__VA_ARGS__))
#define cudaSetDeviceFlags(...) CUDALAB_CALLED(cudaSetDeviceFlags(__VA_ARGS__))
#define cudaDeviceSetCacheConfig(...) CUDALAB_CALLED(cudaDeviceSetCacheConfig(__VA_ARGS__))
#define cudaDeviceSetLimit(...) CUDALAB_CALLED(cudaDeviceSetLimit(__VA_ARGS__))
#define cudaDeviceGetLimit(...) CUDALAB_CALLED(cudaDeviceGetLimit(__VA_ARGS__))
#define cudaDriverGetVersion(...) CUDALAB_CALLED(cudaDriverGetVersion(__VA_ARGS__))
#define cudaRuntimeGetVersion(...) CUDALAB_CALLED(cudaRuntimeGetVersion(__VA_ARGS__))
#define cudaMalloc(...) CUDALAB_CALLED(cudaMalloc(__VA_ARGS__))
#define cudaFree(...) CUDALAB_CALLED(cudaFree(__VA_ARGS__))
#define cudaMallocPitch(...) CUDALAB_CALLED(cudaMallocPitch(__VA_ARGS__))
#define cudaMallocHost(...) CUDALAB_CALLED(cudaMallocHost(__VA_ARGS__))
#define cudaHostAlloc(...) CUDALAB_CALLED(cudaHostAlloc(__VA_ARGS__))
#define cudaFreeHost(...) CUDALAB_CALLED(cudaFreeHost(__VA_ARGS__))
#define cudaHostRegister(...) CUDALAB_CALLED(cudaHostRegister(__VA_ARGS__))
#define cudaHostUnregister(...) CUDALAB_CALLED(cudaHostUnregister(__VA_ARGS__))
#define cudaHostGetDevicePointer(...) CUDALAB_CALLED(cudaHostGetDevicePointer(__VA_ARGS__))
#define cudaMallocManaged(...) CUDALAB_CALLED(cudaMallocManaged(__VA_ARGS__))
#define cudaMemGetInfo(...) CUDALAB_CALLED(cudaMemGetInfo(__VA_ARGS__))
#define cudaPointerGetAttributes(...) CUDALAB_CALLED(cudaPointerGetAttributes(__VA_ARGS__))
#define cudaMemset(...) CUDALAB_CALLED(cudaMemset(__VA_ARGS__))
#define cudaMemsetAsync(...) CUDALAB_CALLED(cudaMemsetAsync(__VA_ARGS__))
#define cudaMemset2D(...) CUDALAB_CALLED(cudaMemset2D(__VA_ARGS__))
#define cudaMemcpy(...) CUDALAB_CALLED(cudaMemcpy(__VA_ARGS__))
#define cudaMemcpyAsync(...) CUDALAB_CALLED(cudaMemcpyAsync(__VA_ARGS__))
#define cudaMemcpy2D(...) CUDALAB_CALLED(cudaMemcpy2D(__VA_ARGS__))
#define cudaStreamCreate(...) CUDALAB_CALLED(cudaStreamCreate(__VA_ARGS__))
#define cudaStreamCreateWithFlags(...) CUDALAB_CALLED(cudaStreamCreateWithFlags(__VA_ARGS__))
#define cudaStreamDestroy(...) CUDALAB_CALLED(cudaStreamDestroy(__VA_ARGS__))
#define cudaStreamSynchronize(...) CUDALAB_CALLED(cudaStreamSynchronize(__VA_ARGS__))
#define cudaStreamQuery(...) CUDALAB_CALLED(cudaStreamQuery(__VA_ARGS__))
#define cudaStreamWaitEvent(...) CUDALAB_CALLED(cudaStreamWaitEvent(__VA_ARGS__))
#define cudaLaunchHostFunc(...) CUDALAB_CALLED(cudaLaunchHostFunc(__VA_ARGS__))
#define cudaEventCreate(...) CUDALAB_CALLED(cudaEventCreate(__VA_ARGS__))
#define cudaEventCreateWithFlags(...) CUDALAB_CALLED(cudaEventCreateWithFlags(__VA_ARGS__))
#define cudaEventDestroy(...) CUDALAB_CALLED(cudaEventDestroy(__VA_ARGS__))
#define cudaEventRecord(...) CUDALAB_CALLED(cudaEventRecord(__VA_ARGS__))
#define cudaEventSynchronize(...) CUDALAB_CALLED(cudaEventSynchronize(__VA_ARGS__))
#define cudaEventQuery(...) CUDALAB_CALLED(cudaEventQuery(__VA_ARGS__))
#define cudaEventElapsedTime(...) CUDALAB_CALLED(cudaEventElapsedTime(__VA_ARGS__))
#define cudaChooseDevice(...) CUDALAB_CALLED(cudaChooseDevice(__VA_ARGS__))
#define cudaGetDeviceFlags(...) CUDALAB_CALLED(cudaGetDeviceFlags(__VA_ARGS__))
#define cudaDeviceGetCacheConfig(...) CUDALAB_CALLED(cudaDeviceGetCacheConfig(__VA_ARGS__))
#define cudaDeviceSetSharedMemConfig(...) CUDALAB_CALLED(cudaDeviceSetSharedMemConfig(__VA_ARGS__))
#define cudaDeviceGetStreamPriorityRange(...) \
    CUDALAB_CALLED(cudaDeviceGetStreamPriorityRange(__VA_ARGS__))
#define cudaDeviceCanAccessPeer(...) CUDALAB_CALLED(cudaDeviceCanAccessPeer(__VA_ARGS__))
#define cudaDeviceEnablePeerAccess(...) CUDALAB_CALLED(cudaDeviceEnablePeerAccess(__VA_ARGS__))
#define cudaDeviceDisablePeerAccess(...) CUDALAB_CALLED(cudaDeviceDisablePeerAccess(__VA_ARGS__))
#define cudaHostGetFlags(...) CUDALAB_CALLED(cudaHostGetFlags(__VA_ARGS__))
#define cudaMemset2DAsync(...) CUDALAB_CALLED(cudaMemset2DAsync(__VA_ARGS__))
#define cudaMemcpy2DAsync(...) CUDALAB_CALLED(cudaMemcpy2DAsync(__VA_ARGS__))
#define cudaMemcpyPeer(...) CUDALAB_CALLED(cudaMemcpyPeer(__VA_ARGS__))
#define cudaMemcpyPeerAsync(...) CUDALAB_CALLED(cudaMemcpyPeerAsync(__VA_ARGS__))
#define cudaStreamCreateWithPriority(...) CUDALAB_CALLED(cudaStreamCreateWithPriority(__VA_ARGS__))
#define cudaStreamGetPriority(...) CUDALAB_CALLED(cudaStreamGetPriority(__VA_ARGS__))
#define cudaStreamGetFlags(...) CUDALAB_CALLED(cudaStreamGetFlags(__VA_ARGS__))
#define cudaStreamAddCallback(...) CUDALAB_CALLED(cudaStreamAddCallback(__VA_ARGS__))
#define cudaFuncGetAttributes(...) CUDALAB_CALLED(cudaFuncGetAttributes(__VA_ARGS__))
#define cudaFuncSetAttribute(...) CUDALAB_CALLED(cudaFuncSetAttribute(__VA_ARGS__))
#define cudaOccupancyMaxActiveBlocksPerMultiprocessor(...) \
    CUDALAB_CALLED(cudaOccupancyMaxActiveBlocksPerMultiprocessor(__VA_ARGS__))
#define cudaLaunchKernel(...) CUDALAB_CALLED(cudaLaunchKernel(__VA_ARGS__))
#define cudaLaunchCooperativeKernel(...) CUDALAB_CALLED(cudaLaunchCooperativeKernel(__VA_ARGS__))
#define cudaDeviceSynchronize(...) CUDALAB_CALLED(cudaDeviceSynchronize(__VA_ARGS__))
#define cudaDeviceReset(...) CUDALAB_CALLED(cudaDeviceReset(__VA_ARGS__))
#define cudaThreadSynchronize(...) CUDALAB_CALLED(cudaThreadSynchronize(__VA_ARGS__))
#define cudaThreadExit(...) CUDALAB_CALLED(cudaThreadExit(__VA_ARGS__))
