// The driver interface. It has contexts of its own, which all stand for the one device; the rest is
// the runtime's.

#include <stdlib.h>
#include <string.h>

#include "cuda.h"
#include "list.h"
#include "work.h"

struct CUctx_st {
    unsigned flags;
};

namespace cudalab {

static bool initialized;  // by cuInit; the runtime does so, too
static CUctx_st primary;
static unsigned primary_users;

static List<CUcontext>& contexts() {  // of this thread; the last one is current
    static thread_local List<CUcontext> list;
    return list;
}
static CUcontext current_context() {
    const List<CUcontext>& list = contexts();
    if (list.size()) return list[list.size() - 1];
    return runtime_is_used() ? &primary : nullptr;  // the runtime makes the primary one current
}

static CUresult result_of(cudaError_t error) {
    switch (error) {
#define CUDALAB_RESULT_CASE(name, number) case (cudaError_t)number:
        CUDALAB_RESULTS(CUDALAB_RESULT_CASE)
        return (CUresult)error;
        default:  // what only the runtime has
            return CUDA_ERROR_INVALID_VALUE;
    }
}
// Makes a call of the runtime, whose last error stays as it is.
template <class F>
static CUresult without_context(F call) {
    if (!initialized && !runtime_is_used()) return CUDA_ERROR_NOT_INITIALIZED;
    OfDriver calls;
    return result_of(call());
}
template <class F>
static CUresult in_context(F call) {
    if (!initialized && !runtime_is_used()) return CUDA_ERROR_NOT_INITIALIZED;
    if (!current_context()) return CUDA_ERROR_INVALID_CONTEXT;
    return without_context(call);
}

static CUresult fill(const char* name, CUdeviceptr target, unsigned value, unsigned element_bytes,
                     size_t count, CUstream stream, const char* file, int line) {
    return in_context([&] {
        Call call(name, {file, line});
        if (cudaError_t error = call.pending()) return error;
        if (target % element_bytes) return call.fail(cudaErrorInvalidValue, "misaligned");
        Work work(Fill{(void*)target, count * element_bytes, value, element_bytes, count, 1});
        return submit(call, stream, work);
    });
}

}  // namespace cudalab

using namespace cudalab;

CUresult cuInit(unsigned flags, const char*, int) {
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    initialized = true;
    return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int* version, const char*, int) {
    if (!version) return CUDA_ERROR_INVALID_VALUE;
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult result, const char** name) {
    if (!name) return CUDA_ERROR_INVALID_VALUE;
    switch (result) {
#define CUDALAB_RESULT_NAME(name_, number) \
    case name_:                            \
        return *name = #name_, CUDA_SUCCESS;
        CUDALAB_RESULTS(CUDALAB_RESULT_NAME)
    }
    *name = nullptr;
    return CUDA_ERROR_INVALID_VALUE;
}
CUresult cuGetErrorString(CUresult result, const char** text) {
    const CUresult known = cuGetErrorName(result, text);
    if (!known) *text = cudaGetErrorString((cudaError_t)result);
    return known;
}

// ------------------------------------------------------------------ devices

CUresult cuDeviceGetCount(int* count, const char* file, int line) {
    return without_context([&] { return cudaGetDeviceCount(count, file, line); });
}
CUresult cuDeviceGet(CUdevice* device, int number, const char* file, int line) {
    return without_context([&] {
        const cudaError_t error = cudaSetDevice(number, file, line);
        if (!error) *device = number;
        return error;
    });
}
template <class Read>
static CUresult read_properties(CUdevice device, const char* file, int line, Read read) {
    return without_context([&] {
        cudaDeviceProp properties;
        const cudaError_t error = cudaGetDeviceProperties(&properties, device, file, line);
        if (!error) read(properties);
        return error;
    });
}
CUresult cuDeviceGetName(char* name, int size, CUdevice device, const char* file, int line) {
    return read_properties(device, file, line, [&](const cudaDeviceProp& properties) {
        snprintf(name, (size_t)size, "%s", properties.name);
    });
}
CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device, const char* file, int line) {
    return read_properties(device, file, line,
                           [&](const cudaDeviceProp& properties) { *uuid = properties.uuid; });
}
CUresult cuDeviceTotalMem(size_t* bytes, CUdevice device, const char* file, int line) {
    return read_properties(device, file, line, [&](const cudaDeviceProp& properties) {
        *bytes = properties.totalGlobalMem;
    });
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device,
                              const char* file, int line) {
    return without_context([&] {
        return cudaDeviceGetAttribute(value, (cudaDeviceAttr)attribute, device, file, line);
    });
}
CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device, const char* file,
                                   int line) {
    return read_properties(device, file, line, [&](const cudaDeviceProp& properties) {
        *major = properties.major;
        *minor = properties.minor;
    });
}
CUresult cuDeviceGetPCIBusId(char* id, int size, CUdevice device, const char* file, int line) {
    return without_context([&] { return cudaDeviceGetPCIBusId(id, size, device, file, line); });
}
CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* id, const char* file, int line) {
    return without_context([&] { return cudaDeviceGetByPCIBusId(device, id, file, line); });
}
CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer, const char* file,
                               int line) {
    return without_context([&] { return cudaDeviceCanAccessPeer(can, device, peer, file, line); });
}

// ------------------------------------------------------------------ contexts

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device, const char* file, int line) {
    return without_context([&] {
        const cudaError_t error = cudaSetDevice(device, file, line);
        if (!error) *context = &primary, ++primary_users;
        return error;
    });
}
CUresult cuDevicePrimaryCtxRelease(CUdevice device, const char* file, int line) {
    return without_context([&] {
        if (primary_users) --primary_users;
        return cudaSetDevice(device, file, line);
    });
}
CUresult cuDevicePrimaryCtxReset(CUdevice device, const char* file, int line) {
    return without_context([&] {
        const cudaError_t error = cudaSetDevice(device, file, line);
        return error ? error : cudaDeviceReset(file, line);
    });
}
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active, const char* file,
                                    int line) {
    return without_context([&] {
        *flags = 0;
        *active = primary_users != 0 || runtime_is_used();
        return cudaSetDevice(device, file, line);
    });
}
CUresult cuCtxCreate(CUcontext* context, CUctxCreateParams*, unsigned flags, CUdevice device,
                     const char* file, int line) {
    return without_context([&] {
        if (cudaError_t error = cudaSetDevice(device, file, line)) return error;
        if (!context) return cudaErrorInvalidValue;
        *context = (CUcontext)malloc(sizeof **context);
        if (!*context) return cudaErrorMemoryAllocation;
        (*context)->flags = flags;
        contexts().add(*context);
        return cudaSuccess;
    });
}
CUresult cuCtxDestroy(CUcontext context, const char*, int) {
    return without_context([&] {
        if (!context || context == &primary) return cudaErrorDeviceUninitialized;
        contexts().remove(context);
        free(context);
        return cudaSuccess;
    });
}
CUresult cuCtxGetCurrent(CUcontext* context, const char*, int) {
    return without_context([&] {
        *context = current_context();
        return cudaSuccess;
    });
}
CUresult cuCtxSetCurrent(CUcontext context, const char*, int) {
    return without_context([&] {
        List<CUcontext>& list = contexts();
        if (list.size()) list.remove_last();
        if (context) list.add(context);
        return cudaSuccess;
    });
}
CUresult cuCtxPushCurrent(CUcontext context, const char*, int) {
    return without_context([&] {
        if (!context) return cudaErrorDeviceUninitialized;
        contexts().add(context);
        return cudaSuccess;
    });
}
CUresult cuCtxPopCurrent(CUcontext* context, const char*, int) {
    return without_context([&] {
        List<CUcontext>& list = contexts();
        if (!list.size()) return cudaErrorDeviceUninitialized;
        const CUcontext last = list[list.size() - 1];
        if (context) *context = last;
        list.remove_last();
        return cudaSuccess;
    });
}
CUresult cuCtxGetDevice(CUdevice* device, const char* file, int line) {
    return in_context([&] { return cudaGetDevice(device, file, line); });
}
CUresult cuCtxGetApiVersion(CUcontext, unsigned* version, const char*, int) {
    return without_context([&] {
        *version = 3020;  // as a GPU's driver says for every context
        return cudaSuccess;
    });
}
CUresult cuCtxSynchronize(const char* file, int line) {
    return in_context([&] { return cudaDeviceSynchronize(file, line); });
}
CUresult cuCtxSetLimit(CUlimit limit, size_t value, const char* file, int line) {
    return in_context([&] { return cudaDeviceSetLimit((cudaLimit)limit, value, file, line); });
}
CUresult cuCtxGetLimit(size_t* value, CUlimit limit, const char* file, int line) {
    return in_context([&] { return cudaDeviceGetLimit(value, (cudaLimit)limit, file, line); });
}
CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest, const char* file, int line) {
    return in_context(
        [&] { return cudaDeviceGetStreamPriorityRange(least, greatest, file, line); });
}

// ------------------------------------------------------------------ memory

CUresult cuMemGetInfo(size_t* free_bytes, size_t* total, const char* file, int line) {
    return in_context([&] { return cudaMemGetInfo(free_bytes, total, file, line); });
}
CUresult cuMemAlloc(CUdeviceptr* pointer, size_t bytes, const char* file, int line) {
    return in_context([&] {
        return bytes ? cudaMalloc((void**)pointer, bytes, file, line) : cudaErrorInvalidValue;
    });
}
CUresult cuMemAllocPitch(CUdeviceptr* pointer, size_t* pitch, size_t width, size_t height, unsigned,
                         const char* file, int line) {
    return in_context([&] {
        return width && height ? cudaMallocPitch((void**)pointer, pitch, width, height, file, line)
                               : cudaErrorInvalidValue;
    });
}
CUresult cuMemAllocManaged(CUdeviceptr* pointer, size_t bytes, unsigned flags, const char* file,
                           int line) {
    return in_context([&] {
        return bytes ? cudaMallocManaged((void**)pointer, bytes, flags, file, line)
                     : cudaErrorInvalidValue;
    });
}
CUresult cuMemFree(CUdeviceptr pointer, const char* file, int line) {
    return in_context([&] { return cudaFree((void*)pointer, file, line); });
}
CUresult cuMemGetAddressRange(CUdeviceptr* base, size_t* bytes, CUdeviceptr pointer,
                              const char* file, int line) {
    return in_context([&] {
        Call call("cuMemGetAddressRange", {file, line});
        const Allocation* in = find_allocation((const void*)pointer);
        const size_t of_literal = in ? 0 : know_literal((const void*)pointer);
        if (!in && !of_literal)
            return call.fail(cudaErrorInvalidValue, "this is not allocated memory");
        if (base) *base = in ? in->begin : pointer;
        if (bytes) *bytes = in ? in->bytes : of_literal;
        return cudaSuccess;
    });
}
CUresult cuMemAllocHost(void** pointer, size_t bytes, const char* file, int line) {
    return cuMemHostAlloc(pointer, bytes, 0, file, line);
}
CUresult cuMemHostAlloc(void** pointer, size_t bytes, unsigned flags, const char* file, int line) {
    return in_context([&] { return cudaHostAlloc(pointer, bytes, flags, file, line); });
}
CUresult cuMemFreeHost(void* pointer, const char* file, int line) {
    return in_context([&] { return cudaFreeHost(pointer, file, line); });
}
CUresult cuMemHostRegister(void* pointer, size_t bytes, unsigned flags, const char* file,
                           int line) {
    return in_context([&] { return cudaHostRegister(pointer, bytes, flags, file, line); });
}
CUresult cuMemHostUnregister(void* pointer, const char* file, int line) {
    return in_context([&] { return cudaHostUnregister(pointer, file, line); });
}
CUresult cuMemHostGetDevicePointer(CUdeviceptr* device, void* host, unsigned flags,
                                   const char* file, int line) {
    return in_context(
        [&] { return cudaHostGetDevicePointer((void**)device, host, flags, file, line); });
}

static CUresult copy(void* target, const void* source, size_t bytes, cudaMemcpyKind kind,
                     const char* file, int line) {
    return in_context([&] { return cudaMemcpy(target, source, bytes, kind, file, line); });
}
static CUresult copy(void* target, const void* source, size_t bytes, cudaMemcpyKind kind,
                     CUstream stream, const char* file, int line) {
    return in_context(
        [&] { return cudaMemcpyAsync(target, source, bytes, kind, stream, file, line); });
}
CUresult cuMemcpy(CUdeviceptr target, CUdeviceptr source, size_t bytes, const char* file,
                  int line) {
    return copy((void*)target, (void*)source, bytes, cudaMemcpyDefault, file, line);
}
CUresult cuMemcpyAsync(CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream,
                       const char* file, int line) {
    return copy((void*)target, (void*)source, bytes, cudaMemcpyDefault, stream, file, line);
}
#define CUDALAB_COPY(name, Target, Source, kind)                                            \
    CUresult name(Target target, Source source, size_t bytes, const char* file, int line) { \
        return copy((void*)target, (const void*)source, bytes, kind, file, line);           \
    }                                                                                       \
    CUresult name##Async(Target target, Source source, size_t bytes, CUstream stream,       \
                         const char* file, int line) {                                      \
        return copy((void*)target, (const void*)source, bytes, kind, stream, file, line);   \
    }
CUDALAB_COPY(cuMemcpyHtoD, CUdeviceptr, const void*, cudaMemcpyHostToDevice)
CUDALAB_COPY(cuMemcpyDtoH, void*, CUdeviceptr, cudaMemcpyDeviceToHost)
CUDALAB_COPY(cuMemcpyDtoD, CUdeviceptr, CUdeviceptr, cudaMemcpyDeviceToDevice)
#define CUDALAB_FILL(name, T)                                                              \
    CUresult name(CUdeviceptr target, T value, size_t count, const char* file, int line) { \
        return fill(#name, target, value, sizeof(T), count, nullptr, file, line);          \
    }                                                                                      \
    CUresult name##Async(CUdeviceptr target, T value, size_t count, CUstream stream,       \
                         const char* file, int line) {                                     \
        return fill(#name "Async", target, value, sizeof(T), count, stream, file, line);   \
    }
CUDALAB_FILL(cuMemsetD8, unsigned char)
CUDALAB_FILL(cuMemsetD16, unsigned short)
CUDALAB_FILL(cuMemsetD32, unsigned)

// ------------------------------------------------------------------ streams and events

CUresult cuStreamCreate(CUstream* stream, unsigned flags, const char* file, int line) {
    return cuStreamCreateWithPriority(stream, flags, 0, file, line);
}
CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority,
                                    const char* file, int line) {
    return in_context(
        [&] { return cudaStreamCreateWithPriority(stream, flags, priority, file, line); });
}
CUresult cuStreamDestroy(CUstream stream, const char* file, int line) {
    return in_context([&] { return cudaStreamDestroy(stream, file, line); });
}
CUresult cuStreamSynchronize(CUstream stream, const char* file, int line) {
    return in_context([&] { return cudaStreamSynchronize(stream, file, line); });
}
CUresult cuStreamQuery(CUstream stream, const char* file, int line) {
    return in_context([&] { return cudaStreamQuery(stream, file, line); });
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags, const char* file,
                           int line) {
    return in_context([&] { return cudaStreamWaitEvent(stream, event, flags, file, line); });
}
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data, const char* file,
                          int line) {
    return in_context([&] { return cudaLaunchHostFunc(stream, function, data, file, line); });
}
CUresult cuEventCreate(CUevent* event, unsigned flags, const char* file, int line) {
    return in_context([&] { return cudaEventCreateWithFlags(event, flags, file, line); });
}
CUresult cuEventDestroy(CUevent event, const char* file, int line) {
    return in_context([&] { return cudaEventDestroy(event, file, line); });
}
CUresult cuEventRecord(CUevent event, CUstream stream, const char* file, int line) {
    return in_context([&] { return cudaEventRecord(event, stream, file, line); });
}
CUresult cuEventSynchronize(CUevent event, const char* file, int line) {
    return in_context([&] { return cudaEventSynchronize(event, file, line); });
}
CUresult cuEventQuery(CUevent event, const char* file, int line) {
    return in_context([&] { return cudaEventQuery(event, file, line); });
}
CUresult cuEventElapsedTime(float* ms, CUevent start, CUevent stop, const char* file, int line) {
    return in_context([&] { return cudaEventElapsedTime(ms, start, stop, file, line); });
}
CUresult cuProfilerStart() {
    return CUDA_SUCCESS;
}
CUresult cuProfilerStop() {
    return CUDA_SUCCESS;
}
