// Threads that change the same elements, each as if it were alone: a race, but one whose threads
// all write the same numbers where each finds what it has written itself.
#include <cstdio>

const int N = 256;

__global__ void rows(float* t, const float* a) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < N) {
        t[x] = 0;
        for (int j = 0; j < N; j++) t[x] += a[j * N + x];
    }
}
__global__ void guarded(float* t, const float* a) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = threadIdx.y;
    if (y < 100 && x < N) {
        t[x] = 0;
        for (int j = 0; j < N; j++) t[x] = t[x] + a[j * N + x];
    }
}
__global__ void of_grid(float* t, const float* a, float* other) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = threadIdx.y;
    other[y] = 1;
    t[blockIdx.y * N + x] = 0;
    for (int j = 0; j < N; j++) t[blockIdx.y * N + x] += a[j * N + x];
}
__global__ void one(float* t, const float* a, float* other) {
    int x = threadIdx.x, i = blockIdx.x;
    t[i] = 0;
    for (int j = 0; j < N; j++) t[i] += a[j];
    other[x] = 1;
}
__global__ void apart(float* t, const float* a) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (y < N && x < N) {
        t[y * N + x] = 0;
        for (int j = 0; j < N; j++) t[y * N + x] += a[j * N + x];
    }
}
__global__ void steps(float* t, const float* a) {
    __shared__ float sums[32];
    int x = threadIdx.x;
    sums[x] = 0;
    for (int j = x; j < N; j += blockDim.x) sums[x] += a[j];
    __syncthreads();
    t[blockIdx.x * 32 + x] = sums[31 - x];
}
// What is there before counts once, as where all rows go in step.
__global__ void kept(float* t, const float* a) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < N) {
        for (int j = 0; j < N; j++) t[x] += a[j * N + x];
    }
}
__global__ void kept_rows(float* t, const float* a) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < N) {
        for (int j = 0; j < N; j++) t[x] += a[x * N + j];
    }
}
// Rows that do the same, and yet count.
__device__ void add(float* t) {
    atomicAdd(t, 1.0f);
}
__global__ void counted(float* t) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < N) add(t + x);
}

float host[N * N], sums[N];
float *a, *t, *other;

void show(const char* name) {
    cudaMemcpy(sums, t, sizeof sums, cudaMemcpyDeviceToHost);
    cudaMemset(t, 0, sizeof sums);
    printf("%s %g %g %g\n", name, sums[0], sums[1], sums[7]);
}

int main() {
    for (float& each : host) each = 1;
    cudaMalloc(&a, sizeof host);
    cudaMalloc(&t, sizeof host);
    cudaMalloc(&other, sizeof sums);
    cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice);
    const dim3 block(32, 8);
    rows<<<N / 32, block>>>(t, a), show("rows");
    guarded<<<N / 32, block>>>(t, a), show("guarded");
    of_grid<<<dim3(N / 32, 2), block>>>(t, a, other), show("of_grid");
    one<<<8, 64>>>(t, a, other), show("one");
    apart<<<dim3(N / 32, N / 8), block>>>(t, a), show("apart");
    kept<<<N / 32, block>>>(t, a), show("kept");
    kept_rows<<<N / 32, block>>>(t, a), show("kept_rows");
    counted<<<N / 32, block>>>(t), show("counted");
    steps<<<N / 32, block>>>(t, a), show("steps");
}
