// Kernels with barriers behind a guard, against host functions: whole blocks, blocks of which some
// threads leave, and blocks that leave.
#include <cstdio>

const int THREADS = 64;
static int wrong = 0, compared = 0;

__global__ void turned_if(const int* a, int* out, int n) {
    __shared__ int s[THREADS];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        s[threadIdx.x] = a[i];
        __syncthreads();
        int last = min(THREADS, n - (int)(blockIdx.x * THREADS)) - 1;
        out[i] = s[last - threadIdx.x] * 3;
    }
}
template <class T, int BY>
__global__ void summed(const T* a, T* out, int n) {
    extern __shared__ unsigned char bytes[];
    T* s = (T*)bytes;
    const int i = blockIdx.x * blockDim.x + threadIdx.x, left = n - blockIdx.x * blockDim.x;
    if (i >= n) return;
    s[threadIdx.x] = a[i] * BY;
    __syncthreads();
    for (int step = THREADS / 2; step > 0; step /= 2) {
        if (threadIdx.x < step && threadIdx.x + step < left)
            s[threadIdx.x] += s[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}
__device__ int shifted(int* s, int value) {
    s[threadIdx.x] = value;
    __syncthreads();
    int mine = s[threadIdx.x ? threadIdx.x - 1 : 0];
    __syncthreads();
    return mine;
}
__global__ void called(const int* a, int* out, int n) {
    __shared__ int s[THREADS];
    if (blockIdx.x > n) return;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    n = shifted(s, a[i]) + n;
    for (int k = 0; k < 3; k++) n += shifted(s, n);
    out[i] = n;
}
__global__ void counted(const int* a, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, number = atomicAdd(out + n, 1);
    if (i >= n) return;
    __syncthreads();
    out[i] = a[i] + (number >= 0);
}
__global__ void leaves_later(const int* a, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __syncthreads();
    out[i] = a[i];
    if (i % 3 == 0) return;
    __syncthreads();
    out[i] += 1;
}

template <class Host>
static void compare(const char* name, const int* device, int size, Host expected) {
    ++compared;
    cudaError_t status = cudaDeviceSynchronize();
    if (status != cudaSuccess) printf("%s: %s\n", name, cudaGetErrorString(status));
    for (int i = 0; i < size; ++i)
        if (device[i] != expected(i)) {
            printf("%s: element %d of %d is wrong\n", name, i, size);
            ++wrong;
            return;
        }
}

int main() {
    const int most = 400;
    int *a, *out;
    cudaMallocManaged(&a, sizeof(int) * most);
    cudaMallocManaged(&out, sizeof(int) * (most + 1));
    for (int i = 0; i < most; ++i) a[i] = i * 7 % 31 - 11;
    for (int n : {1, 17, 32, 63, 64, 65, 100, 128, 129, 192, 333}) {
        const int blocks = n / THREADS + 2;
        turned_if<<<blocks, THREADS>>>(a, out, n);
        compare("turned_if", out, n, [&](int i) {
            int begin = i / THREADS * THREADS, end = begin + THREADS < n ? begin + THREADS : n;
            return a[begin + end - 1 - i] * 3;
        });
        summed<int, 5><<<blocks, THREADS, THREADS * sizeof(int)>>>(a, out, n);
        compare("summed", out, (n + THREADS - 1) / THREADS, [&](int block) {
            int sum = 0;
            for (int i = block * THREADS; i < n && i < (block + 1) * THREADS; ++i) sum += a[i] * 5;
            return sum;
        });
        called<<<blocks, THREADS>>>(a, out, n);
        compare("called", out, n, [&](int i) {
            int begin = i / THREADS * THREADS;
            int values[THREADS], before[THREADS];
            for (int t = 0; t < THREADS; ++t)
                values[t] = begin + t < most ? a[begin + (t ? t - 1 : 0)] + n : 0;
            for (int k = 0; k < 3; k++) {
                for (int t = 0; t < THREADS; ++t) before[t] = values[t];
                for (int t = 0; t < THREADS; ++t) values[t] += before[t ? t - 1 : 0];
            }
            return values[i - begin];
        });
        out[n] = 0;
        counted<<<blocks, THREADS>>>(a, out, n);
        compare("counted", out, n + 1, [&](int i) { return i < n ? a[i] + 1 : blocks * THREADS; });
        leaves_later<<<blocks, THREADS>>>(a, out, n);
        compare("leaves_later", out, n, [&](int i) { return a[i] + (i % 3 != 0); });
    }
    printf("%d compared, %d wrong\n", compared, wrong);
    return wrong != 0;
}
