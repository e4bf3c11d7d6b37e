// Kernels that nvcc rejects, each by itself; `<-` marks what is said of a line on the CPU device.

// --- function
int twice(int x) { return 2 * x; }
extern "C" __global__ void kernel(int *out, unsigned n) {
    *out = twice(n);  // <- calls twice, a host function: declare it __device__
}

// --- result
extern "C" __global__ int kernel(int *out) { return *out = 1; }  // <- a kernel returns int: it

// --- result of a longer type
extern "C" __global__ unsigned long long *kernel(int *out) {  // <- returns unsigned long long *: it
    *out = 1;
    return 0;
}

// --- result of a class
struct Pair {
    int first;
};
extern "C" __global__ Pair kernel(int *out) {  // <- a kernel returns Pair: it
    return {*out = 1};
}

// --- result that points to anything
extern "C" __global__ void *kernel(int *out) {  // <- a kernel returns void *: it
    return out;
}

// --- result that is deduced
extern "C" __global__ auto kernel(int *out) { return *out = 1; }  // <- a kernel returns auto: it

// --- function in a device function
static int one() { return 1; }
__device__ int two() {
    return 2 * one();  // <- calls one, a host function: declare it __device__
}
extern "C" __global__ void kernel(int *out) { *out = two(); }

// --- variable
int zero = 0;
extern "C" __global__ void kernel(int *out, unsigned n) {
    *out = n + zero;  // <- uses zero, a host variable: declare it __device__ or __constant__
}

// --- table
static const float weights[] = {1, 2};
extern "C" __global__ void kernel(int *out, unsigned n) {
    *out = weights[n];  // <- uses weights, a host variable: declare it __device__ or __constant__
}

// --- behind a pragma
int zero;
extern "C" __global__ void kernel(int *out) {
#pragma unroll
    for (int i = 0; i < 2; ++i)
        out[i] = zero;  // <- uses zero, a host variable
}

// --- algorithm
#include <algorithm>
extern "C" __global__ void kernel(unsigned *out, unsigned n) {
    out[n] = std::min(1u, n);  // <- calls std::min, a host function: leave out std::
}

// --- algorithm among constants
#include <algorithm>
extern "C" __global__ void kernel(int *out, unsigned n) {
    constexpr int most = std::max(2, 3);  // <- calls std::max, a host function
    out[n] = most;
}

// --- algorithm without a constant value
#include <algorithm>
extern "C" __global__ void kernel(int *out, unsigned n) {
    std::sort(out, out + n);  // <- calls std::sort, which only the host has
}

// --- vector that is handed in
#include <vector>
extern "C" __global__ void kernel(std::vector<int> out, unsigned n) {
    out[n] = n;  // <- uses out, a std::vector, which only the host has: pass a pointer to what it
}

// --- vector of a thread
#include <vector>
using namespace std;
extern "C" __global__ void kernel(int *out, unsigned n) {
    vector<int> own(n);  // <- uses own, a std::vector, which only the host has
    *out = n;
}

// --- vector without a name
#include <vector>
extern "C" __global__ void kernel(int *out, unsigned n) {
    auto own = std::vector<int>(n);  // <- calls std::vector, which only the host has
    *out = n;
}

// --- member of a text
#include <string>
extern "C" __global__ void kernel(const std::string text, int *out) {
    *out = text.size();  // <- uses text, a std::string, which only the host has
}

// --- shared array with values
extern "C" __global__ void kernel(int *out, unsigned n) {
    __shared__ int a[8] = {0};  // <- a __shared__ variable cannot have an initial value
    *out = a[n];
}

// --- shared array with values and no sign
extern "C" __global__ void kernel(int *out, unsigned n) {
    __shared__ int a[8]{};  // <- a __shared__ variable cannot have an initial value
    *out = a[n];
}

// --- shared number with a value
extern "C" __global__ void kernel(int *out, unsigned n) {
    __shared__ __align__(8) int a = 0;  // <- a __shared__ variable cannot have an initial value
    atomicAdd(&a, n);
    *out = a;
}

// --- variable length
extern "C" __global__ void kernel(int *out, unsigned n) {
    int a[n % 7 + 1];  // <- variable length array
    a[0] = n;
    *out = a[n % 2];
}
