// What large and old programs use: tiles of several warps, a grid that arrives before it waits,
// assembly put together by macros, warp functions without a mask. The host computes what is right.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <utility>

namespace cg = cooperative_groups;

static int mistakes;
static void expect(const char* what, long long value, long long right) {
    if (value != right && mistakes++ < 10) printf("%s: %lld, not %lld\n", what, value, right);
}

// ------------------------------------------------------------------ tiles of several warps

struct Wide {
    double a;
    int b[4];
};

template <unsigned SIZE>
__global__ void wide_tile(int* out) {
    __shared__ cg::block_tile_memory<1024> memory;
    auto block = cg::this_thread_block(memory);
    auto tile = cg::tiled_partition<SIZE>(block);
    const int t = block.thread_rank();
    int* o = out + 6 * t;
    o[0] = cg::reduce(tile, t, cg::plus<int>());
    o[1] = cg::inclusive_scan(tile, t);
    o[2] = cg::exclusive_scan(tile, t, cg::greater<int>());
    o[3] = (int)tile.shfl(t * 0.5, SIZE - 3);
    o[4] = tile.any(t == 200) * 2 + tile.all(t >= 128);
    auto warp = cg::tiled_partition<32>(tile);
    Wide wide = {t * 1.5, {t, 1, 2, t + 3}};
    wide = warp.shfl_xor(wide, 5);
    o[5] = (int)(2 * wide.a) + wide.b[0] + wide.b[3];
    tile.sync();
}

template <unsigned SIZE>
static void test_wide_tile() {
    const int threads = 1024;
    int* out;
    cudaMallocManaged(&out, 6 * threads * sizeof(int));
    wide_tile<SIZE><<<1, threads>>>(out);
    expect("launch", cudaDeviceSynchronize(), cudaSuccess);
    for (int t = 0; t < threads; ++t) {
        const int first = t / SIZE * SIZE, last = first + SIZE - 1, other = t ^ 5;
        int before = 0, whole = 0;
        for (int i = first; i <= last; ++i) whole += i, before += i <= t ? i : 0;
        expect("reduce", out[6 * t], whole);
        expect("inclusive_scan", out[6 * t + 1], before);
        expect("exclusive_scan", out[6 * t + 2], t == first ? 0 : t - 1);
        expect("shfl", out[6 * t + 3], (first + (int)SIZE - 3) / 2);
        expect("votes", out[6 * t + 4], 2 * (first <= 200 && 200 <= last) + (first >= 128));
        expect("shfl_xor", out[6 * t + 5], 3 * other + other + other + 3);
    }
    cudaFree(out);
}

// ------------------------------------------------------------------ a grid that arrives, then
// waits

__global__ void phases(int* a, int* b, int* c) {
    auto grid = cg::this_grid();
    const int i = (int)grid.thread_rank(), n = (int)grid.size();
    a[i] = 3 * i + 1;
    auto token = grid.barrier_arrive();
    const int mine = 7 * i;
    grid.barrier_wait(std::move(token));
    b[i] = a[n - 1 - i] + mine;
    grid.sync();
    auto block = cg::this_thread_block();
    auto of_block = block.barrier_arrive();
    block.barrier_wait(std::move(of_block));
    c[i] = b[(i + 50) % n];
}

static void test_phases() {
    const int n = 6 * 48;
    int* memory;
    cudaMallocManaged(&memory, 3 * n * sizeof(int));
    int *a = memory, *b = memory + n, *c = memory + 2 * n;
    void* arguments[] = {&a, &b, &c};
    cudaLaunchCooperativeKernel((void*)phases, dim3(2, 3), dim3(4, 4, 3), arguments, 0, 0);
    expect("launch", cudaDeviceSynchronize(), cudaSuccess);
    for (int i = 0; i < n; ++i) {
        const int j = (i + 50) % n;
        expect("phases", c[i], 3 * (n - 1 - j) + 1 + 7 * j);
    }
    cudaFree(memory);
}

// ------------------------------------------------------------------ assembly made by macros

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define KIND u32
#define MOVE "mov." TEXT(KIND) " %0, "
#define SPECIAL(variable, name) asm volatile(MOVE "%%" #name ";" : "=r"(variable))
#define GETTER(name)                   \
    __device__ unsigned get_##name() { \
        unsigned value;                \
        SPECIAL(value, name);          \
        return value;                  \
    }
#define BITS(to, from, at, many) asm("bfe.u32 %0, %1, " #at ", " #many ";" : "=r"(to) : "r"(from))
#define ANY(...) asm(__VA_ARGS__)

GETTER(warpid)
__device__ unsigned lane() {
    unsigned value;
    asm(MOVE "%%laneid;" : "=r"(value));
    return value;
}
extern __shared__ char dynamic[];

__global__ void assembly(unsigned* out, unsigned x) {
    unsigned bits, tid, bytes, line;
    BITS(bits, x >> 1, 4, 8);
    line = __LINE__;
    ANY("mov.u32 %0, %%tid.x;" : "=r"(tid));
    SPECIAL(bytes, dynamic_smem_size);
    dynamic[threadIdx.x] = 1;
    if (threadIdx.x != 45) return;
    const unsigned values[] = {get_warpid(), lane(), bits, tid, bytes, line};
    for (int i = 0; i < 6; ++i) out[i] = values[i];
}

static void test_assembly() {
    const unsigned right[] = {1, 13, 0xb3, 45, 320, 125};
    unsigned* out;
    cudaMallocManaged(&out, sizeof right);
    assembly<<<1, 64, 320>>>(out, 0x12345678u);
    expect("launch", cudaDeviceSynchronize(), cudaSuccess);
    for (int i = 0; i < 6; ++i) expect("assembly", out[i], right[i]);
    cudaFree(out);
}

// ------------------------------------------------------------------ warp functions without a mask

#ifdef CUDALAB_DEVICE_DATA  // nvcc has removed them
__global__ void without_masks(int* out) {
    const int t = threadIdx.x;
    int sum = t;
    for (int d = 16; d > 0; d /= 2) sum += __shfl_down(sum, d);
    int* o = out + 6 * t;
    o[0] = __shfl(sum, 0);
    o[1] = __shfl_up(t, 2, 8);
    o[2] = __shfl_xor(t, 9);
    o[3] = o[4] = o[5] = 0;
    if (t % 3 == 0) {  // lanes that come here together
        o[3] = __ballot(t % 2);
        o[4] = __any(t == 33);
        o[5] = __all(t < 32);
    }
}

static void test_without_masks() {
    int* out;
    cudaMallocManaged(&out, 64 * 6 * sizeof(int));
    without_masks<<<1, 64>>>(out);
    expect("launch", cudaDeviceSynchronize(), cudaSuccess);
    for (int t = 0; t < 64; ++t) {
        int sum = 0, lanes = 0;
        for (int i = t / 32 * 32; i < t / 32 * 32 + 32; ++i) {
            sum += i;
            if (i % 3 == 0 && i % 2) lanes |= 1 << i % 32;
        }
        const bool in = t % 3 == 0;
        expect("__shfl", out[6 * t], sum);
        expect("__shfl_up", out[6 * t + 1], t % 8 < 2 ? t : t - 2);
        expect("__shfl_xor", out[6 * t + 2], t ^ 9);
        expect("__ballot", out[6 * t + 3], in ? lanes : 0);
        expect("__any", out[6 * t + 4], in && t >= 32);
        expect("__all", out[6 * t + 5], in && t < 32);
    }
    cudaFree(out);
}
#else
static void test_without_masks() {}
#endif

int main() {
    test_wide_tile<64>();
    test_wide_tile<256>();
    test_phases();
    test_assembly();
    test_without_masks();
    if (!mistakes) puts("ok");
    return mistakes != 0;
}
