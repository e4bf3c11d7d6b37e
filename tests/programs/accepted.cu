// What nvcc accepts besides the forms of forms.cu: NVIDIA's include guards, qualified kernels,
// dynamic shared memory from macros, reference parameters, null pointers.
#include <cooperative_groups.h>
#include <cuComplex.h>
#include <cuda.h>
#include <cuda_fp16.h>
#include <math_constants.h>

#include <cstdio>
#include <type_traits>

#if !defined(__CUDA_RUNTIME_H__) || !defined(__CUDA_RUNTIME_API_H__) || \
    !defined(__DRIVER_TYPES_H__) || !defined(__VECTOR_TYPES_H__) ||     \
    !defined(__VECTOR_FUNCTIONS_H__) || !defined(__CHANNEL_DESCRIPTOR_H__)
#error "not defined: the guards of cuda_runtime.h and what it reads"
#endif
#if !defined(CU_COMPLEX_H_) || !defined(__CUDA_FP16_H__) || !defined(__MATH_CONSTANTS_H__) || \
    !defined(__cuda_cuda_h__) || !defined(_COOPERATIVE_GROUPS_H_)
#error "not defined: the guards of the headers included"
#endif

#define N 64
#define DYNAMIC(T, name) extern __shared__ T name[];
#define DYNAMIC_OF(T, name) extern __shared__ T name##_of_##T[]
#define SHARED_OF(T, name)                     \
    struct Shared_##name {                     \
        __device__ T &operator[](int i) {      \
            extern __shared__ T name[];        \
            return name[i];                    \
        }                                      \
    }

namespace outer {
namespace inner {
__global__ void qualified(int *out, float *unused);
template <class T>
__global__ void of_template(T *out, T *unused);
}  // namespace inner
}  // namespace outer

__global__ void outer::inner::qualified(int *out, float *unused) {
    out[threadIdx.x] = unused ? 0 : threadIdx.x;
}
template <class T>
__global__ void outer::inner::of_template(T *out, T *unused) {
    out[threadIdx.x] = unused ? 0 : 2 * threadIdx.x;
}

template <class T>
struct Shared {
    __device__ T *get() {
        DYNAMIC(T, mem)
        return mem;
    }
};
template <>
struct Shared<float> {
    __device__ float *get() {
        DYNAMIC_OF(float, mem);
        return mem_of_float;
    }
};
template <class T>
__global__ void reverse(int *out) {
    Shared<T> shared;
    shared.get()[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = shared.get()[N - 1 - threadIdx.x];
}

SHARED_OF(int, ints);
__global__ void reverse_in_class(int *out) {
    Shared_ints shared;
    shared[threadIdx.x] = 3 * threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = shared[N - 1 - threadIdx.x];
}

struct Counter {
    int count;
    const int step;
};
__global__ void count(Counter &counter, const int &by) {
    atomicAdd(&counter.count, counter.step * by);
}
template <class T>
__global__ void count_any(T &counter, int by) {
    atomicAdd(&counter.count, counter.step * by);
}

template <bool Write, class T>
__global__ void null(T *out, float *unused, int n = 1) {
    if (Write) out[threadIdx.x] = unused ? 0 : n;
}
template <int Value>
__global__ void fill(int *out, void *unused, float factor) {
    out[threadIdx.x] = unused ? 0 : int(Value * factor);
}
template <int Value>
void fill_with(int *out) {
    fill<Value + 1><<<1, N>>>(out, NULL, 2);
}
__global__ void overloaded(int *out, int &value) {
    out[threadIdx.x] = value++;
}
__global__ void overloaded(float *out, int &value) {
    out[threadIdx.x] = value++;
}

__global__ void named_like_its_caller(int *out, int n) {
    out[threadIdx.x] = n;
}
void named_like_its_caller(int *out) {
    named_like_its_caller<<<1, N>>>(out, 5);
}

int main() {
    int *out;
    Counter *counter;
    cudaMallocManaged(&out, N * sizeof(int));
    cudaMallocManaged(&counter, sizeof(Counter));
    auto show = [&](const char *what) {
        const char *error = cudaGetErrorName(cudaDeviceSynchronize());
        printf("%s: %d %d %d %s\n", what, out[0], out[1], out[N - 1], error);
    };

    outer::inner::qualified<<<1, N>>>(out, NULL);
    show("qualified");
    outer::inner::of_template<int><<<1, N>>>(out, 0);
    show("qualified template");
    reverse<unsigned char><<<1, N, N>>>(out);
    show("dynamic from a macro");
    reverse<float><<<1, N, N * sizeof(float)>>>(out);
    show("dynamic from a macro that makes a name");
    reverse_in_class<<<1, N, N * sizeof(int)>>>(out);
    show("dynamic in a class from a macro");

    int *by;
    cudaMallocManaged(&by, sizeof(int));
    *by = 1;
    memset(counter, 0, sizeof(Counter));
    const_cast<int&>(counter->step) = 3;
    count<<<1, N>>>(*counter, *by);
    show("references");
    count_any<<<2, N>>>(*counter, 1);
    show("references of a template");
    count_any<Counter><<<3, N>>>(*counter, *by);
    show("references of a complete template");
    printf("counted %d\n", counter->count);

    null<true><<<1, N>>>(out, (float*)NULL);
    show("null, and a default");
    null<true, int><<<1, N>>>(out, nullptr, 4);
    show("null of a complete template");
    fill_with<20>(out);
    show("null in a template");
    auto fill_by = [&](auto constant) { fill<constant.value><<<1, N>>>(out, NULL, 2); };
    fill_by(std::integral_constant<int, 9>());
    show("a template's argument from a generic lambda");
    overloaded<<<1, 1>>>(out, *by);
    overloaded<<<1, 1>>>((float *)(out + 1), *by);
    show("overloaded, with references");
    printf("%d\n", *by);
    named_like_its_caller(out);
    show("named like a host function");
    cudaFree(by);
    cudaFree(counter);
    cudaFree(out);
}
