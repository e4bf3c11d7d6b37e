// Each line marked `bug` reaches memory of some kind, in some way, and is wrong.
#include <cuda_runtime.h>
#include <curand_kernel.h>
#include <string.h>
const int THREADS = 64;
struct Short5 {
    short x, y;
    char z;
};
__constant__ int table[16];
__constant__ char bytes_of_table[16];
__device__ double none[64][0][64];
__device__ int matrix[4][8];

struct Shape {
    __device__ virtual int area(const int* p, int i) const = 0;
};
struct Square : Shape {
    __device__ int area(const int* p, int i) const override {
        return p[i];  // bug: past the end
    }
};
__device__ int& element(int* p, int i) {
    return p[i];
}
__device__ void put(int* where, int value) {
    *where = value;  // bug: past the end
}
__device__ void bump(int& where) {
    where = 1;  // bug: past the end
}
__global__ void handed(int* y) {
    put(y + threadIdx.x + 1, 3);
}
__global__ void reference(int* y) {
    bump(element(y, threadIdx.x + 1));
}
__global__ void virtuals(const int* x, int* y) {
    Square square;
    const Shape& shape = square;
    y[threadIdx.x] = shape.area(x, threadIdx.x + 1);
}
__global__ void copies5(Short5* in, Short5* out) {
    memcpy((char*)out + 4 * threadIdx.x, (char*)in + 4 * threadIdx.x, 5);  // bug: race
}
__global__ void copies6(short* in, short* out) {
    __builtin_memcpy((char*)out + 4 * threadIdx.x + 1, &in[threadIdx.x], 6);  // bug: race
}
__global__ void copies_any(char* in, char* out, int n) {
    __builtin_memcpy(out + 4 * threadIdx.x, in, n);  // bug: race
}
__global__ void sets7(char* out) {
    __builtin_memset(out + 4 * threadIdx.x, threadIdx.x, 7);  // bug: race
}
__global__ void copies_past(char* in, char* out) {
    __builtin_memcpy(out + 250, in, 7);  // bug: past the end
}
__global__ void zero_size(const double* x) {
    none[threadIdx.x][threadIdx.y][threadIdx.z] = x[threadIdx.x];  // bug: past the end
}
__global__ void shares_state(curandState* state, float* y) {
    y[threadIdx.x] = curand_uniform(state);  // bug: race
}
__global__ void inits_state(curandState* state) {
    curand_init(threadIdx.x, 0, 0, state);  // bug: race
}
__global__ void philox(curandStatePhilox4_32_10_t* state, float* y) {
    y[threadIdx.x] = curand_normal(state);  // bug: race
}
__global__ void constant_far(int* y, int n) {
    y[threadIdx.x] = table[threadIdx.x / 4 + n];  // bug: past the end
}
__global__ void constant_misaligned(int* y, int n) {
    y[threadIdx.x] = *(int*)(bytes_of_table + n);  // bug: misaligned, seen by g++
}
__global__ void matrix_row(int* y, int n) {
    y[threadIdx.x] = matrix[n][threadIdx.x % 8];  // bug: past the end
}
__global__ void matrix_misaligned(long long* y) {
    y[threadIdx.x] = *(long long*)&matrix[0][1];  // bug: misaligned, seen by g++
}
__global__ void shared_misaligned(int* y) {
    __shared__ int s[THREADS + 1];
    s[threadIdx.x] = threadIdx.x;
    s[THREADS] = 0;
    __syncthreads();
    y[threadIdx.x] = (int)*(long long*)&s[1];  // bug: misaligned, seen by g++
}
__device__ int read_shared(const int* s, int i) {
    return s[i];  // bug: past the end
}
__global__ void shared_handed(int* y) {
    __shared__ int s[THREADS];
    s[threadIdx.x] = 1;
    __syncthreads();
    y[threadIdx.x] = read_shared(s, threadIdx.x + 1);
}
__global__ void local_index(unsigned* y, int n) {
    unsigned char c[16] = {};
    c[threadIdx.x * n]++;  // bug: past the end, seen by g++
    y[threadIdx.x] = c[3];
}
__global__ void heap_uninitialised(int* y) {
    int* p = (int*)malloc(16);
    y[threadIdx.x] = p[1];  // bug: uninitialised
    free(p);
}
__global__ void heap_past(int* y) {
    int* p = new int[4];
    for (int i = 0; i <= 4; ++i) p[i] = i;  // bug: past the end
    y[threadIdx.x] = p[0];
    delete[] p;
}
__global__ void heap_freed(int* y) {
    int* p = new int[4];
    p[0] = 1;
    delete[] p;
    y[threadIdx.x] = p[0];  // bug: freed
}
__global__ void heap_misaligned(int* y) {
    char* p = (char*)malloc(16);
    memset(p, 0, 16);
    y[threadIdx.x] = *(int*)(p + 2);  // bug: misaligned
    free(p);
}
struct Flags {
    unsigned a : 4, b : 4, c : 24;
};
__global__ void fields(Flags* f) {
    threadIdx.x % 2 ? f->a = 3 : f->b = 9;  // bug: race
}
__global__ void values(int* y) {
    y[threadIdx.x / 2] = threadIdx.x;  // bug: other values
}
__global__ void tags(int* y) {  // whoever has stayed goes on
    y[0] = threadIdx.x;
    __syncwarp();
    if (y[0] == threadIdx.x) y[1] = 1;
}
__global__ void divides(int* y, int n) {
    y[threadIdx.x] = 7 / n;  // bug: zero
}
__global__ void skips(int* y) {
    y[threadIdx.x] = 1;
    if (threadIdx.x < 40) __syncthreads();  // bug: skipped
}
__global__ void returns_early(int* y) {
    if (threadIdx.x >= 40) return;
    __syncthreads();
    y[threadIdx.x] = 1;
}
struct Cell {
    __device__ virtual int value(int i) { return i; }
    __device__ virtual ~Cell() {}
    int more = 3;
};
struct Row : Cell {
    __device__ int value(int i) override { return i + more; }
};
__global__ void heap_objects(int* y) {
    for (int i = 0; i < 3; ++i) {
        Cell* cell = i % 2 ? new Cell : new Row;
        y[threadIdx.x] = cell->value(i);
        delete cell;
    }
}
__global__ void heap_in_turns(int* y) {
    __shared__ int* part;
    for (int i = 0; i < 3; ++i) {
        if (threadIdx.x == 0) part = new int[THREADS + i];
        __syncthreads();
        part[threadIdx.x] = i;
        __syncthreads();
        y[threadIdx.x] = part[THREADS - 1 - threadIdx.x];
        __syncthreads();
        if (threadIdx.x == 0) delete[] part;
        __syncthreads();
    }
}
__device__ int* handed_on;
__global__ void heap_makes() {
    handed_on = new int[1];
    *handed_on = 5;
}
__global__ void heap_takes(int* y) {
    y[0] = *handed_on;
    delete[] handed_on;
}
int main() {
    char *in, *out;
    cudaMalloc(&in, 256), cudaMalloc(&out, 256);
    char numbers[256];
    for (int i = 0; i < 256; ++i) numbers[i] = i * 7;
    cudaMemcpy(in, numbers, 256, cudaMemcpyHostToDevice);
    curandState* state;
    cudaMalloc(&state, sizeof *state);
    cudaMemset(state, 0, sizeof *state);
    curandStatePhilox4_32_10_t* state2;
    cudaMalloc(&state2, sizeof *state2);
    cudaMemset(state2, 0, sizeof *state2);
    long long* wide;
    cudaMalloc(&wide, 512);
    handed<<<1, THREADS>>>((int*)out);
    reference<<<1, THREADS>>>((int*)out);
    virtuals<<<1, THREADS>>>((int*)in, (int*)out);
    copies5<<<1, 32>>>((Short5*)in, (Short5*)out);
    copies6<<<1, 2>>>((short*)in, (short*)out);
    copies_any<<<1, 32>>>(in, out, 6);
    sets7<<<1, 32>>>(out);
    copies_past<<<1, 1>>>(in, out);
    zero_size<<<1, 16>>>((double*)in);
    shares_state<<<1, 2>>>(state, (float*)out);
    inits_state<<<1, 2>>>(state);
    philox<<<1, 2>>>(state2, (float*)out);
    constant_far<<<1, THREADS>>>((int*)out, 1);
    constant_misaligned<<<1, 1>>>((int*)out, 1);
    matrix_row<<<1, THREADS>>>((int*)out, 4);
    matrix_misaligned<<<1, 1>>>(wide);
    shared_misaligned<<<1, THREADS>>>((int*)out);
    shared_handed<<<1, THREADS>>>((int*)out);
    local_index<<<1, 17>>>((unsigned*)out, 1);
    heap_uninitialised<<<1, 1>>>((int*)out);
    heap_past<<<1, 1>>>((int*)out);
    heap_freed<<<1, 1>>>((int*)out);
    heap_misaligned<<<1, 1>>>((int*)out);
    heap_objects<<<1, THREADS>>>((int*)out);
    heap_in_turns<<<1, THREADS>>>((int*)out);
    heap_makes<<<1, 1>>>();
    heap_takes<<<1, 1>>>((int*)out);
    fields<<<1, 2>>>((Flags*)out);
    values<<<1, 32>>>((int*)out);
    tags<<<1, 32>>>((int*)out);
    divides<<<1, 32>>>((int*)out, 0);
    skips<<<1, THREADS>>>((int*)out);
    returns_early<<<1, THREADS>>>((int*)out);
    cudaDeviceSynchronize();
    cudaFree(in), cudaFree(out), cudaFree(state), cudaFree(state2), cudaFree(wide);
}
