// cuBLAS on the host's BLAS: matrices are in column-major order, and every function runs to its end
// before it returns. A function is a description of its arguments; cudalab/blas_call.h says how.
#pragma once
#define CUBLAS_V2_H_

#include "cudalab/blas_call.h"

#define CUDALAB_BLAS(name, ...) inline cublasStatus_t name(cublasHandle_t handle, __VA_ARGS__)
#define CUDALAB_CALL(name) return ::cudalab::BlasCall(handle, name, file, line)
#define CUDALAB_IS_N(op) ((op) == CUBLAS_OP_N)
#define CUDALAB_IS_LEFT(side) ((side) == CUBLAS_SIDE_LEFT)

// ------------------------------------------------------------------ every type of numbers

// S and s are the letters of the type in the names of cuBLAS and of BLAS, T is the type.
#define CUDALAB_BLAS_FUNCTIONS(S, s, T)                                                          \
    CUDALAB_BLAS(cublas##S##axpy, int n, const T* alpha, const T* x, int incx, T* y, int incy,   \
                 CUDALAB_HERE) {                                                                 \
        CUDALAB_CALL("cublas" #S "axpy")                                                         \
            .length(n)                                                                           \
            .scalar(alpha)                                                                       \
            .vector(x, n, incx)                                                                  \
            .vector(y, n, incy)                                                                  \
            .run(#s "axpy");                                                                     \
    }                                                                                            \
    CUDALAB_BLAS(cublas##S##scal, int n, const T* alpha, T* x, int incx, CUDALAB_HERE) {         \
        CUDALAB_CALL("cublas" #S "scal")                                                         \
            .length(n)                                                                           \
            .scalar(alpha)                                                                       \
            .vector(x, n, incx)                                                                  \
            .run(#s "scal");                                                                     \
    }                                                                                            \
    CUDALAB_BLAS(cublas##S##copy, int n, const T* x, int incx, T* y, int incy, CUDALAB_HERE) {   \
        CUDALAB_CALL("cublas" #S "copy")                                                         \
            .length(n)                                                                           \
            .vector(x, n, incx)                                                                  \
            .vector(y, n, incy)                                                                  \
            .run(#s "copy");                                                                     \
    }                                                                                            \
    CUDALAB_BLAS(cublas##S##swap, int n, T* x, int incx, T* y, int incy, CUDALAB_HERE) {         \
        CUDALAB_CALL("cublas" #S "swap")                                                         \
            .length(n)                                                                           \
            .vector(x, n, incx)                                                                  \
            .vector(y, n, incy)                                                                  \
            .run(#s "swap");                                                                     \
    }                                                                                            \
    CUDALAB_BLAS(cublasI##s##amax, int n, const T* x, int incx, int* result, CUDALAB_HERE) {     \
        CUDALAB_CALL("cublasI" #s "amax")                                                        \
            .length(n)                                                                           \
            .vector(x, n, incx)                                                                  \
            .result(result)                                                                      \
            .run("i" #s "amax");                                                                 \
    }                                                                                            \
    CUDALAB_BLAS(cublasI##s##amin, int n, const T* x, int incx, int* result, CUDALAB_HERE) {     \
        CUDALAB_CALL("cublasI" #s "amin")                                                        \
            .length(n)                                                                           \
            .vector(x, n, incx)                                                                  \
            .result(result)                                                                      \
            .run("i" #s "amin");                                                                 \
    }                                                                                            \
    CUDALAB_BLAS(cublas##S##gemv, cublasOperation_t trans, int m, int n, const T* alpha,         \
                 const T* a, int lda, const T* x, int incx, const T* beta, T* y, int incy,       \
                 CUDALAB_HERE) {                                                                 \
        const bool plain = CUDALAB_IS_N(trans);                                                  \
        CUDALAB_CALL("cublas" #S "gemv")                                                         \
            .op(trans)                                                                           \
            .size(m)                                                                             \
            .size(n)                                                                             \
            .scalar(alpha)                                                                       \
            .matrix(a, m, n, lda)                                                                \
            .vector(x, plain ? n : m, incx)                                                      \
            .scalar(beta)                                                                        \
            .vector(y, plain ? m : n, incy)                                                      \
            .run(#s "gemv");                                                                     \
    }                                                                                            \
    CUDALAB_BLAS(cublas##S##gbmv, cublasOperation_t trans, int m, int n, int kl, int ku,         \
                 const T* alpha, const T* a, int lda, const T* x, int incx, const T* beta, T* y, \
                 int incy, CUDALAB_HERE) {                                                       \
        const bool plain = CUDALAB_IS_N(trans);                                                  \
        CUDALAB_CALL("cublas" #S "gbmv")                                                         \
            .op(trans)                                                                           \
            .size(m)                                                                             \
            .size(n)                                                                             \
            .size(kl)                                                                            \
            .size(ku)                                                                            \
            .scalar(alpha)                                                                       \
            .matrix(a, kl + ku + 1, n, lda)                                                      \
            .vector(x, plain ? n : m, incx)                                                      \
            .scalar(beta)                                                                        \
            .vector(y, plain ? m : n, incy)                                                      \
            .run(#s "gbmv");                                                                     \
    }                                                                                            \
    CUDALAB_BLAS_TRIANGULAR(S, s, T, trmv)                                                       \
    CUDALAB_BLAS_TRIANGULAR(S, s, T, trsv)                                                       \
    CUDALAB_BLAS_BAND(S, s, T, tbmv)                                                             \
    CUDALAB_BLAS_BAND(S, s, T, tbsv)                                                             \
    CUDALAB_BLAS_PACKED(S, s, T, tpmv)                                                           \
    CUDALAB_BLAS_PACKED(S, s, T, tpsv)                                                           \
    CUDALAB_BLAS(cublas##S##gemm, cublasOperation_t transa, cublasOperation_t transb, int m,     \
                 int n, int k, const T* alpha, const T* a, int lda, const T* b, int ldb,         \
                 const T* beta, T* c, int ldc, CUDALAB_HERE) {                                   \
        const bool ra = CUDALAB_IS_N(transa), rb = CUDALAB_IS_N(transb);                         \
        CUDALAB_CALL("cublas" #S "gemm")                                                         \
            .op(transa)                                                                          \
            .op(transb)                                                                          \
            .size(m)                                                                             \
            .size(n)                                                                             \
            .size(k)                                                                             \
            .scalar(alpha)                                                                       \
            .matrix(a, ra ? m : k, ra ? k : m, lda)                                              \
            .matrix(b, rb ? k : n, rb ? n : k, ldb)                                              \
            .scalar(beta)                                                                        \
            .matrix(c, m, n, ldc)                                                                \
            .run(#s "gemm");                                                                     \
    }                                                                                            \
    CUDALAB_BLAS(cublas##S##trsm, cublasSideMode_t side, cublasFillMode_t uplo,                  \
                 cublasOperation_t trans, cublasDiagType_t diag, int m, int n, const T* alpha,   \
                 const T* a, int lda, T* b, int ldb, CUDALAB_HERE) {                             \
        const int order = CUDALAB_IS_LEFT(side) ? m : n;                                         \
        CUDALAB_CALL("cublas" #S "trsm")                                                         \
            .side(side)                                                                          \
            .fill(uplo)                                                                          \
            .op(trans)                                                                           \
            .diag(diag)                                                                          \
            .size(m)                                                                             \
            .size(n)                                                                             \
            .scalar(alpha)                                                                       \
            .matrix(a, order, order, lda)                                                        \
            .matrix(b, m, n, ldb)                                                                \
            .run(#s "trsm");                                                                     \
    }                                                                                            \
    CUDALAB_BLAS(cublas##S##trmm, cublasSideMode_t side, cublasFillMode_t uplo,                  \
                 cublasOperation_t trans, cublasDiagType_t diag, int m, int n, const T* alpha,   \
                 const T* a, int lda, const T* b, int ldb, T* c, int ldc, CUDALAB_HERE) {        \
        const int order = CUDALAB_IS_LEFT(side) ? m : n;                                         \
        CUDALAB_CALL("cublas" #S "trmm")                                                         \
            .side(side)                                                                          \
            .fill(uplo)                                                                          \
            .op(trans)                                                                           \
            .diag(diag)                                                                          \
            .size(m)                                                                             \
            .size(n)                                                                             \
            .scalar(alpha)                                                                       \
            .matrix(a, order, order, lda)                                                        \
            .matrix(c, m, n, ldc)                                                                \
            .from(b, m, n, ldb)                                                                  \
            .run(#s "trmm");                                                                     \
    }                                                                                            \
    CUDALAB_BLAS_SYMMETRIC(S, s, T, sy, T)

#define CUDALAB_BLAS_TRIANGULAR(S, s, T, routine)                                    \
    CUDALAB_BLAS(cublas##S##routine, cublasFillMode_t uplo, cublasOperation_t trans, \
                 cublasDiagType_t diag, int n, const T* a, int lda, T* x, int incx,  \
                 CUDALAB_HERE) {                                                     \
        CUDALAB_CALL("cublas" #S #routine)                                           \
            .fill(uplo)                                                              \
            .op(trans)                                                               \
            .diag(diag)                                                              \
            .size(n)                                                                 \
            .matrix(a, n, n, lda)                                                    \
            .vector(x, n, incx)                                                      \
            .run(#s #routine);                                                       \
    }
#define CUDALAB_BLAS_BAND(S, s, T, routine)                                                \
    CUDALAB_BLAS(cublas##S##routine, cublasFillMode_t uplo, cublasOperation_t trans,       \
                 cublasDiagType_t diag, int n, int k, const T* a, int lda, T* x, int incx, \
                 CUDALAB_HERE) {                                                           \
        CUDALAB_CALL("cublas" #S #routine)                                                 \
            .fill(uplo)                                                                    \
            .op(trans)                                                                     \
            .diag(diag)                                                                    \
            .size(n)                                                                       \
            .size(k)                                                                       \
            .matrix(a, k + 1, n, lda)                                                      \
            .vector(x, n, incx)                                                            \
            .run(#s #routine);                                                             \
    }
#define CUDALAB_BLAS_PACKED(S, s, T, routine)                                              \
    CUDALAB_BLAS(cublas##S##routine, cublasFillMode_t uplo, cublasOperation_t trans,       \
                 cublasDiagType_t diag, int n, const T* a, T* x, int incx, CUDALAB_HERE) { \
        CUDALAB_CALL("cublas" #S #routine)                                                 \
            .fill(uplo)                                                                    \
            .op(trans)                                                                     \
            .diag(diag)                                                                    \
            .size(n)                                                                       \
            .packed(a, n)                                                                  \
            .vector(x, n, incx)                                                            \
            .run(#s #routine);                                                             \
    }

// Symmetric matrices (sy), and Hermitian ones (he), whose updates have real factors, R.
#define CUDALAB_BLAS_SYMMETRIC(S, s, T, sy, R)                                                     \
    CUDALAB_BLAS(cublas##S##sy##mv, cublasFillMode_t uplo, int n, const T* alpha, const T* a,      \
                 int lda, const T* x, int incx, const T* beta, T* y, int incy, CUDALAB_HERE) {     \
        CUDALAB_CALL("cublas" #S #sy "mv")                                                         \
            .fill(uplo)                                                                            \
            .size(n)                                                                               \
            .scalar(alpha)                                                                         \
            .matrix(a, n, n, lda)                                                                  \
            .vector(x, n, incx)                                                                    \
            .scalar(beta)                                                                          \
            .vector(y, n, incy)                                                                    \
            .run(#s #sy "mv");                                                                     \
    }                                                                                              \
    CUDALAB_BLAS(cublas##S##sy##r, cublasFillMode_t uplo, int n, const R* alpha, const T* x,       \
                 int incx, T* a, int lda, CUDALAB_HERE) {                                          \
        CUDALAB_CALL("cublas" #S #sy "r")                                                          \
            .fill(uplo)                                                                            \
            .size(n)                                                                               \
            .scalar(alpha)                                                                         \
            .vector(x, n, incx)                                                                    \
            .matrix(a, n, n, lda)                                                                  \
            .run(#s #sy "r");                                                                      \
    }                                                                                              \
    CUDALAB_BLAS(cublas##S##sy##mm, cublasSideMode_t side, cublasFillMode_t uplo, int m, int n,    \
                 const T* alpha, const T* a, int lda, const T* b, int ldb, const T* beta, T* c,    \
                 int ldc, CUDALAB_HERE) {                                                          \
        const int order = CUDALAB_IS_LEFT(side) ? m : n;                                           \
        CUDALAB_CALL("cublas" #S #sy "mm")                                                         \
            .side(side)                                                                            \
            .fill(uplo)                                                                            \
            .size(m)                                                                               \
            .size(n)                                                                               \
            .scalar(alpha)                                                                         \
            .matrix(a, order, order, lda)                                                          \
            .matrix(b, m, n, ldb)                                                                  \
            .scalar(beta)                                                                          \
            .matrix(c, m, n, ldc)                                                                  \
            .run(#s #sy "mm");                                                                     \
    }                                                                                              \
    CUDALAB_BLAS(cublas##S##sy##rk, cublasFillMode_t uplo, cublasOperation_t trans, int n, int k,  \
                 const R* alpha, const T* a, int lda, const R* beta, T* c, int ldc,                \
                 CUDALAB_HERE) {                                                                   \
        const bool plain = CUDALAB_IS_N(trans);                                                    \
        CUDALAB_CALL("cublas" #S #sy "rk")                                                         \
            .fill(uplo)                                                                            \
            .op(trans)                                                                             \
            .size(n)                                                                               \
            .size(k)                                                                               \
            .scalar(alpha)                                                                         \
            .matrix(a, plain ? n : k, plain ? k : n, lda)                                          \
            .scalar(beta)                                                                          \
            .matrix(c, n, n, ldc)                                                                  \
            .run(#s #sy "rk");                                                                     \
    }                                                                                              \
    CUDALAB_BLAS(cublas##S##sy##r2k, cublasFillMode_t uplo, cublasOperation_t trans, int n, int k, \
                 const T* alpha, const T* a, int lda, const T* b, int ldb, const R* beta, T* c,    \
                 int ldc, CUDALAB_HERE) {                                                          \
        const bool plain = CUDALAB_IS_N(trans);                                                    \
        CUDALAB_CALL("cublas" #S #sy "r2k")                                                        \
            .fill(uplo)                                                                            \
            .op(trans)                                                                             \
            .size(n)                                                                               \
            .size(k)                                                                               \
            .scalar(alpha)                                                                         \
            .matrix(a, plain ? n : k, plain ? k : n, lda)                                          \
            .matrix(b, plain ? n : k, plain ? k : n, ldb)                                          \
            .scalar(beta)                                                                          \
            .matrix(c, n, n, ldc)                                                                  \
            .run(#s #sy "r2k");                                                                    \
    }

// Symmetric and Hermitian matrices in level 2, with a letter for band and packed ones.
#define CUDALAB_BLAS_LEVEL_2(S, s, T, sy, sb, sp, R)                                          \
    CUDALAB_BLAS(cublas##S##sy##r2, cublasFillMode_t uplo, int n, const T* alpha, const T* x, \
                 int incx, const T* y, int incy, T* a, int lda, CUDALAB_HERE) {               \
        CUDALAB_CALL("cublas" #S #sy "r2")                                                    \
            .fill(uplo)                                                                       \
            .size(n)                                                                          \
            .scalar(alpha)                                                                    \
            .vector(x, n, incx)                                                               \
            .vector(y, n, incy)                                                               \
            .matrix(a, n, n, lda)                                                             \
            .run(#s #sy "r2");                                                                \
    }                                                                                         \
    CUDALAB_BLAS(cublas##S##sb##mv, cublasFillMode_t uplo, int n, int k, const T* alpha,      \
                 const T* a, int lda, const T* x, int incx, const T* beta, T* y, int incy,    \
                 CUDALAB_HERE) {                                                              \
        CUDALAB_CALL("cublas" #S #sb "mv")                                                    \
            .fill(uplo)                                                                       \
            .size(n)                                                                          \
            .size(k)                                                                          \
            .scalar(alpha)                                                                    \
            .matrix(a, k + 1, n, lda)                                                         \
            .vector(x, n, incx)                                                               \
            .scalar(beta)                                                                     \
            .vector(y, n, incy)                                                               \
            .run(#s #sb "mv");                                                                \
    }                                                                                         \
    CUDALAB_BLAS(cublas##S##sp##mv, cublasFillMode_t uplo, int n, const T* alpha, const T* a, \
                 const T* x, int incx, const T* beta, T* y, int incy, CUDALAB_HERE) {         \
        CUDALAB_CALL("cublas" #S #sp "mv")                                                    \
            .fill(uplo)                                                                       \
            .size(n)                                                                          \
            .scalar(alpha)                                                                    \
            .packed(a, n)                                                                     \
            .vector(x, n, incx)                                                               \
            .scalar(beta)                                                                     \
            .vector(y, n, incy)                                                               \
            .run(#s #sp "mv");                                                                \
    }                                                                                         \
    CUDALAB_BLAS(cublas##S##sp##r, cublasFillMode_t uplo, int n, const R* alpha, const T* x,  \
                 int incx, T* a, CUDALAB_HERE) {                                              \
        CUDALAB_CALL("cublas" #S #sp "r")                                                     \
            .fill(uplo)                                                                       \
            .size(n)                                                                          \
            .scalar(alpha)                                                                    \
            .vector(x, n, incx)                                                               \
            .packed(a, n)                                                                     \
            .run(#s #sp "r");                                                                 \
    }                                                                                         \
    CUDALAB_BLAS(cublas##S##sp##r2, cublasFillMode_t uplo, int n, const T* alpha, const T* x, \
                 int incx, const T* y, int incy, T* a, CUDALAB_HERE) {                        \
        CUDALAB_CALL("cublas" #S #sp "r2")                                                    \
            .fill(uplo)                                                                       \
            .size(n)                                                                          \
            .scalar(alpha)                                                                    \
            .vector(x, n, incx)                                                               \
            .vector(y, n, incy)                                                               \
            .packed(a, n)                                                                     \
            .run(#s #sp "r2");                                                                \
    }

CUDALAB_BLAS_FUNCTIONS(S, s, float)
CUDALAB_BLAS_FUNCTIONS(D, d, double)
CUDALAB_BLAS_FUNCTIONS(C, c, cuComplex)
CUDALAB_BLAS_FUNCTIONS(Z, z, cuDoubleComplex)
CUDALAB_BLAS_LEVEL_2(S, s, float, sy, sb, sp, float)
CUDALAB_BLAS_LEVEL_2(D, d, double, sy, sb, sp, double)
CUDALAB_BLAS_LEVEL_2(C, c, cuComplex, he, hb, hp, float)
CUDALAB_BLAS_LEVEL_2(Z, z, cuDoubleComplex, he, hb, hp, double)
CUDALAB_BLAS_SYMMETRIC(C, c, cuComplex, he, float)
CUDALAB_BLAS_SYMMETRIC(Z, z, cuDoubleComplex, he, double)

// ------------------------------------------------------------------ names that follow no rule

#define CUDALAB_BLAS_NORM(name, routine, T, R)                                        \
    CUDALAB_BLAS(name, int n, const T* x, int incx, R* result, CUDALAB_HERE) {        \
        CUDALAB_CALL(#name).length(n).vector(x, n, incx).result(result).run(routine); \
    }
CUDALAB_BLAS_NORM(cublasSnrm2, "snrm2", float, float)
CUDALAB_BLAS_NORM(cublasDnrm2, "dnrm2", double, double)
CUDALAB_BLAS_NORM(cublasScnrm2, "scnrm2", cuComplex, float)
CUDALAB_BLAS_NORM(cublasDznrm2, "dznrm2", cuDoubleComplex, double)
CUDALAB_BLAS_NORM(cublasSasum, "sasum", float, float)
CUDALAB_BLAS_NORM(cublasDasum, "dasum", double, double)
CUDALAB_BLAS_NORM(cublasScasum, "scasum", cuComplex, float)
CUDALAB_BLAS_NORM(cublasDzasum, "dzasum", cuDoubleComplex, double)

#define CUDALAB_BLAS_DOT(name, routine, T)                                           \
    CUDALAB_BLAS(name, int n, const T* x, int incx, const T* y, int incy, T* result, \
                 CUDALAB_HERE) {                                                     \
        CUDALAB_CALL(#name)                                                          \
            .length(n)                                                               \
            .vector(x, n, incx)                                                      \
            .vector(y, n, incy)                                                      \
            .result(result)                                                          \
            .run(routine);                                                           \
    }
CUDALAB_BLAS_DOT(cublasSdot, "sdot", float)
CUDALAB_BLAS_DOT(cublasDdot, "ddot", double)
CUDALAB_BLAS_DOT(cublasCdotu, "cdotu", cuComplex)
CUDALAB_BLAS_DOT(cublasCdotc, "cdotc", cuComplex)
CUDALAB_BLAS_DOT(cublasZdotu, "zdotu", cuDoubleComplex)
CUDALAB_BLAS_DOT(cublasZdotc, "zdotc", cuDoubleComplex)

#define CUDALAB_BLAS_SCALE(name, routine, T, R)                                      \
    CUDALAB_BLAS(name, int n, const R* alpha, T* x, int incx, CUDALAB_HERE) {        \
        CUDALAB_CALL(#name).length(n).scalar(alpha).vector(x, n, incx).run(routine); \
    }
CUDALAB_BLAS_SCALE(cublasCsscal, "csscal", cuComplex, float)
CUDALAB_BLAS_SCALE(cublasZdscal, "zdscal", cuDoubleComplex, double)

#define CUDALAB_BLAS_OUTER(name, routine, T)                                                     \
    CUDALAB_BLAS(name, int m, int n, const T* alpha, const T* x, int incx, const T* y, int incy, \
                 T* a, int lda, CUDALAB_HERE) {                                                  \
        CUDALAB_CALL(#name)                                                                      \
            .size(m)                                                                             \
            .size(n)                                                                             \
            .scalar(alpha)                                                                       \
            .vector(x, m, incx)                                                                  \
            .vector(y, n, incy)                                                                  \
            .matrix(a, m, n, lda)                                                                \
            .run(routine);                                                                       \
    }
CUDALAB_BLAS_OUTER(cublasSger, "sger", float)
CUDALAB_BLAS_OUTER(cublasDger, "dger", double)
CUDALAB_BLAS_OUTER(cublasCgeru, "cgeru", cuComplex)
CUDALAB_BLAS_OUTER(cublasCgerc, "cgerc", cuComplex)
CUDALAB_BLAS_OUTER(cublasZgeru, "zgeru", cuDoubleComplex)
CUDALAB_BLAS_OUTER(cublasZgerc, "zgerc", cuDoubleComplex)

#define CUDALAB_BLAS_ROTATE(name, routine, T, C, S)                                   \
    CUDALAB_BLAS(name, int n, T* x, int incx, T* y, int incy, const C* c, const S* s, \
                 CUDALAB_HERE) {                                                      \
        CUDALAB_CALL(#name)                                                           \
            .length(n)                                                                \
            .vector(x, n, incx)                                                       \
            .vector(y, n, incy)                                                       \
            .scalar(c)                                                                \
            .scalar(s)                                                                \
            .run(routine);                                                            \
    }
CUDALAB_BLAS_ROTATE(cublasSrot, "srot", float, float, float)
CUDALAB_BLAS_ROTATE(cublasDrot, "drot", double, double, double)
CUDALAB_BLAS_ROTATE(cublasCrot, "crot", cuComplex, float, cuComplex)
CUDALAB_BLAS_ROTATE(cublasZrot, "zrot", cuDoubleComplex, double, cuDoubleComplex)
CUDALAB_BLAS_ROTATE(cublasCsrot, "csrot", cuComplex, float, float)
CUDALAB_BLAS_ROTATE(cublasZdrot, "zdrot", cuDoubleComplex, double, double)

#define CUDALAB_BLAS_ROTATION(name, routine, T, C)                                \
    CUDALAB_BLAS(name, T* a, T* b, C* c, T* s, CUDALAB_HERE) {                    \
        CUDALAB_CALL(#name).scalar(a).scalar(b).scalar(c).scalar(s).run(routine); \
    }
CUDALAB_BLAS_ROTATION(cublasSrotg, "srotg", float, float)
CUDALAB_BLAS_ROTATION(cublasDrotg, "drotg", double, double)
CUDALAB_BLAS_ROTATION(cublasCrotg, "crotg", cuComplex, float)
CUDALAB_BLAS_ROTATION(cublasZrotg, "zrotg", cuDoubleComplex, double)

#define CUDALAB_BLAS_MODIFIED(S, s, T)                                                         \
    CUDALAB_BLAS(cublas##S##rotm, int n, T* x, int incx, T* y, int incy, const T* param,       \
                 CUDALAB_HERE) {                                                               \
        CUDALAB_CALL("cublas" #S "rotm")                                                       \
            .length(n)                                                                         \
            .vector(x, n, incx)                                                                \
            .vector(y, n, incy)                                                                \
            .scalar(param, 5)                                                                  \
            .run(#s "rotm");                                                                   \
    }                                                                                          \
    CUDALAB_BLAS(cublas##S##rotmg, T* d1, T* d2, T* x1, const T* y1, T* param, CUDALAB_HERE) { \
        CUDALAB_CALL("cublas" #S "rotmg")                                                      \
            .scalar(d1)                                                                        \
            .scalar(d2)                                                                        \
            .scalar(x1)                                                                        \
            .scalar(y1)                                                                        \
            .scalar(param, 5)                                                                  \
            .run(#s "rotmg");                                                                  \
    }
CUDALAB_BLAS_MODIFIED(S, s, float)
CUDALAB_BLAS_MODIFIED(D, d, double)

#undef CUDALAB_BLAS_FUNCTIONS
#undef CUDALAB_BLAS_TRIANGULAR
#undef CUDALAB_BLAS_BAND
#undef CUDALAB_BLAS_PACKED
#undef CUDALAB_BLAS_SYMMETRIC
#undef CUDALAB_BLAS_LEVEL_2
#undef CUDALAB_BLAS_NORM
#undef CUDALAB_BLAS_DOT
#undef CUDALAB_BLAS_SCALE
#undef CUDALAB_BLAS_OUTER
#undef CUDALAB_BLAS_ROTATE
#undef CUDALAB_BLAS_ROTATION
#undef CUDALAB_BLAS_MODIFIED
#undef CUDALAB_BLAS
#undef CUDALAB_CALL
#undef CUDALAB_IS_N
#undef CUDALAB_IS_LEFT

#include "cudalab/blas_batches.h"
