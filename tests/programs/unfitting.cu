// A floating-point number that does not fit into an integer, in every way in which C++ converts it
// without a cast: the argument says which one. What the kernel does not refuse is 2147483647.
#include <cstdio>
#include <cstdlib>

template <class T>
struct Of {
    T value;
    __device__ Of(T v) : value(v) {}
    __device__ void set(T v) { value = v; }
};
struct One {
    int value;
    __device__ One(int v) : value(v) {}
    __device__ void operator+=(int v) { value = v; }
    __device__ int operator()(int v) const { return v; }
    __device__ int operator[](int v) const { return v; }
};
struct Derived : One {
    using One::One;
};
struct Inner {
    double wide = 3e9;
    int value = wide;
};
struct Defaults {
    float x;
    int value = x, cast{(int)x};
    Inner inner;
};
template <class T>
struct DefaultsOf {
    T x;
    int value = x;
};
__device__ int referred(const int& v) {
    return v;
}
__device__ int given(int v) {
    return v;
}
template <class T>
__device__ T same(T v) {
    return v;
}
template <class T>
__device__ T returned(float x) {
    return x;
}

__global__ void convert(int way, const float* in, int* out) {
    const float x = in[0];
    One one(0);
    Of<int> of(0);
    int few[2] = {}, result = -1;
    if (way == 0) result = Of<int>(x).value;
    if (way == 1) {
        One* made = new One(x);
        result = made->value;
    }
    if (way == 2) {
        of.set(x);
        result = of.value;
    }
    if (way == 3) {
        one += x;
        result = one.value;
    }
    if (way == 4) result = one(x);
    if (way == 5) result = one[x];
    if (way == 6) result = referred(x);
    if (way == 7) result = same<int>(x);
    if (way == 8) result = Derived(x).value;
    if (way == 9) {
        int (*pointer)(int) = given;
        result = pointer(x);
    }
    if (way == 10) {
        const float floats[1] = {x};
        for (int v : floats) result = v;
    }
    if (way == 11) {
        const int& refers = x;
        result = refers;
    }
    if (way == 12) result = returned<int>(x);
    if (way == 13) {
        atomicAdd(few, x);
        result = few[0];
    }
    if (way == 14) result = *new int(x);
    if (way == 15) {
        atomicExch(few, x);
        result = few[0];
    }
    if (way == 16) result = [](auto call, float v) { return call(v); }(given, x);
    if (way == 17) {
        of = x;
        result = of.value;
    }
    if (way == 18) {
        int (One::*method)(int) const = &One::operator();
        result = (one.*method)(x);
    }
    if (way == 19)
        if (int v = x) result = v;
    if (way == 20) {
        *few = x;
        result = few[0];
    }
    if (way == 21) {
        __shared__ int shared;
        shared = x;
        result = shared;
    }
    if (way == 22) result = Defaults{x}.value;
    if (way == 23) result = Defaults{x}.inner.value;
    if (way == 24) result = DefaultsOf<float>{x}.value;
    if (way == 25) {
        struct Local {
            float x;
            int value = x;
        } local{x};
        result = local.value;
    }
    *out = result;
}

int main(int, char** arguments) {
    float x = 3e9f, *in;
    int *out, result = x;  // as the host does
    cudaMalloc(&in, sizeof *in);
    cudaMalloc(&out, sizeof *out);
    cudaMemcpy(in, &x, sizeof x, cudaMemcpyHostToDevice);
    convert<<<1, 1>>>(atoi(arguments[1]), in, out);
    cudaMemcpy(&result, out, sizeof result, cudaMemcpyDeviceToHost);
    printf("%d\n", result);
}
