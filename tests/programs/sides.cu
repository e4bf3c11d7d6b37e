// Functions for both sides that ask which one they are compiled for.
#include <cstdio>

#define BOTH __host__ __device__

BOTH int side() {
#ifdef __CUDA_ARCH__
    return 1;
#else
    return 2;
#endif
}
BOTH int shifted(int n) {
#if __CUDA_ARCH__ >= 350
    return n << 1;
#else
    return n - 1;
#endif
}
struct Sided {
    int a;
    BOTH Sided(int n) : a(n) {
#if defined(__CUDA_ARCH__)
        a += 10;
#endif
    }
    BOTH int operator+(int n) const {
#if !defined(__CUDA_ARCH__)
        return a - n;
#else
        return a + n;
#endif
    }
};
template <class T>
BOTH T doubled(T x) {
#ifdef __CUDA_ARCH__
    return x * 2;
#endif
    return x;
}
BOTH int line() {
#ifdef __CUDA_ARCH__
    return 0;
#endif
    return __LINE__;
}

__global__ void ask(int* out) {
    out[threadIdx.x] = side();
    out[threadIdx.x] += shifted(3) * 10 + (Sided(1) + 2) * 100 + doubled(4) * 10000 + line();
}

int main() {
    int *device, host[2];
    cudaMalloc(&device, sizeof host);
    ask<<<1, 2>>>(device);
    cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost);
    printf("%d %d\n", host[0], host[1]);
    printf("%d %d %d %d %d\n", side(), shifted(3), Sided(1) + 2, doubled(4), line());
}
