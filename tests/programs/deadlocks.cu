// Kernels that wait for ever, or nearly, each in a run of its own: the argument says which one.
#include <cuda_runtime.h>

#include <cstdio>
#include <thread>

__device__ int arrived;

__global__ void reads_a_flag(volatile int* flag) {
    if (threadIdx.x == 0)
        while (*flag == 0) {
        }
    __syncthreads();
}
__global__ void waits_for_all_blocks(int*) {
    if (threadIdx.x == 0) {
        atomicAdd(&arrived, 1);
        while (atomicAdd(&arrived, 0) < gridDim.x) {
        }
    }
    __syncthreads();
}
__global__ void one_block_fails(int* data) {
    if (blockIdx.x == 0) data[-(1ll << 36)] = 1;
    while (*(volatile int*)data == 0) {
    }
}

__global__ void waits_for_a_minute(volatile int* flag) {
    const long long begin = clock64();
    while (*flag == 0 && clock64() - begin < 60000000000) {
    }
}
__global__ void writes_a_flag(int* flag) {
    *flag = 1;
}

int main(int, char* argv[]) {
    int* flag;
    std::thread host;
    cudaMalloc(&flag, sizeof *flag);
    cudaMemset(flag, 0, sizeof *flag);
    switch (argv[1][0]) {
        case 'f':
            reads_a_flag<<<1, 64>>>(flag);
            break;
        case 'g':
            waits_for_all_blocks<<<40, 1024>>>(flag);
            break;
        case 'o':
            one_block_fails<<<4, 32>>>(flag);
            break;
        case 'h':  // memory that a thread of the host writes later than any limit here
            cudaMallocManaged(&flag, sizeof *flag);
            host = std::thread([flag] {
                std::this_thread::sleep_for(std::chrono::seconds(5));
                *(volatile int*)flag = 1;
            });
            reads_a_flag<<<1, 64>>>(flag);
            host.join();
            break;
        case 'b':  // what another kernel would write
            cudaStream_t one, other;
            cudaStreamCreate(&one);
            cudaStreamCreate(&other);
            reads_a_flag<<<1, 64, 0, one>>>(flag);
            writes_a_flag<<<1, 1, 0, other>>>(flag);
            break;
        case 'c':  // not longer than a time by the clock, for what the host writes later
            cudaMallocManaged(&flag, sizeof *flag);
            waits_for_a_minute<<<1, 64>>>(flag);
            *(volatile int*)flag = 1;
            break;
        case 'e':  // the program ends, and never waits
            reads_a_flag<<<1, 64>>>(flag);
            printf("cudaSuccess\n");
            return 0;
        case 't':  // kernels with and without additional OS threads, in turn
            for (int i = 0, none = 0; i < 200; ++i) {
                cudaMemcpyToSymbol(arrived, &none, sizeof none);
                waits_for_all_blocks<<<32, 32>>>(flag);
                writes_a_flag<<<1, 1>>>(flag);
            }
            break;
    }
    printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
