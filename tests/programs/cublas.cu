// cuBLAS: what its functions compute, and the statuses of calls with wrong arguments. All results
// are exact in any order of summation.
#include <cublas_v2.h>

#include <cstdio>
#include <vector>

#define SHOW(call) printf("%s: %d\n", #call, (int)(call))

static cublasHandle_t h;
static const float one = 1, zero = 0, two = 2;
static const cublasOperation_t N = CUBLAS_OP_N, T = CUBLAS_OP_T;
static const cublasFillMode_t LOWER = CUBLAS_FILL_MODE_LOWER, UPPER = CUBLAS_FILL_MODE_UPPER;
static const cublasDiagType_t UNIT = CUBLAS_DIAG_UNIT, ANY = CUBLAS_DIAG_NON_UNIT;
static const cublasSideMode_t LEFT = CUBLAS_SIDE_LEFT, RIGHT = CUBLAS_SIDE_RIGHT;

template <class V>
static V* on_device(const std::vector<V>& values) {
    V* p;
    cudaMalloc(&p, values.size() * sizeof(V));
    cublasSetVector((int)values.size(), sizeof(V), values.data(), 1, p, 1);
    return p;
}
template <class V>
static void print(const char* what, cublasStatus_t status, const V* p, int n) {
    std::vector<V> values(n);
    cublasGetVector(n, sizeof(V), p, 1, values.data(), 1);
    printf("%s: %d:", what, (int)status);
    for (V value : values) printf(" %g", (double)value);
    puts("");
}
#define PRINT(p, n, call) print(#call, call, p, n)

static void vectors(float* x, float* y) {
    PRINT(y, 6, cublasSaxpy(h, 3, &two, x, -1, y, 2));
    PRINT(y, 4, cublasSscal(h, 2, &two, y, 2));
    PRINT(y, 4, cublasScopy(h, 2, x + 1, 1, y, 3));
    PRINT(x, 4, cublasSswap(h, 4, x, 1, y, 1));
    const float c = 0, s = 1;
    PRINT(x, 4, cublasSrot(h, 4, x, 1, y, 1, &c, &s));
    float r;
    int i;
    SHOW(cublasSdot(h, 4, x, 1, y, -1, &r));
    printf("%g\n", r);
    SHOW(cublasSasum(h, 2, x, 2, &r));
    printf("%g\n", r);
    SHOW(cublasSnrm2(h, 1, x, 1, &r));
    printf("%g\n", r);
    SHOW(cublasIsamax(h, 4, x, 1, &i));
    printf("%d\n", i);
    SHOW(cublasIsamin(h, 4, x, 1, &i));
    printf("%d\n", i);
    SHOW(cublasSdot(h, 0, x, 1, y, 1, &r));
    printf("%g\n", r);
    SHOW(cublasSnrm2(h, 4, x, -1, &r));
    printf("%g\n", r);
    SHOW(cublasIsamax(h, 4, x, 0, &i));
    printf("%d\n", i);
    SHOW(cublasSaxpy(h, -1, nullptr, x, 1, y, 1));
    SHOW(cublasSaxpy(nullptr, 4, &one, x, 1, y, 1));
    float* result = on_device<float>({0});  // a number on the device
    cublasSetPointerMode(h, CUBLAS_POINTER_MODE_DEVICE);
    PRINT(result, 1, cublasSdot(h, 4, x, 1, x, 1, result));
    PRINT(x, 2, cublasSscal(h, 1, result, x, 1));
    cublasSetPointerMode(h, CUBLAS_POINTER_MODE_HOST);
    cudaFree(result);
}

static void matrices(const float* a, const float* b, float* c) {
    PRINT(c, 4, cublasSgemv(h, N, 4, 3, &one, a, 4, b, 1, &zero, c, 1));
    PRINT(c, 4, cublasSgemv(h, T, 4, 3, &one, a, 4, b, 1, &two, c, 1));
    PRINT(c, 8, cublasSger(h, 2, 4, &one, b, 1, b, 2, c, 2));
    PRINT(c, 4, cublasSsymv(h, LOWER, 4, &one, a, 4, b, 1, &zero, c, 1));
    PRINT(c, 4, cublasStrsv(h, LOWER, N, UNIT, 4, a, 4, c, 1));
    PRINT(c, 4, cublasStrmv(h, UPPER, T, ANY, 4, a, 4, c, 1));
    PRINT(c, 16, cublasSgemm(h, N, N, 4, 4, 4, &one, a, 4, b, 4, &zero, c, 4));
    PRINT(c, 8, cublasSgemm(h, T, T, 4, 2, 3, &two, a, 3, b, 2, &one, c, 4));
    PRINT(c, 8, cublasStrsm(h, LEFT, LOWER, N, UNIT, 4, 2, &one, a, 4, c, 4));
    PRINT(c, 8, cublasStrmm(h, LEFT, LOWER, N, ANY, 4, 2, &one, a, 4, b, 4, c, 4));
    PRINT(c, 16, cublasSsyrk(h, LOWER, N, 4, 4, &one, a, 4, &zero, c, 4));
    PRINT(c, 16, cublasSsymm(h, RIGHT, LOWER, 4, 4, &one, a, 4, b, 4, &zero, c, 4));
    PRINT(c, 8, cublasSgeam(h, T, N, 4, 2, &one, a, 4, &two, b, 4, c, 4));
    PRINT(c, 8, cublasSdgmm(h, LEFT, 4, 2, a, 4, b, 1, c, 4));
    PRINT(c, 12,
          cublasSgemmStridedBatched(h, N, T, 2, 2, 2, &one, a, 2, 4, b, 2, 0, &zero, c, 2, 4, 3));
    const float **pa = on_device<const float*>({a, a + 4}), **pb = on_device<const float*>({b, b});
    float** pc = on_device<float*>({c, c + 4});
    PRINT(c, 8, cublasSgemmBatched(h, N, N, 2, 2, 2, &one, pa, 2, pb, 2, &one, pc, 2, 2));
    cudaFree(pa);
    cudaFree(pb);
    cudaFree(pc);

    SHOW(cublasSgemm(h, N, N, -1, 4, 4, &one, a, 4, b, 4, &zero, c, 4));
    SHOW(cublasSgemm(h, N, N, 4, 4, 4, &one, a, 3, b, 4, &zero, c, 4));
    SHOW(cublasSgemm(h, N, N, 4, 4, 4, &one, a, 4, b, 3, &zero, c, 4));
    SHOW(cublasSgemm(h, N, N, 4, 4, 4, &one, a, 4, b, 4, &zero, c, 3));
    SHOW(cublasSgemm(h, (cublasOperation_t)9, N, 4, 4, 4, &one, a, 4, b, 4, &zero, c, 4));
    SHOW(cublasSgemm(nullptr, N, N, 4, 4, 4, &one, a, 4, b, 4, &zero, c, 4));
    SHOW(cublasSgemv(h, N, 4, 4, &one, a, 3, b, 1, &zero, c, 1));
    SHOW(cublasSger(h, 4, 4, &one, b, 0, b, 1, c, 4));
    SHOW(cublasStrsv(h, LOWER, N, ANY, 4, a, 3, c, 1));
    SHOW(cublasStrsm(h, RIGHT, LOWER, N, UNIT, 4, 2, &one, a, 1, c, 4));
    SHOW(cublasSetVector(4, 4, a, 0, c, 1));
    SHOW(cublasSetMatrix(2, 2, 4, a, 1, c, 2));
}

static void other_types() {
    double* d = on_device<double>({1, 2, 3, 4, 0, 0, 0, 0});
    const double half = 0.5, nothing = 0;
    PRINT(d + 4, 4, cublasDgemm(h, N, N, 2, 2, 2, &half, d, 2, d, 2, &nothing, d + 4, 2));
    cuComplex* z = on_device<cuComplex>({{1, 2}, {3, 4}, {5, 6}, {7, 8}, {}, {}, {}, {}});
    const cuComplex i = {0, 1}, nil = {};
    PRINT((float*)(z + 4), 8,
          cublasCgemm(h, CUBLAS_OP_C, N, 2, 2, 2, &i, z, 2, z, 2, &nil, z + 4, 2));
    cuComplex dot;
    SHOW(cublasCdotc(h, 4, z, 1, z + 4, 1, &dot));
    printf("%g %g\n", dot.x, dot.y);
    SHOW(cublasCdotu(h, 4, z, 1, z, 1, &dot));
    printf("%g %g\n", dot.x, dot.y);
    const __half first = 1.5f, second = -2.0f;
    __half* x = on_device<__half>({first, second, second, first});
    float* sums = on_device<float>({1, 1, 1, 1});
    PRINT(sums, 4,
          cublasGemmEx(h, N, T, 2, 2, 2, &two, x, CUDA_R_16F, 2, x, CUDA_R_16F, 2, &one, sums,
                       CUDA_R_32F, 2, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    signed char* bytes =
        on_device<signed char>({-100, 50, 3, 4, 5, 6, 7, 127, 1, 1, 1, 1, 1, 1, 1, 1});
    const int three = 3, none = 0;
    PRINT((int*)sums, 4,
          cublasGemmEx(h, T, N, 4, 1, 4, &three, bytes, CUDA_R_8I, 4, bytes, CUDA_R_8I, 4, &none,
                       sums, CUDA_R_32I, 4, CUBLAS_COMPUTE_32I, CUBLAS_GEMM_DEFAULT));
    SHOW(cublasGemmEx(h, N, N, 2, 2, 2, &two, x, CUDA_R_16F, 2, sums, CUDA_R_32F, 2, &one, sums,
                      CUDA_R_32F, 2, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    double *lu = on_device<double>({1, 2, 4, 4}), **list = on_device<double*>({lu});
    int *pivots = on_device<int>({0, 0}), *info = on_device<int>({9});
    PRINT(lu, 4, cublasDgetrfBatched(h, 2, list, 2, pivots, info, 1));
    print("pivots", CUBLAS_STATUS_SUCCESS, pivots, 2);
    print("info", CUBLAS_STATUS_SUCCESS, info, 1);
    double *b = on_device<double>({9, 10}), **right = on_device<double*>({b});
    int status;
    PRINT(b, 2, cublasDgetrsBatched(h, N, 2, 1, list, 2, pivots, right, 2, &status, 1));
}

int main() {
    SHOW(cublasCreate(&h));
    float *x = on_device<float>({1, -2, 3, 4}), *y = on_device<float>({1, 1, 1, 1, 1, 1});
    vectors(x, y);
    float* a = on_device<float>({2, 1, 0, 1, 0, 3, 1, 2, 0, 0, 4, 1, 0, 0, 0, 5});
    float* b = on_device<float>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16});
    float* c = on_device(std::vector<float>(16));
    matrices(a, b, c);
    other_types();
    puts(cublasGetStatusString(CUBLAS_STATUS_INVALID_VALUE));
    SHOW(cublasDestroy(h));
    SHOW(cudaDeviceSynchronize());
}
