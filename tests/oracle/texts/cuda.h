// What CUDA alone defines, as CUDA.
#include <cmath>
#include <cstdio>
#include <cstring>
#define FN __device__
#define BOTH __host__ __device__
#define DEVICE __device__
#define CONSTANT __constant__

__device__ int whole(int v);
__device__ unsigned whole(unsigned v);
__device__ long long whole(long long v);
__device__ unsigned long long whole(unsigned long long v);
__device__ void meet() {
    __syncthreads();
}
template <class T>
__device__ void meet_of() {
    if (sizeof(T)) __syncthreads();
}
struct Meeting {
    static __device__ void all() { __syncthreads(); }
    __device__ void here() const { meet(); }
    __device__ void operator()() { __syncthreads(); }
    __device__ void operator+(int) const { __syncthreads(); }
    struct Inner {
        static __device__ void all() { meet(); }
    };
};
struct Arriving {
    __device__ Arriving() { __syncthreads(); }
};
struct Leaving {
    __device__ ~Leaving() { __syncthreads(); }
};
template <bool B>
__device__ void meet_if() {
    if constexpr (B) __syncthreads();
}
template <class... A>
__device__ void meet_all(A...) {
    __syncthreads();
}
__device__ int alike(unsigned mask, int value) {
    int all;
    __match_all_sync(mask, value, &all);
    return all;
}
namespace nested {
__device__ void meet() {
    __syncthreads();
}
__device__ int shifted(int a, int n) {
    return whole(a << whole(n)) ^ whole(a >> whole(n));
}
}  // namespace nested
template <class T>
__device__ T moved(T value, int n) {
    return (T)whole((value << whole(n))) ^ (T)(whole(value >> whole(n)));
}
template <class T>
__device__ T warp_sum(T value) {
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) value += __shfl_down_sync(0xffffffffu, value, d);
    return value;
}
template <class T>
__device__ T warp_total(T value) {
    for (int d = 1; d < 32; d *= 2) value = value + __shfl_xor_sync(0xffffffffu, value, d);
    return value;
}
template <class K, class... A>
void launched(K kernel, dim3 grid, dim3 block, int shared, A... arguments) {
    kernel<<<grid, block, shared>>>(arguments...);
}
#define SYNC __syncthreads()
#define SHIFTED(a, b) whole(((a) << whole((b) & 63)))
