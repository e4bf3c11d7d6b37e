// Kernels that are named like functions of the library, as nvcc takes them with `using namespace
// std`.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <iostream>
#include <iterator>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

using namespace std;

__global__ void swap(int* a, const float* b, int n) {
    if ((int)threadIdx.x < n) a[threadIdx.x] += 1 + (int)b[0];
}
extern "C" __global__ void count(const int* __restrict__ a, unsigned int* n, size_t size);
extern "C" __global__ void count(const int* __restrict__ a, unsigned int* n, size_t size) {
    if (threadIdx.x < size && a[threadIdx.x] == 7) atomicAdd(n, 1u);
}
template <int N, class T>
__global__ void reduce(T* a) {
    if (threadIdx.x == 0) a[0] += N;
}
template <class T>
__global__ void fill(T* a, T value) {
    a[threadIdx.x] = value;
}
__global__ void reverse(int* a, int x) {
    a[0] = 0 + x;
}
__global__ void copy(int* a, int x) {
    a[0] = 1 + x;
}
__global__ void find(int* a, int x) {
    a[0] = 2 + x;
}
__global__ void min(int* a, int x) {
    a[0] = 3 + x;
}
__global__ void max(int* a, int x) {
    a[0] = 4 + x;
}
__global__ void sort(int* a, int x) {
    a[0] = 5 + x;
}
__global__ void merge(int* a, int x) {
    a[0] = 6 + x;
}
__global__ void transform(int* a, int x) {
    a[0] = 7 + x;
}
__global__ void distance(int* a, int x) {
    a[0] = 8 + x;
}
__global__ void exp(int* a, int x) {
    a[0] = 9 + x;
}
__global__ void pow(int* a, int x) {
    a[0] = 10 + x;
}
__global__ void log(int* a, int x) {
    a[0] = 11 + x;
}
__global__ void unique(int* a, int x) {
    a[0] = 12 + x;
}
__global__ void accumulate(int* a, int x) {
    a[0] = 13 + x;
}
__global__ void data(int* a, int x) {
    a[0] = 14 + x;
}
__global__ void size(int* a, int x) {
    a[0] = 15 + x;
}
__global__ void move(int* a, int x) {
    a[0] = 16 + x;
}
__global__ void search(int* a, int x) {
    a[0] = 17 + x;
}
__global__ void rotate(int* a, int x) {
    a[0] = 18 + x;
}
__global__ void for_each(int* a, int x) {
    a[0] = 19 + x;
}
__global__ void equal(int* a, int x) {
    a[0] = 20 + x;
}
__global__ void iota(int* a, int x) {
    a[0] = 21 + x;
}
__global__ void inner_product(int* a, int x) {
    a[0] = 22 + x;
}
__global__ void inclusive_scan(int* a, int x) {
    a[0] = 23 + x;
}
__global__ void gcd(int* a, int x) {
    a[0] = 24 + x;
}
__global__ void get(int* a, int x) {
    a[0] = 25 + x;
}
__global__ void exchange(int* a, int x) {
    a[0] = 26 + x;
}
__global__ void forward(int* a, int x) {
    a[0] = 27 + x;
}
__global__ void sin(int* a, int x) {
    a[0] = 28 + x;
}
__global__ void sqrt(int* a, int x) {
    a[0] = 29 + x;
}
__global__ void abs(int* a, int x) {
    a[0] = 30 + x;
}
__global__ void fma(int* a, int x) {
    a[0] = 31 + x;
}
__global__ void norm(int* a, int x) {
    a[0] = 32 + x;
}
__global__ void lower_bound(int* a, int x) {
    a[0] = 33 + x;
}
__global__ void clamp(int* a, int x) {
    a[0] = 34 + x;
}
__global__ void all_of(int* a, int x) {
    a[0] = 35 + x;
}
__global__ void next(int* a, int x) {
    a[0] = 36 + x;
}
__global__ void begin(int* a, int x) {
    a[0] = 37 + x;
}
__global__ void end(int* a, int x) {
    a[0] = 38 + x;
}
__global__ void advance(int* a, int x) {
    a[0] = 39 + x;
}
__global__ void left(int* a, int x) {
    a[0] = 40 + x;
}
__global__ void hex(int* a, int x) {
    a[0] = 41 + x;
}
__global__ void fixed(int* a, int x) {
    a[0] = 42 + x;
}
__global__ void invoke(int* a, int x) {
    a[0] = 43 + x;
}
__global__ void lerp(int* a, int x) {
    a[0] = 44 + x;
}

__global__ void other(int* a, int x) {
    a[0] = x + 1;
}
static int wrong(const int* a, int right, const char* name) {
    cudaDeviceSynchronize();
    if (a[0] != right) puts(name);
    return a[0] != right;
}

// A parameter hides a kernel of its name.
template <class Kernel>
static void run(Kernel swap, int* a) {
    swap<<<1, 1>>>(a, 40);
}

int main() {
    int *a, mistakes = 0;
    float* b;
    unsigned* found;
    cudaMallocManaged(&a, 128);
    cudaMallocManaged(&b, 4);
    cudaMallocManaged(&found, 4);
    b[0] = 2;
    fill<<<1, 4>>>(a, 7);
    count<<<1, 4>>>(a, found, 3);
    reduce<30><<<1, 4>>>(a);
    swap<<<1, 4>>>(a, b, 2);
    cudaDeviceSynchronize();
    const int right[] = {40, 10, 7, 7};
    for (int i = 0; i < 4; ++i) mistakes += a[i] != right[i];
    mistakes += *found != 3;
    run(other, a);
    mistakes += wrong(a, 41, "other");
    reverse<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 0, "reverse");
    copy<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 1, "copy");
    find<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 2, "find");
    min<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 3, "min");
    max<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 4, "max");
    sort<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 5, "sort");
    merge<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 6, "merge");
    transform<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 7, "transform");
    distance<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 8, "distance");
    exp<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 9, "exp");
    pow<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 10, "pow");
    log<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 11, "log");
    unique<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 12, "unique");
    accumulate<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 13, "accumulate");
    data<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 14, "data");
    size<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 15, "size");
    move<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 16, "move");
    search<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 17, "search");
    rotate<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 18, "rotate");
    for_each<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 19, "for_each");
    equal<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 20, "equal");
    iota<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 21, "iota");
    inner_product<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 22, "inner_product");
    inclusive_scan<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 23, "inclusive_scan");
    gcd<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 24, "gcd");
    get<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 25, "get");
    exchange<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 26, "exchange");
    forward<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 27, "forward");
    sin<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 28, "sin");
    sqrt<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 29, "sqrt");
    abs<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 30, "abs");
    fma<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 31, "fma");
    norm<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 32, "norm");
    lower_bound<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 33, "lower_bound");
    clamp<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 34, "clamp");
    all_of<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 35, "all_of");
    next<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 36, "next");
    begin<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 37, "begin");
    end<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 38, "end");
    advance<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 39, "advance");
    left<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 40, "left");
    hex<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 41, "hex");
    fixed<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 42, "fixed");
    invoke<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 43, "invoke");
    lerp<<<1, 1>>>(a, 100);
    mistakes += wrong(a, 100 + 44, "lerp");
    if (!mistakes) puts("ok");
    return mistakes != 0;
}
