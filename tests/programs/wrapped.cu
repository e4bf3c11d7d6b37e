// Each line marked `bug` is wrong, and written in a form around which the device puts code of its
// own: conversions, shifts, divisions and compound assignments of all kinds of types.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#define NUMBER float
const int THREADS = 128;
struct Particle {
    float x, v;
};
struct Counter {
    int hits, misses;
};
__device__ int total, before, behind;

__global__ void casts(const float* f, int* y) {
    y[threadIdx.x] = (int)f[threadIdx.x + 1];  // bug: past the end
}
__global__ void converts(const float* f, int* y) {
    y[threadIdx.x] = f[threadIdx.x + 1];  // bug: past the end
}
__global__ void indexes(const float* f, int* y) {
    y[(int)f[threadIdx.x + 1]] = 1;  // bug: past the end
}
__global__ void shifts_left(const unsigned* f, unsigned* y, int n) {
    y[threadIdx.x] = f[threadIdx.x + 1] << n;  // bug: past the end
}
__global__ void shifts_right(const unsigned* f, unsigned* y, int n) {
    y[threadIdx.x] = f[threadIdx.x + 1] >> n & 15;  // bug: past the end
}
__global__ void makes_vector(const float* f, uchar4* y) {
    y[threadIdx.x] = make_uchar4(f[threadIdx.x + 1], 0, 0, 0);  // bug: past the end
}
__global__ void reads_half(const __half* f, int* y) {
    y[threadIdx.x] = f[2 * THREADS];  // bug: past the end
}
__global__ void adds_half(__half* f) {
    f[2 * THREADS + threadIdx.x] += __float2half(1.0f);  // bug: past the end
}
__device__ int converted(const float* f, int i) {
    return f[i];  // bug: past the end
}
__global__ void returns(const float* f, int* y) {
    y[threadIdx.x] = converted(f, threadIdx.x + 1);
}
__global__ void shifts_in_place(unsigned* y, int n) {
    y[threadIdx.x + 1] >>= n;  // bug: past the end
}
__global__ void divides_in_place(unsigned* y, int n) {
    y[threadIdx.x + 1] /= n;  // bug: past the end
}
__global__ void adds_to_member(Particle* p) {
    p[threadIdx.x % 64].x += p[(threadIdx.x + 33) % 64].x * 0.5f;  // bug: race
}
__global__ void counts_in_member(Counter* c) {
    c[0].hits += c[threadIdx.x / 4].misses;  // bug: race
}
__global__ void adds_to_variable(const int* x) {
    total += x[threadIdx.x];  // bug: race
}
__global__ void reduces(const NUMBER* x, NUMBER* y) {
    __shared__ NUMBER sums[THREADS];
    sums[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    for (int reach = THREADS / 2; reach > 0; reach /= 2)
        if (threadIdx.x < reach) sums[threadIdx.x] += sums[threadIdx.x + reach];  // bug: race
    if (threadIdx.x == 0) y[0] = sums[0];
}
template <class T, int N>
__global__ void reduces_any(const T* x, T* y) {
    __shared__ T sums[N];
    sums[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    for (int reach = N / 2; reach > 0; reach >>= 1)
        if (threadIdx.x < reach) sums[threadIdx.x] += sums[threadIdx.x + reach];  // bug: race
    if (threadIdx.x == 0) y[0] = sums[0];
}
__global__ void passes_variable(int n) {
    (&before)[n / 3] = 42;  // bug: past the end
}
__global__ void splits_variable(int n) {
    *(int*)((char*)&behind + n / 3) = 42;  // bug: misaligned
}

template <class A, class B>
struct Memory {
    A* a;
    B* b;
    Memory() {
        cudaMalloc(&a, 4 * THREADS);
        cudaMalloc(&b, 4 * THREADS);
        cudaMemset(a, 0, 4 * THREADS);
        cudaMemset(b, 0, 4 * THREADS);
    }
    ~Memory() {
        cudaDeviceSynchronize();
        cudaFree(a);
        cudaFree(b);
    }
};
#define RUN(A, B, kernel, ...)               \
    {                                        \
        Memory<A, B> m;                      \
        kernel<<<1, THREADS>>>(__VA_ARGS__); \
    }

int main(int argc, char**) {
    const int n = 3;
#ifdef __clang__  // gives an array of variable size no values
    int sizes[2][argc];
    sizes[1][0] = 2;
#else
    const int sizes[2][argc] = {{1}, {2}};  // nvcc takes them in functions of the host
#endif
    RUN(float, int, casts, m.a, m.b)
    RUN(float, int, converts, m.a, m.b)
    RUN(float, int, indexes, m.a, m.b)
    RUN(unsigned, unsigned, shifts_left, m.a, m.b, n)
    RUN(unsigned, unsigned, shifts_right, m.a, m.b, n)
    RUN(float, uchar4, makes_vector, m.a, m.b)
    RUN(__half, int, reads_half, m.a, m.b)
    RUN(__half, int, adds_half, m.a)
    RUN(float, int, returns, m.a, m.b)
    RUN(unsigned, int, shifts_in_place, m.a, n)
    RUN(unsigned, int, divides_in_place, m.a, n)
    RUN(Particle, int, adds_to_member, m.a)
    RUN(Counter, int, counts_in_member, m.a)
    RUN(int, int, adds_to_variable, m.a)
    RUN(float, float, reduces, m.a, m.b) {
        Memory<int, int> m;
        reduces_any<int, THREADS><<<1, THREADS>>>(m.a, m.b);
    }
    passes_variable<<<1, 1>>>(n);
    cudaDeviceSynchronize();
    splits_variable<<<1, 1>>>(sizes[1][0] + 1);
    cudaDeviceSynchronize();
}
