// Small kernels whose speed tells what the CPU device makes of threads: tools/loops.py measures
// them, and beside them the same kernels in OpenCL, loops.cl. Each sets `out`.

extern "C" __global__ void add(const float* a, const float* b, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] + b[i];
}

// One barrier and two accesses to shared memory in each round.
extern "C" __global__ void __launch_bounds__(256) meet(const float* a, const float*, float* out,
                                                       int rounds) {
    __shared__ float values[2][256];
    const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    float sum = a[i];
    for (int round = 0; round < rounds; ++round) {
        values[round % 2][t] = sum;
        __syncthreads();
        sum += values[round % 2][255 - t];
    }
    out[i] = sum;
}

extern "C" __global__ void __launch_bounds__(256) reduce(const float* a, const float*, float* out,
                                                         int n) {
    __shared__ float values[256];
    const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    values[t] = i < n ? a[i] : 0;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s /= 2) {
        if (t < s) values[t] += values[t + s];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = values[0];
}

extern "C" __global__ void __launch_bounds__(256) multiply_tiles(const float* a, const float* b,
                                                                 float* out, int n) {
    __shared__ float as[16][16], bs[16][16];
    const int x = threadIdx.x, y = threadIdx.y;
    const int col = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
    float sum = 0;
    for (int first = 0; first < n; first += 16) {
        as[y][x] = a[row * n + first + x];
        bs[y][x] = b[(first + y) * n + col];
        __syncthreads();
        for (int k = 0; k < 16; ++k) sum += as[y][k] * bs[k][x];
        __syncthreads();
    }
    out[row * n + col] = sum;
}

extern "C" __global__ void multiply(const float* a, const float* b, float* out, int n) {
    const int col = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= n || col >= n) return;
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + col];
    out[row * n + col] = sum;
}

extern "C" __global__ void shuffle(const float* a, const float*, float* out, int rounds) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = a[i];
    for (int round = 0; round < rounds; ++round)
        for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(~0u, sum, lanes);
    out[i] = sum;
}
