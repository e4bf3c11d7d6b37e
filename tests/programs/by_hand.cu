// Twenty kernels whose profile was worked out by hand, a row behind each line: memory, requests,
// lanes, and the sectors or wavefronts that they take; branches of warps, and those that split one.
// Blocks have 64 threads, two warps, but where a launch says otherwise.
#include <cstdio>

struct Point {
    float x, y, z;
};

// 100 elements, 128 threads: three warps are full, and four lanes of the last one are left.
__global__ void saxpy(int n, float a, const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;   // branch 4 1
    float ax = a * x[i];  // global load 4 100 13
    y[i] += ax;           // global load 4 100 13; global store 4 100 13
}

// Every third word: 384 bytes of a warp are 12 sectors.
__global__ void members(const Point* points, float* out) {
    int t = threadIdx.x;
    float y = points[t].y;  // global load 2 64 24
    out[t] = y;             // global store 2 64 8
}

// Blocks of 32 x 4: rows are read, columns written.
__global__ void transpose(const float* in, float* out) {
    int x = threadIdx.x, y = threadIdx.y;
    float value = in[y * 32 + x];  // global load 4 128 16
    out[x * 32 + y] = value;       // global store 4 128 128
}

// Blocks of 32 x 8, four turns.
__global__ void tile(const float* in, float* out) {
    __shared__ float words[32][32];
    int x = threadIdx.x, y = threadIdx.y;
    for (int j = 0; j < 32; j += 8)              // branch 40 0
        words[y + j][x] = in[(y + j) * 32 + x];  // global load 32 1024 128; shared store 32 1024 32
    __syncthreads();                             // barrier 1
    for (int j = 0; j < 32; j += 8) {            // branch 40 0
        float word = words[x][y + j];            // shared load 32 1024 1024
        out[(y + j) * 32 + x] = word;            // global store 32 1024 128
    }
}
__global__ void padded(const float* in, float* out) {
    __shared__ float words[32][33];
    int x = threadIdx.x, y = threadIdx.y;
    for (int j = 0; j < 32; j += 8)              // branch 40 0
        words[y + j][x] = in[(y + j) * 32 + x];  // global load 32 1024 128; shared store 32 1024 32
    __syncthreads();                             // barrier 1
    for (int j = 0; j < 32; j += 8) {            // branch 40 0
        float word = words[x][y + j];            // shared load 32 1024 32
        out[(y + j) * 32 + x] = word;            // global store 32 1024 128
    }
}

// Lanes that add: 32 + 16 + 8 + 4 + 2 + 1, each two words.
__global__ void sequential(const float* in, float* out) {
    __shared__ float v[64];
    int t = threadIdx.x;
    v[t] = in[t];                      // global load 2 64 8; shared store 2 64 2
    __syncthreads();                   // barrier 1
    for (int s = 32; s > 0; s /= 2) {  // branch 14 0
        if (t < s)                     // branch 12 5
            v[t] += v[t + s];          // shared load 12 126 12; shared store 6 63 6
        __syncthreads();               // barrier 6
    }
    if (t == 0)         // branch 2 1
        out[0] = v[0];  // shared load 1 1 1; global store 1 1 1
}
// The same lanes, spread over both warps until the last step.
__global__ void interleaved(const float* in, float* out) {
    __shared__ float v[64];
    int t = threadIdx.x;
    v[t] = in[t];                      // global load 2 64 8; shared store 2 64 2
    __syncthreads();                   // barrier 1
    for (int s = 1; s < 64; s *= 2) {  // branch 14 0
        if (t % (2 * s) == 0)          // branch 12 11
            v[t] += v[t + s];          // shared load 22 126 22; shared store 11 63 11
        __syncthreads();               // barrier 6
    }
    if (t == 0)         // branch 2 1
        out[0] = v[0];  // shared load 1 1 1; global store 1 1 1
}
// Neighbouring lanes, words that are 2 s apart: two of them in each bank, but for the last step.
__global__ void strided(const float* in, float* out) {
    __shared__ float v[64];
    int t = threadIdx.x;
    v[t] = in[t];                      // global load 2 64 8; shared store 2 64 2
    __syncthreads();                   // barrier 1
    for (int s = 1; s < 64; s *= 2) {  // branch 14 0
        int i = 2 * s * t;
        if (i < 64)            // branch 12 5
            v[i] += v[i + s];  // shared load 12 126 22; shared store 6 63 11
        __syncthreads();       // barrier 6
    }
    if (t == 0)         // branch 2 1
        out[0] = v[0];  // shared load 1 1 1; global store 1 1 1
}

// in[t] is t: eight lanes at each of four words that lie in four banks. Ones are merged, threes
// take a turn each; a float is a loop of eight turns of two, with a load by the lanes left.
__global__ void histogram(const int* in, int* out) {
    __shared__ int bins[4];
    __shared__ float sums[4];
    int t = threadIdx.x;
    if (t < 4)                    // branch 2 1
        bins[t] = 0;              // shared store 1 4 1
    if (t < 4)                    // branch 2 1
        sums[t] = 0;              // shared store 1 4 1
    __syncthreads();              // barrier 1
    int bin = in[t] % 4;          // global load 2 64 8
    atomicAdd(&bins[bin], 1);     // shared atomic 2 64 2
    atomicAdd(&bins[bin], 3);     // shared atomic 2 64 16
    atomicMax(&bins[bin], t);     // shared atomic 2 64 16
    atomicAdd(&sums[bin], 1.5f);  // shared atomic 2 64 48
    __syncthreads();              // barrier 1
    if (t < 4)                    // branch 2 1
        out[t] = bins[t];         // shared load 1 4 1; global store 1 4 1
}
__global__ void global_atomics(int* out) {
    int t = threadIdx.x;
    atomicAdd(&out[64], 1);     // global atomic 2 64 2
    atomicAdd(&out[t / 8], 1);  // global atomic 2 64 2
    atomicAdd(&out[8 * t], 1);  // global atomic 2 64 64
}

// Five steps of both warps.
__global__ void shuffles(const int* in, int* out) {
    int t = threadIdx.x;
    int value = in[t];                                     // global load 2 64 8
    for (int d = 16; d > 0; d /= 2)                        // branch 12 0
        value += __shfl_down_sync(0xffffffffu, value, d);  // warp 10
    if (t % 32 == 0)                                       // branch 2 2
        out[t / 32] = value;                               // global store 2 2 2
}

// Vectors of 16 bytes: 16 sectors a warp, four wavefronts.
__global__ void vectors(const float4* in, float4* out) {
    __shared__ float4 words[64];
    int t = threadIdx.x;
    float4 v = in[t];   // global load 2 64 32
    words[t] = v;       // shared store 2 64 8
    __syncthreads();    // barrier 1
    v = words[63 - t];  // shared load 2 64 8
    out[t] = v;         // global store 2 64 32
}
// Doubles, half of a warp at a time; in the second loads two lanes of each half meet in a bank.
__global__ void doubles(double* out) {
    __shared__ double words[128];
    int t = threadIdx.x;
    words[t] = t;               // shared store 2 64 4
    words[t + 64] = t;          // shared store 2 64 4
    __syncthreads();            // barrier 1
    double one = words[t];      // shared load 2 64 4
    double two = words[2 * t];  // shared load 2 64 8
    out[t] = one + two;         // global store 2 64 16
}

// From byte 4 to 131, from 132 to 259: five sectors each.
__global__ void shifted(const float* in, float* out) {
    int t = threadIdx.x;
    float value = in[t + 1];  // global load 2 64 10
    out[t] = value;           // global store 2 64 8
}
// Each thread has a row of four words: 16 sectors for each of 2 x 4 requests.
__global__ void rows(const float* in, float* out) {
    int t = threadIdx.x;
    float sum = 0;
    for (int j = 0; j < 4; ++j)  // branch 10 0
        sum += in[4 * t + j];    // global load 8 256 128
    out[t] = sum;                // global store 2 64 8
}

// n is 0 to 7: no turn for 0, one for 1 to 4, two for 5 to 7; so two of three looks split a warp.
__global__ void turns(int* out) {
    int t = threadIdx.x, count = 0, n = t % 8;
    while (n > 0) {  // branch 6 4
        n -= 4;
        ++count;
    }
    out[t] = count;  // global store 2 64 8
}
__global__ void leaves(int* out) {
    int t = threadIdx.x;
    if (t >= 40) return;  // branch 2 1
    out[t] = 1;           // global store 2 40 5
}

// Blocks of 16 x 16: a warp has two rows. Words of `a` lie in two banks, of `b` in sixteen.
__global__ void product(const float* left, const float* right, float* out) {
    __shared__ float a[16][16], b[16][16];
    int x = threadIdx.x, y = threadIdx.y;
    a[y][x] = left[y * 16 + x];   // global load 8 256 32; shared store 8 256 8
    b[y][x] = right[y * 16 + x];  // global load 8 256 32; shared store 8 256 8
    __syncthreads();              // barrier 1
    float sum = 0;
    for (int k = 0; k < 16; ++k)   // branch 136 0
        sum += a[y][k] * b[k][x];  // shared load 128 4096 128; shared load 128 4096 128
    out[y * 16 + x] = sum;         // global store 8 256 32
}

// Two bytes each: 16 words a warp. Every second: a word for each lane.
__global__ void halves(short* out) {
    __shared__ short words[128];
    int t = threadIdx.x;
    words[t] = t;                // shared store 2 64 2
    words[t + 64] = t;           // shared store 2 64 2
    __syncthreads();             // barrier 1
    short value = words[2 * t];  // shared load 2 64 2
    out[t] = value;              // global store 2 64 4
}

// A neighbour on each side; what all lanes read, and write, is one sector.
__global__ void stencil(const float* in, float* out, int* flag) {
    __shared__ float words[66];
    int t = threadIdx.x;
    words[t + 1] = in[t];                         // global load 2 64 8; shared store 2 64 2
    if (t == 0)                                   // branch 2 1
        words[0] = in[0];                         // global load 1 1 1; shared store 1 1 1
    if (t == 63)                                  // branch 2 1
        words[65] = in[63];                       // global load 1 1 1; shared store 1 1 1
    __syncthreads();                              // barrier 1
    float left = words[t], right = words[t + 2];  // shared load 4 128 4
    out[t] = left + words[t + 1] + right;         // shared load 2 64 2; global store 2 64 8
    float first = in[0];                          // global load 2 64 2
    if (first == 0)                               // branch 2 0
        flag[0] = 1;                              // global store 2 64 2
}

int main() {
    const int n = 4096;
    int numbers[n];
    for (int i = 0; i < n; ++i) numbers[i] = i;
    void *a, *b, *c;
    cudaMalloc(&a, sizeof numbers), cudaMalloc(&b, sizeof numbers), cudaMalloc(&c, sizeof numbers);
    cudaMemcpy(a, numbers, sizeof numbers, cudaMemcpyHostToDevice);
    cudaMemset(c, 0, sizeof numbers);
    const float *in = (float*)c, *more = in + 1024;
    float* out = (float*)b;
    const int* keys = (int*)a;
    saxpy<<<2, 64>>>(100, 2, in, out);
    members<<<1, 64>>>((const Point*)in, out);
    transpose<<<1, dim3(32, 4)>>>(in, out);
    tile<<<1, dim3(32, 8)>>>(in, out);
    padded<<<1, dim3(32, 8)>>>(in, out);
    sequential<<<1, 64>>>(in, out);
    interleaved<<<1, 64>>>(in, out);
    strided<<<1, 64>>>(in, out);
    histogram<<<1, 64>>>(keys, (int*)out);
    global_atomics<<<1, 64>>>((int*)out);
    shuffles<<<1, 64>>>(keys, (int*)out);
    vectors<<<1, 64>>>((const float4*)in, (float4*)out);
    doubles<<<1, 64>>>((double*)out);
    shifted<<<1, 64>>>(in, out);
    rows<<<1, 64>>>(in, out);
    turns<<<1, 64>>>((int*)out);
    leaves<<<1, 64>>>((int*)out);
    product<<<1, dim3(16, 16)>>>(in, more, out);
    halves<<<1, 64>>>((short*)out);
    stencil<<<1, 64>>>(in, out, (int*)out + 100);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(a), cudaFree(b), cudaFree(c);
}
