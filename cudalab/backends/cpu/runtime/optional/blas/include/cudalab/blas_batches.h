// The functions of cuBLAS that BLAS lacks: batches of matrices, mixed types, sums of matrices.
#pragma once

#include "cublas_api.h"

#pragma GCC visibility push(default)

#define CUDALAB_BATCHES(S, T)                                                                    \
    cublasStatus_t cublas##S##gemmBatched(                                                       \
        cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, \
        int k, const T* alpha, const T* const a[], int lda, const T* const b[], int ldb,         \
        const T* beta, T* const c[], int ldc, int count, CUDALAB_HERE);                          \
    cublasStatus_t cublas##S##gemmStridedBatched(                                                \
        cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, \
        int k, const T* alpha, const T* a, int lda, long long stridea, const T* b, int ldb,      \
        long long strideb, const T* beta, T* c, int ldc, long long stridec, int count,           \
        CUDALAB_HERE);
#define CUDALAB_MATRICES(S, T)                                                                    \
    CUDALAB_BATCHES(S, T)                                                                         \
    cublasStatus_t cublas##S##geam(cublasHandle_t handle, cublasOperation_t transa,               \
                                   cublasOperation_t transb, int m, int n, const T* alpha,        \
                                   const T* a, int lda, const T* beta, const T* b, int ldb, T* c, \
                                   int ldc, CUDALAB_HERE);                                        \
    cublasStatus_t cublas##S##dgmm(cublasHandle_t handle, cublasSideMode_t side, int m, int n,    \
                                   const T* a, int lda, const T* x, int incx, T* c, int ldc,      \
                                   CUDALAB_HERE);                                                 \
    cublasStatus_t cublas##S##gemvStridedBatched(                                                 \
        cublasHandle_t handle, cublasOperation_t trans, int m, int n, const T* alpha, const T* a, \
        int lda, long long stridea, const T* x, int incx, long long stridex, const T* beta, T* y, \
        int incy, long long stridey, int count, CUDALAB_HERE);
#define CUDALAB_EQUATIONS(S, T)                                                                 \
    cublasStatus_t cublas##S##getrfBatched(cublasHandle_t handle, int n, T* const a[], int lda, \
                                           int* pivots, int* info, int count, CUDALAB_HERE);    \
    cublasStatus_t cublas##S##getriBatched(cublasHandle_t handle, int n, const T* const a[],    \
                                           int lda, const int* pivots, T* const c[], int ldc,   \
                                           int* info, int count, CUDALAB_HERE);                 \
    cublasStatus_t cublas##S##getrsBatched(                                                     \
        cublasHandle_t handle, cublasOperation_t trans, int n, int columns, const T* const a[], \
        int lda, const int* pivots, T* const b[], int ldb, int* info, int count, CUDALAB_HERE);
CUDALAB_MATRICES(S, float)
CUDALAB_MATRICES(D, double)
CUDALAB_MATRICES(C, cuComplex)
CUDALAB_MATRICES(Z, cuDoubleComplex)
CUDALAB_BATCHES(H, __half)
CUDALAB_EQUATIONS(S, float)
CUDALAB_EQUATIONS(D, double)
#undef CUDALAB_EQUATIONS
#undef CUDALAB_MATRICES
#undef CUDALAB_BATCHES

cublasStatus_t cublasHgemm(cublasHandle_t handle, cublasOperation_t transa,
                           cublasOperation_t transb, int m, int n, int k, const __half* alpha,
                           const __half* a, int lda, const __half* b, int ldb, const __half* beta,
                           __half* c, int ldc, CUDALAB_HERE);
cublasStatus_t cublasSgemmEx(cublasHandle_t handle, cublasOperation_t transa,
                             cublasOperation_t transb, int m, int n, int k, const float* alpha,
                             const void* a, cudaDataType type_a, int lda, const void* b,
                             cudaDataType type_b, int ldb, const float* beta, void* c,
                             cudaDataType type_c, int ldc, CUDALAB_HERE);
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa,
                            cublasOperation_t transb, int m, int n, int k, const void* alpha,
                            const void* a, cudaDataType type_a, int lda, const void* b,
                            cudaDataType type_b, int ldb, const void* beta, void* c,
                            cudaDataType type_c, int ldc, cublasComputeType_t type,
                            cublasGemmAlgo_t algorithm, CUDALAB_HERE);
cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
                                   cublasOperation_t transb, int m, int n, int k, const void* alpha,
                                   const void* const a[], cudaDataType type_a, int lda,
                                   const void* const b[], cudaDataType type_b, int ldb,
                                   const void* beta, void* const c[], cudaDataType type_c, int ldc,
                                   int count, cublasComputeType_t type, cublasGemmAlgo_t algorithm,
                                   CUDALAB_HERE);
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
                                          cublasOperation_t transb, int m, int n, int k,
                                          const void* alpha, const void* a, cudaDataType type_a,
                                          int lda, long long stridea, const void* b,
                                          cudaDataType type_b, int ldb, long long strideb,
                                          const void* beta, void* c, cudaDataType type_c, int ldc,
                                          long long stridec, int count, cublasComputeType_t type,
                                          cublasGemmAlgo_t algorithm, CUDALAB_HERE);

#pragma GCC visibility pop

// The older form, whose type of computation is one of data.
inline cublasComputeType_t cudalab_compute_type(cudaDataType type) {
    return type == CUDA_R_16F                         ? CUBLAS_COMPUTE_16F
           : type == CUDA_R_32I                       ? CUBLAS_COMPUTE_32I
           : type == CUDA_R_64F || type == CUDA_C_64F ? CUBLAS_COMPUTE_64F
                                                      : CUBLAS_COMPUTE_32F;
}
inline cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa,
                                   cublasOperation_t transb, int m, int n, int k, const void* alpha,
                                   const void* a, cudaDataType type_a, int lda, const void* b,
                                   cudaDataType type_b, int ldb, const void* beta, void* c,
                                   cudaDataType type_c, int ldc, cudaDataType type,
                                   cublasGemmAlgo_t algorithm, CUDALAB_HERE) {
    return cublasGemmEx(handle, transa, transb, m, n, k, alpha, a, type_a, lda, b, type_b, ldb,
                        beta, c, type_c, ldc, cudalab_compute_type(type), algorithm, file, line);
}
