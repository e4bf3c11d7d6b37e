// Grids that wait in the wrong way, each in a run of its own: the argument says which one.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdio>

namespace cg = cooperative_groups;

__global__ void one_leaves(int *) {
    if (blockIdx.x == 2) return;
    cg::this_grid().sync();
}
__global__ void one_crashes(int *data) {
    if (blockIdx.x == 1 && threadIdx.x == 7) data[-(1ll << 36)] = 1;
    cg::this_grid().sync();
}
__global__ void waits(int *) {
    cg::this_grid().sync();
}

int main(int, char *argv[]) {
    int *d;
    cudaMalloc(&d, 4);
    void *arguments[] = {&d};
    const char which = argv[1][0];
    if (which == 'l')
        cudaLaunchCooperativeKernel((void *)one_leaves, dim3(4), dim3(32), arguments);
    else if (which == 'c')
        cudaLaunchCooperativeKernel((void *)one_crashes, dim3(4), dim3(32), arguments);
    else
        waits<<<4, 32>>>(d);
    printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    cudaDeviceReset();
    cudaMalloc(&d, 4);
    void *again[] = {&d};
    cudaError_t error = cudaLaunchCooperativeKernel((void *)waits, dim3(3), dim3(64), again);
    printf("%s, %s\n", cudaGetErrorName(error), cudaGetErrorName(cudaDeviceSynchronize()));
    return 0;
}
