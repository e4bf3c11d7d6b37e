// cuBLAS: what BLAS lacks, such as batches of matrices and mixed types.

#include "blas_equations.h"
#include "blas_products.h"
#include "blas_sums.h"

namespace cudalab {

size_t bytes_of(cudaDataType type) {
    switch (type) {
        case CUDA_R_8I:
            return 1;
        case CUDA_R_16F:
        case CUDA_R_16BF:
            return 2;
        case CUDA_R_64F:
        case CUDA_C_32F:
            return 8;
        case CUDA_C_64F:
            return 16;
        default:
            return 4;
    }
}

float read_number(cudaDataType type, const void* from, size_t i) {
    switch (type) {
        case CUDA_R_8I:
            return ((const int8_t*)from)[i];
        case CUDA_R_16F:
            return Half::value(((const uint16_t*)from)[i]);
        case CUDA_R_16BF:
            return Bfloat16::value(((const uint16_t*)from)[i]);
        default:
            return ((const float*)from)[i];
    }
}
void write_number(cudaDataType type, void* to, size_t i, float value) {
    if (type == CUDA_R_16F)
        ((uint16_t*)to)[i] = Half::bits(value);
    else if (type == CUDA_R_16BF)
        ((uint16_t*)to)[i] = Bfloat16::bits(value);
    else
        ((float*)to)[i] = value;
}

}  // namespace cudalab

using namespace cudalab;

#define ENTER(name) LibraryCall call(name, {file, line})

#define BATCHES(S, T)                                                                             \
    cublasStatus_t cublas##S##gemmBatched(                                                        \
        cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,  \
        int k, const T* alpha, const T* const a[], int lda, const T* const b[], int ldb,          \
        const T* beta, T* const c[], int ldc, int count, const char* file, int line) {            \
        ENTER("cublas" #S "gemmBatched");                                                         \
        return for_each_of(call, handle, a, b, c, count, [&](int i) {                             \
            return cublas##S##gemm(handle, transa, transb, m, n, k, alpha, a[i], lda, b[i], ldb,  \
                                   beta, c[i], ldc, file, line);                                  \
        });                                                                                       \
    }                                                                                             \
    cublasStatus_t cublas##S##gemmStridedBatched(                                                 \
        cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,  \
        int k, const T* alpha, const T* a, int lda, long long stridea, const T* b, int ldb,       \
        long long strideb, const T* beta, T* c, int ldc, long long stridec, int count,            \
        const char* file, int line) {                                                             \
        ENTER("cublas" #S "gemmStridedBatched");                                                  \
        return for_each(call, handle, count, [&](int i) {                                         \
            return cublas##S##gemm(handle, transa, transb, m, n, k, alpha, a + i * stridea, lda,  \
                                   b + i * strideb, ldb, beta, c + i * stridec, ldc, file, line); \
        });                                                                                       \
    }
#define MATRICES(S, T)                                                                            \
    BATCHES(S, T)                                                                                 \
    cublasStatus_t cublas##S##geam(cublasHandle_t handle, cublasOperation_t transa,               \
                                   cublasOperation_t transb, int m, int n, const T* alpha,        \
                                   const T* a, int lda, const T* beta, const T* b, int ldb, T* c, \
                                   int ldc, const char* file, int line) {                         \
        ENTER("cublas" #S "geam");                                                                \
        return geam(call, handle, transa, transb, m, n, alpha, a, lda, beta, b, ldb, c, ldc);     \
    }                                                                                             \
    cublasStatus_t cublas##S##dgmm(cublasHandle_t handle, cublasSideMode_t side, int m, int n,    \
                                   const T* a, int lda, const T* x, int incx, T* c, int ldc,      \
                                   const char* file, int line) {                                  \
        ENTER("cublas" #S "dgmm");                                                                \
        return dgmm(call, handle, side, m, n, a, lda, x, incx, c, ldc);                           \
    }                                                                                             \
    cublasStatus_t cublas##S##gemvStridedBatched(                                                 \
        cublasHandle_t handle, cublasOperation_t trans, int m, int n, const T* alpha, const T* a, \
        int lda, long long stridea, const T* x, int incx, long long stridex, const T* beta, T* y, \
        int incy, long long stridey, int count, const char* file, int line) {                     \
        ENTER("cublas" #S "gemvStridedBatched");                                                  \
        return for_each(call, handle, count, [&](int i) {                                         \
            return cublas##S##gemv(handle, trans, m, n, alpha, a + i * stridea, lda,              \
                                   x + i * stridex, incx, beta, y + i * stridey, incy, file,      \
                                   line);                                                         \
        });                                                                                       \
    }
#define EQUATIONS(S, T)                                                                           \
    cublasStatus_t cublas##S##getrfBatched(cublasHandle_t handle, int n, T* const a[], int lda,   \
                                           int* pivots, int* info, int count, const char* file,   \
                                           int line) {                                            \
        ENTER("cublas" #S "getrfBatched");                                                        \
        return getrf(call, handle, n, a, lda, pivots, info, count);                               \
    }                                                                                             \
    cublasStatus_t cublas##S##getriBatched(cublasHandle_t handle, int n, const T* const a[],      \
                                           int lda, const int* pivots, T* const c[], int ldc,     \
                                           int* info, int count, const char* file, int line) {    \
        ENTER("cublas" #S "getriBatched");                                                        \
        return getri(call, handle, n, a, lda, pivots, c, ldc, info, count);                       \
    }                                                                                             \
    cublasStatus_t cublas##S##getrsBatched(cublasHandle_t handle, cublasOperation_t trans, int n, \
                                           int columns, const T* const a[], int lda,              \
                                           const int* pivots, T* const b[], int ldb, int* info,   \
                                           int count, const char* file, int line) {               \
        ENTER("cublas" #S "getrsBatched");                                                        \
        return getrs(call, handle, trans, n, columns, a, lda, pivots, b, ldb, info, count);       \
    }

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa,
                            cublasOperation_t transb, int m, int n, int k, const void* alpha,
                            const void* a, cudaDataType type_a, int lda, const void* b,
                            cudaDataType type_b, int ldb, const void* beta, void* c,
                            cudaDataType type_c, int ldc, cublasComputeType_t type,
                            cublasGemmAlgo_t, const char* file, int line) {
    ENTER("cublasGemmEx");
    return multiply(
        handle, product(transa, transb, m, n, k, a, type_a, lda, b, type_b, ldb, c, type_c, ldc),
        alpha, beta, type, call);
}
cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
                                   cublasOperation_t transb, int m, int n, int k, const void* alpha,
                                   const void* const a[], cudaDataType type_a, int lda,
                                   const void* const b[], cudaDataType type_b, int ldb,
                                   const void* beta, void* const c[], cudaDataType type_c, int ldc,
                                   int count, cublasComputeType_t type, cublasGemmAlgo_t,
                                   const char* file, int line) {
    ENTER("cublasGemmBatchedEx");
    return for_each_of(call, handle, a, b, c, count, [&](int i) {
        return multiply(handle,
                        product(transa, transb, m, n, k, a[i], type_a, lda, b[i], type_b, ldb, c[i],
                                type_c, ldc),
                        alpha, beta, type, call);
    });
}
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
                                          cublasOperation_t transb, int m, int n, int k,
                                          const void* alpha, const void* a, cudaDataType type_a,
                                          int lda, long long stridea, const void* b,
                                          cudaDataType type_b, int ldb, long long strideb,
                                          const void* beta, void* c, cudaDataType type_c, int ldc,
                                          long long stridec, int count, cublasComputeType_t type,
                                          cublasGemmAlgo_t, const char* file, int line) {
    ENTER("cublasGemmStridedBatchedEx");
    return for_each(call, handle, count, [&](int i) {
        const char* const ai = (const char*)a + i * stridea * (long long)bytes_of(type_a);
        const char* const bi = (const char*)b + i * strideb * (long long)bytes_of(type_b);
        char* const ci = (char*)c + i * stridec * (long long)bytes_of(type_c);
        return multiply(
            handle,
            product(transa, transb, m, n, k, ai, type_a, lda, bi, type_b, ldb, ci, type_c, ldc),
            alpha, beta, type, call);
    });
}
cublasStatus_t cublasSgemmEx(cublasHandle_t handle, cublasOperation_t transa,
                             cublasOperation_t transb, int m, int n, int k, const float* alpha,
                             const void* a, cudaDataType type_a, int lda, const void* b,
                             cudaDataType type_b, int ldb, const float* beta, void* c,
                             cudaDataType type_c, int ldc, const char* file, int line) {
    return cublasGemmEx(handle, transa, transb, m, n, k, alpha, a, type_a, lda, b, type_b, ldb,
                        beta, c, type_c, ldc, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT, file, line);
}
cublasStatus_t cublasHgemm(cublasHandle_t handle, cublasOperation_t transa,
                           cublasOperation_t transb, int m, int n, int k, const __half* alpha,
                           const __half* a, int lda, const __half* b, int ldb, const __half* beta,
                           __half* c, int ldc, const char* file, int line) {
    return cublasGemmEx(handle, transa, transb, m, n, k, alpha, a, CUDA_R_16F, lda, b, CUDA_R_16F,
                        ldb, beta, c, CUDA_R_16F, ldc, CUBLAS_COMPUTE_16F, CUBLAS_GEMM_DEFAULT,
                        file, line);
}

MATRICES(S, float)
MATRICES(D, double)
MATRICES(C, cuComplex)
MATRICES(Z, cuDoubleComplex)
BATCHES(H, __half)
EQUATIONS(S, float)
EQUATIONS(D, double)
