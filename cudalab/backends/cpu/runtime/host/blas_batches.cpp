// cuBLAS: batches of matrices, mixed types, sums of matrices, and linear equations in batches.

#include <stdlib.h>
#include <string.h>

#include <initializer_list>

#include "blas.h"
#include "cublas_v2.h"

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

namespace {

// ------------------------------------------------------------------ what the functions share

cublasStatus_t invalid(LibraryCall& call, const char* why) {
    call.explain("CUBLAS_STATUS_INVALID_VALUE", "%s", why);
    return CUBLAS_STATUS_INVALID_VALUE;
}
bool is_operation(cublasOperation_t op) {
    return (unsigned)op <= CUBLAS_OP_C;
}
int at_least_1(int n) {
    return n > 1 ? n : 1;
}
// Bytes from the first number of a matrix to its last.
size_t extent(size_t size, int rows, int columns, int leading) {
    if (rows <= 0 || columns <= 0) return 0;
    return ((size_t)leading * (size_t)(columns - 1) + (size_t)rows) * size;
}
// Reads a number such as alpha, which the pointer mode puts on the host or on the device.
bool read(LibraryCall& call, cublasHandle_t handle, const void* from, void* to, size_t bytes) {
    if (handle->pointer_mode == CUBLAS_POINTER_MODE_HOST) {
        memcpy(to, from, bytes);
        return true;
    }
    if (!call.uses(from, bytes)) return false;
    Access access;
    memcpy(to, from, bytes);
    return true;
}

// Calls `function(i)` for each matrix of a batch until one fails.
template <class F>
cublasStatus_t for_each(LibraryCall& call, cublasHandle_t handle, int count, F function) {
    if (cublasStatus_t status = ready(call, handle)) return status;
    if (count < 0) return invalid(call, "the number of matrices is negative");
    Access access;  // once for all of them
    for (int i = 0; i < count; ++i)
        if (cublasStatus_t status = function(i)) return status;
    return CUBLAS_STATUS_SUCCESS;
}
// The same for matrices whose addresses are in arrays on the device.
template <class F>
cublasStatus_t for_each_of(LibraryCall& call, cublasHandle_t handle, const void* a, const void* b,
                           const void* c, int count, F function) {
    if (cublasStatus_t status = ready(call, handle)) return status;
    const void* const arrays[] = {a, b, c};
    for (const void* array : arrays)
        if (array != nullptr && count > 0 && !call.uses(array, (size_t)count * sizeof(void*)))
            return CUBLAS_STATUS_EXECUTION_FAILED;
    return for_each(call, handle, count, function);
}

// ------------------------------------------------------------------ products of mixed types

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

// ------------------------------------------------------------------ sums, diagonal matrices

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

// ------------------------------------------------------------------ linear equations

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

using namespace cudalab;

// ------------------------------------------------------------------ the functions

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
