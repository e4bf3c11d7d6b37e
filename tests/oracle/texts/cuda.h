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
};
namespace nested {
__device__ void meet() {
    __syncthreads();
}
__device__ int shifted(int a, int n) {
    return whole(a << n) ^ whole(a >> n);
}
}  // namespace nested
template <class T>
__device__ T moved(T value, int n) {
    return (T)whole((value << n)) ^ (T)(whole(value >> n));
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
#define SYNC __syncthreads()
#define SHIFTED(a, b) whole(((a) << ((b) & 63)))
