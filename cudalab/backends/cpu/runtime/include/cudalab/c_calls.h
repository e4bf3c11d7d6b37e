// The functions of the CUDA runtime API that files in C call: name, parameters, arguments.
#pragma once

#define CUDALAB_C_CALLS(X)                                                                         \
    X(cudaGetDeviceCount, (int* count), count)                                                     \
    X(cudaSetDevice, (int device), device)                                                         \
    X(cudaGetDevice, (int* device), device)                                                        \
    X(cudaGetDeviceProperties, (struct cudaDeviceProp * properties, int device), properties,       \
      device)                                                                                      \
    X(cudaDeviceGetAttribute, (int* value, enum cudaDeviceAttr attribute, int device), value,      \
      attribute, device)                                                                           \
    X(cudaSetDeviceFlags, (unsigned flags), flags)                                                 \
    X(cudaDeviceSetCacheConfig, (enum cudaFuncCache config), config)                               \
    X(cudaDeviceSetLimit, (enum cudaLimit limit, size_t value), limit, value)                      \
    X(cudaDeviceGetLimit, (size_t* value, enum cudaLimit limit), value, limit)                     \
    X(cudaDriverGetVersion, (int* version), version)                                               \
    X(cudaRuntimeGetVersion, (int* version), version)                                              \
    X(cudaMalloc, (void** pointer, size_t bytes), pointer, bytes)                                  \
    X(cudaFree, (void* pointer), pointer)                                                          \
    X(cudaMallocPitch, (void** pointer, size_t* pitch, size_t width, size_t height), pointer,      \
      pitch, width, height)                                                                        \
    X(cudaMallocHost, (void** pointer, size_t bytes), pointer, bytes, 0)                           \
    X(cudaHostAlloc, (void** pointer, size_t bytes, unsigned flags), pointer, bytes, flags)        \
    X(cudaFreeHost, (void* pointer), pointer)                                                      \
    X(cudaHostRegister, (void* pointer, size_t bytes, unsigned flags), pointer, bytes, flags)      \
    X(cudaHostUnregister, (void* pointer), pointer)                                                \
    X(cudaHostGetDevicePointer, (void** device, void* host, unsigned flags), device, host, flags)  \
    X(cudaMallocManaged, (void** pointer, size_t bytes, unsigned flags), pointer, bytes, flags)    \
    X(cudaMemGetInfo, (size_t* available, size_t* total), available, total)                        \
    X(cudaPointerGetAttributes, (struct cudaPointerAttributes * attributes, const void* pointer),  \
      attributes, pointer)                                                                         \
    X(cudaMemset, (void* pointer, int value, size_t bytes), pointer, value, bytes)                 \
    X(cudaMemsetAsync, (void* pointer, int value, size_t bytes, cudaStream_t stream), pointer,     \
      value, bytes, stream)                                                                        \
    X(cudaMemset2D, (void* pointer, size_t pitch, int value, size_t width, size_t height),         \
      pointer, pitch, value, width, height)                                                        \
    X(cudaMemcpy, (void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind), to, from,  \
      bytes, kind)                                                                                 \
    X(cudaMemcpyAsync,                                                                             \
      (void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream),   \
      to, from, bytes, kind, stream)                                                               \
    X(cudaMemcpy2D,                                                                                \
      (void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,               \
       size_t height, enum cudaMemcpyKind kind),                                                   \
      to, to_pitch, from, from_pitch, width, height, kind)                                         \
    X(cudaStreamCreate, (cudaStream_t * stream), stream)                                           \
    X(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags), stream, flags)           \
    X(cudaStreamDestroy, (cudaStream_t stream), stream)                                            \
    X(cudaStreamSynchronize, (cudaStream_t stream), stream)                                        \
    X(cudaStreamQuery, (cudaStream_t stream), stream)                                              \
    X(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags), stream,       \
      event, flags)                                                                                \
    X(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void* data), stream,        \
      function, data)                                                                              \
    X(cudaEventCreate, (cudaEvent_t * event), event, 0)                                            \
    X(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags), event, flags)               \
    X(cudaEventDestroy, (cudaEvent_t event), event)                                                \
    X(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), event, stream)                    \
    X(cudaEventSynchronize, (cudaEvent_t event), event)                                            \
    X(cudaEventQuery, (cudaEvent_t event), event)                                                  \
    X(cudaEventElapsedTime, (float* ms, cudaEvent_t start, cudaEvent_t stop), ms, start, stop)     \
    X(cudaChooseDevice, (int* device, const struct cudaDeviceProp* wanted), device, wanted)        \
    X(cudaGetDeviceFlags, (unsigned* flags), flags)                                                \
    X(cudaDeviceGetCacheConfig, (enum cudaFuncCache * config), config)                             \
    X(cudaDeviceSetSharedMemConfig, (enum cudaSharedMemConfig config), config)                     \
    X(cudaDeviceGetStreamPriorityRange, (int* least, int* greatest), least, greatest)              \
    X(cudaDeviceCanAccessPeer, (int* can, int device, int peer), can, device, peer)                \
    X(cudaDeviceEnablePeerAccess, (int peer, unsigned flags), peer, flags)                         \
    X(cudaDeviceDisablePeerAccess, (int peer), peer)                                               \
    X(cudaHostGetFlags, (unsigned* flags, void* host), flags, host)                                \
    X(cudaMemset2DAsync,                                                                           \
      (void* pointer, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream),  \
      pointer, pitch, value, width, height, stream)                                                \
    X(cudaMemcpy2DAsync,                                                                           \
      (void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,               \
       size_t height, enum cudaMemcpyKind kind, cudaStream_t stream),                              \
      to, to_pitch, from, from_pitch, width, height, kind, stream)                                 \
    X(cudaMemcpyPeer, (void* to, int device, const void* from, int other, size_t bytes), to,       \
      device, from, other, bytes)                                                                  \
    X(cudaMemcpyPeerAsync,                                                                         \
      (void* to, int device, const void* from, int other, size_t bytes, cudaStream_t stream), to,  \
      device, from, other, bytes, stream)                                                          \
    X(cudaStreamCreateWithPriority, (cudaStream_t * stream, unsigned flags, int priority), stream, \
      flags, priority)                                                                             \
    X(cudaStreamGetPriority, (cudaStream_t stream, int* priority), stream, priority)               \
    X(cudaStreamGetFlags, (cudaStream_t stream, unsigned* flags), stream, flags)                   \
    X(cudaStreamAddCallback,                                                                       \
      (cudaStream_t stream, cudaStreamCallback_t function, void* data, unsigned flags), stream,    \
      function, data, flags)                                                                       \
    X(cudaFuncGetAttributes, (struct cudaFuncAttributes * attributes, const void* kernel),         \
      attributes, kernel)                                                                          \
    X(cudaFuncSetAttribute, (const void* kernel, enum cudaFuncAttribute attribute, int value),     \
      kernel, attribute, value)                                                                    \
    X(cudaOccupancyMaxActiveBlocksPerMultiprocessor,                                               \
      (int* blocks, const void* kernel, int threads, size_t shared), blocks, kernel, threads,      \
      shared)                                                                                      \
    X(cudaLaunchKernel,                                                                            \
      (const void* kernel, dim3 grid, dim3 block, void** arguments, size_t shared,                 \
       cudaStream_t stream),                                                                       \
      kernel, grid, block, arguments, shared, stream)                                              \
    X(cudaLaunchCooperativeKernel,                                                                 \
      (const void* kernel, dim3 grid, dim3 block, void** arguments, size_t shared,                 \
       cudaStream_t stream),                                                                       \
      kernel, grid, block, arguments, shared, stream)

// Those without parameters that know the line of their caller.
#define CUDALAB_C_CALLS_OF_NOTHING(X) \
    X(cudaDeviceSynchronize)          \
    X(cudaDeviceReset)                \
    X(cudaThreadSynchronize)          \
    X(cudaThreadExit)
