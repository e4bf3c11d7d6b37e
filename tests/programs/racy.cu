// Mistakes that an ordinary run does not show: a missing barrier, an index too far, a leak.
#include <cstdio>
#include <cuda_runtime.h>
__global__ void reverse(int *data, int n) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = data[t];
    data[t] = s[n - 1 - t];
}
__global__ void beyond(int *data, int n) {
    if (threadIdx.x <= n) data[threadIdx.x] = 1;
}
int main() {
    int *d, *leak;
    cudaMalloc(&d, 64 * sizeof(int));
    cudaMalloc(&leak, 1000);
    for (int i = 0; i < 4; i++) reverse<<<1, 64>>>(d, 64);
    beyond<<<1, 128>>>(d, 64);
    beyond<<<1, 2000>>>(d, 64);
    int h[64];
    cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
    printf("%d\n", h[3]);
    cudaFree(d);
    return 0;
}
