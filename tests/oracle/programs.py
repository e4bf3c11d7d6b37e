"""Programs of many kernels that print a hash for each: as CUDA, and as plain C++."""

from __future__ import annotations

from tests.oracle.grammar import Kernel

COMMON = """
#include <cstdio>
struct Pair {
    int a, b;
    FN int sum() const { return (int)((unsigned)a + (unsigned)b); }
    FN void add(int more) { a = (int)((unsigned)a + (unsigned)more); }
};
FN Pair made(int a, int b) { Pair pair; pair.a = a; pair.b = b; return pair; }
FN void add_to(int& target, int more) { target = (int)((unsigned)target + (unsigned)more); }
FN int mixed(int a, int b) { return (int)((unsigned)a * 31u) ^ b; }
template <class T> FN T twice(T value) { return (T)((unsigned)value * 2u); }
FN int over(int a) { return a ^ 5; }
FN int over(unsigned a) { return (int)(a + 1u); }
FN int recursive(int n, int b) { return n < 1 ? b : recursive(n - 1, b ^ n) ^ (n << 3); }
#define TIMES(p, q) ((int)((unsigned)(p) * (unsigned)(q)))
FN int lanes(int part, int threads, int tid) {
    const int left = threads - tid / 32 * 32;
    return left < part ? left : part;
}
FN unsigned lanes_below(int part, int threads, int tid) {
    return 0xffffffffu >> (32 - lanes(part, threads, tid));
}
"""
CUDA = """#include <cstring>
#define FN __device__
__device__ void meet() { __syncthreads(); }
"""
HOST = """#include <cstring>
#define FN
struct Index { unsigned x, y, z; };
static Index threadIdx, blockIdx, blockDim, gridDim;
static void enter(unsigned t) {
    threadIdx = {t % blockDim.x, t / blockDim.x % blockDim.y, t / (blockDim.x * blockDim.y)};
}
static int shifted_left(int a, int n) { return n > 31 ? 0 : (int)((unsigned)a << n); }
static int shifted_right(int a, int n) { return a >> (n > 31 ? 31 : n); }
static int shifted_zeros(int a, int n) { return n > 31 ? 0 : (int)((unsigned)a >> n); }
static int to_int(float f) {
    return f >= 2147483648.0f ? 2147483647 : f < -2147483648.0f ? -2147483647 - 1 : (int)f;
}
static unsigned to_unsigned(float f) {
    return f >= 4294967296.0f ? 4294967295u : f <= 0.0f ? 0u : (unsigned)f;
}
static int collective(const char* kind, const int* given, int t, int lanes, int step) {
    const int first = t / 32 * 32, lane = t % 32;
    unsigned ballot = 0;
    int any = 0, all = 1;
    for (int i = 0; i < lanes; ++i) {
        const int v = given[first + i];
        ballot |= (unsigned)(v & 1) << i;
        any |= v == 3;
        all &= v & 1;
    }
    if (!strcmp(kind, "ballot")) return (int)ballot;
    if (!strcmp(kind, "any")) return any;
    if (!strcmp(kind, "all")) return all;
    if (!strcmp(kind, "up")) return given[lane >= step ? t - step : t];
    return given[first + (!strcmp(kind, "xor") ? lane ^ 1 : step % lanes)];
}
"""
MAIN = """
static int data[256], out[512];
static void fill(int seed) {
    unsigned state = seed * 2654435761u + 1;
    for (int i = 0; i < 256; ++i) {
        state = state * 1664525u + 1013904223u;
        data[i] = i % 3 ? (int)(state >> 24) : (int)state;
    }
}
static void print(int seed, int error) {
    unsigned long long hash = 14695981039346656037ull;
    for (int i = 0; i < 512; ++i) hash = (hash ^ (unsigned)out[i]) * 1099511628211ull;
    printf("%d %016llx %d\\n", seed, hash, error);
}
"""


def cuda_program(seeds: list[int]) -> str:
    """Write the program whose kernels a device runs."""
    kernels = [Kernel(seed, "cuda") for seed in seeds]
    calls = "".join(
        f"    fill({k.seed}); cudaMemcpy(d, data, sizeof data, cudaMemcpyHostToDevice);"
        f" cudaMemset(o, 0, sizeof out);\n    k{k.seed}<<<{k.grid}, dim3({k.block[0]},"
        f" {k.block[1]}, {k.block[2]}), 1024>>>(d, o, o + 500, {3 + k.seed % 29});"
        f" error = cudaDeviceSynchronize();\n    cudaMemcpy(out, o, sizeof out,"
        f" cudaMemcpyDeviceToHost); print({k.seed}, error);\n"
        for k in kernels
    )
    return (CUDA + COMMON + "".join(k.text() for k in kernels) + MAIN
            + "int main() {\n    int *d, *o, error;\n    cudaMalloc(&d, sizeof data);"
            " cudaMalloc(&o, sizeof out);\n" + calls + "}\n")  # fmt: skip


def host_program(seeds: list[int]) -> str:
    """Write the reference: plain C++ with nothing of ours."""
    kernels = [Kernel(seed, "host") for seed in seeds]
    calls = "".join(
        f"    fill({k.seed}); memset(out, 0, sizeof out);"
        f" k{k.seed}(data, out, out + 500, {3 + k.seed % 29}); print({k.seed}, 0);\n"
        for k in kernels
    )
    return (HOST + COMMON + "".join(k.text() for k in kernels) + MAIN
            + "int main() {\n" + calls + "}\n")  # fmt: skip
