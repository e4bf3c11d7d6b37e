// The CUDA runtime API. Every function knows the line of its caller.
#pragma once

#include "cudalab/graphs.h"
#include "cudalab/pools.h"
#include "launch.h"
#include "streams.h"

#define CUDART_VERSION 13000
#define CUDA_VERSION CUDART_VERSION
#define CUDARTAPI
#define CUDART_CB

struct cudaLaunchConfig_t {
    dim3 gridDim;
    dim3 blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute* attrs;
    unsigned numAttrs;
};

#pragma GCC visibility push(default)
namespace cudalab {
// Before a call whose result the program throws away; a rewritten program calls it.
void cudalab_thrown_away();
// A cudaError_t function of the device's side; messages use the program's name for it.
cudaError_t function_attributes(cudaFuncAttributes* attributes, const void* function, CUDALAB_HERE);
cudaError_t set_function_attribute(const void* function, cudaFuncAttribute attribute, int value,
                                   CUDALAB_HERE);
cudaError_t max_active_blocks(int* blocks, const void* function, int threads, size_t shared,
                              CUDALAB_HERE);
struct SymbolPart {  // a device variable, and the part of it that is copied
    const void* address;
    size_t size, count, offset;
};
cudaError_t function_name(const char** name, const void* function, const char* file, int line);
cudaError_t available_dynamic_shared(size_t* bytes, const void* function, int blocks, int threads,
                                     const char* file, int line);
cudaError_t invalid_value(const char* name, const char* why, const char* file, int line);
cudaError_t copy_to_symbol(const char* name, SymbolPart symbol, const void* source,
                           cudaMemcpyKind kind, cudaStream_t stream, const char* file, int line);
cudaError_t copy_from_symbol(const char* name, void* target, SymbolPart symbol, cudaMemcpyKind kind,
                             cudaStream_t stream, const char* file, int line);
cudaError_t symbol_address(void** address, const void* symbol, size_t bytes, const char* file,
                           int line);
cudaError_t symbol_size(size_t* size, const void* symbol, size_t bytes, const char* file, int line);
cudaError_t launch_function(const void* function, const Config& config, void** args);
}  // namespace cudalab

// ------------------------------------------------------------------ errors, device, version

cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();
const char* cudaGetErrorString(cudaError_t error);
const char* cudaGetErrorName(cudaError_t error);

cudaError_t cudaGetDeviceCount(int* count, CUDALAB_HERE);
cudaError_t cudaSetDevice(int device, CUDALAB_HERE);
cudaError_t cudaGetDevice(int* device, CUDALAB_HERE);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device, CUDALAB_HERE);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device, CUDALAB_HERE);
cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* wanted, CUDALAB_HERE);
cudaError_t cudaSetDeviceFlags(unsigned flags, CUDALAB_HERE);
cudaError_t cudaGetDeviceFlags(unsigned* flags, CUDALAB_HERE);
cudaError_t cudaSetValidDevices(int* devices, int count, CUDALAB_HERE);
cudaError_t cudaInitDevice(int device, unsigned device_flags, unsigned flags, CUDALAB_HERE);
cudaError_t cudaDeviceGetPCIBusId(char* id, int size, int device, CUDALAB_HERE);
cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* id, CUDALAB_HERE);
cudaError_t cudaDeviceSynchronize(CUDALAB_HERE);
cudaError_t cudaDeviceReset(CUDALAB_HERE);
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config, CUDALAB_HERE);
cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config, CUDALAB_HERE);
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig config, CUDALAB_HERE);
cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config, CUDALAB_HERE);
cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value, CUDALAB_HERE);
cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit, CUDALAB_HERE);
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest, CUDALAB_HERE);
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer, CUDALAB_HERE);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags, CUDALAB_HERE);
cudaError_t cudaDeviceDisablePeerAccess(int peer, CUDALAB_HERE);
cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int device, int peer,
                                      CUDALAB_HERE);
cudaError_t cudaCtxResetPersistingL2Cache(CUDALAB_HERE);
cudaError_t cudaDriverGetVersion(int* version, CUDALAB_HERE);
cudaError_t cudaRuntimeGetVersion(int* version, CUDALAB_HERE);
// The names of CUDA 3, which CUDA 13 has removed.
inline cudaError_t cudaThreadSynchronize(CUDALAB_HERE) {
    return cudaDeviceSynchronize(file, line);
}
inline cudaError_t cudaThreadExit(CUDALAB_HERE) {
    return cudaDeviceReset(file, line);
}
inline cudaError_t cudaThreadSetLimit(cudaLimit limit, size_t value, CUDALAB_HERE) {
    return cudaDeviceSetLimit(limit, value, file, line);
}
inline cudaError_t cudaThreadGetLimit(size_t* value, cudaLimit limit, CUDALAB_HERE) {
    return cudaDeviceGetLimit(value, limit, file, line);
}
inline cudaError_t cudaThreadSetCacheConfig(cudaFuncCache config, CUDALAB_HERE) {
    return cudaDeviceSetCacheConfig(config, file, line);
}
inline cudaError_t cudaThreadGetCacheConfig(cudaFuncCache* config, CUDALAB_HERE) {
    return cudaDeviceGetCacheConfig(config, file, line);
}
cudaError_t cudaProfilerStart();
cudaError_t cudaProfilerStop();

// ------------------------------------------------------------------ memory

cudaError_t cudaMalloc(void** pointer, size_t bytes, CUDALAB_HERE);
cudaError_t cudaFree(void* pointer, CUDALAB_HERE);
cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height,
                            CUDALAB_HERE);
cudaError_t cudaMalloc3D(cudaPitchedPtr* pointer, cudaExtent extent, CUDALAB_HERE);
cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned flags, CUDALAB_HERE);
cudaError_t cudaFreeHost(void* pointer, CUDALAB_HERE);
cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned flags, CUDALAB_HERE);
cudaError_t cudaHostUnregister(void* pointer, CUDALAB_HERE);
cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned flags, CUDALAB_HERE);
cudaError_t cudaHostGetFlags(unsigned* flags, void* host, CUDALAB_HERE);
cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned flags, CUDALAB_HERE);
cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, int device,
                                 cudaStream_t stream = nullptr, CUDALAB_HERE);
cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, cudaMemLocation location,
                                 unsigned flags, cudaStream_t stream = nullptr, CUDALAB_HERE);
cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, cudaMemoryAdvise advice, int device,
                          CUDALAB_HERE);
cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, cudaMemoryAdvise advice,
                          cudaMemLocation location, CUDALAB_HERE);
cudaError_t cudaMemRangeGetAttribute(void* data, size_t size, cudaMemRangeAttribute attribute,
                                     const void* pointer, size_t bytes, CUDALAB_HERE);
cudaError_t cudaMemRangeGetAttributes(void** data, size_t* sizes, cudaMemRangeAttribute* attributes,
                                      size_t count, const void* pointer, size_t bytes,
                                      CUDALAB_HERE);
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total, CUDALAB_HERE);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer,
                                     CUDALAB_HERE);

cudaError_t cudaMemset(void* pointer, int value, size_t bytes, CUDALAB_HERE);
cudaError_t cudaMemset2D(void* pointer, size_t pitch, int value, size_t width, size_t height,
                         CUDALAB_HERE);
cudaError_t cudaMemcpy(void* target, const void* source, size_t bytes, cudaMemcpyKind kind,
                       CUDALAB_HERE);
cudaError_t cudaMemcpy2D(void* target, size_t target_pitch, const void* source, size_t source_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind, CUDALAB_HERE);

cudaError_t cudaMemsetAsync(void* pointer, int value, size_t bytes, cudaStream_t stream = nullptr,
                            CUDALAB_HERE);
cudaError_t cudaMemset2DAsync(void* pointer, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream = nullptr, CUDALAB_HERE);
cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr, CUDALAB_HERE);
cudaError_t cudaMemcpy2DAsync(void* target, size_t target_pitch, const void* source,
                              size_t source_pitch, size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream = nullptr, CUDALAB_HERE);
inline cudaError_t cudaMemcpyPeer(void* target, int, const void* source, int, size_t bytes,
                                  CUDALAB_HERE) {
    return cudaMemcpy(target, source, bytes, cudaMemcpyDeviceToDevice, file, line);
}
inline cudaError_t cudaMemcpyPeerAsync(void* target, int, const void* source, int, size_t bytes,
                                       cudaStream_t stream = nullptr, CUDALAB_HERE) {
    return cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToDevice, stream, file, line);
}

template <class T>
inline cudaError_t cudaMalloc(T** pointer, size_t bytes, CUDALAB_HERE) {
    return cudaMalloc((void**)pointer, bytes, file, line);
}
template <class T>
inline cudaError_t cudaMallocPitch(T** pointer, size_t* pitch, size_t width, size_t height,
                                   CUDALAB_HERE) {
    return cudaMallocPitch((void**)pointer, pitch, width, height, file, line);
}
template <class T>
inline cudaError_t cudaMallocHost(T** pointer, size_t bytes, unsigned flags = 0, CUDALAB_HERE) {
    return cudaHostAlloc((void**)pointer, bytes, flags, file, line);
}
template <class T>
inline cudaError_t cudaHostAlloc(T** pointer, size_t bytes, unsigned flags = 0, CUDALAB_HERE) {
    return cudaHostAlloc((void**)pointer, bytes, flags, file, line);
}
template <class T>
inline cudaError_t cudaHostGetDevicePointer(T** device, void* host, unsigned flags = 0,
                                            CUDALAB_HERE) {
    return cudaHostGetDevicePointer((void**)device, host, flags, file, line);
}
template <class T>
inline cudaError_t cudaMallocManaged(T** pointer, size_t bytes,
                                     unsigned flags = cudaMemAttachGlobal, CUDALAB_HERE) {
    return cudaMallocManaged((void**)pointer, bytes, flags, file, line);
}
inline cudaExtent make_cudaExtent(size_t width, size_t height, size_t depth) {
    return {width, height, depth};
}
inline cudaPitchedPtr make_cudaPitchedPtr(void* pointer, size_t pitch, size_t x, size_t y) {
    return {pointer, pitch, x, y};
}
inline cudaPos make_cudaPos(size_t x, size_t y, size_t z) {
    return {x, y, z};
}

// ------------------------------------------------------------------ device variables

template <class T>
inline cudaError_t cudaMemcpyToSymbol(const T& symbol, const void* source, size_t count,
                                      size_t offset = 0,
                                      cudaMemcpyKind kind = cudaMemcpyHostToDevice, CUDALAB_HERE) {
    return cudalab::copy_to_symbol("cudaMemcpyToSymbol",
                                   {(const void*)&symbol, sizeof(T), count, offset}, source, kind,
                                   nullptr, file, line);
}
template <class T>
inline cudaError_t cudaMemcpyToSymbolAsync(const T& symbol, const void* source, size_t count,
                                           size_t offset, cudaMemcpyKind kind,
                                           cudaStream_t stream = nullptr, CUDALAB_HERE) {
    return cudalab::copy_to_symbol("cudaMemcpyToSymbolAsync",
                                   {(const void*)&symbol, sizeof(T), count, offset}, source, kind,
                                   stream, file, line);
}
template <class T>
inline cudaError_t cudaMemcpyFromSymbol(void* target, const T& symbol, size_t count,
                                        size_t offset = 0,
                                        cudaMemcpyKind kind = cudaMemcpyDeviceToHost,
                                        CUDALAB_HERE) {
    return cudalab::copy_from_symbol("cudaMemcpyFromSymbol", target,
                                     {(const void*)&symbol, sizeof(T), count, offset}, kind,
                                     nullptr, file, line);
}
template <class T>
inline cudaError_t cudaMemcpyFromSymbolAsync(void* target, const T& symbol, size_t count,
                                             size_t offset, cudaMemcpyKind kind,
                                             cudaStream_t stream = nullptr, CUDALAB_HERE) {
    return cudalab::copy_from_symbol("cudaMemcpyFromSymbolAsync", target,
                                     {(const void*)&symbol, sizeof(T), count, offset}, kind, stream,
                                     file, line);
}
template <class P, class T>
inline cudaError_t cudaGetSymbolAddress(P** address, const T& symbol, CUDALAB_HERE) {
    return cudalab::symbol_address((void**)address, (const void*)&symbol, sizeof(T), file, line);
}
template <class T>
inline cudaError_t cudaGetSymbolSize(size_t* size, const T& symbol, CUDALAB_HERE) {
    return cudalab::symbol_size(size, (const void*)&symbol, sizeof(T), file, line);
}

// ------------------------------------------------------------------ functions and launches

template <class F>
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, F* function,
                                         CUDALAB_HERE) {
    return cudalab::function_attributes(attributes, (const void*)function, file, line);
}
template <class F>
inline cudaError_t cudaFuncSetAttribute(F* function, cudaFuncAttribute attribute, int value,
                                        CUDALAB_HERE) {
    return cudalab::set_function_attribute((const void*)function, attribute, value, file, line);
}
template <class F>
inline cudaError_t cudaFuncSetCacheConfig(F*, cudaFuncCache) {
    return cudaSuccess;
}
template <class F>
inline cudaError_t cudaFuncSetSharedMemConfig(F*, cudaSharedMemConfig) {
    return cudaSuccess;
}
template <class F>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, F* function,
                                                                 int threads, size_t shared,
                                                                 CUDALAB_HERE) {
    return cudalab::max_active_blocks(blocks, (const void*)function, threads, shared, file, line);
}
template <class F>
inline cudaError_t cudaFuncGetName(const char** name, F* function, CUDALAB_HERE) {
    return cudalab::function_name(name, (const void*)function, file, line);
}
template <class F>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, F* function, int threads, size_t shared, unsigned flags, CUDALAB_HERE) {
    return flags & ~cudaOccupancyDisableCachingOverride
               ? cudalab::invalid_value("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
                                        "the flags are not known", file, line)
               : cudalab::max_active_blocks(blocks, (const void*)function, threads, shared, file,
                                            line);
}
template <class F>
inline cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, F* function, int blocks,
                                                             int threads, CUDALAB_HERE) {
    return cudalab::available_dynamic_shared(bytes, (const void*)function, blocks, threads, file,
                                             line);
}
template <class F, class S>
inline cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int* grid, int* block,
                                                                  F* function, S shared_bytes,
                                                                  int limit = 0, CUDALAB_HERE) {
    int best = 0, processors = 0;
    cudaFuncAttributes attributes;
    cudaError_t error =
        cudalab::function_attributes(&attributes, (const void*)function, file, line);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0, file, line);
    if (error != cudaSuccess) return error;
    if (limit <= 0 || limit > attributes.maxThreadsPerBlock) limit = attributes.maxThreadsPerBlock;
    for (int threads = (limit + 31) / 32 * 32; threads > 0; threads -= 32) {
        int size = threads < limit ? threads : limit, blocks = 0;
        error = cudalab::max_active_blocks(&blocks, (const void*)function, size,
                                           (size_t)shared_bytes(size), file, line);
        if (error != cudaSuccess) return error;
        if (blocks * size > best) best = blocks * size, *block = size, *grid = blocks * processors;
    }
    return cudaSuccess;
}
template <class F, class S>
inline cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMemWithFlags(
    int* grid, int* block, F* function, S shared_bytes, int limit = 0, unsigned = 0, CUDALAB_HERE) {
    return cudaOccupancyMaxPotentialBlockSizeVariableSMem(grid, block, function, shared_bytes,
                                                          limit, file, line);
}
template <class F>
inline cudaError_t cudaOccupancyMaxPotentialBlockSize(int* grid, int* block, F* function,
                                                      size_t shared = 0, int limit = 0,
                                                      CUDALAB_HERE) {
    return cudaOccupancyMaxPotentialBlockSizeVariableSMem(
        grid, block, function, [shared](int) { return shared; }, limit, file, line);
}

template <class F>
inline cudaError_t cudaOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, F* function,
                                                               size_t shared, int limit, unsigned,
                                                               CUDALAB_HERE) {
    return cudaOccupancyMaxPotentialBlockSize(grid, block, function, shared, limit, file, line);
}

inline cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** args,
                                    size_t shared = 0, cudaStream_t stream = nullptr,
                                    CUDALAB_HERE) {
    return cudalab::launch_function(function,
                                    cudalab::Config(grid, block, shared, stream, file, line), args);
}
inline cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block,
                                               void** args, size_t shared = 0,
                                               cudaStream_t stream = nullptr, CUDALAB_HERE) {
    cudalab::Config config(grid, block, shared, stream, file, line);
    config.cooperative = true;
    return cudalab::launch_function(function, config, args);
}
template <class... P>
inline cudaError_t cudaLaunchKernel(void (*function)(P...), dim3 grid, dim3 block, void** args,
                                    size_t shared = 0, cudaStream_t stream = nullptr,
                                    CUDALAB_HERE) {
    return cudaLaunchKernel((const void*)cudalab::cudalab_enlisted(function, "kernel"), grid, block,
                            args, shared, stream, file, line);
}
template <class... P>
inline cudaError_t cudaLaunchCooperativeKernel(void (*function)(P...), dim3 grid, dim3 block,
                                               void** args, size_t shared = 0,
                                               cudaStream_t stream = nullptr, CUDALAB_HERE) {
    return cudaLaunchCooperativeKernel((const void*)cudalab::cudalab_enlisted(function, "kernel"),
                                       grid, block, args, shared, stream, file, line);
}
namespace cudalab {
inline Config config_of(const cudaLaunchConfig_t* given, const char* file, int line) {
    Config config(given->gridDim, given->blockDim, given->dynamicSmemBytes, given->stream, file,
                  line);
    for (unsigned i = 0; i < given->numAttrs; ++i)
        if (given->attrs[i].id == cudaLaunchAttributeCooperative)
            config.cooperative = given->attrs[i].val.cooperative != 0;
    return config;
}
template <class T>
struct AsIs {
    typedef T type;
};
}  // namespace cudalab
inline cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                       void** args, CUDALAB_HERE) {
    return cudalab::launch_function(function, cudalab::config_of(config, file, line), args);
}
template <class... P>
inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*function)(P...),
                                      typename cudalab::AsIs<P>::type... arguments) {
    void* args[] = {(void*)&arguments..., nullptr};
    return cudaLaunchKernelExC(config, (const void*)cudalab::cudalab_enlisted(function, "kernel"),
                               args);
}
#pragma GCC visibility pop
