// The driver interface: devices, contexts, memory, streams and events, beside the runtime's.
#include <cuda.h>
#include <cuda_runtime.h>
#if __has_include(<nvtx3/nvtx3.hpp>)
#include <nvtx3/nvToolsExtCuda.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#include <nvtx3/nvtx3.hpp>
#endif

#include <cstdio>
#include <cstring>

static const char *name_of(CUresult result) {
    const char *name = nullptr;
    cuGetErrorName(result, &name);
    return name ? name : "no name";
}
#define SAY(call) std::printf("%-64s %s\n", #call, name_of(call))

__global__ void add(int *data, int value) {
    data[threadIdx.x] += value;
}

// NVTX has no effect without a profiler.
struct Domain {
    static constexpr const char *name = "driver";
    static constexpr const char *message = "a message";
};
static int annotate(cudaStream_t stream) {
#if __has_include(<nvtx3/nvtx3.hpp>)
    NVTX3_FUNC_RANGE_IN(Domain);
    nvtx3::scoped_range whole("whole");
    nvtx3::scoped_range_in<Domain> part(nvtx3::rgb(255, 0, 0), nvtx3::payload(42), "part");
    nvtx3::mark("a mark", nvtx3::category(3));
    nvtx3::end_range(nvtx3::start_range("a range"));
    nvtxNameCudaStreamA(stream, "stream");
    nvtxNameCuStreamA(stream, "the same");
    nvtxEventAttributes_t attributes = {};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = "pushed";
    nvtxRangePushEx(&attributes);
    nvtxRangePush("deeper");
    nvtxRangePop();
    return nvtxRangePop();
#else
    return -2;
#endif
}

int main() {
    CUdevice device = 99;
    CUcontext context = nullptr, current = nullptr, primary = nullptr;
    int count = 0, version = 0, value = 0;
    SAY(cuDeviceGetCount(&count));
    SAY(cuInit(1));
    SAY(cuInit(0));
    SAY(cuDriverGetVersion(&version));
    std::printf("%d\n", version >= 12000);
    SAY(cuDeviceGetCount(&count));
    SAY(cuDeviceGet(&device, 0));
    std::printf("%d\n", device);
    SAY(cuDeviceGet(&device, 1000));
    SAY(cuDeviceGet(&device, -1));
    device = 0;
    char name[64] = "";
    size_t bytes = 0, total = 0;
    SAY(cuDeviceGetName(name, sizeof name, device));
    std::printf("%d\n", name[0] != 0);
    SAY(cuDeviceGetName(name, 4, device));
    std::printf("%zu\n", std::strlen(name));
    SAY(cuDeviceTotalMem(&bytes, device));
    SAY(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device));
    std::printf("%d\n", value);
    SAY(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, device));
    std::printf("%d\n", value);
    SAY(cuDeviceGetAttribute(&value, (CUdevice_attribute)9999, device));
    SAY(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 1000));
    CUdeviceptr a = 0, b = 0;
    SAY(cuMemAlloc(&a, 64));
    SAY(cuCtxGetCurrent(&current));
    std::printf("%d\n", current != nullptr);
    SAY(cuCtxSynchronize());
    SAY(cuDevicePrimaryCtxRetain(&primary, device));
    SAY(cuCtxSetCurrent(primary));
    SAY(cuCtxGetDevice(&device));
    SAY(cuMemAlloc(&a, 4096));
    SAY(cuMemAlloc(&b, 0));
    SAY(cuMemAlloc(&b, (size_t)1 << 60));
    SAY(cuMemAlloc(&b, 4096));
    SAY(cuMemGetInfo(&bytes, &total));
    std::printf("%d\n", bytes < total);
    SAY(cuMemsetD32(a, 5, 1024));
    SAY(cuMemsetD16(a, 7, 2));
    SAY(cuMemsetD8(a, 9, 1));
    int host[8] = {};
    SAY(cuMemcpyDtoH(host, a, 16));
    std::printf("%d %d %d\n", host[0], host[1], host[2]);
    SAY(cuMemcpyDtoD(b, a, 4096));
    host[0] = 100;
    SAY(cuMemcpyHtoD(b, host, 4));
    SAY(cuMemcpy(b + 4, b, 4));
    SAY(cuMemcpyDtoH(host, b, 5000));
    SAY(cuMemcpyHtoD(0, host, 4));
    CUdeviceptr base = 0;
    SAY(cuMemGetAddressRange(&base, &bytes, a + 100));
    std::printf("%d %zu\n", base == a, bytes);
    CUstream stream;
    CUevent start, stop;
    float ms = -1;
    SAY(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    SAY(cuEventCreate(&start, CU_EVENT_DEFAULT));
    SAY(cuEventCreate(&stop, CU_EVENT_DEFAULT));
    SAY(cuEventElapsedTime(&ms, start, stop));
    SAY(cuEventRecord(start, stream));
    add<<<1, 32, 0, stream>>>((int *)b, 1);
    SAY(cuMemcpyDtoHAsync(host, b, 16, stream));
    SAY(cuEventRecord(stop, stream));
    SAY(cuStreamWaitEvent(stream, stop, 0));
    SAY(cuEventSynchronize(stop));
    SAY(cuEventQuery(stop));
    SAY(cuStreamSynchronize(stream));
    SAY(cuStreamQuery(stream));
    SAY(cuEventElapsedTime(&ms, start, stop));
    std::printf("%d: %d %d %d %d\n", ms >= 0, host[0], host[1], host[2], host[3]);
    std::printf("%d\n", annotate(stream));
    SAY(cuStreamDestroy(stream));
    SAY(cuEventDestroy(start));
    SAY(cuEventDestroy(stop));
    SAY(cuStreamDestroy(nullptr));
    SAY(cuMemFree(a + 4));
    SAY(cuMemFree(a));
    SAY(cuMemFree(a));
    SAY(cuMemFree(0));
    // The runtime and the driver share the memory.
    int *d = nullptr;
    cudaMalloc(&d, 256);
    SAY(cuMemsetD32((CUdeviceptr)d, 3, 64));
    cudaMemcpy(host, d, 16, cudaMemcpyDeviceToHost);
    std::printf("%d\n", host[3]);
    SAY(cuMemFree((CUdeviceptr)d));
    SAY(cuMemFree(b));
    void *pinned = nullptr;
    SAY(cuMemAllocHost(&pinned, 256));
    SAY(cuMemHostGetDevicePointer(&a, pinned, 0));
    std::printf("%d\n", a == (CUdeviceptr)pinned);
    SAY(cuMemFreeHost(pinned));
    SAY(cuMemAllocManaged(&a, 256, CU_MEM_ATTACH_GLOBAL));
    *(int *)a = 1;
    SAY(cuMemFree(a));
    SAY(cuCtxCreate(&context, nullptr, 0, device));
    SAY(cuCtxGetCurrent(&current));
    std::printf("%d %d\n", current == context, current == primary);
    SAY(cuCtxPopCurrent(&current));
    std::printf("%d\n", current == context);
    SAY(cuCtxPushCurrent(context));
    SAY(cuCtxDestroy(context));
    SAY(cuCtxGetCurrent(&current));
    std::printf("%d\n", current == primary);
    SAY(cuCtxPopCurrent(&current));
    SAY(cuCtxPopCurrent(&current));
    SAY(cuDevicePrimaryCtxRelease(device));
    const char *text = nullptr;
    SAY(cuGetErrorString(CUDA_ERROR_INVALID_VALUE, &text));
    std::printf("%s\n", text);
    SAY(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
    std::printf("%s\n", text);
    SAY(cuGetErrorString((CUresult)123456, &text));
    std::printf("%d\n", text == nullptr);
    return 0;
}
