// The errors of the runtime API, the properties of the device, streams and events.
//
// The call that causes an error returns it, and it remains the last error until the program reads
// it. An error in a running kernel is permanent: every later call returns it.

#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

struct CUstream_st {
    unsigned flags;
};
struct CUevent_st {
    unsigned flags;
    bool recorded;
    double ms;
};

namespace cudalab {

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static thread_local cudaError_t last_error = cudaSuccess;
static cudaError_t for_good = cudaSuccess;

// The last error of a launch until the program reads it. Other calls return their own errors.
static struct Unread {
    cudaError_t error;
    Place place;
    char why[400];
} unread;

static void at_exit() {
    if (unread.error) {
        char text[700];
        snprintf(text, sizeof text,
                 "%s:%d: the launch failed and the program never called cudaGetLastError(): %s "
                 "(%s): %s",
                 unread.place.file, unread.place.line, cudaGetErrorName(unread.error),
                 cudaGetErrorString(unread.error), unread.why);
        report(MessageKind::UNREAD_ERROR, text);
    }
    tell_leaks();
}

Call::Call(const char* name_, Place place_) : name(name_), place(place_) {
    pthread_mutex_lock(&lock);
    static const int registered = atexit(at_exit);
    (void)registered;
}
Call::~Call() {
    pthread_mutex_unlock(&lock);
}
cudaError_t Call::pending() const {
    if (for_good) last_error = for_good;
    return for_good;
}
cudaError_t Call::fail(cudaError_t error, const char* why, ...) {
    char text[sizeof unread.why];
    va_list values;
    va_start(values, why);
    vsnprintf(text, sizeof text, why, values);
    va_end(values);
    char message[700];
    snprintf(message, sizeof message, "%s:%d: %s: %s: %s", place.file, place.line, name,
             cudaGetErrorName(error), text);
    report(MessageKind::FAILED_CALL, message);
    if (is_launch()) {
        unread.error = error;
        unread.place = place;
        memcpy(unread.why, text, sizeof text);
    }
    return last_error = error;
}
cudaError_t Call::fail_for_good(cudaError_t error, const char* why) {
    char message[1400];
    snprintf(message, sizeof message, "%s:%d: %s: %s", place.file, place.line,
             cudaGetErrorName(error), why);
    report(MessageKind::FAILED_KERNEL, message);
    unread.error = cudaSuccess;
    return last_error = for_good = error;
}

static cudaError_t succeed(const char* name, Place place) {
    return Call(name, place).pending();
}
static cudaError_t check_device(Call& call, int device) {
    if (cudaError_t error = call.pending()) return error;
    if (device != 0)
        return call.fail(cudaErrorInvalidDevice, "there is only device 0, not %d", device);
    return cudaSuccess;
}

}  // namespace cudalab

using namespace cudalab;

// ------------------------------------------------------------------ errors

cudaError_t cudaPeekAtLastError() {
    Call call("cudaPeekAtLastError", {});
    unread.error = cudaSuccess;
    return call.pending() ? for_good : last_error;
}
cudaError_t cudaGetLastError() {
    cudaError_t error = cudaPeekAtLastError();
    last_error = for_good;
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

// ------------------------------------------------------------------ the device

cudaError_t cudaGetDeviceCount(int* count, const char* file, int line) {
    Call call("cudaGetDeviceCount", {file, line});
    if (!count) return call.fail(cudaErrorInvalidValue, "the pointer is null");
    *count = 1;
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int device, const char* file, int line) {
    Call call("cudaSetDevice", {file, line});
    return check_device(call, device);
}
cudaError_t cudaGetDevice(int* device, const char* file, int line) {
    Call call("cudaGetDevice", {file, line});
    if (!device) return call.fail(cudaErrorInvalidValue, "the pointer is null");
    *device = 0;
    return call.pending();
}
cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp*, const char* file, int line) {
    return cudaGetDevice(device, file, line);
}

static void read_processor_name(char* name, size_t size) {
    snprintf(name, size, "cudalab CPU device");
    FILE* file = fopen("/proc/cpuinfo", "r");
    char line[256], *value;
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, "model name", 10) && (value = strchr(line, ':'))) {
            value[strcspn(value, "\n")] = 0;
            snprintf(name, size, "cudalab CPU device on %.200s", value + 2);
            break;
        }
    if (file) fclose(file);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device, const char* file, int line) {
    Call call("cudaGetDeviceProperties", {file, line});
    if (cudaError_t error = check_device(call, device)) return error;
    if (!p) return call.fail(cudaErrorInvalidValue, "the pointer is null");
    memset(p, 0, sizeof *p);
    read_processor_name(p->name, sizeof p->name);
    p->totalGlobalMem = device_bytes();
    p->sharedMemPerBlock = SHARED_DEFAULT;
    p->sharedMemPerBlockOptin = SHARED_OPTIN;
    p->sharedMemPerMultiprocessor = SHARED_PER_MULTIPROCESSOR;
    p->reservedSharedMemPerBlock = SHARED_RESERVED;
    p->regsPerBlock = p->regsPerMultiprocessor = 65536;
    p->warpSize = 32;
    p->memPitch = 0x7fffffff;
    p->maxThreadsPerBlock = 1024;
    p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
    p->maxThreadsDim[2] = 64;
    p->maxGridSize[0] = 0x7fffffff;
    p->maxGridSize[1] = p->maxGridSize[2] = 65535;
    p->totalConstMem = 64 << 10;
    p->major = __CUDA_ARCH__ / 100;
    p->minor = __CUDA_ARCH__ / 10 % 10;
    p->textureAlignment = p->texturePitchAlignment = 512;
    p->multiProcessorCount = MULTIPROCESSORS;
    p->maxThreadsPerMultiProcessor = THREADS_PER_MULTIPROCESSOR;
    p->maxBlocksPerMultiProcessor = BLOCKS_PER_MULTIPROCESSOR;
    p->integrated = p->canMapHostMemory = p->unifiedAddressing = p->managedMemory = 1;
    p->concurrentManagedAccess = p->cooperativeLaunch = p->hostRegisterSupported = 1;
    p->canUseHostPointerForRegisteredMem = 1;
    // The host's clock counts nanoseconds: see clock64.
    p->clockRate = 1000000;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device,
                                   const char* file, int line) {
    Call call("cudaDeviceGetAttribute", {file, line});
    cudaDeviceProp p;
    if (cudaError_t error = cudaGetDeviceProperties(&p, device, file, line)) return error;
    switch (attribute) {
        case cudaDevAttrMaxThreadsPerBlock:
            return *value = p.maxThreadsPerBlock, cudaSuccess;
        case cudaDevAttrMaxBlockDimX:
        case cudaDevAttrMaxBlockDimY:
        case cudaDevAttrMaxBlockDimZ:
            return *value = p.maxThreadsDim[attribute - cudaDevAttrMaxBlockDimX], cudaSuccess;
        case cudaDevAttrMaxGridDimX:
        case cudaDevAttrMaxGridDimY:
        case cudaDevAttrMaxGridDimZ:
            return *value = p.maxGridSize[attribute - cudaDevAttrMaxGridDimX], cudaSuccess;
        case cudaDevAttrMaxSharedMemoryPerBlock:
            return *value = (int)p.sharedMemPerBlock, cudaSuccess;
        case cudaDevAttrMaxSharedMemoryPerBlockOptin:
            return *value = (int)p.sharedMemPerBlockOptin, cudaSuccess;
        case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
            return *value = (int)p.sharedMemPerMultiprocessor, cudaSuccess;
        case cudaDevAttrReservedSharedMemoryPerBlock:
            return *value = (int)p.reservedSharedMemPerBlock, cudaSuccess;
        case cudaDevAttrTotalConstantMemory:
            return *value = (int)p.totalConstMem, cudaSuccess;
        case cudaDevAttrWarpSize:
            return *value = p.warpSize, cudaSuccess;
        case cudaDevAttrMaxPitch:
            return *value = (int)p.memPitch, cudaSuccess;
        case cudaDevAttrMaxRegistersPerBlock:
        case cudaDevAttrMaxRegistersPerMultiprocessor:
            return *value = p.regsPerBlock, cudaSuccess;
        case cudaDevAttrClockRate:
            return *value = p.clockRate, cudaSuccess;
        case cudaDevAttrMultiProcessorCount:
            return *value = p.multiProcessorCount, cudaSuccess;
        case cudaDevAttrMaxThreadsPerMultiProcessor:
            return *value = p.maxThreadsPerMultiProcessor, cudaSuccess;
        case cudaDevAttrMaxBlocksPerMultiprocessor:
            return *value = p.maxBlocksPerMultiProcessor, cudaSuccess;
        case cudaDevAttrComputeCapabilityMajor:
            return *value = p.major, cudaSuccess;
        case cudaDevAttrComputeCapabilityMinor:
            return *value = p.minor, cudaSuccess;
        case cudaDevAttrIntegrated:
        case cudaDevAttrCanMapHostMemory:
        case cudaDevAttrUnifiedAddressing:
        case cudaDevAttrManagedMemory:
        case cudaDevAttrConcurrentManagedAccess:
        case cudaDevAttrCooperativeLaunch:
            return *value = 1, cudaSuccess;
        case cudaDevAttrGpuOverlap:
        case cudaDevAttrKernelExecTimeout:
        case cudaDevAttrComputeMode:
        case cudaDevAttrConcurrentKernels:
        case cudaDevAttrEccEnabled:
        case cudaDevAttrPciBusId:
        case cudaDevAttrPciDeviceId:
        case cudaDevAttrMemoryClockRate:
        case cudaDevAttrGlobalMemoryBusWidth:
        case cudaDevAttrL2CacheSize:
        case cudaDevAttrAsyncEngineCount:
        case cudaDevAttrStreamPrioritiesSupported:
        case cudaDevAttrPageableMemoryAccess:
            return *value = 0, cudaSuccess;
    }
    return call.fail(cudaErrorInvalidValue, "attribute %d is not known", (int)attribute);
}

cudaError_t cudaDeviceSynchronize(const char* file, int line) {
    return succeed("cudaDeviceSynchronize", {file, line});
}
cudaError_t cudaDeviceReset(const char* file, int line) {
    Call call("cudaDeviceReset", {file, line});
    for_good = last_error = cudaSuccess;
    free_all();
    return cudaSuccess;
}
cudaError_t cudaSetDeviceFlags(unsigned, const char* file, int line) {
    return succeed("cudaSetDeviceFlags", {file, line});
}
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache, const char* file, int line) {
    return succeed("cudaDeviceSetCacheConfig", {file, line});
}
cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config, const char* file, int line) {
    *config = cudaFuncCachePreferNone;
    return succeed("cudaDeviceGetCacheConfig", {file, line});
}
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig, const char* file, int line) {
    return succeed("cudaDeviceSetSharedMemConfig", {file, line});
}
cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config, const char* file, int line) {
    *config = cudaSharedMemBankSizeFourByte;
    return succeed("cudaDeviceGetSharedMemConfig", {file, line});
}

static size_t limits[] = {64 << 10, 1 << 20, 8 << 20};  // for stacks, printf, malloc
cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value, const char* file, int line) {
    Call call("cudaDeviceSetLimit", {file, line});
    if (cudaError_t error = call.pending()) return error;
    if ((unsigned)limit >= sizeof limits / sizeof *limits)
        return call.fail(cudaErrorInvalidValue, "limit %d is not known", (int)limit);
    if (limit != cudaLimitStackSize) limits[limit] = value;  // the size of stacks is fixed
    return cudaSuccess;
}
cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit, const char* file, int line) {
    Call call("cudaDeviceGetLimit", {file, line});
    if (cudaError_t error = call.pending()) return error;
    if ((unsigned)limit >= sizeof limits / sizeof *limits)
        return call.fail(cudaErrorInvalidValue, "limit %d is not known", (int)limit);
    *value = limits[limit];
    return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest, const char* file,
                                             int line) {
    if (least) *least = 0;
    if (greatest) *greatest = 0;
    return succeed("cudaDeviceGetStreamPriorityRange", {file, line});
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer, const char* file, int line) {
    Call call("cudaDeviceCanAccessPeer", {file, line});
    *can = 0;
    cudaError_t error = check_device(call, device);
    return error ? error : check_device(call, peer);
}
cudaError_t cudaDriverGetVersion(int* version, const char* file, int line) {
    *version = CUDART_VERSION;
    return succeed("cudaDriverGetVersion", {file, line});
}
cudaError_t cudaRuntimeGetVersion(int* version, const char* file, int line) {
    *version = CUDART_VERSION;
    return succeed("cudaRuntimeGetVersion", {file, line});
}
cudaError_t cudaProfilerStart() {
    return cudaSuccess;
}
cudaError_t cudaProfilerStop() {
    return cudaSuccess;
}

// ------------------------------------------------------------------ streams: work is done in order

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int,
                                         const char* file, int line) {
    Call call("cudaStreamCreate", {file, line});
    if (cudaError_t error = call.pending()) return error;
    if (!stream) return call.fail(cudaErrorInvalidValue, "the pointer is null");
    if (flags & ~cudaStreamNonBlocking)
        return call.fail(cudaErrorInvalidValue, "flags %#x are not known", flags);
    *stream = (cudaStream_t)malloc(sizeof **stream);
    if (!*stream) return call.fail(cudaErrorMemoryAllocation, "no memory for a stream");
    **stream = {flags};
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream, const char* file, int line) {
    Call call("cudaStreamDestroy", {file, line});
    if (cudaError_t error = call.pending()) return error;
    if (!stream || stream == cudaStreamLegacy || stream == cudaStreamPerThread)
        return call.fail(cudaErrorInvalidResourceHandle, "the default stream cannot be destroyed");
    free(stream);
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t, const char* file, int line) {
    return succeed("cudaStreamSynchronize", {file, line});
}
cudaError_t cudaStreamQuery(cudaStream_t, const char* file, int line) {
    return succeed("cudaStreamQuery", {file, line});
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t event, unsigned, const char* file,
                                int line) {
    Call call("cudaStreamWaitEvent", {file, line});
    if (cudaError_t error = call.pending()) return error;
    if (!event) return call.fail(cudaErrorInvalidResourceHandle, "the event is null");
    return cudaSuccess;
}
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                  unsigned, const char* file, int line) {
    if (cudaError_t error = succeed("cudaStreamAddCallback", {file, line})) return error;
    callback(stream, cudaSuccess, data);
    return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t function, void* data, const char* file,
                               int line) {
    if (cudaError_t error = succeed("cudaLaunchHostFunc", {file, line})) return error;
    function(data);
    return cudaSuccess;
}

// ------------------------------------------------------------------ events: the host's clock

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags, const char* file,
                                     int line) {
    Call call("cudaEventCreate", {file, line});
    if (cudaError_t error = call.pending()) return error;
    if (!event) return call.fail(cudaErrorInvalidValue, "the pointer is null");
    if (flags & ~(cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess))
        return call.fail(cudaErrorInvalidValue, "flags %#x are not known", flags);
    *event = (cudaEvent_t)malloc(sizeof **event);
    if (!*event) return call.fail(cudaErrorMemoryAllocation, "no memory for an event");
    **event = {flags, false, 0};
    return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event, const char* file, int line) {
    Call call("cudaEventDestroy", {file, line});
    if (cudaError_t error = call.pending()) return error;
    if (!event) return call.fail(cudaErrorInvalidResourceHandle, "the event is null");
    free(event);
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t, const char* file, int line) {
    Call call("cudaEventRecord", {file, line});
    if (cudaError_t error = call.pending()) return error;
    if (!event) return call.fail(cudaErrorInvalidResourceHandle, "the event is null");
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    event->ms = (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
    event->recorded = true;
    return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event, const char* file, int line) {
    Call call("cudaEventSynchronize", {file, line});
    if (cudaError_t error = call.pending()) return error;
    if (!event) return call.fail(cudaErrorInvalidResourceHandle, "the event is null");
    return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event, const char* file, int line) {
    return cudaEventSynchronize(event, file, line);
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t stop, const char* file,
                                 int line) {
    Call call("cudaEventElapsedTime", {file, line});
    if (cudaError_t error = call.pending()) return error;
    if (!start || !stop) return call.fail(cudaErrorInvalidResourceHandle, "an event is null");
    if ((start->flags | stop->flags) & cudaEventDisableTiming)
        return call.fail(cudaErrorInvalidResourceHandle, "an event was created without timing");
    if (!start->recorded || !stop->recorded)
        return call.fail(cudaErrorInvalidResourceHandle, "an event was never recorded");
    *ms = (float)(stop->ms - start->ms);
    return cudaSuccess;
}
