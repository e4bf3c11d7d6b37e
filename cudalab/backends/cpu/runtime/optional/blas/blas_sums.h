// cuBLAS: sums of matrices, and products with diagonal ones. Part of blas_batches.cpp.
#pragma once

#include "blas_arguments.h"

namespace cudalab {
namespace {

template <class T>
T times(T a, T b) {
    return a * b;
}
cuComplex times(cuComplex a, cuComplex b) {
    return cuCmulf(a, b);
}
cuDoubleComplex times(cuDoubleComplex a, cuDoubleComplex b) {
    return cuCmul(a, b);
}
template <class T>
T plus(T a, T b) {
    return a + b;
}
cuComplex plus(cuComplex a, cuComplex b) {
    return cuCaddf(a, b);
}
cuDoubleComplex plus(cuDoubleComplex a, cuDoubleComplex b) {
    return cuCadd(a, b);
}
template <class T>
T conjugate(T a) {
    return a;
}
cuComplex conjugate(cuComplex a) {
    return cuConjf(a);
}
cuDoubleComplex conjugate(cuDoubleComplex a) {
    return cuConj(a);
}
template <class T>
bool is_zero(T a) {
    return a == 0;
}
bool is_zero(cuComplex a) {
    return a.x == 0 && a.y == 0;
}
bool is_zero(cuDoubleComplex a) {
    return a.x == 0 && a.y == 0;
}

template <class T>
struct Summand {
    cublasOperation_t op;
    T factor;
    const T* at;
    size_t leading;
    T operator()(size_t i, size_t j) const {
        if (is_zero(factor)) return T();
        T value = op == CUBLAS_OP_N ? at[j * leading + i] : at[i * leading + j];
        if (op == CUBLAS_OP_C) value = conjugate(value);
        return times(factor, value);
    }
};

template <class T>
cublasStatus_t geam(LibraryCall& call, cublasHandle_t handle, cublasOperation_t transa,
                    cublasOperation_t transb, int m, int n, const T* alpha, const T* a, int lda,
                    const T* beta, const T* b, int ldb, T* c, int ldc) {
    if (cublasStatus_t status = ready(call, handle)) return status;
    if (!is_operation(transa) || !is_operation(transb))
        return invalid(call, "an operation is not known");
    if (m < 0 || n < 0) return invalid(call, "a size is negative");
    const int rows_a = transa == CUBLAS_OP_N ? m : n, rows_b = transb == CUBLAS_OP_N ? m : n;
    if (lda < at_least_1(rows_a) || ldb < at_least_1(rows_b) || ldc < at_least_1(m))
        return invalid(call, "a leading dimension is less than the rows");
    if (!alpha || !beta) return invalid(call, "the pointer to a number is null");
    if ((c == a && (transa != CUBLAS_OP_N || lda != ldc)) ||
        (c == b && (transb != CUBLAS_OP_N || ldb != ldc)))
        return invalid(call, "C is also a summand, but in another form");
    T factor_a, factor_b;
    if (!read(call, handle, alpha, &factor_a, sizeof(T)) ||
        !read(call, handle, beta, &factor_b, sizeof(T)))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    if ((!is_zero(factor_a) && !call.uses(a, extent(sizeof(T), rows_a, m + n - rows_a, lda))) ||
        (!is_zero(factor_b) && !call.uses(b, extent(sizeof(T), rows_b, m + n - rows_b, ldb))) ||
        !call.uses(c, extent(sizeof(T), m, n, ldc)))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    const Summand<T> first = {transa, factor_a, a, (size_t)lda};
    const Summand<T> second = {transb, factor_b, b, (size_t)ldb};
    Access access;
    for (size_t j = 0; j < (size_t)n; ++j) {
        T* const column = c + j * (size_t)ldc;
        for (size_t i = 0; i < (size_t)m; ++i) column[i] = plus(first(i, j), second(i, j));
        memory_written(column, (size_t)m * sizeof(T));
    }
    return CUBLAS_STATUS_SUCCESS;
}

template <class T>
cublasStatus_t dgmm(LibraryCall& call, cublasHandle_t handle, cublasSideMode_t side, int m, int n,
                    const T* a, int lda, const T* x, int incx, T* c, int ldc) {
    if (cublasStatus_t status = ready(call, handle)) return status;
    if ((unsigned)side > CUBLAS_SIDE_RIGHT) return invalid(call, "the side is not known");
    if (m < 0 || n < 0) return invalid(call, "a size is negative");
    if (lda < at_least_1(m) || ldc < at_least_1(m))
        return invalid(call, "a leading dimension is less than the rows");
    const int length = side == CUBLAS_SIDE_LEFT ? m : n;
    const size_t step = (size_t)(incx < 0 ? -(long long)incx : incx);
    if (length > 0 && m > 0 && n > 0 &&
        (!call.uses(x, ((size_t)(length - 1) * step + 1) * sizeof(T)) ||
         !call.uses(a, extent(sizeof(T), m, n, lda)) ||
         !call.uses(c, extent(sizeof(T), m, n, ldc))))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    Access access;
    for (int j = 0; j < n; ++j) {
        T* const column = c + (size_t)j * (size_t)ldc;
        for (int i = 0; i < m; ++i) {
            const int k = side == CUBLAS_SIDE_LEFT ? i : j;
            const T factor = x[(size_t)(incx < 0 ? length - 1 - k : k) * step];
            column[i] = times(a[(size_t)j * (size_t)lda + (size_t)i], factor);
        }
        memory_written(column, (size_t)m * sizeof(T));
    }
    return CUBLAS_STATUS_SUCCESS;
}

}  // namespace
}  // namespace cudalab
