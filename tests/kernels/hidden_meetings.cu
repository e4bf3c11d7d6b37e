// Barriers to which a kernel comes in all the ways of C++: each kernel writes the sum of the values
// of its block, of 64 threads, at each thread's place.
#include <cooperative_groups.h>

#define SUM(values, v)                                                       \
    values[threadIdx.x] = v;                                                 \
    __syncthreads();                                                         \
    for (unsigned d = 32; d > 0; d /= 2) {                                   \
        if (threadIdx.x < d) values[threadIdx.x] += values[threadIdx.x + d]; \
        __syncthreads();                                                     \
    }
struct Member {
    T* values;
    __device__ T sum(T v) {
        SUM(values, v)
        return values[0];
    }
};
extern "C" __global__ void member(const T* in, T* out) {
    __shared__ T s[64];
    const T v = in[threadIdx.x];
    Member m{s};
    out[threadIdx.x] = m.sum(v);
}

template <class U>
struct Static {
    static __device__ U total(U* values, U v) {
        SUM(values, v)
        return values[0];
    }
};
extern "C" __global__ void static_member(const T* in, T* out) {
    __shared__ T s[64];
    const T v = in[threadIdx.x];
    out[threadIdx.x] = Static<T>::total(s, v);
}

using Alias = Static<T>;
extern "C" __global__ void alias(const T* in, T* out) {
    __shared__ T s[64];
    const T v = in[threadIdx.x];
    out[threadIdx.x] = Alias::total(s, v);
}

namespace inner {
__device__ T of_block(T* values, T v) {
    SUM(values, v)
    return values[0];
}
struct Class {
    T* values;
    __device__ T operator()(T v) const {
        SUM(values, v)
        return values[0];
    }
};
}  // namespace inner
extern "C" __global__ void of_namespace(const T* in, T* out) {
    __shared__ T s[64];
    const T v = in[threadIdx.x];
    out[threadIdx.x] = inner::of_block(s, v);
}

extern "C" __global__ void functor(const T* in, T* out) {
    __shared__ T s[64];
    const T v = in[threadIdx.x];
    inner::Class f{s};
    out[threadIdx.x] = f(v);
}

struct Outside {
    T* values;
    __device__ T outside(T v);
};
__device__ T Outside::outside(T v) {
    SUM(values, v)
    return values[0];
}
extern "C" __global__ void defined_outside(const T* in, T* out) {
    __shared__ T s[64];
    const T v = in[threadIdx.x];
    Outside o{s};
    out[threadIdx.x] = o.outside(v);
}

template <class D>
struct Base {
    __device__ T go(T v) { return static_cast<D*>(this)->derived_sum(v); }
};
struct Derived : Base<Derived> {
    T* values;
    __device__ T derived_sum(T v) {
        SUM(values, v)
        return values[0];
    }
};
extern "C" __global__ void derived(const T* in, T* out) {
    __shared__ T s[64];
    const T v = in[threadIdx.x];
    Derived d;
    d.values = s;
    out[threadIdx.x] = d.go(v);
}

struct Operand {
    T* values;
};
__device__ T operator%(const Operand& operand, T v) {
    SUM(operand.values, v)
    return operand.values[0];
}
extern "C" __global__ void in_operator(const T* in, T* out) {
    __shared__ T s[64];
    const T v = in[threadIdx.x];
    out[threadIdx.x] = Operand{s} % v;
}

struct Constructed {
    T value;
    __device__ Constructed(T* values, T v) {
        SUM(values, v)
        value = values[0];
    }
};
extern "C" __global__ void constructor(const T* in, T* out) {
    __shared__ T s[64];
    const T v = in[threadIdx.x];
    out[threadIdx.x] = Constructed(s, v).value;
}

__device__ T plain(T* values, T v) {
    SUM(values, v)
    return values[0];
}
extern "C" __global__ void pointer(const T* in, T* out) {
    __shared__ T s[64];
    const T v = in[threadIdx.x];
    T (*f)(T*, T) = plain;
    out[threadIdx.x] = f(s, v);
}

extern "C" __global__ void in_lambda(const T* in, T* out) {
    __shared__ T s[64];
    const T v = in[threadIdx.x];
    auto f = [&](T x) { SUM(s, x) return s[0]; };
    out[threadIdx.x] = f(v);
}

extern "C" __global__ void by_name(const T* in, T* out) {
    __shared__ T s[64];
    const T v = in[threadIdx.x];
    out[threadIdx.x] = plain(s, v);
}

extern "C" __global__ void group(const T* in, T* out) {
    __shared__ T s[64];
    const T v = in[threadIdx.x];
    auto block = cooperative_groups::this_thread_block();
    s[threadIdx.x] = v;
    block.sync();
    T sum = 0;
    for (int i = 0; i < 64; ++i) sum += s[i];
    out[threadIdx.x] = sum;
}
