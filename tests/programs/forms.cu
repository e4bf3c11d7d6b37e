// The forms in which programs launch kernels and declare things, all in one file.
#include <cstdio>
#include <iostream>

#include <cuda_runtime.h>

// A comment with kernel<<<1, 2>>>(nothing) in it, it doesn't count; /* another
/* kernel<<<1, 2>>>(nothing)
   "an open string */

#define N 64
#define LAUNCH(kernel, blocks, threads, ...) kernel<<<blocks, threads>>>(__VA_ARGS__)
#define LAUNCH_LINES(kernel, ...)  \
    kernel                         \
        <<<1,                      \
           N>>>(__VA_ARGS__)
#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

struct Shape {
    dim3 gridDim, blockDim;  // as the built-in variables are called
    int threadIdx = 3;
};

__device__ int in_global[N];
__device__ unsigned int counter = 7;
__constant__ int in_constant[2] = {10, 20};
static __constant__ float factor;
__managed__ int managed[4] = {1, 2, 3, 4};

__device__ __forceinline__ int twice(int x) {
    return 2 * x;
}
__device__ __noinline__ int thrice(int x) {
    return 3 * x;
}

typedef int (*Unary)(int);
__device__ Unary device_function = thrice;

// Shared memory of a device function.
__device__ int neighbour(int x) {
    __shared__ int all[N];
    all[threadIdx.x] = x;
    __syncthreads();
    int other = all[(threadIdx.x + 1) % blockDim.x];
    __syncthreads();
    return other;
}

__global__ void set(int *out, int value) {
    out[INDEX] = value;
}
__global__ void set_default(int *out, int value = 41, int more = 1) {
    out[INDEX] = value + more;
}
__global__ void overloaded(int *out) {
    out[INDEX] = 1;
}
__global__ void overloaded(float *out) {
    out[INDEX] = 2.0f;
}
__global__ void nothing(int *) {}
__global__ void __launch_bounds__(N, 2) rotate(const int *__restrict__ in, int *__restrict__ out) {
    out[INDEX] = neighbour(in[INDEX]);
}

template <typename T, int SCALE = 2>
__global__ void scale(T *data, T by) {
    data[INDEX] *= by * SCALE;
}
template <class F>
__global__ void apply(int *data, F function) {
    data[INDEX] = function(data[INDEX]);
}

extern __shared__ int at_file_scope[];
__global__ void reverse(int *data) {
    at_file_scope[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    data[threadIdx.x] = reinterpret_cast<int (*)[1]>(at_file_scope)[blockDim.x - 1 - threadIdx.x][0];
}
template <typename T>
__global__ void reverse_bytes(T *data) {
    extern __shared__ __align__(16) unsigned char bytes[];
    T *items = reinterpret_cast<T *>(bytes);
    items[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    data[threadIdx.x] = items[blockDim.x - 1 - threadIdx.x];
}
__global__ void flip_rows(int *data) {
    extern __shared__ int rows[][8];
    rows[threadIdx.y][threadIdx.x] = data[threadIdx.y * 8 + threadIdx.x];
    __syncthreads();
    data[threadIdx.y * 8 + threadIdx.x] = rows[blockDim.y - 1 - threadIdx.y][threadIdx.x];
}

__global__ void use_variables(int *out) {
    out[threadIdx.x] = in_global[threadIdx.x] + in_constant[threadIdx.x & 1] + (int)factor +
                       device_function(1) + managed[3] + twice(1);
    atomicAdd(&counter, 1u);
    if (threadIdx.x == 0) managed[0] = 100;
}
__global__ void call_through(int *out, Unary function) {
    out[threadIdx.x] = function(5);
}

namespace outer {
namespace inner {
template <int VALUE>
__global__ void constant(int *out) {
    out[INDEX] = VALUE;
}
}  // namespace inner
__global__ void ones(int *out) {
    out[INDEX] = 1;
}
}  // namespace outer

class Runner {
  public:
    void (*kernel)(int *, int) = set;
    template <int VALUE>
    void run(int *out) {
        outer::inner::constant<VALUE> <<<dim3(2), dim3(N / 2)>>> (out);
    }
};

// A template-id of operator<< looks like a launch.
template <class T>
struct Text {};
template <class T>
std::ostream &operator<<(std::ostream &stream, Text<T>) {
    return stream << "text";
}
template std::ostream &operator<< <int>(std::ostream &, Text<int>);

int *d;

void show(const char *what) {
    int h[N];
    cudaError_t error = cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
    printf("%s: %d %d %d %s\n", what, h[0], h[1], h[N - 1], cudaGetErrorName(error));
}

template <class T>
void scaled_by_template(T *data) {
    scale<T><<<1, N>>>(data, T(1));
}

int main() {
    cudaMalloc(&d, N * sizeof(int));
    set<<<1, N>>>(d, 1);
    show("plain");
    set << <1, N >> > (d, 2);
    show("spaced");
    set<<<dim3(1, 1, 1), dim3{N}, 0, 0>>>(d, 3);
    show("dim3");
    set<<<{1}, {N, 1}>>>(d, 4);
    show("braces");
    set
        <<<
            1, N
        >>>(
            d, 5);
    show("lines");
    LAUNCH(set, 1, N, d, 6);
    show("macro");
    LAUNCH_LINES(set, d, 7);
    show("macro of lines");
    set_default<<<1, N>>>(d);
    show("defaults");
    overloaded<<<1, N>>>(d);
    show("overloaded");
    nothing<<<1>>>(0);  // of one thread
    nothing<<<1, 1>>>(NULL);
    nothing<<<1, 1>>>(nullptr);
    scale<<<1, N>>>(d, 3);
    scale<int, 5><<<1, N>>>(d, 1);
    scaled_by_template(d);
    show("templates");
    void (*pointer)(int *, int) = &set;
    pointer<<<1, N>>>(d, 8);
    show("pointer");
    void (*table[])(int *, int) = {set, pointer};
    table[1]<<<1, N>>>(d, 9);
    (*pointer)<<<1, N>>>(d, table[0] == pointer ? 10 : 0);
    show("table");
    Runner runner, *other = &runner;
    runner.kernel<<<1, N>>>(d, 11);
    other->kernel<<<1, N>>>(d, 12);
    show("members");
    runner.run<13>(d);
    show("namespaces");
    ::outer::ones<<<1, N>>>(d);
    show("global namespace");
    (N > 32 ? set : nullptr)<<<1, N>>>(d, 1 << 3);
    show("expression");
    if (d) set<<<N >> 6, N>>>(d, 14);
    else set<<<1, 1>>>(d, 0);
    for (int i = 0; i < 2; ++i) scale<int, 1><<<1, N>>>(d, 2);
    show("statements");

    int h[N];
    for (int i = 0; i < N; ++i) h[i] = i;
    cudaMemcpy(d, h, sizeof h, cudaMemcpyHostToDevice);
    reverse<<<1, N, N * sizeof(int)>>>(d);
    show("dynamic at file scope");
    reverse_bytes<int><<<1, N, sizeof(int[N])>>>(d);
    show("dynamic bytes");
    flip_rows<<<1, dim3(8, 8), N * sizeof(int)>>>(d);
    show("dynamic rows");
    int *e;
    cudaMalloc((void **)&e, sizeof h);
    cudaMemcpy(e, d, sizeof h, cudaMemcpyDeviceToDevice);
    rotate<<<1, N>>>(e, d);
    show("rotated");

    int by = 3;
    apply<<<1, N>>>(d, [=] __device__(int x) { return x * by; });
    auto add = [by] __device__(int x) { return x + by; };
    apply<<<1, N>>>(d, add);
    show("lambdas");

    float two = 2.0f;
    cudaMemcpyToSymbol(in_global, h, sizeof h);
    cudaMemcpyToSymbol(factor, &two, sizeof two);
    int thirty = 30;
    cudaMemcpyToSymbol(in_constant, &thirty, sizeof(int), sizeof(int));
    use_variables<<<1, N>>>(d);
    show("variables");
    unsigned seen;
    cudaMemcpyFromSymbol(&seen, counter, sizeof seen);
    printf("counter %u, managed %d\n", seen, managed[0]);
    int *address;
    size_t size;
    cudaGetSymbolAddress((void **)&address, in_global);
    cudaGetSymbolSize(&size, in_global);
    set<<<1, N>>>(address, 15);
    cudaMemcpy(d, address, size, cudaMemcpyDeviceToDevice);
    show("address of a variable");
    Unary function;
    cudaMemcpyFromSymbol(&function, device_function, sizeof function);
    call_through<<<1, N>>>(d, function);
    show("device function pointer");

    Shape shape;
    shape.blockDim = dim3(N / 4);
    shape.gridDim.x = 4;
    dim3 blockDim(N / 2), gridDim = 2;
    set<<<gridDim, blockDim>>>(d, shape.threadIdx);
    set<<<shape.gridDim, shape.blockDim>>>(d, shape.threadIdx + 32);
    show("own names");
    std::cout << "kernel<<<1, 2>>>(x) " << R"(a<<<b>>>(c))" << ' ' << Text<int>() << '<'
              << std::endl;
    cudaFree(d);
    cudaFree(e);
    printf("%s at line %d\n", cudaGetErrorName(cudaGetLastError()), __LINE__);
    return 0;
}
