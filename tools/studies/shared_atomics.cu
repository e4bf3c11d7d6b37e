// One warp, one atomic operation in shared memory, on addresses that the host chooses; with a name
// for each launch on stdout. The argument is the group of operations: 0 to 4, the most common
// first. atomics.py counts under ncu what the operations cost.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdio>
#include <cstdlib>
#define OP(name, type, call)                               \
    struct name {                                          \
        using T = type;                                    \
        static __device__ T go(T* p, T v) { return call; } \
    };
struct none_int {
    using T = int;
    static __device__ T go(T* p, T v) { return v; }
};
OP(add1_int, int, atomicAdd(p, 1))
OP(add3_int, int, atomicAdd(p, 3))
OP(addv_int, int, atomicAdd(p, v))
OP(addm1_int, int, atomicAdd(p, -1))
OP(add1_u32, unsigned, atomicAdd(p, 1u))
OP(sub1_int, int, atomicSub(p, 1))
OP(subv_int, int, atomicSub(p, v))
OP(inc_u32, unsigned, atomicInc(p, 1000u))
OP(dec_u32, unsigned, atomicDec(p, 1000u))
OP(min_int, int, atomicMin(p, v))
OP(max_int, int, atomicMax(p, v))
OP(min_u32, unsigned, atomicMin(p, v))
OP(and_u32, unsigned, atomicAnd(p, v))
OP(or_u32, unsigned, atomicOr(p, v))
OP(xor_u32, unsigned, atomicXor(p, v))
OP(exch_int, int, atomicExch(p, v))
OP(cas_int, int, atomicCAS(p, 0, v))
OP(cas_fail_int, int, atomicCAS(p, 77, v))
OP(exch_float, float, atomicExch(p, v))
OP(add_float, float, atomicAdd(p, v))
OP(add_double, double, atomicAdd(p, v))
using u64 = unsigned long long;
OP(add1_u64, u64, atomicAdd(p, 1ull))
OP(add3_u64, u64, atomicAdd(p, 3ull))
OP(addv_u64, u64, atomicAdd(p, v))
OP(min_u64, u64, atomicMin(p, v))
OP(max_u64, u64, atomicMax(p, v))
OP(and_u64, u64, atomicAnd(p, v))
OP(or_u64, u64, atomicOr(p, v))
OP(xor_u64, u64, atomicXor(p, v))
OP(exch_u64, u64, atomicExch(p, v))
OP(cas_u64, u64, atomicCAS(p, 0ull, v))
OP(cas_fail_u64, u64, atomicCAS(p, 77ull, v))
OP(add_half, __half, atomicAdd(p, v))
OP(add_half2, __half2, atomicAdd(p, v))
OP(add_bf16, __nv_bfloat16, atomicAdd(p, v))
OP(add_bf162, __nv_bfloat162, atomicAdd(p, v))
OP(cas_u16, unsigned short, atomicCAS(p, (unsigned short)0, v))
template <class O, bool USED>
__global__ void shared_atomic(const int* items, const typename O::T* values, typename O::T* out) {
    using T = typename O::T;
    __shared__ T words[1024];
    const T value = values[threadIdx.x];
    const int item = items[threadIdx.x];
    for (int i = threadIdx.x; i < 1024; i += 32) words[i] = values[32];
    __syncwarp();
    T was = value;
    if (item >= 0) was = O::go(&words[item], value);
    if (USED) out[threadIdx.x] = was;
    __syncwarp();
    for (int i = threadIdx.x; i < 1024; i += 32) out[32 + i] = words[i];
}
static int patterns[16][32];
static const char* names[16];
static int count;
static void add(const char* name, int (*item)(int)) {
    for (int t = 0; t < 32; t++) patterns[count][t] = item(t);
    names[count++] = name;
}
template <class T>
T value_of(float f) {
    return T(f);
}
template <>
__half2 value_of(float f) {
    return __half2(__half(f), __half(f));
}
template <>
__nv_bfloat162 value_of(float f) {
    return __nv_bfloat162(__nv_bfloat16(f), __nv_bfloat16(f));
}
template <class O>
void launch() {
    using T = typename O::T;
    T* mem;
    int* items;
    cudaMalloc(&mem, sizeof(T) * 4096);
    cudaMalloc(&items, sizeof patterns);
    cudaMemset(mem, 0, sizeof(T) * 4096);
    T host[33];
    for (int t = 0; t < 32; t++) host[t] = value_of<T>(float(t % 7 + 2));
    host[32] = value_of<T>(0.f);
    cudaMemcpy(mem, host, sizeof host, cudaMemcpyHostToDevice);
    cudaMemcpy(items, patterns, sizeof patterns, cudaMemcpyHostToDevice);
    for (int p = 0; p < count; p++) {
        shared_atomic<O, false><<<1, 32>>>(items + 32 * p, mem, mem + 64);
        shared_atomic<O, true><<<1, 32>>>(items + 32 * p, mem, mem + 64);
        printf("%s\n%s\n", names[p], names[p]);
    }
    cudaDeviceSynchronize();
}
template <class... O>
void all() {
    (launch<O>(), ...);
}
int main(int, char** arguments) {
    add("on 1 address", [](int) { return 0; });
    add("on 2 addresses", [](int t) { return t % 2; });
    add("on 8 addresses", [](int t) { return t % 8; });
    add("on 32 addresses", [](int t) { return t; });
    add("on 32 addresses, one bank", [](int t) { return t * 32; });
    add("on 32 addresses, two a bank", [](int t) { return t * 2; });
    add("on 8 addresses, one bank", [](int t) { return t % 8 * 32; });
    add("on 1 address, 16 lanes of 32", [](int t) { return t % 2 ? -1 : 0; });
    add("on 17 addresses, half of the lanes on one", [](int t) { return t < 16 ? 0 : t; });
    add("on 6 addresses, two banks", [](int t) { return (t * t + 3 * t) % 11 * 16; });
    switch (atoi(arguments[1])) {
        case 0:
            all<none_int, add1_int, add3_int, addv_int, addm1_int, add1_u32, add_float>();
            break;
        case 1:
            all<sub1_int, subv_int, inc_u32, min_int, max_int, exch_int, cas_int, cas_fail_int>();
            break;
        case 2:
            all<dec_u32, min_u32, and_u32, or_u32, xor_u32, exch_float, add_double, add1_u64>();
            break;
        case 3:
            all<add3_u64, addv_u64, min_u64, max_u64, exch_u64, cas_u64, cas_fail_u64>();
            break;
        case 4:
            all<and_u64, or_u64, xor_u64, add_half, add_half2, add_bf16, add_bf162, cas_u16>();
    }
    const cudaError_t error = cudaGetLastError();
    fprintf(stderr, "%s\n", cudaGetErrorString(error));
    return error != cudaSuccess;
}
