// What the lanes of a warp exchange, also in warps that are not full and under disjoint masks.

// The lanes that exist in the calling thread's warp.
__device__ unsigned lanes_here() {
    const unsigned first = threadIdx.x & ~31u, rest = blockDim.x - first;
    return rest >= 32 ? 0xffffffffu : (1u << rest) - 1;
}

// Eight results a thread: the four shuffles of an int, then those of a double.
extern "C" __global__ void shuffle(const int* in, int* ints, double* doubles, int width, int by) {
    const unsigned mask = lanes_here();
    const int i = threadIdx.x, lane = i & 31;
    const int value = in[i];
    const double wide = value + 0.25;
    ints[4 * i] = __shfl_sync(mask, value, by, width);
    ints[4 * i + 1] = __shfl_up_sync(mask, value, by, width);
    ints[4 * i + 2] = __shfl_down_sync(mask, value, by, width);
    ints[4 * i + 3] = __shfl_xor_sync(mask, value, by, width);
    doubles[4 * i] = __shfl_sync(mask, wide, lane + by, width);
    doubles[4 * i + 1] = __shfl_up_sync(mask, wide, by, width);
    doubles[4 * i + 2] = __shfl_down_sync(mask, wide, by, width);
    doubles[4 * i + 3] = __shfl_xor_sync(mask, wide, by, width);
}

extern "C" __global__ void vote(const int* in, unsigned* out) {
    const unsigned mask = lanes_here();
    const int i = threadIdx.x, value = in[i];
    int same = -1;
    out[6 * i] = __ballot_sync(mask, value & 1);
    out[6 * i + 1] = __any_sync(mask, value == 3) != 0;
    out[6 * i + 2] = __all_sync(mask, value < 3) != 0;
    out[6 * i + 3] = __match_any_sync(mask, value);
    out[6 * i + 4] = __match_all_sync(mask, value / 100, &same);
    out[6 * i + 5] = same != 0;
}

// The two halves of each warp take different branches and synchronize among themselves.
extern "C" __global__ void half_warps(const int* in, int* out) {
    __shared__ int items[1024];
    const int i = threadIdx.x, lane = i & 31;
    int value = in[i];
    if (lane < 16) {
        for (int step = 1; step < 16; step *= 2) {
            value += __shfl_xor_sync(0x0000ffffu, value, step);
        }
    } else {
        items[i] = value;
        __syncwarp(0xffff0000u);
        value = items[(i & ~15) + 15 - (i & 15)];
        value += 1000 * __popc(__ballot_sync(0xffff0000u, in[i] & 1));
    }
    out[i] = value;
}

// Neighbours hand values on through shared memory, with no more than __syncwarp between them.
extern "C" __global__ void rotate_in_warp(const int* in, int* out, int rounds) {
    __shared__ int items[1024];
    const unsigned mask = lanes_here();
    const int first = threadIdx.x & ~31, lane = threadIdx.x & 31;
    items[threadIdx.x] = in[threadIdx.x];
    for (int round = 0; round < rounds; ++round) {
        __syncwarp(mask);
        const int value = items[first + (lane + 1) % __popc(mask)];
        __syncwarp(mask);
        items[threadIdx.x] = value;
    }
    out[threadIdx.x] = items[threadIdx.x];
}
