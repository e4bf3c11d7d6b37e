// Device memory given to free() instead of cudaFree().
#include <cstdlib>

#include <cuda_runtime.h>

int main() {
    float *d;
    cudaMalloc(&d, 1000);
    free(d);
    return 0;
}
