#include "data.h"

#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

static void check(cudaError_t error, const char* what) {
    if (error != cudaSuccess) {
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
        exit(1);
    }
}

float* filled(int n, float value) {
    float *values = malloc(n * sizeof *values), *device; /* C++ would need a cast */
    struct cudaDeviceProp properties;
    float4 four = make_float4(1, 2, 3, 4);
    dim3 grid = {1, 2, 3};
    int i;
    check(cudaGetDeviceProperties(&properties, 0), "properties");
    printf("%d %g %u\n", properties.warpSize, four.w, grid.z);
    for (i = 0; i < n; ++i) values[i] = value;
    check(cudaMalloc((void**)&device, n * sizeof(float)), "malloc");
    check(cudaMemcpy(device, values, n * sizeof(float), cudaMemcpyHostToDevice), "copy");
    free(values);
    return device;
}

void finish(float* device, int n) {
    float sum = 0, ms = -1, *values;
    cudaEvent_t begin, end;
    cudaStream_t stream;
    check(cudaStreamCreate(&stream), "stream");
    check(cudaEventCreate(&begin), "event");
    check(cudaEventCreate(&end), "event");
    check(cudaMallocHost((void**)&values, n * sizeof(float)), "host");
    check(cudaEventRecord(begin, 0), "record");
    check(cudaDeviceSynchronize(), "kernel");
    check(cudaMemcpyAsync(values, device, n * sizeof(float), cudaMemcpyDeviceToHost, stream),
          "copy");
    check(cudaStreamSynchronize(stream), "synchronize");
    check(cudaEventRecord(end, 0), "record");
    check(cudaEventSynchronize(end), "event");
    check(cudaEventElapsedTime(&ms, begin, end), "time");
    for (int i = 0; i < n; ++i) sum += values[i];
    printf("%g %d\n", sum, ms >= 0);
    check(cudaFreeHost(values), "free");
    check(cudaStreamDestroy(stream), "stream");
    check(cudaEventDestroy(begin), "event");
    check(cudaEventDestroy(end), "event");
    check(cudaFree(device), "free");
    puts(cudaGetErrorString(cudaMemcpy(&sum, &ms, sizeof(float), (enum cudaMemcpyKind)7)));
}
