// Kernels whose threads go through the rounds of loops in step, several at a time, against host
// functions: any number of rounds, steps up and down, rows and columns, blocks of every shape.
#include <cstdio>
#include <vector>

const int MOST = 70;
static int wrong = 0, compared = 0;

__global__ void columns(const float* a, float* out, int n, int width) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= width) return;
    float sum = 1;
    for (int i = 0; i < n; i++) sum = sum / 2 + a[i * width + x];
    out[x] = sum;
}
__global__ void products(const double* a, const double* b, double* c, int n, int width) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < width) {
        double sum = 0;
        for (size_t k = 0; k < n; k++) sum += a[y * n + k] * b[k * width + x];
        c[y * width + x] = sum;
    }
}
__global__ void into_elements(const float* a, float* out, int n, int last, int width) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = threadIdx.y;
    if (x < width)
        for (int i = n - 1; i >= last; i -= 3) {
            float value = a[width * i + x];
            int row = i * 2;
            out[y * width + x] += value * row;
        }
}
__global__ void triangle(const float* a, float* out, int n, int width) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= width) return;
    float sum = 0;
    for (int i = 0; i < n; ++i) {
        sum += 1;
        for (int j = i; j < n; ++j) sum -= a[(i * n + j) % n * width + x] / (j + 1);
    }
    out[x] = sum;
}

template <class T, class Host>
static void compare(const char* name, const T* device, int size, Host expected) {
    ++compared;
    for (int i = 0; i < size; ++i)
        if (device[i] != expected(i)) {
            printf("%s: element %d of %d is wrong\n", name, i, size);
            ++wrong;
            return;
        }
}

static void with(int n, int threads, int rows) {
    const int width = 64;
    float *a, *out;
    double *b, *c;
    cudaMallocManaged(&a, sizeof(float) * width * MOST);
    cudaMallocManaged(&out, sizeof(float) * width);
    cudaMallocManaged(&b, sizeof(double) * width * MOST);
    cudaMallocManaged(&c, sizeof(double) * width * width);
    for (int i = 0; i < width * MOST; ++i) a[i] = (i * 7 % 31) - 11, b[i] = (i * 5 % 23) - 7;
    const int blocks = (width + threads - 1) / threads;
    columns<<<blocks, threads>>>(a, out, n, width);
    cudaDeviceSynchronize();
    compare("columns", out, width, [&](int x) {
        float sum = 1;
        for (int i = 0; i < n; i++) sum = sum / 2 + a[i * width + x];
        return sum;
    });
    products<<<dim3(blocks, (width + rows - 1) / rows), dim3(threads, rows)>>>(b, b, c, n, width);
    cudaDeviceSynchronize();
    compare("products", c, width * width, [&](int i) {
        double sum = 0;
        for (int k = 0; k < n; k++) sum += b[i / width * n + k] * b[k * width + i % width];
        return sum;
    });
    for (int i = 0; i < width; ++i) out[i] = i;
    into_elements<<<blocks, threads>>>(a, out, n, 0, width);
    cudaDeviceSynchronize();
    compare("into_elements", out, width, [&](int x) {
        float sum = x;
        for (int i = n - 1; i >= 0; i -= 3) sum += a[width * i + x] * (i * 2);
        return sum;
    });
    triangle<<<blocks, threads>>>(a, out, n, width);
    cudaDeviceSynchronize();
    compare("triangle", out, width, [&](int x) {
        float sum = 0;
        for (int i = 0; i < n; ++i) {
            sum += 1;
            for (int j = i; j < n; ++j) sum -= a[(i * n + j) % n * width + x] / (j + 1);
        }
        return sum;
    });
    cudaFree(a), cudaFree(out), cudaFree(b), cudaFree(c);
}

int main() {
    for (int n = 0; n <= 13; ++n)
        for (int threads : {16, 24, 32, 64}) with(n, threads, n % 3 + 1);
    with(MOST, 32, 32);
    printf("%d compared, %d wrong\n", compared, wrong);
    return wrong != 0;
}
