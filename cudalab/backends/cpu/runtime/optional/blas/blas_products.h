// cuBLAS: products of matrices of mixed types. Part of blas_batches.cpp.
#pragma once

#include "blas_arguments.h"

namespace cudalab {
namespace {

struct Matrix {
    const void* at;
    cudaDataType type;
    int rows, columns, leading;

    size_t bytes() const { return extent(bytes_of(type), rows, columns, leading); }
    size_t index(int row, int column) const {
        return (size_t)column * (size_t)leading + (size_t)row;
    }
};

// The matrix as numbers of type float, without gaps between its columns.
float* as_floats(const Matrix& m) {
    float* copy = (float*)malloc(((size_t)m.rows * (size_t)m.columns + 1) * sizeof(float));
    if (copy)
        for (int j = 0; j < m.columns; ++j)
            for (int i = 0; i < m.rows; ++i)
                copy[(size_t)j * (size_t)m.rows + (size_t)i] =
                    read_number(m.type, m.at, m.index(i, j));
    return copy;
}

typedef void (*Sgemm)(const char*, const char*, const long long*, const long long*,
                      const long long*, const float*, const float*, const long long*, const float*,
                      const long long*, const float*, float*, const long long*);

struct Product {
    cublasOperation_t transa, transb;
    int k;
    Matrix a, b, c;

    // Sums of products are made in float and rounded once, at the end.
    cublasStatus_t in_float(float alpha, float beta) const {
        const Sgemm sgemm = (Sgemm)blas_routine("sgemm");
        float *fa = as_floats(a), *fb = as_floats(b), *fc = as_floats(c);
        const bool ok = sgemm && fa && fb && fc;
        if (ok) {
            const long long m = c.rows, n = c.columns, depth = k, lda = at_least_1(a.rows),
                            ldb = at_least_1(b.rows), ldc = at_least_1(c.rows);
            sgemm(&"NTC"[transa], &"NTC"[transb], &m, &n, &depth, &alpha, fa, &lda, fb, &ldb, &beta,
                  fc, &ldc);
            for (int j = 0; j < c.columns; ++j)
                for (int i = 0; i < c.rows; ++i)
                    write_number(c.type, (void*)c.at, c.index(i, j),
                                 fc[(size_t)j * (size_t)ldc + (size_t)i]);
        }
        free(fa), free(fb), free(fc);
        return ok ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
    }
    cublasStatus_t in_integers(int alpha, int beta) const {
        const int8_t *pa = (const int8_t*)a.at, *pb = (const int8_t*)b.at;
        for (int j = 0; j < c.columns; ++j)
            for (int i = 0; i < c.rows; ++i) {
                int sum = 0;
                for (int l = 0; l < k; ++l)
                    sum += pa[transa ? a.index(l, i) : a.index(i, l)] *
                           pb[transb ? b.index(j, l) : b.index(l, j)];
                int& to = ((int*)c.at)[c.index(i, j)];
                to = alpha * sum + (beta ? beta * to : 0);
            }
        return CUBLAS_STATUS_SUCCESS;
    }
};

// Whether cuBLAS computes with these types, and of what type alpha and beta are.
bool supported(const Product& p, cublasComputeType_t type, cudaDataType* scalar) {
    const cudaDataType ab = p.a.type, c = p.c.type;
    *scalar = CUDA_R_32F;
    if (p.b.type != ab) return false;
    switch (type) {
        case CUBLAS_COMPUTE_16F:
        case CUBLAS_COMPUTE_16F_PEDANTIC:
            *scalar = CUDA_R_16F;
            return ab == CUDA_R_16F && c == CUDA_R_16F;
        case CUBLAS_COMPUTE_32I:
        case CUBLAS_COMPUTE_32I_PEDANTIC:
            *scalar = CUDA_R_32I;
            return ab == CUDA_R_8I && c == CUDA_R_32I;
        case CUBLAS_COMPUTE_64F:
        case CUBLAS_COMPUTE_64F_PEDANTIC:
            *scalar = ab;
            return (ab == CUDA_R_64F || ab == CUDA_C_64F) && c == ab;
        case CUBLAS_COMPUTE_32F_FAST_16F:
        case CUBLAS_COMPUTE_32F_FAST_16BF:
        case CUBLAS_COMPUTE_32F_FAST_TF32:
            if (ab == CUDA_C_32F) *scalar = ab;
            return (ab == CUDA_R_32F || ab == CUDA_C_32F) && c == ab;
        case CUBLAS_COMPUTE_32F:
        case CUBLAS_COMPUTE_32F_PEDANTIC:
            if (ab == CUDA_C_32F) *scalar = ab;
            if (ab == CUDA_R_32F || ab == CUDA_C_32F) return c == ab;
            return (ab == CUDA_R_16F || ab == CUDA_R_16BF || ab == CUDA_R_8I) &&
                   (c == CUDA_R_32F || (c == ab && ab != CUDA_R_8I));
    }
    return false;
}

cublasStatus_t multiply(cublasHandle_t handle, const Product& p, const void* alpha,
                        const void* beta, cublasComputeType_t type, LibraryCall& call) {
    if (cublasStatus_t status = ready(call, handle)) return status;
    const Matrix &a = p.a, &b = p.b, &c = p.c;
    if (!is_operation(p.transa) || !is_operation(p.transb))
        return invalid(call, "an operation is not known");
    if (c.rows < 0 || c.columns < 0 || p.k < 0) return invalid(call, "a size is negative");
    for (const Matrix* each : {&a, &b, &c})
        if (each->leading < at_least_1(each->rows))
            return invalid(call, "a leading dimension is less than the rows");
    if (!alpha || !beta) return invalid(call, "the pointer to a number is null");
    cudaDataType scalar;
    if (!supported(p, type, &scalar)) {
        call.explain("CUBLAS_STATUS_NOT_SUPPORTED",
                     "these types of matrices and of the computation do not go together");
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
#define SAME(gemm, T)                                                                           \
    return gemm(handle, p.transa, p.transb, c.rows, c.columns, p.k, (const T*)alpha,            \
                (const T*)a.at, a.leading, (const T*)b.at, b.leading, (const T*)beta, (T*)c.at, \
                c.leading, call.place.file, call.place.line)
    switch (a.type) {
        case CUDA_R_32F:
            SAME(cublasSgemm, float);
        case CUDA_R_64F:
            SAME(cublasDgemm, double);
        case CUDA_C_32F:
            SAME(cublasCgemm, cuComplex);
        case CUDA_C_64F:
            SAME(cublasZgemm, cuDoubleComplex);
        default:
            break;
    }
#undef SAME
    char numbers[2][4];
    const size_t bytes = bytes_of(scalar);
    if (!read(call, handle, alpha, numbers[0], bytes) ||
        !read(call, handle, beta, numbers[1], bytes))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    if (c.rows == 0 || c.columns == 0) return CUBLAS_STATUS_SUCCESS;
    for (const Matrix* each : {&a, &b, &c})
        if (!call.uses(each->at, each->bytes())) return CUBLAS_STATUS_EXECUTION_FAILED;
    Access access;
    cublasStatus_t status;
    if (scalar == CUDA_R_32I) {
        int values[2];
        memcpy(values, numbers, sizeof values);
        status = p.in_integers(values[0], values[1]);
    } else {
        status = p.in_float(read_number(scalar, numbers[0], 0), read_number(scalar, numbers[1], 0));
    }
    for (int j = 0; j < c.columns; ++j)
        memory_written((const char*)c.at + c.index(0, j) * bytes_of(c.type),
                       (size_t)c.rows * bytes_of(c.type));
    return status;
}

Product product(cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
                const void* a, cudaDataType type_a, int lda, const void* b, cudaDataType type_b,
                int ldb, const void* c, cudaDataType type_c, int ldc) {
    const bool plain_a = transa == CUBLAS_OP_N, plain_b = transb == CUBLAS_OP_N;
    return {transa,
            transb,
            k,
            {a, type_a, plain_a ? m : k, plain_a ? k : m, lda},
            {b, type_b, plain_b ? k : n, plain_b ? n : k, ldb},
            {c, type_c, m, n, ldc}};
}

}  // namespace
}  // namespace cudalab
