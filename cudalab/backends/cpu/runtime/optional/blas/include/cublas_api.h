// The types of cuBLAS, and its functions that are not BLAS routines.
#pragma once
#define CUBLAS_API_H_

#include "cuComplex.h"
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "library_types.h"

#define CUBLASWINAPI
#define CUBLAS_VER_MAJOR 13
#define CUBLAS_VER_MINOR 1
#define CUBLAS_VER_PATCH 0
#define CUBLAS_VER_BUILD 0
#define CUBLAS_VERSION (CUBLAS_VER_MAJOR * 10000 + CUBLAS_VER_MINOR * 100 + CUBLAS_VER_PATCH)

// The statuses: number, text.
#define CUDALAB_CUBLAS_STATUSES(X)                                                     \
    X(CUBLAS_STATUS_SUCCESS, 0, "success")                                             \
    X(CUBLAS_STATUS_NOT_INITIALIZED, 1, "the library was not initialized")             \
    X(CUBLAS_STATUS_ALLOC_FAILED, 3, "the resource allocation failed")                 \
    X(CUBLAS_STATUS_INVALID_VALUE, 7,                                                  \
      "an unsupported value or parameter was passed to the function")                  \
    X(CUBLAS_STATUS_ARCH_MISMATCH, 8,                                                  \
      "the function requires an architectural feature absent from the device")         \
    X(CUBLAS_STATUS_MAPPING_ERROR, 11, "an access to GPU memory space failed")         \
    X(CUBLAS_STATUS_EXECUTION_FAILED, 13, "the function failed to launch on the GPU")  \
    X(CUBLAS_STATUS_INTERNAL_ERROR, 14, "an internal operation failed")                \
    X(CUBLAS_STATUS_NOT_SUPPORTED, 15, "the requested functionality is not supported") \
    X(CUBLAS_STATUS_LICENSE_ERROR, 16, "the license check failed")

#define CUDALAB_CUBLAS_STATUS(name, number, words) name = number,
enum cublasStatus_t { CUDALAB_CUBLAS_STATUSES(CUDALAB_CUBLAS_STATUS) };
#undef CUDALAB_CUBLAS_STATUS

enum cublasOperation_t {
    CUBLAS_OP_N = 0,
    CUBLAS_OP_T = 1,
    CUBLAS_OP_C = 2,
    CUBLAS_OP_HERMITAN = 2,  // sic
    CUBLAS_OP_CONJG = 3,
};
enum cublasFillMode_t {
    CUBLAS_FILL_MODE_LOWER = 0,
    CUBLAS_FILL_MODE_UPPER = 1,
    CUBLAS_FILL_MODE_FULL = 2,
};
enum cublasDiagType_t { CUBLAS_DIAG_NON_UNIT = 0, CUBLAS_DIAG_UNIT = 1 };
enum cublasSideMode_t { CUBLAS_SIDE_LEFT = 0, CUBLAS_SIDE_RIGHT = 1 };
enum cublasPointerMode_t { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 };
enum cublasAtomicsMode_t { CUBLAS_ATOMICS_NOT_ALLOWED = 0, CUBLAS_ATOMICS_ALLOWED = 1 };
enum cublasMath_t {
    CUBLAS_DEFAULT_MATH = 0,
    CUBLAS_TENSOR_OP_MATH = 1,
    CUBLAS_PEDANTIC_MATH = 2,
    CUBLAS_TF32_TENSOR_OP_MATH = 3,
    CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16,
};
enum cublasComputeType_t {
    CUBLAS_COMPUTE_16F = 64,
    CUBLAS_COMPUTE_16F_PEDANTIC = 65,
    CUBLAS_COMPUTE_32F = 68,
    CUBLAS_COMPUTE_32F_PEDANTIC = 69,
    CUBLAS_COMPUTE_64F = 70,
    CUBLAS_COMPUTE_64F_PEDANTIC = 71,
    CUBLAS_COMPUTE_32I = 72,
    CUBLAS_COMPUTE_32I_PEDANTIC = 73,
    CUBLAS_COMPUTE_32F_FAST_16F = 74,
    CUBLAS_COMPUTE_32F_FAST_16BF = 75,
    CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
};
enum cublasGemmAlgo_t {  // numbers up to 23, and from 100 to 115, are algorithms of a GPU
    CUBLAS_GEMM_DFALT = -1,
    CUBLAS_GEMM_DEFAULT = -1,
    CUBLAS_GEMM_ALGO0 = 0,
    CUBLAS_GEMM_ALGO23 = 23,
    CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99,
    CUBLAS_GEMM_DFALT_TENSOR_OP = 99,
    CUBLAS_GEMM_ALGO0_TENSOR_OP = 100,
    CUBLAS_GEMM_ALGO15_TENSOR_OP = 115,
    CUBLAS_GEMM_AUTOTUNE = 999,
};
typedef cudaDataType cublasDataType_t;
typedef struct cublasContext* cublasHandle_t;

#pragma GCC visibility push(default)

cublasStatus_t cublasCreate(cublasHandle_t* handle, CUDALAB_HERE);
cublasStatus_t cublasDestroy(cublasHandle_t handle, CUDALAB_HERE);
cublasStatus_t cublasGetVersion(cublasHandle_t handle, int* version, CUDALAB_HERE);
cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value, CUDALAB_HERE);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream, CUDALAB_HERE);
cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t* stream, CUDALAB_HERE);
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* space, size_t bytes, CUDALAB_HERE);
cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode, CUDALAB_HERE);
cublasStatus_t cublasGetPointerMode(cublasHandle_t handle, cublasPointerMode_t* mode, CUDALAB_HERE);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode, CUDALAB_HERE);
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode, CUDALAB_HERE);
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode, CUDALAB_HERE);
cublasStatus_t cublasGetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t* mode, CUDALAB_HERE);
const char* cublasGetStatusName(cublasStatus_t status);
const char* cublasGetStatusString(cublasStatus_t status);

// Copies of vectors and matrices between the host and the device.
cublasStatus_t cublasSetVector(int n, int size, const void* x, int incx, void* y, int incy,
                               CUDALAB_HERE);
cublasStatus_t cublasGetVector(int n, int size, const void* x, int incx, void* y, int incy,
                               CUDALAB_HERE);
cublasStatus_t cublasSetMatrix(int rows, int columns, int size, const void* a, int lda, void* b,
                               int ldb, CUDALAB_HERE);
cublasStatus_t cublasGetMatrix(int rows, int columns, int size, const void* a, int lda, void* b,
                               int ldb, CUDALAB_HERE);
inline cublasStatus_t cublasSetVectorAsync(int n, int size, const void* x, int incx, void* y,
                                           int incy, cudaStream_t, CUDALAB_HERE) {
    return cublasSetVector(n, size, x, incx, y, incy, file, line);
}
inline cublasStatus_t cublasGetVectorAsync(int n, int size, const void* x, int incx, void* y,
                                           int incy, cudaStream_t, CUDALAB_HERE) {
    return cublasGetVector(n, size, x, incx, y, incy, file, line);
}
inline cublasStatus_t cublasSetMatrixAsync(int rows, int columns, int size, const void* a, int lda,
                                           void* b, int ldb, cudaStream_t, CUDALAB_HERE) {
    return cublasSetMatrix(rows, columns, size, a, lda, b, ldb, file, line);
}
inline cublasStatus_t cublasGetMatrixAsync(int rows, int columns, int size, const void* a, int lda,
                                           void* b, int ldb, cudaStream_t, CUDALAB_HERE) {
    return cublasGetMatrix(rows, columns, size, a, lda, b, ldb, file, line);
}

#pragma GCC visibility pop
