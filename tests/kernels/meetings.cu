// Ways in which threads meet: each kernel must give the same bytes as loops and with fibers.
// Each is launched with blocks of 96 threads; `in` and `out` have an element for each thread.

#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)

__device__ int sum_of_warp(int value) {
    for (int d = 16; d > 0; d /= 2) value += __shfl_xor_sync(0xffffffffu, value, d);
    return value;
}

// The block has one variable in it, whether all threads call it or some warps.
__device__ int shared_sum(int value, bool first = false) {
    __shared__ int sums[3];
    const int sum = sum_of_warp(value);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum + (first ? 0 : sums[threadIdx.x / 32]);
    __syncwarp();
    return sums[threadIdx.x / 32];
}
extern "C" __global__ void masked_and_not(const int* in, int* out) {
    int result = shared_sum(in[THREAD] / 3, true);
    __syncthreads();
    if (threadIdx.x / 32 == 1) result += shared_sum(in[THREAD]);
    __syncthreads();
    out[THREAD] = result + shared_sum(1);
}

// Arrays that a region may copy, and those that something points to.
__device__ void add_up(int (&to)[4], const int (&values)[4]) {
    for (int i = 0; i < 4; ++i) to[i] += values[i] * (i + 1);
}
__device__ void exchange(int (&values)[4], int* place) {
    for (int i = 0; i < 4; ++i) values[i] = __shfl_xor_sync(0xffffffffu, values[i], i + 1);
    *place += values[3];
}
extern "C" __global__ void arrays(const int* in, int* out) {
    int own[4], other[4] = {1, 2, 3, 4};
    for (int i = 0; i < 4; ++i) own[i] = in[THREAD] + i;
    int* const last = &other[3];
    __syncthreads();
    add_up(own, other);
    for (int i = 0; i < 4; ++i) *last += own[i];
    __syncthreads();
    exchange(own, &other[1]);
    const auto add = [&](int i) { own[i] += other[i]; };
    for (int i = 0; i < 4; ++i) add(i);
    __syncthreads();
    int sum = 0;
    for (int i = 0; i < 4; ++i) sum = sum * 31 + own[i] + other[i];
    out[THREAD] = sum;
}

// Warp operations under operators that may leave them out.
extern "C" __global__ void conditional(const int* in, int* out) {
    const int warp = threadIdx.x / 32, value = in[THREAD];
    const int sum = warp > 0 ? sum_of_warp(value) + (warp > 1 ? sum_of_warp(1) : 0) : value;
    int rounds = 0;
    while (rounds < 5 && __any_sync(0xffffffffu, value + rounds > 7)) {
        if (++rounds == 3 || __all_sync(0xffffffffu, value > 1000)) continue;
        ++rounds;
    }
    const bool odd = warp == 1 && !(warp == 7 || __any_sync(0xffffffffu, value & 1));
    out[THREAD] = sum + 1000 * rounds + odd;
}
