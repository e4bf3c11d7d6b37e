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

// Braces around what ends a loop or the kernel for the whole block.
extern "C" __global__ void braces(const int* in, int* out) {
    __shared__ int cells[96];
    int value = in[THREAD];
    for (int i = 0;; ++i) {
        cells[threadIdx.x] = value;
        __syncthreads();
        value += cells[95 - threadIdx.x];
        __syncthreads();
        if (i == 1) {
            {
                out[THREAD] = value;
                if (blockIdx.x == 1) {
                    {
                        return;
                    }
                }
                {
                    break;
                }
            }
        }
    }
    __syncthreads();
    out[THREAD] += 1 + cells[(threadIdx.x + 1) % 96];
}

// The rows of a matrix, one for each warp of the grid.
extern "C" __global__ void rows(const int* in, int* out) {
    const unsigned row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    const unsigned i = threadIdx.x + blockDim.x * blockIdx.x;
    int sum = -1;
    if (row % 5 < 3) sum = sum_of_warp(in[THREAD]);
    if (i >> 5 != 4) sum += __shfl_sync(0xffffffffu, sum, 3);
    out[THREAD] = sum;
}

// Lambdas for functions in which threads meet, and objects in their place.
struct Plus {
    int more;
    __device__ int operator()(int value) const { return value + more; }
};
template <class Get, class Put>
__device__ int hand_on(Get get, const Put& put, int value) {
    const int own = get(value);
    __syncthreads();
    put(__shfl_xor_sync(0xffffffffu, own, 1));
    __syncthreads();
    return get(value + 1);
}
template <class Get>
__device__ int twice(const Get& get, int value) {
    return hand_on(get, [&](int other) { value += other; }, 1) + hand_on(Plus{3}, get, value);
}
extern "C" __global__ void lambdas(const int* in, int* out) {
    __shared__ int cells[96];
    const int t = threadIdx.x, lane = t % 32;
    int value = in[THREAD], calls = 0;
    cells[t] = value;
    __syncthreads();
    const auto get = [&](int at) {
        ++calls;
        return cells[(t + lane + (at & 31)) % 96] + value;
    };
    value = hand_on(get, [&](int other) { value += other + threadIdx.x; }, 7);
    const Plus plus{value & 3};
    value += hand_on(plus, [](int) {}, 2);
    value ^= twice(get, lane) + twice(plus, 5);
    out[THREAD] = value + 1000 * calls;
}

// One thread, and one warp, of each block waits for the block before it.
__device__ int flags[8], sums[8], rounds;
extern "C" __global__ void after_another(const int* in, int* out) {
    __shared__ int before, run;
    const int warp = threadIdx.x / 32;
    if (threadIdx.x == 0) run = atomicAdd(&rounds, 1) / 6 + 1;
    __syncthreads();
    out[THREAD] = in[THREAD];
    if (threadIdx.x == 0) {
        while (blockIdx.x > 0 && atomicAdd(&flags[blockIdx.x - 1], 0) != run) __nanosleep(20);
        __threadfence();
        before = blockIdx.x > 0 ? sums[blockIdx.x - 1] : run;
    }
    __syncthreads();
    if (warp == 0) {
        const int sum = sum_of_warp(in[THREAD]);
        if (threadIdx.x == 0) sums[blockIdx.x] = before + sum;
        __threadfence();
        if (threadIdx.x == 0) *(volatile int*)&flags[blockIdx.x] = run;
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        bool known;
        do {
            known = blockIdx.x == 0 || ((const volatile int*)flags)[blockIdx.x - 1] == run;
        } while (!__all_sync(0xffffffffu, known));
    }
    __syncthreads();
    out[THREAD] += before;
}
