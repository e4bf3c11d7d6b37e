// Streams, events and memory pools: what the API says about them, name by name.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>

#define SAY(call) std::printf("%-72s %s\n", #call, cudaGetErrorName(call))
#define LAST() cudaGetErrorName(cudaGetLastError())

__global__ void add(int *data, int value) {
    data[threadIdx.x] += value;
}
__global__ void reach(int *data, int *other) {
    other[threadIdx.x] = data[threadIdx.x] + 1;
}

static void called(void *data) {
    ++*(int *)data;
}

static unsigned long long counter(cudaMemPool_t pool, cudaMemPoolAttr attribute) {
    unsigned long long value = 99;
    const cudaError_t error = cudaMemPoolGetAttribute(pool, attribute, &value);
    if (error != cudaSuccess) std::printf("(%s)", cudaGetErrorName(error));
    return value;
}
static void counters(const char *when, cudaMemPool_t pool) {
    const unsigned long long reserved = counter(pool, cudaMemPoolAttrReservedMemCurrent);
    std::printf("%s: used %llu, at most %llu; reserved %s, at most %s\n", when,
                counter(pool, cudaMemPoolAttrUsedMemCurrent),
                counter(pool, cudaMemPoolAttrUsedMemHigh), reserved ? "some" : "none",
                counter(pool, cudaMemPoolAttrReservedMemHigh) ? "some" : "none");
}

static void streams() {
    cudaStream_t plain, apart, urgent;
    int least = 1, greatest = 1, priority = 99, count = 0, value = 0;
    unsigned flags = 99;
    unsigned long long first = 0, second = 0;
    SAY(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    std::printf("priorities: %d to %d\n", least, greatest);
    SAY(cudaStreamCreate(&plain));
    SAY(cudaStreamCreateWithFlags(&apart, cudaStreamNonBlocking));
    SAY(cudaStreamCreateWithPriority(&urgent, cudaStreamNonBlocking, greatest));
    SAY(cudaStreamGetPriority(plain, &priority));
    std::printf("%d\n", priority);
    SAY(cudaStreamGetPriority(urgent, &priority));
    std::printf("%d\n", priority == greatest);
    SAY(cudaStreamGetPriority(nullptr, &priority));
    std::printf("%d\n", priority);
    SAY(cudaStreamGetFlags(apart, &flags));
    std::printf("%u\n", flags);
    SAY(cudaStreamGetFlags(nullptr, &flags));
    std::printf("%u\n", flags);
    SAY(cudaStreamGetId(plain, &first));
    SAY(cudaStreamGetId(apart, &second));
    std::printf("different: %d\n", first != second);
    SAY(cudaStreamGetPriority(plain, nullptr));
    SAY(cudaStreamCreateWithPriority(&urgent, 8, 0));

    cudaStreamAttrValue window = {};
    SAY(cudaStreamGetAttribute(plain, cudaStreamAttributeAccessPolicyWindow, &window));
    window.accessPolicyWindow.num_bytes = 0;
    window.accessPolicyWindow.hitRatio = 0.5f;
    window.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
    window.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
    SAY(cudaStreamSetAttribute(plain, cudaStreamAttributeAccessPolicyWindow, &window));
    window.accessPolicyWindow.hitRatio = 2;
    SAY(cudaStreamSetAttribute(plain, cudaStreamAttributeAccessPolicyWindow, &window));
    SAY(cudaStreamCopyAttributes(apart, plain));
    SAY(cudaCtxResetPersistingL2Cache());

    SAY(cudaLaunchHostFunc(plain, called, &count));
    SAY(cudaLaunchHostFunc(nullptr, nullptr, &count));
    SAY(cudaStreamSynchronize(plain));
    std::printf("called %d times\n", count);

    cudaEvent_t event;
    SAY(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    SAY(cudaEventRecordWithFlags(event, plain, cudaEventRecordExternal));
    SAY(cudaEventRecordWithFlags(event, plain, cudaEventRecordDefault));
    SAY(cudaEventRecordWithFlags(event, plain, 8));
    SAY(cudaStreamWaitEvent(apart, event, cudaEventWaitExternal));
    SAY(cudaStreamWaitEvent(apart, event, 8));
    SAY(cudaStreamWaitEvent(apart, event));
    SAY(cudaEventSynchronize(event));
    SAY(cudaEventQuery(event));
    SAY(cudaEventDestroy(event));

    int *managed;
    SAY(cudaMallocManaged(&managed, 4096));
    SAY(cudaStreamAttachMemAsync(plain, managed));
    SAY(cudaStreamAttachMemAsync(plain, managed, 0, cudaMemAttachHost));
    SAY(cudaStreamAttachMemAsync(plain, managed, 0, 8));
    SAY(cudaStreamAttachMemAsync(nullptr, managed, 0, cudaMemAttachGlobal));
    SAY(cudaStreamAttachMemAsync(nullptr, managed, 0, cudaMemAttachSingle));
    SAY(cudaStreamAttachMemAsync(plain, &value));
    SAY(cudaStreamSynchronize(plain));
    cudaMemLocation device = {}, host = {};
    device.type = cudaMemLocationTypeDevice;
    host.type = cudaMemLocationTypeHost;
    SAY(cudaMemAdvise(managed, 4096, cudaMemAdviseSetReadMostly, device));
    SAY(cudaMemRangeGetAttribute(&value, 4, cudaMemRangeAttributeReadMostly, managed, 4096));
    std::printf("%d\n", value);
    SAY(cudaMemAdvise(managed, 4096, cudaMemAdviseUnsetReadMostly, device));
    SAY(cudaMemAdvise(managed, 4096, cudaMemAdviseSetPreferredLocation, host));
    SAY(cudaMemRangeGetAttribute(&value, 4, cudaMemRangeAttributePreferredLocation, managed, 4096));
    std::printf("%d\n", value);
    SAY(cudaMemAdvise(managed, 4096, (cudaMemoryAdvise)77, device));
    SAY(cudaMemPrefetchAsync(managed, 4096, device, 0, plain));
    SAY(cudaStreamSynchronize(plain));
    SAY(cudaMemRangeGetAttribute(&value, 4, cudaMemRangeAttributeLastPrefetchLocation, managed,
                                 4096));
    std::printf("%d\n", value);
    SAY(cudaMemRangeGetAttribute(&value, 2, cudaMemRangeAttributeReadMostly, managed, 4096));
    SAY(cudaMemRangeGetAttribute(&value, 4, (cudaMemRangeAttribute)77, managed, 4096));
    SAY(cudaFree(managed));
    SAY(cudaStreamDestroy(plain));
    SAY(cudaStreamDestroy(apart));
    std::printf("the last of them: %s\n", LAST());
}

static void device() {
    int value = 99;
    unsigned flags = 99;
    char bus[32] = "";
    SAY(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
    SAY(cudaGetDeviceFlags(&flags));
    std::printf("%u\n", flags & cudaDeviceScheduleMask);
    SAY(cudaSetDeviceFlags(cudaDeviceBlockingSync | cudaDeviceScheduleSpin));
    SAY(cudaSetDeviceFlags(1 << 20));
    SAY(cudaSetDeviceFlags(0));
    SAY(cudaDeviceGetPCIBusId(bus, sizeof bus, 0));
    SAY(cudaDeviceGetByPCIBusId(&value, bus));
    std::printf("%d\n", value);
    SAY(cudaDeviceGetByPCIBusId(&value, "nonsense"));
    SAY(cudaDeviceCanAccessPeer(&value, 0, 0));
    std::printf("%d\n", value);
    SAY(cudaDeviceEnablePeerAccess(0, 0));
    SAY(cudaDeviceDisablePeerAccess(0));
    SAY(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 0, 0));
    SAY(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 0, 1000));
    SAY(cudaDeviceGetAttribute(&value, cudaDevAttrMemoryPoolsSupported, 0));
    std::printf("%d\n", value);
    SAY(cudaSetValidDevices(&value, 0));
    SAY(cudaInitDevice(0, 0, 0));
    size_t bytes = 0;
    SAY(cudaDeviceGetLimit(&bytes, cudaLimitDevRuntimePendingLaunchCount));
    std::printf("%zu\n", bytes);
    SAY(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 4096));
    SAY(cudaDeviceGetLimit(&bytes, cudaLimitDevRuntimePendingLaunchCount));
    std::printf("%zu\n", bytes);
    SAY(cudaDeviceGetLimit(&bytes, cudaLimitDevRuntimeSyncDepth));
    const char *name = nullptr;
    SAY(cudaFuncGetName(&name, (const void *)called));
    SAY(cudaFuncGetName(&name, add));
    std::printf("%s\n", name ? name : "none");
    size_t left = 0;
    SAY(cudaOccupancyAvailableDynamicSMemPerBlock(&left, add, 0, 64));
    SAY(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&value, add, 1024, 0, 0));
    std::printf("%d\n", value);
    SAY(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&value, add, 64, 0, 4));
    int block = 0, grid = 0;
    SAY(cudaOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, add, 0, 0, 0));
    std::printf("%d\n", block);
    std::printf("the last of them: %s\n", LAST());
}

static void pools() {
    cudaMemPool_t of_device, own, current;
    cudaStream_t stream, apart;
    int *a = nullptr, *b = nullptr, *c = nullptr, host[64] = {}, on = 99;
    cudaStreamCreate(&stream);
    cudaStreamCreateWithFlags(&apart, cudaStreamNonBlocking);
    SAY(cudaDeviceGetDefaultMemPool(&of_device, 0));
    SAY(cudaDeviceGetDefaultMemPool(&of_device, 7));
    SAY(cudaDeviceGetMemPool(&current, 0));
    std::printf("the default one: %d\n", current == of_device);
    counters("at first", of_device);
    SAY(cudaMallocAsync(&a, 100, stream));
    counters("100 bytes", of_device);
    SAY(cudaMallocAsync(&b, 1000, stream));
    counters("1000 more", of_device);
    SAY(cudaMallocAsync(&c, 0, stream));
    std::printf("of no bytes: %s\n", c ? "a pointer" : "null");
    SAY(cudaMallocAsync(&c, (size_t)1 << 60, stream));
    SAY(cudaMemsetAsync(a, 0, 100, stream));
    add<<<1, 25, 0, stream>>>(a, 5);
    SAY(cudaMemcpyAsync(host, a, 100, cudaMemcpyDeviceToHost, stream));
    SAY(cudaFreeAsync(a, stream));
    SAY(cudaStreamSynchronize(stream));
    std::printf("%d %d\n", host[0], host[24]);
    counters("one is free", of_device);
    SAY(cudaFreeAsync(a, stream));
    SAY(cudaFree(a));
    SAY(cudaFreeAsync(nullptr, stream));
    SAY(cudaFreeAsync(host, stream));
    SAY(cudaFreeAsync(b + 1, stream));
    SAY(cudaFreeAsync(b, stream));
    SAY(cudaDeviceSynchronize());
    counters("both are free", of_device);
    SAY(cudaMalloc(&a, 256));
    SAY(cudaFreeAsync(a, stream));
    SAY(cudaStreamSynchronize(stream));
    counters("afterwards", of_device);

    unsigned long long zero = 0, high = 4096, threshold = 99;
    SAY(cudaMemPoolSetAttribute(of_device, cudaMemPoolAttrUsedMemHigh, &zero));
    SAY(cudaMemPoolSetAttribute(of_device, cudaMemPoolAttrUsedMemHigh, &high));
    SAY(cudaMemPoolSetAttribute(of_device, cudaMemPoolAttrUsedMemCurrent, &zero));
    counters("the count begins again", of_device);
    SAY(cudaMemPoolGetAttribute(of_device, cudaMemPoolAttrReleaseThreshold, &threshold));
    std::printf("%llu\n", (unsigned long long)threshold);
    SAY(cudaMemPoolSetAttribute(of_device, cudaMemPoolAttrReleaseThreshold, &high));
    SAY(cudaMemPoolGetAttribute(of_device, cudaMemPoolReuseAllowOpportunistic, &on));
    std::printf("%d\n", on);
    SAY(cudaMemPoolGetAttribute(of_device, (cudaMemPoolAttr)77, &threshold));
    SAY(cudaMemPoolDestroy(of_device));

    cudaMemPoolProps properties = {};
    SAY(cudaMemPoolCreate(&own, &properties));
    properties.allocType = cudaMemAllocationTypePinned;
    SAY(cudaMemPoolCreate(&own, &properties));
    properties.location.type = cudaMemLocationTypeDevice;
    SAY(cudaMemPoolCreate(&own, &properties));
    threshold = UINT64_MAX;
    SAY(cudaMemPoolSetAttribute(own, cudaMemPoolAttrReleaseThreshold, &threshold));
    SAY(cudaMallocFromPoolAsync(&a, 4096, own, stream));
    SAY(cudaMallocAsync(&b, 4096, own, stream));
    counters("two of 4096 bytes", own);
    SAY(cudaMemPoolTrimTo(own, 0));
    reach<<<1, 32, 0, stream>>>(a, b);
    SAY(cudaFreeAsync(a, stream));
    SAY(cudaFreeAsync(b, stream));
    SAY(cudaStreamSynchronize(stream));
    counters("none, kept", own);
    SAY(cudaMemPoolTrimTo(own, 0));
    counters("trimmed", own);
    cudaMemAccessFlags access = cudaMemAccessFlagsProtNone;
    SAY(cudaMemPoolGetAccess(&access, own, &properties.location));
    std::printf("%d\n", (int)access);
    cudaMemAccessDesc description = {properties.location, cudaMemAccessFlagsProtReadWrite};
    SAY(cudaMemPoolSetAccess(own, &description, 1));
    description.flags = cudaMemAccessFlagsProtNone;
    SAY(cudaMemPoolSetAccess(own, &description, 1));
    SAY(cudaDeviceSetMemPool(0, own));
    SAY(cudaMallocAsync(&a, 64, apart));
    std::printf("from it: %llu\n", counter(own, cudaMemPoolAttrUsedMemCurrent));
    cudaPointerAttributes attributes;
    SAY(cudaPointerGetAttributes(&attributes, a));
    std::printf("type %d\n", (int)attributes.type);
    SAY(cudaFreeAsync(a, apart));
    SAY(cudaStreamSynchronize(apart));
    SAY(cudaMemPoolDestroy(own));
    SAY(cudaDeviceGetMemPool(&current, 0));
    std::printf("the default one: %d\n", current == of_device);
    SAY(cudaStreamDestroy(stream));
    SAY(cudaStreamDestroy(apart));
    std::printf("the last of them: %s\n", LAST());
}

int main() {
    streams();
    device();
    pools();
    return cudaDeviceSynchronize() != cudaSuccess;
}
