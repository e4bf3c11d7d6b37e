// One operation of CUB behind a C function, so that it can be timed beside the course's variants.
//
// Macros choose it, so that a library holds what is needed and compiles in seconds:
//     OPERATION   sort_keys, sort_pairs, merge_sort, reduce, scan, scan_by_key, compact, histogram
//     ELEMENT     the type of the keys, items or elements
//     OP          of reduce: Sum, Prod, Min, Max, Sumsq, Mean, Dot; of scan: Sum, Min, Max
//     INCLUSIVE   of scan: 0 or 1
// All work is enqueued on the default stream.
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_output_iterator.h>

#include <cub/device/device_histogram.cuh>
#include <cub/device/device_merge_sort.cuh>
#include <cub/device/device_partition.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cuda/functional>
#include <cuda/std/bit>
#include <cuda/std/functional>
#include <cuda/std/limits>

#ifndef OP
#define OP Sum
#endif
#ifndef INCLUSIVE
#define INCLUSIVE 0
#endif

namespace cudalab {

using T = ELEMENT;

struct Arguments {
    void* temp;  // null: only report in temp_bytes how much is needed
    size_t* temp_bytes;
    const T* in;
    const T* in2;  // the values of pairs or keys, the second vector of a dot product
    void* out;
    void* out2;  // the values of pairs
    int bins;
};

struct Sum {
    using Combine = ::cuda::std::plus<T>;
    static T identity() { return T(0); }
};

struct Prod {
    using Combine = ::cuda::std::multiplies<T>;
    static T identity() { return T(1); }
};

struct Min {
    using Combine = ::cuda::minimum<T>;
    static T identity() {
        using Limits = ::cuda::std::numeric_limits<T>;
        return Limits::has_infinity ? Limits::infinity() : Limits::max();
    }
};

struct Max {
    using Combine = ::cuda::maximum<T>;
    static T identity() {
        using Limits = ::cuda::std::numeric_limits<T>;
        return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    }
};

struct Sumsq {};
struct Mean {};
struct Dot {};

struct Square {
    __host__ __device__ T operator()(T x) const { return x * x; }
};

struct DivideBy {
    T count;
    __host__ __device__ T operator()(T sum) const { return sum / count; }
};

struct ProductAt {
    const T *x, *y;
    template <class N>
    __host__ __device__ T operator()(N i) const {
        return x[i] * y[i];
    }
};

template <class Op, class N>
cudaError_t reduce(const Arguments& a, N n, Op) {
    return cub::DeviceReduce::Reduce(a.temp, *a.temp_bytes, a.in, static_cast<T*>(a.out), n,
                                     typename Op::Combine{}, Op::identity());
}

template <class N>
cudaError_t reduce(const Arguments& a, N n, Sum) {
    return cub::DeviceReduce::Sum(a.temp, *a.temp_bytes, a.in, static_cast<T*>(a.out), n);
}

template <class N>
cudaError_t reduce(const Arguments& a, N n, Sumsq) {
    return cub::DeviceReduce::TransformReduce(a.temp, *a.temp_bytes, a.in, static_cast<T*>(a.out),
                                              n, ::cuda::std::plus<T>{}, Square{}, T(0));
}

template <class N>
cudaError_t reduce(const Arguments& a, N n, Mean) {
    auto out = thrust::make_transform_output_iterator(static_cast<T*>(a.out), DivideBy{T(n)});
    return cub::DeviceReduce::Sum(a.temp, *a.temp_bytes, a.in, out, n);
}

template <class N>
cudaError_t reduce(const Arguments& a, N n, Dot) {
    return cub::DeviceReduce::TransformReduce(
        a.temp, *a.temp_bytes, thrust::counting_iterator<N>(0), static_cast<T*>(a.out), n,
        ::cuda::std::plus<T>{}, ProductAt{a.in, a.in2}, T(0));
}

template <class N>
cudaError_t reduce(const Arguments& a, N n) {
    return reduce(a, n, OP{});
}

template <class N>
cudaError_t sort_keys(const Arguments& a, N n) {
    return cub::DeviceRadixSort::SortKeys(a.temp, *a.temp_bytes, a.in, static_cast<T*>(a.out), n);
}

template <class N>
cudaError_t sort_pairs(const Arguments& a, N n) {
    return cub::DeviceRadixSort::SortPairs(a.temp, *a.temp_bytes, a.in, static_cast<T*>(a.out),
                                           reinterpret_cast<const unsigned*>(a.in2),
                                           static_cast<unsigned*>(a.out2), n);
}

// Floats in the order of their bits, as in all sorts of the labs.
struct IsLess {
    static __host__ __device__ int ordered(float x) {
        const int bits = ::cuda::std::bit_cast<int>(x);
        return bits ^ (bits >> 31 & 0x7fffffff);
    }
    template <class Key>
    static __host__ __device__ Key ordered(Key key) {
        return key;
    }
    __host__ __device__ bool operator()(T x, T y) const { return ordered(x) < ordered(y); }
};

template <class N>
cudaError_t merge_sort(const Arguments& a, N n) {
    return cub::DeviceMergeSort::SortKeysCopy(a.temp, *a.temp_bytes, a.in, static_cast<T*>(a.out),
                                              n, IsLess{});
}

template <class Op, class N>
cudaError_t scan(const Arguments& a, N n, Op) {
    const typename Op::Combine combine{};
    T* out = static_cast<T*>(a.out);
    if (INCLUSIVE)
        return cub::DeviceScan::InclusiveScan(a.temp, *a.temp_bytes, a.in, out, combine, n);
    return cub::DeviceScan::ExclusiveScan(a.temp, *a.temp_bytes, a.in, out, combine, Op::identity(),
                                          n);
}

template <class N>
cudaError_t scan(const Arguments& a, N n, Sum) {
    T* out = static_cast<T*>(a.out);
    if (INCLUSIVE) return cub::DeviceScan::InclusiveSum(a.temp, *a.temp_bytes, a.in, out, n);
    return cub::DeviceScan::ExclusiveSum(a.temp, *a.temp_bytes, a.in, out, n);
}

template <class N>
cudaError_t scan(const Arguments& a, N n) {
    return scan(a, n, OP{});
}

template <class N>
cudaError_t scan_by_key(const Arguments& a, N n) {
    return cub::DeviceScan::InclusiveSumByKey(a.temp, *a.temp_bytes, a.in, a.in2,
                                              static_cast<T*>(a.out), n);
}

struct IsKept {
    __host__ __device__ bool operator()(T x) const { return x != T(0); }
};

// What is kept goes to the front, the rest, all zeros, to the end. How many are kept is written
// before CUB's own temporary memory.
template <class N>
cudaError_t compact(const Arguments& a, N n) {
    constexpr size_t FOR_COUNT = 256;
    char* const temp = static_cast<char*>(a.temp);
    size_t others = a.temp ? *a.temp_bytes - FOR_COUNT : 0;
    const cudaError_t error =
        cub::DevicePartition::If(temp ? temp + FOR_COUNT : nullptr, others, a.in,
                                 static_cast<T*>(a.out), reinterpret_cast<N*>(temp), n, IsKept{});
    *a.temp_bytes = others + FOR_COUNT;
    return error;
}

// Class of a byte: byte * bins >> 8; a wider element is its class.
template <class N>
cudaError_t histogram(const Arguments& a, N n) {
    const int upper = sizeof(T) == 1 ? 256 : a.bins;
    return cub::DeviceHistogram::HistogramEven(
        a.temp, *a.temp_bytes, a.in, static_cast<unsigned*>(a.out), a.bins + 1, 0, upper, n);
}

template <class N>
cudaError_t run(const Arguments& a, N n) {
    return OPERATION(a, n);
}

}  // namespace cudalab

extern "C" int cudalab_cub_run(void* temp, size_t* temp_bytes, const void* in, const void* in2,
                               void* out, void* out2, int bins, long long n, int wide) {
    const cudalab::Arguments arguments{temp,
                                       temp_bytes,
                                       static_cast<const cudalab::T*>(in),
                                       static_cast<const cudalab::T*>(in2),
                                       out,
                                       out2,
                                       bins};
    return wide ? cudalab::run<long long>(arguments, n)
                : cudalab::run<int>(arguments, static_cast<int>(n));
}

extern "C" int cudalab_cub_version() {
    return CUB_VERSION;
}

extern "C" const char* cudalab_cub_error(int error) {
    return cudaGetErrorString(static_cast<cudaError_t>(error));
}
