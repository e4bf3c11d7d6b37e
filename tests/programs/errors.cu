// The errors that programs make, and what the API says about them: name by name.
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define SAY(call) std::printf("%-60s %s\n", #call, cudaGetErrorName(call))
#define LAST() cudaGetErrorName(cudaGetLastError())

__global__ void set(int *out) {
    out[threadIdx.x] = threadIdx.x;
}
__global__ void __launch_bounds__(64) bounded(int *out) {
    out[threadIdx.x] = 1;
}
__global__ void dynamic(int *out) {
    extern __shared__ int s[];
    s[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = s[threadIdx.x];
}
static __global__ void with_arrays(int *out) {
    __shared__ int a[100];
    __shared__ double b[2][8];
    a[threadIdx.x] = threadIdx.x;
    b[0][threadIdx.x % 8] = 1;
    __syncthreads();
    out[threadIdx.x] = a[31 - threadIdx.x] + (int)b[0][0];
}
static __global__ void __launch_bounds__(1024) cooperative(int *out) {
    out[0] = 1;
}
__constant__ int in_constant[4];
int on_host[4];
void no_kernel(int *) {}

int main() {
    int *d, *h = (int *)malloc(4096), zero = 0;
    void *p;
    SAY(cudaMalloc(&d, 4096));
    SAY(cudaMalloc(&p, 0));
    SAY(cudaMalloc(&p, (size_t)1 << 62));
    std::printf("again %s, ", LAST());
    std::printf("then %s\n", LAST());
    SAY(cudaFree(0));
    SAY(cudaFree(h));
    SAY(cudaSetDevice(1000));
    SAY(cudaMemcpy(d, h, 4096, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy(d, h, 0, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy(d, nullptr, 0, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy(h, d, 4096, (cudaMemcpyKind)7));
    SAY(cudaMemcpy(h, d, 4096, cudaMemcpyDefault));
    SAY(cudaMemset(d, 0, 4096));
    SAY(cudaMemcpy2D(d, 16, h, 8, 16, 2, cudaMemcpyHostToDevice));
    SAY(cudaMemcpyToSymbol(in_constant, h, 16));
    SAY(cudaMemcpyToSymbol(in_constant, h, 32));
    SAY(cudaMemcpyToSymbol(on_host, h, 16));
    std::printf("the last of them: %s\n", LAST());

    int *other = nullptr, *host = (int *)malloc(4096);
    size_t pitch = 0, bytes = 0;
    SAY(cudaMalloc((void **)nullptr, 4));
    SAY(cudaMalloc(&other, 4096));
    SAY(cudaFree(other + 1));
    SAY(cudaFree(other));
    SAY(cudaFree(other));
    SAY(cudaFree(nullptr));
    SAY(cudaFreeHost(h));
    SAY(cudaFreeHost(d));
    SAY(cudaFreeHost(nullptr));
    SAY(cudaMallocHost(&p, 0));
    SAY(cudaMallocManaged(&p, 0));
    SAY(cudaHostAlloc(&p, 64, 99));
    SAY(cudaMallocPitch(&p, &pitch, 100, 3));
    std::printf("a pitch of %d\n", (int)pitch);
    SAY(cudaFree(p));
    SAY(cudaMemcpy(nullptr, h, 4, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy(h, nullptr, 4, cudaMemcpyDeviceToHost));
    SAY(cudaMemcpy(h, d, 4, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy(h, host, 4, cudaMemcpyDeviceToDevice));
    SAY(cudaMemcpy(d, h, 4, cudaMemcpyDeviceToHost));
    SAY(cudaMemcpy(h, host, 4096, cudaMemcpyHostToHost));
    SAY(cudaMemcpy(h, host, 4096, cudaMemcpyDefault));
    SAY(cudaMemset(nullptr, 0, 4));
    SAY(cudaMemset(nullptr, 0, 0));
    SAY(cudaMemset(h, 0, 4));
    SAY(cudaMemcpy2D(d, 8, h, 16, 16, 2, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy2D(d, 8, h, 8, 0, 2, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy2D(h, 16, d, 16, 16, 2, cudaMemcpyDeviceToHost));
    SAY(cudaMemset2D(d, 8, 0, 16, 2));
    SAY(cudaMemset2D(d, 16, 0, 16, 2));
    SAY(cudaMemcpyToSymbol(in_constant, h, 8, 12));
    SAY(cudaMemcpyFromSymbol(h, in_constant, 8, 8));
    SAY(cudaMemcpyFromSymbol(h, on_host, 8));
    SAY(cudaGetSymbolAddress(&p, in_constant));
    SAY(cudaGetSymbolAddress(&p, on_host));
    SAY(cudaGetSymbolSize(&bytes, in_constant));
    SAY(cudaGetSymbolSize(&bytes, on_host));
    SAY(cudaHostRegister(host, 0, 0));
    SAY(cudaHostRegister(host, 4096, 0));
    SAY(cudaHostRegister(host, 4096, 0));
    SAY(cudaHostUnregister(host));
    SAY(cudaHostUnregister(host));
    SAY(cudaHostGetDevicePointer(&p, h, 0));
    std::printf("the last of them: %s\n", LAST());

    int value = 0;
    cudaDeviceProp properties;
    SAY(cudaSetDevice(-1));
    SAY(cudaGetDeviceProperties(&properties, 1000));
    SAY(cudaDeviceGetAttribute(&value, (cudaDeviceAttr)9999, 0));
    SAY(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 1000));
    SAY(cudaDeviceCanAccessPeer(&value, 0, 1000));
    SAY(cudaDeviceSetLimit((cudaLimit)99, 1));
    SAY(cudaDeviceGetLimit(&bytes, (cudaLimit)99));
    std::printf("the last of them: %s\n", LAST());

    set<<<1, 0>>>(d);
    std::printf("no threads: %s\n", LAST());
    set<<<0, 32>>>(d);
    std::printf("no blocks: %s\n", LAST());
    set<<<zero, 32>>>(d);
    std::printf("no blocks, either: %s\n", LAST());
    set<<<1, 1025>>>(d);
    std::printf("1025 threads: %s, ", LAST());
    std::printf("then %s\n", LAST());
    set<<<1, dim3(32, 33)>>>(d);
    std::printf("32 x 33 threads: %s\n", LAST());
    set<<<1, dim3(1, 1, 65)>>>(d);
    std::printf("1 x 1 x 65 threads: %s\n", LAST());
    set<<<dim3(1, 65536), 1>>>(d);
    std::printf("65536 blocks along y: %s\n", LAST());
    set<<<dim3(1, 1, 65536), 1>>>(d);
    std::printf("65536 blocks along z: %s\n", LAST());
    set<<<1u << 31, 1>>>(d);
    std::printf("2^31 blocks: %s\n", LAST());
    set<<<dim3(1, 0), 32>>>(d);
    std::printf("no blocks along y: %s\n", LAST());
    set<<<1, dim3(32, 0)>>>(d);
    std::printf("no threads along y: %s\n", LAST());
    set<<<0, 2000>>>(d);
    std::printf("no blocks of 2000 threads: %s\n", LAST());
    bounded<<<1, 128>>>(d);
    std::printf("more threads than launch bounds: %s\n", LAST());
    dynamic<<<1, 32, 48 << 10>>>(d);
    std::printf("48 KB of shared memory: %s\n", LAST());
    dynamic<<<1, 32, (48 << 10) + 4>>>(d);
    std::printf("more than 48 KB: %s\n", LAST());
    SAY(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 60 << 10));
    dynamic<<<1, 32, 60 << 10>>>(d);
    std::printf("60 KB: %s\n", LAST());
    SAY(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20));
    SAY(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 << 10));
    SAY(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, (227 << 10) + 1));
    SAY(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, -2));
    SAY(cudaFuncSetAttribute(dynamic, (cudaFuncAttribute)99, 1));
    SAY(cudaFuncSetAttribute(no_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024));
    std::printf("the last of them: %s\n", LAST());
    with_arrays<<<1, 32, 48 << 10>>>(d);
    std::printf("48 KB beside static arrays: %s\n", LAST());
    SAY(cudaFuncSetAttribute(with_arrays, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 << 10));
    SAY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&value, set, 1024, 0));
    SAY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&value, set, 0, 0));
    SAY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&value, set, 1025, 0));
    std::printf("%d blocks\n", value);
    SAY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&value, set, 32, 100 << 10));
    std::printf("%d blocks\n", value);
    void *arguments[] = {&d};
    SAY(cudaLaunchKernel((const void *)set, dim3(1), dim3(32), arguments));
    SAY(cudaLaunchKernel((const void *)set, dim3(1), dim3(0), arguments));
    SAY(cudaLaunchKernel((const void *)no_kernel, dim3(1), dim3(32), arguments));
    SAY(cudaLaunchCooperativeKernel((const void *)cooperative, dim3(1 << 20), dim3(1024), arguments));
    SAY(cudaLaunchCooperativeKernel((const void *)cooperative, dim3(0), dim3(1024), arguments));
    SAY(cudaLaunchCooperativeKernel((const void *)cooperative, dim3(1), dim3(1025), arguments));
    std::printf("the last of them: %s\n", LAST());
    cudaFuncAttributes function;
    SAY(cudaFuncGetAttributes(&function, no_kernel));
    SAY(cudaFuncGetAttributes(&function, with_arrays));
    std::printf("%d bytes, %d threads\n", (int)function.sharedSizeBytes,
                function.maxThreadsPerBlock);
    SAY(cudaFuncGetAttributes(&function, bounded));
    std::printf("%d bytes, %d threads\n", (int)function.sharedSizeBytes,
                function.maxThreadsPerBlock);
    with_arrays<<<1, 32>>>(d);
    SAY(cudaDeviceSynchronize());
    set<<<1, 2000>>>(d);
    std::printf("peek %s, ", cudaGetErrorName(cudaPeekAtLastError()));
    std::printf("sync %s, ", cudaGetErrorName(cudaDeviceSynchronize()));
    std::printf("get %s, ", LAST());
    std::printf("get %s\n", LAST());

    cudaEvent_t start, stop, untimed;
    float ms = -1;
    SAY(cudaEventRecord(nullptr));
    SAY(cudaEventSynchronize(nullptr));
    SAY(cudaEventElapsedTime(&ms, nullptr, nullptr));
    SAY(cudaEventDestroy(nullptr));
    SAY(cudaEventCreateWithFlags(&start, 99));
    SAY(cudaStreamDestroy(nullptr));
    SAY(cudaStreamWaitEvent(nullptr, nullptr, 0));
    cudaStream_t flagged;
    SAY(cudaStreamCreateWithFlags(&flagged, 99));
    std::printf("the last of them: %s\n", LAST());
    SAY(cudaEventCreate(&start));
    SAY(cudaEventCreate(&stop));
    SAY(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
    SAY(cudaEventElapsedTime(&ms, start, stop));
    SAY(cudaEventQuery(stop));
    SAY(cudaEventSynchronize(stop));
    SAY(cudaEventRecord(start));
    SAY(cudaEventRecord(untimed));
    set<<<1, 32>>>(d);
    SAY(cudaEventRecord(stop));
    SAY(cudaEventSynchronize(stop));
    SAY(cudaEventQuery(stop));
    SAY(cudaEventElapsedTime(&ms, start, stop));
    std::printf("a time: %d\n", ms >= 0);
    SAY(cudaEventElapsedTime(&ms, start, untimed));
    cudaStream_t stream;
    SAY(cudaStreamCreate(&stream));
    SAY(cudaMemsetAsync(d, 255, 64, stream));
    SAY(cudaStreamWaitEvent(stream, stop, 0));
    SAY(cudaStreamSynchronize(stream));
    SAY(cudaStreamQuery(stream));
    SAY(cudaStreamDestroy(stream));
    SAY(cudaFuncSetCacheConfig(set, cudaFuncCachePreferShared));

    int *pinned, *mapped, *managed;
    SAY(cudaMallocHost(&pinned, 256));
    SAY(cudaHostGetDevicePointer(&mapped, pinned, 0));
    SAY(cudaMallocManaged(&managed, 256));
    set<<<1, 32>>>(mapped);
    set<<<1, 32>>>(managed);
    SAY(cudaDeviceSynchronize());
    std::printf("%d %d\n", pinned[31], managed[30]);
    cudaPointerAttributes attributes;
    for (void *each : {(void *)d, (void *)pinned, (void *)managed, (void *)h}) {
        SAY(cudaPointerGetAttributes(&attributes, each));
        std::printf("type %d\n", attributes.type);
    }
    SAY(cudaFreeHost(pinned));
    SAY(cudaFree(managed));
    SAY(cudaFree(d));
    std::printf("%s: %s\n", cudaGetErrorName((cudaError_t)700),
                cudaGetErrorString((cudaError_t)700));
    std::printf("%s: %s\n", cudaGetErrorName((cudaError_t)8888),
                cudaGetErrorString((cudaError_t)8888));
    free(h);
    free(host);
    return 0;
}
