// The device: its properties, its limits, and waiting for all of its work.

#include <stdlib.h>
#include <string.h>

#include "order.h"

using namespace cudalab;

static cudaError_t succeed(const char* name, Place place) {
    return Call(name, place).pending();
}
static cudaError_t check_device(Call& call, int device) {
    if (cudaError_t error = call.pending()) return error;
    if (device != 0)
        return call.fail(cudaErrorInvalidDevice, "there is only device 0, not %d", device);
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count, const char* file, int line) {
    Call call("cudaGetDeviceCount", {file, line}, Call::ANYWHERE);
    if (!count) return call.fail(cudaErrorInvalidValue, "the pointer is null");
    *count = 1;
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int device, const char* file, int line) {
    Call call("cudaSetDevice", {file, line});
    return check_device(call, device);
}
cudaError_t cudaGetDevice(int* device, const char* file, int line) {
    Call call("cudaGetDevice", {file, line}, Call::ANYWHERE);
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

// The greatest sizes of textures and surfaces: an H200's.
struct Size {
    cudaDeviceAttr first;  // the attributes of the values have consecutive numbers
    size_t offset;         // of the field
    unsigned count;
    int values[3];
};
#define CUDALAB_FIELD(name) \
    offsetof(cudaDeviceProp, name), sizeof cudaDeviceProp::name / sizeof(int)
static const Size SIZES[] = {
    {cudaDevAttrMaxTexture1DWidth, CUDALAB_FIELD(maxTexture1D), {131072}},
    {cudaDevAttrMaxTexture1DMipmappedWidth, CUDALAB_FIELD(maxTexture1DMipmap), {32768}},
    {cudaDevAttrMaxTexture1DLinearWidth, CUDALAB_FIELD(maxTexture1DLinear), {268435456}},
    {cudaDevAttrMaxTexture2DWidth, CUDALAB_FIELD(maxTexture2D), {131072, 65536}},
    {cudaDevAttrMaxTexture2DMipmappedWidth, CUDALAB_FIELD(maxTexture2DMipmap), {32768, 32768}},
    {cudaDevAttrMaxTexture2DLinearWidth,
     CUDALAB_FIELD(maxTexture2DLinear),
     {131072, 65000, 2097120}},
    {cudaDevAttrMaxTexture2DGatherWidth, CUDALAB_FIELD(maxTexture2DGather), {32768, 32768}},
    {cudaDevAttrMaxTexture3DWidth, CUDALAB_FIELD(maxTexture3D), {16384, 16384, 16384}},
    {cudaDevAttrMaxTexture3DWidthAlt, CUDALAB_FIELD(maxTexture3DAlt), {8192, 8192, 32768}},
    {cudaDevAttrMaxTextureCubemapWidth, CUDALAB_FIELD(maxTextureCubemap), {32768}},
    {cudaDevAttrMaxTexture1DLayeredWidth, CUDALAB_FIELD(maxTexture1DLayered), {32768, 2048}},
    {cudaDevAttrMaxTexture2DLayeredWidth, CUDALAB_FIELD(maxTexture2DLayered), {32768, 32768, 2048}},
    {cudaDevAttrMaxTextureCubemapLayeredWidth,
     CUDALAB_FIELD(maxTextureCubemapLayered),
     {32768, 2046}},
    {cudaDevAttrMaxSurface1DWidth, CUDALAB_FIELD(maxSurface1D), {32768}},
    {cudaDevAttrMaxSurface2DWidth, CUDALAB_FIELD(maxSurface2D), {131072, 65536}},
    {cudaDevAttrMaxSurface3DWidth, CUDALAB_FIELD(maxSurface3D), {16384, 16384, 16384}},
    {cudaDevAttrMaxSurface1DLayeredWidth, CUDALAB_FIELD(maxSurface1DLayered), {32768, 2048}},
    {cudaDevAttrMaxSurface2DLayeredWidth, CUDALAB_FIELD(maxSurface2DLayered), {32768, 32768, 2048}},
    {cudaDevAttrMaxSurfaceCubemapWidth, CUDALAB_FIELD(maxSurfaceCubemap), {32768}},
    {cudaDevAttrMaxSurfaceCubemapLayeredWidth,
     CUDALAB_FIELD(maxSurfaceCubemapLayered),
     {32768, 2046}},
};
#undef CUDALAB_FIELD

static void set_sizes(cudaDeviceProp& p) {
    for (const Size& size : SIZES)
        memcpy((char*)&p + size.offset, size.values, size.count * sizeof(int));
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device, const char* file, int line) {
    Call call("cudaGetDeviceProperties", {file, line}, Call::ANYWHERE);
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
    p->textureAlignment = p->surfaceAlignment = 512;
    p->texturePitchAlignment = 32;
    p->multiProcessorCount = MULTIPROCESSORS;
    p->maxThreadsPerMultiProcessor = THREADS_PER_MULTIPROCESSOR;
    p->maxBlocksPerMultiProcessor = BLOCKS_PER_MULTIPROCESSOR;
    set_sizes(*p);
    p->integrated = p->canMapHostMemory = p->unifiedAddressing = p->managedMemory = 1;
    p->concurrentManagedAccess = p->cooperativeLaunch = p->hostRegisterSupported = 1;
    p->canUseHostPointerForRegisteredMem = p->memoryPoolsSupported = 1;
    p->streamPrioritiesSupported = 1;
    // Copies overlap with nothing, but programs end where a device says so: no GPU does.
    p->asyncEngineCount = p->deviceOverlap = 1;
    // The host's clock counts nanoseconds: see clock64.
    p->clockRate = 1000000;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device,
                                   const char* file, int line) {
    Call call("cudaDeviceGetAttribute", {file, line}, Call::ANYWHERE);
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
        case cudaDevAttrHostRegisterSupported:
        case cudaDevAttrCanUseHostPointerForRegisteredMem:
        case cudaDevAttrMemoryPoolsSupported:
        case cudaDevAttrStreamPrioritiesSupported:
        case cudaDevAttrAsyncEngineCount:
        case cudaDevAttrGpuOverlap:
            return *value = 1, cudaSuccess;
        case cudaDevAttrTextureAlignment:
        case cudaDevAttrSurfaceAlignment:
            return *value = (int)p.textureAlignment, cudaSuccess;
        case cudaDevAttrTexturePitchAlignment:
            return *value = (int)p.texturePitchAlignment, cudaSuccess;
        default:
            break;
    }
    for (const Size& size : SIZES)
        if (attribute >= size.first && (unsigned)(attribute - size.first) < size.count)
            return *value = size.values[attribute - size.first], cudaSuccess;
    // The others are features that this device does not have.
    if (attribute >= cudaDevAttrMaxThreadsPerBlock &&
        attribute <= cudaDevAttrOnlyPartialHostNativeAtomicSupported)
        return *value = 0, cudaSuccess;
    return call.fail(cudaErrorInvalidValue, "attribute %d is not known", (int)attribute);
}

cudaError_t cudaDeviceSynchronize(const char* file, int line) {
    Call call("cudaDeviceSynchronize", {file, line});
    if (cudaError_t error = call.pending_for_host()) return error;
    if (captures)
        if (cudaError_t error = captures->forbid_device(call)) return error;
    wait_for_all_work();
    keep_to_thresholds();
    host_waits();
    return call.pending();
}
cudaError_t cudaDeviceReset(const char* file, int line) {
    Call call("cudaDeviceReset", {file, line});
    wait_for_all_work();
    forget_errors();
    host_waits();
    free_all();
    return cudaSuccess;
}
static unsigned device_flags;  // they say how a host thread waits, and have no effect
cudaError_t cudaSetDeviceFlags(unsigned flags, const char* file, int line) {
    Call call("cudaSetDeviceFlags", {file, line});
    if (cudaError_t error = call.pending()) return error;
    const unsigned schedule = flags & cudaDeviceScheduleMask;
    if (flags & ~cudaDeviceMask || (schedule & (schedule - 1)))
        return call.fail(cudaErrorInvalidValue, "flags %#x are not known", flags);
    device_flags = flags;
    return cudaSuccess;
}
cudaError_t cudaGetDeviceFlags(unsigned* flags, const char* file, int line) {
    Call call("cudaGetDeviceFlags", {file, line});
    if (!flags) return call.fail(cudaErrorInvalidValue, "the pointer is null");
    *flags = device_flags | cudaDeviceMapHost;
    return call.pending();
}
cudaError_t cudaSetValidDevices(int* devices, int count, const char* file, int line) {
    Call call("cudaSetValidDevices", {file, line});
    for (int i = 0; i < count; ++i)
        if (cudaError_t error = check_device(call, devices[i])) return error;
    return call.pending();
}
cudaError_t cudaInitDevice(int device, unsigned, unsigned, const char* file, int line) {
    Call call("cudaInitDevice", {file, line});
    return check_device(call, device);
}

static const char BUS_ID[] = "0000:00:00.0";
cudaError_t cudaDeviceGetPCIBusId(char* id, int size, int device, const char* file, int line) {
    Call call("cudaDeviceGetPCIBusId", {file, line});
    if (cudaError_t error = check_device(call, device)) return error;
    if (!id || size < 1) return call.fail(cudaErrorInvalidValue, "no room for the name");
    snprintf(id, (size_t)size, "%s", BUS_ID);
    return cudaSuccess;
}
cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* id, const char* file, int line) {
    Call call("cudaDeviceGetByPCIBusId", {file, line});
    if (cudaError_t error = call.pending()) return error;
    if (!device || !id || strcmp(id, BUS_ID) != 0)
        return call.fail(cudaErrorInvalidValue, "the only device is %s", BUS_ID);
    *device = 0;
    return cudaSuccess;
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

// By cudaLimit: stacks, printf, malloc, the depth of waits in kernels, launches from kernels, and
// two of the L2 cache.
static size_t limits[] = {1 << 10, 1 << 20, 8 << 20, 0, 2048, 128, 0};
size_t cudalab::max_depth() {
    return limits[cudaLimitDevRuntimePendingLaunchCount];
}
static cudaError_t check_limit(Call& call, cudaLimit limit) {
    if (cudaError_t error = call.pending()) return error;
    if (limit == cudaLimitDevRuntimeSyncDepth)
        return call.fail(cudaErrorUnsupportedLimit, "kernels cannot wait for others");
    if ((unsigned)limit >= sizeof limits / sizeof *limits)
        return call.fail(cudaErrorInvalidValue, "limit %d is not known", (int)limit);
    return cudaSuccess;
}
cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value, const char* file, int line) {
    Call call("cudaDeviceSetLimit", {file, line});
    if (cudaError_t error = check_limit(call, limit)) return error;
    if (limit == cudaLimitStackSize) {  // stacks are always as large as a GPU allows
        if (value >= 512 << 10)
            return call.fail(cudaErrorInvalidValue, "%zu bytes of stack: 512 KB are too much",
                             value);
        value = (value + 15) / 16 * 16;
    }
    limits[limit] = value;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit, const char* file, int line) {
    Call call("cudaDeviceGetLimit", {file, line}, Call::ANYWHERE);
    if (cudaError_t error = check_limit(call, limit)) return error;
    *value = limits[limit];
    return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer, const char* file, int line) {
    Call call("cudaDeviceCanAccessPeer", {file, line});
    *can = 0;
    cudaError_t error = check_device(call, device);
    return error ? error : check_device(call, peer);
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned, const char* file, int line) {
    Call call("cudaDeviceEnablePeerAccess", {file, line});
    if (cudaError_t error = check_device(call, peer)) return error;
    return call.fail(cudaErrorPeerAccessUnsupported, "a device is not its own peer");
}
cudaError_t cudaDeviceDisablePeerAccess(int peer, const char* file, int line) {
    Call call("cudaDeviceDisablePeerAccess", {file, line});
    if (cudaError_t error = check_device(call, peer)) return error;
    return call.fail(cudaErrorPeerAccessNotEnabled, "a device is not its own peer");
}
cudaError_t cudaDeviceGetP2PAttribute(int*, cudaDeviceP2PAttr, int device, int peer,
                                      const char* file, int line) {
    Call call("cudaDeviceGetP2PAttribute", {file, line});
    if (cudaError_t error = check_device(call, device)) return error;
    if (cudaError_t error = check_device(call, peer)) return error;
    return call.fail(cudaErrorInvalidDevice, "a device is not its own peer");
}
cudaError_t cudaDriverGetVersion(int* version, const char* file, int line) {
    *version = CUDART_VERSION;
    return Call("cudaDriverGetVersion", {file, line}, Call::ANYWHERE).pending();
}
cudaError_t cudaRuntimeGetVersion(int* version, const char* file, int line) {
    *version = CUDART_VERSION;
    return Call("cudaRuntimeGetVersion", {file, line}, Call::ANYWHERE).pending();
}
cudaError_t cudaProfilerStart() {
    return cudaSuccess;
}
cudaError_t cudaProfilerStop() {
    return cudaSuccess;
}
