// A program of CUDA, C++ and C: nvcc hands the last two to the host's compiler.
#include <omp.h>

#include <cstdio>

#include "parts.h"

__global__ void square(int *a) {
    a[threadIdx.x] *= a[threadIdx.x];
}

int main() {
    int *a, h[N];
#pragma omp parallel for num_threads(2)
    for (int i = 0; i < N; i++) h[i] = omp_get_num_threads() * i;
    cudaMalloc(&a, sizeof h);
    cudaMemcpy(a, h, sizeof h, cudaMemcpyHostToDevice);
    square<<<1, N>>>(a);
    cudaMemcpy(h, a, sizeof h, cudaMemcpyDeviceToHost);
    cudaFree(a);
    printf("%d %d\n", sum_in_c(h, N), sum_in_cpp(h, N));
}
