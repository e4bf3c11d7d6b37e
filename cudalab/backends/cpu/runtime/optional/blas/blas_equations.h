// cuBLAS: batches of systems of linear equations, factored into L and U. Part of blas_batches.cpp.
#pragma once

#include "blas_arguments.h"

namespace cudalab {
namespace {

// Factors A into L and U in place, LAPACK's way: pivots count from 1. Returns the number of the
// first pivot that is zero, or 0. Without `pivots` no rows are exchanged.
template <class T>
int factor(T* a, size_t n, size_t lda, int* pivots) {
    int info = 0;
    for (size_t k = 0; k < n; ++k) {
        size_t best = k;
        if (pivots) {
            for (size_t i = k + 1; i < n; ++i)
                if (fabs(a[k * lda + i]) > fabs(a[k * lda + best])) best = i;
            pivots[k] = (int)best + 1;
        }
        if (a[k * lda + best] == 0) {
            if (!info) info = (int)k + 1;
            continue;
        }
        for (size_t j = 0; best != k && j < n; ++j) {
            const T other = a[j * lda + k];
            a[j * lda + k] = a[j * lda + best];
            a[j * lda + best] = other;
        }
        for (size_t i = k + 1; i < n; ++i) a[k * lda + i] /= a[k * lda + k];
        for (size_t j = k + 1; j < n; ++j)
            for (size_t i = k + 1; i < n; ++i) a[j * lda + i] -= a[k * lda + i] * a[j * lda + k];
    }
    return info;
}
template <class T>
void exchange(T* b, const int* pivots, size_t k) {
    const size_t other = (size_t)pivots[k] - 1;
    const T value = b[k];
    b[k] = b[other];
    b[other] = value;
}
// Solves A x = b, or A^T x = b, in place; `a` holds L and U.
template <class T>
void solve(const T* a, size_t n, size_t lda, const int* pivots, bool transposed, T* b) {
    if (!transposed) {
        for (size_t k = 0; pivots && k < n; ++k) exchange(b, pivots, k);
        for (size_t k = 0; k < n; ++k)
            for (size_t i = k + 1; i < n; ++i) b[i] -= a[k * lda + i] * b[k];
        for (size_t k = n; k-- > 0;) {
            b[k] /= a[k * lda + k];
            for (size_t i = 0; i < k; ++i) b[i] -= a[k * lda + i] * b[k];
        }
        return;
    }
    for (size_t k = 0; k < n; ++k) {
        for (size_t i = 0; i < k; ++i) b[k] -= a[k * lda + i] * b[i];
        b[k] /= a[k * lda + k];
    }
    for (size_t k = n; k-- > 0;)
        for (size_t i = k + 1; i < n; ++i) b[k] -= a[k * lda + i] * b[i];
    for (size_t k = n; pivots && k-- > 0;) exchange(b, pivots, k);
}

cublasStatus_t check_equations(LibraryCall& call, int n, int lda, int count) {
    if (n < 0 || count < 0) return invalid(call, "a size is negative");
    if (lda < at_least_1(n)) return invalid(call, "a leading dimension is less than the rows");
    return CUBLAS_STATUS_SUCCESS;
}

template <class T>
cublasStatus_t getrf(LibraryCall& call, cublasHandle_t handle, int n, T* const a[], int lda,
                     int* pivots, int* info, int count) {
    if (cublasStatus_t status = ready(call, handle)) return status;
    if (cublasStatus_t status = check_equations(call, n, lda, count)) return status;
    const size_t length = (size_t)n, ints = (size_t)count * sizeof(int);
    if (!call.uses(info, ints) || (pivots && !call.uses(pivots, length * ints)))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    return for_each_of(call, handle, a, nullptr, nullptr, count, [&](int i) {
        if (!call.uses(a[i], extent(sizeof(T), n, n, lda))) return CUBLAS_STATUS_EXECUTION_FAILED;
        int* const own = pivots ? pivots + (size_t)i * length : nullptr;
        info[i] = factor(a[i], length, (size_t)lda, own);
        memory_written(a[i], extent(sizeof(T), n, n, lda));
        memory_written(info + i, sizeof(int));
        if (own) memory_written(own, length * sizeof(int));
        return CUBLAS_STATUS_SUCCESS;
    });
}

template <class T>
cublasStatus_t getri(LibraryCall& call, cublasHandle_t handle, int n, const T* const a[], int lda,
                     const int* pivots, T* const c[], int ldc, int* info, int count) {
    if (cublasStatus_t status = ready(call, handle)) return status;
    if (cublasStatus_t status = check_equations(call, n, lda < ldc ? lda : ldc, count))
        return status;
    const size_t length = (size_t)n, ints = (size_t)count * sizeof(int);
    if (!call.uses(info, ints) || (pivots && !call.uses(pivots, length * ints)))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    return for_each_of(call, handle, a, c, nullptr, count, [&](int i) {
        if (!call.uses(a[i], extent(sizeof(T), n, n, lda)) ||
            !call.uses(c[i], extent(sizeof(T), n, n, ldc)))
            return CUBLAS_STATUS_EXECUTION_FAILED;
        info[i] = 0;
        for (size_t k = 0; k < length && !info[i]; ++k)
            if (a[i][k * (size_t)lda + k] == 0) info[i] = (int)k + 1;
        for (size_t j = 0; j < length && !info[i]; ++j) {
            T* const column = c[i] + j * (size_t)ldc;
            for (size_t k = 0; k < length; ++k) column[k] = k == j;
            solve(a[i], length, (size_t)lda, pivots ? pivots + (size_t)i * length : nullptr, false,
                  column);
        }
        memory_written(c[i], extent(sizeof(T), n, n, ldc));
        memory_written(info + i, sizeof(int));
        return CUBLAS_STATUS_SUCCESS;
    });
}

template <class T>
cublasStatus_t getrs(LibraryCall& call, cublasHandle_t handle, cublasOperation_t trans, int n,
                     int columns, const T* const a[], int lda, const int* pivots, T* const b[],
                     int ldb, int* info, int count) {
    if (cublasStatus_t status = ready(call, handle)) return status;
    if (!info) return invalid(call, "the pointer to info is null");
    const bool wrong[] = {!is_operation(trans), n < 0, columns < 0,         !a,
                          lda < at_least_1(n),  !b,    ldb < at_least_1(n), count < 0};
    const int places[] = {1, 2, 3, 4, 5, 7, 8, 10};
    *info = 0;
    for (int i = 0; i < 8; ++i)
        if (wrong[i]) {
            *info = -places[i];
            return invalid(call, "an argument is not valid: info has its number");
        }
    const size_t length = (size_t)n;
    if (pivots && !call.uses(pivots, length * (size_t)count * sizeof(int)))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    return for_each_of(call, handle, a, b, nullptr, count, [&](int i) {
        if (!call.uses(a[i], extent(sizeof(T), n, n, lda)) ||
            !call.uses(b[i], extent(sizeof(T), n, columns, ldb)))
            return CUBLAS_STATUS_EXECUTION_FAILED;
        for (int j = 0; j < columns; ++j)
            solve(a[i], length, (size_t)lda, pivots ? pivots + (size_t)i * length : nullptr,
                  trans != CUBLAS_OP_N, b[i] + (size_t)j * (size_t)ldb);
        memory_written(b[i], extent(sizeof(T), n, columns, ldb));
        return CUBLAS_STATUS_SUCCESS;
    });
}

}  // namespace
}  // namespace cudalab
