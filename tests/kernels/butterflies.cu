// Statements in which all lanes of a warp read before any of them writes, in a block of any number
// of whole warps.

struct Pair {
    int a, b;
};
__device__ void operator+=(Pair& pair, const Pair& other) {
    pair.a += other.a;
    pair.b -= other.b;
}
template <class Value>
__device__ void exchange(Value* values, int at, int distance) {
    values[at] += values[at ^ distance];
}
#define SHARED                                                 \
    __shared__ int s[128];                                     \
    const int t = threadIdx.x, lane = t % 32, base = t - lane; \
    (void)base

extern "C" __global__ void across(const int* in, int* out) {
    SHARED;
    s[t] = in[t];
    __syncwarp();
    for (int d = 16; d > 0; d >>= 1) {
        s[t] += s[t ^ d];
        __syncwarp();
    }
    out[t] = s[t];
}

extern "C" __global__ void from_below(const int* in, int* out) {
    SHARED;
    s[t] = in[t];
    __syncwarp();
    for (int d = 1; d < 32; d *= 2) {
        if (lane >= d) s[t] += s[t - d];
        __syncwarp();
    }
    out[t] = s[t];
}

extern "C" __global__ void around(const int* in, int* out) {
    SHARED;
    s[t] = in[t];
    __syncwarp();
    s[t] = s[base + (lane + 1) % 32] - s[base + (lane + 31) % 32];
    __syncwarp();
    out[t] = s[t];
}

extern "C" __global__ void from_above(const int* in, int* out) {
    SHARED;
    s[t] = in[t];
    __syncwarp();
    if (lane < 24) s[t] += s[t + 8];
    __syncwarp();
    if (lane < 31) s[t] += s[t + 1];
    __syncwarp();
    out[t] = s[t];
}

extern "C" __global__ void backwards(const int* in, int* out) {
    SHARED;
    const int i = base + 31 - lane;
    s[t] = in[t];
    __syncwarp();
    if (lane > 0) s[i] += s[i + 1];
    __syncwarp();
    out[t] = s[t];
}

extern "C" __global__ void in_branches(const int* in, int* out) {
    SHARED;
    s[t] = in[t];
    __syncthreads();
    if (in[t] > 0) {
        if (lane & 1) {
            s[t] = s[t ^ 2] - s[t];
        } else
            s[t] *= s[t ^ 4];
    }
    __syncthreads();
    out[t] = s[t];
}

extern "C" __global__ void in_functions(const int* in, int* out) {
    SHARED;
    s[t] = in[t];
    __syncwarp();
    exchange(s, t, 8);
    __syncwarp();
    exchange<int>(&s[base], lane, 1);
    __syncwarp();
    out[t] = s[t];
}

extern "C" __global__ void of_structures(const int* in, int* out) {
    __shared__ Pair pairs[128];
    const int t = threadIdx.x;
    pairs[t] = {in[t], t};
    __syncwarp();
    pairs[t] += pairs[t ^ 16];
    __syncwarp();
    pairs[t].a += pairs[t ^ 3].b;
    out[t] = pairs[t].a;
}

// From statement to statement, as before Volta.
extern "C" __global__ void tail(const int* in, int* out) {
    SHARED;
    (void)base;
    s[t] = in[t];
    __syncthreads();
    if (t < 32) {
        s[t] += s[t + 32];
        s[t] += s[t ^ 16];
        s[t] += s[t ^ 8];
        s[t] += s[t ^ 4];
        s[t] += s[t ^ 2];
        s[t] += s[t ^ 1];
    }
    __syncthreads();
    out[t] = s[t] + lane;
}
