// What students get wrong at the borders of host and device, one mistake for each argument.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

struct Vector {
    int n;
    float* data;
};

__global__ void square(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] * in[i];
}
__global__ void stores_both(const float* in, float* out, float* spare, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = spare[i] = in[i];
}
__global__ void fill(float* image, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) image[y * width + x] = 1;
}
__global__ void mark(int* out, int stride, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, k = i * stride;
    if (k < n) out[k] = 1;
}
__global__ void scale(Vector* v) {
    if (threadIdx.x < v->n) v->data[threadIdx.x] *= 2;
}
__global__ void scale_all(Vector v) {
    if (threadIdx.x < v.n) v.data[threadIdx.x] *= 2;
}
struct Both {
    float *of_host, *of_device;
};
__global__ void scale_both(Both both, double not_a_pointer) {
    both.of_device[threadIdx.x] *= 2 * not_a_pointer;
}
__global__ void reverse(float* x) {
    extern __shared__ float s[];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}
__device__ void greet() {
    printf("hello from %d\n", threadIdx.x);
}
__global__ void hello() {
    greet();
}
__global__ void count(int* bins) {
    atomicAdd(&bins[threadIdx.x % 16], 1);
}

// What the host makes of a result: of the first items, or of all.
static float sum(const float* x, int n) {
    float sum = 0;
    for (int i = 0; i < n; ++i) sum += x[i];
    return sum;
}
const int N = 1000, BYTES = N * sizeof(float);
float host[N];

static float* device_copy() {
    float* copy;
    cudaMalloc(&copy, BYTES);
    cudaMemcpy(copy, host, BYTES, cudaMemcpyHostToDevice);
    return copy;
}

int main(int, char** words) {
    const char* slip = words[1];
    if (!strcmp(slip, "rounds_down") || !strcmp(slip, "in_rows")) {
        float *in = device_copy(), *out;
        cudaMalloc(&out, BYTES);
        square<<<N / 256, 256>>>(in, out, N);
        if (slip[0] == 'r')
            cudaMemcpy(host, out, BYTES, cudaMemcpyDeviceToHost);
        else  // the last row alone lacks something
            cudaMemcpy2D(host, 200, out, 400, 200, 10, cudaMemcpyDeviceToHost);
        const char* what = words[2] ? words[2] : "";
        if (!strcmp(what, "all")) printf("%g\n", sum(host, N));
        if (!strcmp(what, "first")) printf("%g\n", sum(host, N / 256 * 256));
        if (!strcmp(what, "anew")) memset(host, 0, BYTES), printf("%g\n", sum(host, N));
        cudaFree(in), cudaFree(out);
    } else if (!strcmp(slip, "rounds_up")) {
        float *in = device_copy(), *out;
        cudaMalloc(&out, BYTES);
        square<<<(N + 255) / 256, 256>>>(in, out, N);
        cudaMemcpy(host, out, BYTES, cudaMemcpyDeviceToHost);
        cudaFree(in), cudaFree(out);
    } else if (!strcmp(slip, "not_copied") || !strcmp(slip, "wrong_copied") ||
               !strcmp(slip, "by_steps") || !strcmp(slip, "in_place") || !strcmp(slip, "spare")) {
        float *in = device_copy(), *out, *last;
        cudaMalloc(&out, BYTES), cudaMalloc(&last, BYTES);
        int n = N;
        if (slip[0] == 'i') {  // it reads what it has stored itself, and in several pages
            cudaFree(in), cudaMalloc(&in, 8 * BYTES), cudaMemset(in, 0, 8 * BYTES);
            out = in, n = 8 * N;
        }
        square<<<32, 256>>>(in, out, n);
        if (slip[0] == 'b') square<<<4, 256>>>(out, last, N);  // `out` is for the device alone
        if (slip[0] == 's') {  // another result of a kernel that nobody needs
            stores_both<<<4, 256>>>(in, out, last, N);
            square<<<4, 256>>>(out, out, N);
            cudaMemcpy(host, out, BYTES, cudaMemcpyDeviceToHost);
        }
        if (slip[0] == 'w') cudaMemcpy(host, in, BYTES, cudaMemcpyDeviceToHost);
        if (slip[0] == 'b') cudaMemcpy(host, last, BYTES, cudaMemcpyDeviceToHost);
        cudaDeviceSynchronize();
        if (slip[0] != 'i') cudaFree(out);
        cudaFree(in), cudaFree(last);
    } else if (!strcmp(slip, "overflow")) {
        int* out;
        cudaMalloc(&out, BYTES);
        cudaMemset(out, 0, BYTES);
        mark<<<256, 256>>>(out, 70000, N);
        cudaFree(out);
    } else if (!strcmp(slip, "nested_pointer")) {
        Vector v = {64, new float[64]()}, *d;
        cudaMalloc(&d, sizeof v);
        cudaMemcpy(d, &v, sizeof v, cudaMemcpyHostToDevice);
        scale<<<1, 64>>>(d);
        cudaFree(d);
    } else if (!strcmp(slip, "host_pointer") || !strcmp(slip, "both_pointers")) {
        Both both = {new float[64](), device_copy()};
        if (slip[0] == 'h')
            for (int i = 0; i < 3; ++i) scale_all<<<1, 64>>>(Vector{64, both.of_host});
        else
            scale_both<<<1, 64>>>(both, 1e-300);
        cudaMemcpy(host, both.of_device, 4, cudaMemcpyDeviceToHost);
        cudaFree(both.of_device);
    } else if (!strcmp(slip, "no_size")) {
        float* x = device_copy();
        reverse<<<1, 64>>>(x);
        cudaFree(x);
    } else if (!strcmp(slip, "no_memset")) {
        int* bins;
        cudaMalloc(&bins, 16 * sizeof(int));
        count<<<1, 64>>>(bins);
        cudaFree(bins);
    } else if (!strcmp(slip, "no_free")) {
        for (int i = 0; i < 10; ++i) device_copy();
        float* kept;
        cudaMallocManaged(&kept, 400);
    } else if (!strcmp(slip, "no_wait") || !strcmp(slip, "waits")) {
        hello<<<1, 2>>>();
        if (slip[0] == 'w') cudaDeviceSynchronize();
    } else if (!strcmp(slip, "early_time") || !strcmp(slip, "timed")) {
        cudaEvent_t begin, end;
        cudaEventCreate(&begin), cudaEventCreate(&end);
        cudaEventRecord(begin);
        mark<<<1, 32>>>(nullptr, 1, 0);
        cudaEventRecord(end);
        if (slip[0] == 't') cudaEventSynchronize(end);
        float ms = -1;
        cudaEventElapsedTime(&ms, begin, end);
        printf("%d\n", ms >= 0);
    } else if (!strcmp(slip, "no_record")) {
        cudaEvent_t begin, end;
        cudaEventCreate(&begin), cudaEventCreate(&end);
        cudaEventRecord(begin);
        float* x = device_copy();
        cudaFree(x);
        float ms = -1;
        cudaEventElapsedTime(&ms, begin, end);
        printf("%g ms\n", ms);
    }
}
