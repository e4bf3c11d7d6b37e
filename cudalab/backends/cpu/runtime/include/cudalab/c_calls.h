// The functions of the CUDA runtime API that files in C call: name, parameters, arguments.
#pragma once

#define CUDALAB_C_CALLS(X)                                                                        \
    X(cudaGetDeviceCount, (int* count), count)                                                    \
    X(cudaSetDevice, (int device), device)                                                        \
    X(cudaGetDevice, (int* device), device)                                                       \
    X(cudaGetDeviceProperties, (struct cudaDeviceProp * properties, int device), properties,      \
      device)                                                                                     \
    X(cudaDeviceGetAttribute, (int* value, enum cudaDeviceAttr attribute, int device), value,     \
      attribute, device)                                                                          \
    X(cudaSetDeviceFlags, (unsigned flags), flags)                                                \
    X(cudaDeviceSetCacheConfig, (enum cudaFuncCache config), config)                              \
    X(cudaDeviceSetLimit, (enum cudaLimit limit, size_t value), limit, value)                     \
    X(cudaDeviceGetLimit, (size_t* value, enum cudaLimit limit), value, limit)                    \
    X(cudaDriverGetVersion, (int* version), version)                                              \
    X(cudaRuntimeGetVersion, (int* version), version)                                             \
    X(cudaMalloc, (void** pointer, size_t bytes), pointer, bytes)                                 \
    X(cudaFree, (void* pointer), pointer)                                                         \
    X(cudaMallocPitch, (void** pointer, size_t* pitch, size_t width, size_t height), pointer,     \
      pitch, width, height)                                                                       \
    X(cudaMallocHost, (void** pointer, size_t bytes), pointer, bytes, 0)                          \
    X(cudaHostAlloc, (void** pointer, size_t bytes, unsigned flags), pointer, bytes, flags)       \
    X(cudaFreeHost, (void* pointer), pointer)                                                     \
    X(cudaHostRegister, (void* pointer, size_t bytes, unsigned flags), pointer, bytes, flags)     \
    X(cudaHostUnregister, (void* pointer), pointer)                                               \
    X(cudaHostGetDevicePointer, (void** device, void* host, unsigned flags), device, host, flags) \
    X(cudaMallocManaged, (void** pointer, size_t bytes, unsigned flags), pointer, bytes, flags)   \
    X(cudaMemGetInfo, (size_t* available, size_t* total), available, total)                       \
    X(cudaPointerGetAttributes, (struct cudaPointerAttributes * attributes, const void* pointer), \
      attributes, pointer)                                                                        \
    X(cudaMemset, (void* pointer, int value, size_t bytes), pointer, value, bytes)                \
    X(cudaMemsetAsync, (void* pointer, int value, size_t bytes, cudaStream_t stream), pointer,    \
      value, bytes, stream)                                                                       \
    X(cudaMemset2D, (void* pointer, size_t pitch, int value, size_t width, size_t height),        \
      pointer, pitch, value, width, height)                                                       \
    X(cudaMemcpy, (void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind), to, from, \
      bytes, kind)                                                                                \
    X(cudaMemcpyAsync,                                                                            \
      (void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream),  \
      to, from, bytes, kind, stream)                                                              \
    X(cudaMemcpy2D,                                                                               \
      (void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,              \
       size_t height, enum cudaMemcpyKind kind),                                                  \
      to, to_pitch, from, from_pitch, width, height, kind)                                        \
    X(cudaStreamCreate, (cudaStream_t * stream), stream)                                          \
    X(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags), stream, flags)          \
    X(cudaStreamDestroy, (cudaStream_t stream), stream)                                           \
    X(cudaStreamSynchronize, (cudaStream_t stream), stream)                                       \
    X(cudaStreamQuery, (cudaStream_t stream), stream)                                             \
    X(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags), stream,      \
      event, flags)                                                                               \
    X(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void* data), stream,       \
      function, data)                                                                             \
    X(cudaEventCreate, (cudaEvent_t * event), event, 0)                                           \
    X(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags), event, flags)              \
    X(cudaEventDestroy, (cudaEvent_t event), event)                                               \
    X(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), event, stream)                   \
    X(cudaEventSynchronize, (cudaEvent_t event), event)                                           \
    X(cudaEventQuery, (cudaEvent_t event), event)                                                 \
    X(cudaEventElapsedTime, (float* ms, cudaEvent_t start, cudaEvent_t stop), ms, start, stop)

// Those without parameters that know the line of their caller.
#define CUDALAB_C_CALLS_OF_NOTHING(X) \
    X(cudaDeviceSynchronize)          \
    X(cudaDeviceReset)                \
    X(cudaThreadSynchronize)          \
    X(cudaThreadExit)
