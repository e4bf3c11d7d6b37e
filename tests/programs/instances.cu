// Kernel templates that are launched through pointers, tables and macros, against host arithmetic.
#include <cstdio>
#include <vector>
const int THREADS = 64;
template <class T>
__global__ void doubled(T* p) {
    __shared__ T s[THREADS];
    s[threadIdx.x] = p[threadIdx.x];
    __syncthreads();
    p[threadIdx.x] += s[THREADS - 1 - threadIdx.x];
}
template <class T, int N = 3>
__global__ void moved(T* p, T by, T to) {
    T mine = p[(threadIdx.x + N) % THREADS];
    __syncthreads();
    p[threadIdx.x] = mine + by * to;
}
namespace sums {
template <int N>
__global__ void into(int* p) {
    __shared__ int s[N];
    if (threadIdx.x < N) s[threadIdx.x] = p[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < N; ++i) p[0] += s[i];
    }
}
}  // namespace sums
void (*const table[])(int*) = {sums::into<1>, sums::into<2>, sums::into<4>, sums::into<8>};
template <class T>
using Kernel = void (*)(T*);
template <class T>
void launch(Kernel<T> k, T* p) {
    k<<<1, THREADS>>>(p);
}
template <class T>
void generic(T* p) {
    launch<T>(doubled<T>, p);
    void (*k)(T*, T, T) = &moved<T>;
    k<<<1, THREADS>>>(p, 2, 5);
    void* args[] = {&p};
    cudaLaunchKernel((void*)doubled<T>, dim3(1), dim3(THREADS), args, 0, nullptr);
}
template <int N>
__global__ void many(int* p) {
    __syncthreads();
    p[threadIdx.x] -= N;
}
void (*const all[])(int*) = {many<0>, many<1>, many<2>, many<3>, many<4>,
                             many<5>, many<6>, many<7>, many<8>, many<9>};
template <int N>
__global__ void by_macro(int* p) {
    __syncthreads();
    p[threadIdx.x] += N;
}
#define RUN(n)                          \
    case n:                             \
        by_macro<n><<<1, THREADS>>>(p); \
        break;
void dispatch(int n, int* p) {
    switch (n) { RUN(1) RUN(2) RUN(4) }
}

template <class T>
void expect(T (&values)[THREADS]) {
    T before[THREADS];
    for (int step = 0; step < 3; ++step) {
        for (int i = 0; i < THREADS; ++i) before[i] = values[i];
        for (int i = 0; i < THREADS; ++i) {
            if (step == 1)
                values[i] = before[(i + 3) % THREADS] + 10;
            else
                values[i] += before[THREADS - 1 - i];
        }
    }
}
int main() {
    int *p, ints[THREADS], wrong = 0;
    double *q, doubles[THREADS];
    cudaMallocManaged(&p, sizeof(int) * THREADS);
    cudaMallocManaged(&q, sizeof(double) * THREADS);
    for (int i = 0; i < THREADS; ++i) p[i] = ints[i] = i * i, q[i] = doubles[i] = i * 0.25;
    generic(p), generic(q);
    expect(ints), expect(doubles);
    for (auto k : table) k<<<1, THREADS>>>(p);
    for (int n : {1, 2, 4, 8})
        for (int i = 1; i < n; ++i) ints[0] += ints[i];
    for (int n : {1, 2, 3, 4}) dispatch(n, p);
    for (auto k : all) k<<<1, THREADS>>>(p);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    for (int i = 0; i < THREADS; ++i) wrong += (p[i] != ints[i] + 7 - 45) + (q[i] != doubles[i]);
    printf("%d wrong\n", wrong);
}
