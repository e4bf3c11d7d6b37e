#include <cuda_runtime.h>

#include <cstdio>

int main() {
    int count = 0;
    cudaError_t status = cudaGetDeviceCount(&count);
    printf("%s: %d\n", cudaGetErrorString(status), count);
}
