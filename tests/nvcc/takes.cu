// Kernels that nvcc takes, each by itself, though something of the host's is near.

// --- constants
const float half_ = 0.5f;
const int four = 4;
constexpr int eight = 8;
extern "C" __global__ void kernel(int *out, unsigned n) { *out = half_ * n + four + eight; }

// --- measured
const int table[3] = {0, 1, 2};
extern "C" __global__ void kernel(int *out) {
    *out = sizeof(table) / sizeof(table[0]) + sizeof table;
}

// --- shadowed
int zero = 0, one = 1;
int two(int x) { return 2 * x; }
__device__ int f(int zero) { return zero; }
extern "C" __global__ void kernel(int *out, unsigned n) {
    int one = f(n), *two = &one;
    for (int i = 0, zero = 1; i < zero; ++i)
        *out = one + *two + zero;
}

// --- not used
int zero = 0;
int twice(int x) { return 2 * x + zero; }
extern "C" __global__ void kernel(int *out, unsigned n) { *out = n; }

// --- by a macro
#define ON_GPU __device__ static
ON_GPU int twice(int x) { return 2 * x; }
ON_GPU int zero;
extern "C" __global__ void kernel(int *out, unsigned n) { *out = twice(n) + zero; }

// --- in a condition
#ifndef NO_GPU
__device__
#endif
int twice(int x) { return 2 * x; }
extern "C" __global__ void kernel(int *out, unsigned n) { *out = twice(n); }

// --- left out
int zero = 0;
extern "C" __global__ void kernel(int *out, unsigned n) {
#if 0
    *out = zero;
#else
    *out = n;
#endif
}

// --- for both
int host_only(int x) { return x; }
__host__ __device__ int twice(int x) {
#ifdef __CUDA_ARCH__
    return 2 * x;
#else
    return 2 * host_only(x);
#endif
}
extern "C" __global__ void kernel(int *out, unsigned n) { *out = twice(n); }

// --- declared, then defined
__device__ int twice(int x);
__device__ int twice(int x) { return 2 * x; }
extern "C" __global__ void kernel(int *out, unsigned n) { *out = twice(n); }

// --- members
struct Pair {
    int zero, one;
    __device__ int two() const { return 2; }
};
int zero = 0;
int two() { return 2; }
extern "C" __global__ void kernel(int *out) {
    Pair p{1, 2}, *q = &p;
    *out = p.zero + q->two();
}

// --- templates
template <class T> __device__ T twice(T x) { return 2 * x; }
template <class T> __device__ int more(T x) { return x.more(); }
extern "C" __global__ void kernel(int *out, unsigned n) { *out = twice(n); }

// --- lambda
int twice(int x) { return 2 * x; }
extern "C" __global__ void kernel(int *out, unsigned n) {
    auto twice = [](int x) { return 2 * x; };
    *out = twice(n);
}

// --- algorithm on the host
#include <algorithm>
int greater(int a, int b) { return std::max(a, b); }
__device__ int max_(int a, int b) { return max(a, b); }
extern "C" __global__ void kernel(int *out, unsigned n) {
    *out = sizeof(std::max(1, 2)) + max_(n, 2);
}

// --- vector that nobody looks into
#include <vector>
extern "C" __global__ void kernel(std::vector<int> all, std::vector<int> *other, int *out) {
    std::vector<int> *one = other, &same = *one;
    *out = sizeof(all) + sizeof same;
}

// --- classes named like the library's
template <class T> struct vector {
    T items[4];
    __device__ T &operator[](int i) { return items[i]; }
};
struct stack {
    int top;
};
extern "C" __global__ void kernel(vector<int> in, stack s, int *out) {
    vector<int> own = in;
    *out = own[1] + in[2] + s.top;
}

// --- shared variables without values
extern "C" __global__ void kernel(int *out, unsigned n) {
    __shared__ struct {
        int a;
    } s;
    __shared__ __align__(sizeof(int) == 4 ? 4 : 8) int b[4];
    b[n % 4] = n;
    s.a = b[0] = n;
    *out = s.a;
}

// --- 48 KiB of shared memory
extern "C" __global__ void kernel(int *out, unsigned n) {
    __shared__ int a[12288];
    a[n] = n;
    *out = a[n / 2];
}

// --- two kernels with shared memory
extern "C" __global__ void kernel(int *out, unsigned n) {
    __shared__ int a[9000];
    a[n] = n;
    *out = a[n / 2];
}
extern "C" __global__ void other(int *out, unsigned n) {
    __shared__ int a[9000];
    a[n] = n;
    *out = a[n / 2];
}

// --- a block of C names
extern "C" {
__global__ void kernel(int *out, unsigned n) { *out = n; }
}

// --- shared variable with a value that the preprocessor leaves out
extern "C" __global__ void kernel(int *out, unsigned n) {
#ifdef COUNTED
    __shared__ int counted = 0;
#endif
    __shared__ int a;
    a = n;
    *out = a;
}

// --- result that a definition makes void
#define NOTHING void
extern "C" __global__ NOTHING kernel(int *out, unsigned n) { *out = n; }
