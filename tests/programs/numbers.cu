// Random numbers and half precision: the bits are those of a GPU.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <curand_kernel.h>

#include <cstdio>

__global__ void draw(unsigned *out) {
    curandState state;
    curand_init(1234, threadIdx.x, 5, &state);
    out[threadIdx.x] = curand(&state) ^ __float_as_uint(curand_uniform(&state));
    curandStatePhilox4_32_10_t philox;
    curand_init(99, threadIdx.x, 3, &philox);
    out[32 + threadIdx.x] = curand(&philox) + curand4(&philox).z;
}
__global__ void halves(unsigned short *out, __half2 *pairs) {
    const __half x = __float2half(0.1f * threadIdx.x), y = __int2half_rn(threadIdx.x + 1);
    out[threadIdx.x] = __half_as_ushort(__hadd(x, y) * x / y - __hfma(x, x, y));
    pairs[threadIdx.x] = __hmul2(__halves2half2(x, y), __float2half2_rn(1.5f));
}

int main() {
    unsigned *d, h[64];
    unsigned short *d_halves, h_halves[32];
    __half2 *d_pairs, h_pairs[32];
    cudaMalloc(&d, sizeof h);
    cudaMalloc(&d_halves, sizeof h_halves);
    cudaMalloc(&d_pairs, sizeof h_pairs);
    draw<<<1, 32>>>(d);
    halves<<<1, 32>>>(d_halves, d_pairs);
    cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
    cudaMemcpy(h_halves, d_halves, sizeof h_halves, cudaMemcpyDeviceToHost);
    cudaMemcpy(h_pairs, d_pairs, sizeof h_pairs, cudaMemcpyDeviceToHost);
    for (int i = 0; i < 32; i += 5)
        printf("%08x %08x %04x %g %g\n", h[i], h[32 + i], h_halves[i], __low2float(h_pairs[i]),
               __high2float(h_pairs[i]));
    return 0;
}
