// Calls of the runtime API that fail. An argument says which part is run.
#include <cuda_runtime.h>

#include <cstdlib>

__global__ void fill(int* a) {
    a[threadIdx.x] = threadIdx.x;  // through null
}

int values[64], more[128];
int *device, *freed, *huge;

// Nobody looks at the results.
void thrown_away() {
    cudaMemcpy(device, values, sizeof values, cudaMemcpyDeviceToHost);          // thrown away
    cudaMemcpy(values, device, sizeof values, cudaMemcpyHostToDevice);          // thrown away
    if (device) cudaMemcpy(more, device, sizeof more, cudaMemcpyDeviceToHost);  // thrown away
    (void)cudaMemset(values, 0, sizeof values);                                 // thrown away
    ::cudaFree(freed);                                                          // thrown away
    cudaMemcpyAsync(values, freed, sizeof values, cudaMemcpyDeviceToHost);      // thrown away
    cudaDeviceSetLimit((cudaLimit)77, 1);  // nothing follows from it
    fill<<<1, 2048>>>(device);             // thrown away
}

// Somebody does, here or later.
int looked_at() {
    if (cudaMalloc(&huge, size_t(1) << 60) != cudaSuccess) cudaGetLastError();
    const cudaError_t error = cudaMemcpy(more, device, sizeof more, cudaMemcpyDeviceToHost);
    cudaMemcpy(values, device, sizeof values, cudaMemcpyHostToDevice);
    fill<<<1, 2048>>>(device);
    int grid = 0, block = 0;
    if (cudaOccupancyMaxPotentialBlockSizeVariableSMemWithFlags(
            &grid, &block, fill, [](int) { return 0; }, 0, cudaOccupancyDefault))
        return 1;
    return !error || !cudaGetLastError() || block != 1024;
}

// What follows is done with memory that was never made.
void never_made() {
    cudaMalloc(&huge, size_t(1) << 60);  // never made
    cudaMemset(huge, 0, 256);
    fill<<<1, 64>>>(huge);
    cudaDeviceSynchronize();
}

int main(int, char** arguments) {
    if (cudaMalloc(&device, sizeof values) || cudaMalloc(&freed, 256) || cudaFree(freed)) return 1;
    switch (atoi(arguments[1])) {
        case 0:
            thrown_away();
            break;
        case 1:
            if (looked_at()) return 1;
            break;
        case 2:
            never_made();
            break;
    }
    return cudaFree(device);
}
