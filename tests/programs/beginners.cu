// More of what students get wrong, one mistake for each argument: what a report says helps to find
// it.
#include <cuda_runtime.h>

#include <climits>
#include <cstdio>
#include <cstring>

__global__ void count(const char* in, int* bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&bins[in[i]], 1);  // char has a sign
}
__global__ void count_down(const int* in, int* out, unsigned n) {
    int sum = 0;
    for (unsigned k = n - 1; k >= 0; k--) sum += in[k];
    *out = sum;
}
__global__ void twice(int* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2;
}
__global__ void heads(const int* keys, int* flags, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) flags[i] = keys[i] != keys[i - 1];
}
__global__ void sort(int* x, int n) {  // blocks do not wait for each other
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 2; k <= n; k *= 2)
        for (int j = k / 2; j > 0; j /= 2) {
            int p = i ^ j;
            // clang-format off
            if (p > i && ((i & k) == 0) == (x[i] > x[p])) { int t = x[i]; x[i] = x[p]; x[p] = t; }
            // clang-format on
            __syncthreads();
        }
}
__global__ void sum(const int* x, int result, int n) {
    int sum = 0;
    for (int i = 0; i < n; ++i) sum += x[i];
    result = sum;
}

const int N = 512;
int host[N];

int main(int, char** words) {
    const char* slip = words[1];
    auto is = [&](const char* name) { return !strcmp(slip, name); };
    int *x, *y;
    const size_t bytes = is("forgets_sizeof") ? N : sizeof host;
    cudaMalloc(&x, bytes), cudaMalloc(&y, sizeof host);
    cudaMemset(y, is("fills_with_more") ? INT_MAX : 0, sizeof host);
    for (int i = 0; i < N; ++i) host[i] = (i * 75) % N;
    int* const pointer = host;
    if (is("exchanges"))
        cudaMemcpy(host, x, bytes, cudaMemcpyHostToDevice);
    else
        cudaMemcpy(x, host, is("size_of_pointer") ? sizeof pointer : bytes, cudaMemcpyHostToDevice);
    if (is("signed_char")) count<<<4, 512>>>((char*)x, y, 4 * N);
    if (is("counts_down")) count_down<<<1, 1>>>(x, y, N);
    if (is("forgets_sizeof") || is("size_of_pointer") || is("exchanges")) twice<<<2, 256>>>(x, N);
    if (is("left_neighbour")) heads<<<2, 256>>>(x, y, N);
    if (is("swaps")) sort<<<2, 256>>>(x, N);
    if (is("blocks_too_large")) twice<<<1, 2048>>>(y, N);
    if (is("by_value")) sum<<<1, 1>>>(x, host[0], N);
    if (is("blocks_too_large") && cudaGetLastError() != cudaSuccess) {
        puts("the launch has failed");
        cudaFree(x), cudaMalloc(&x, bytes);
    }
    cudaMemcpy(host, is("left_neighbour") ? y : x, bytes, cudaMemcpyDeviceToHost);
    cudaFree(x), cudaFree(y);
}
