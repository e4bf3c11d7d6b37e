// What the parts of cuBLAS share.
#pragma once

#include "cublas_api.h"
#include "library.h"

struct cublasContext {
    cudaStream_t stream;
    cublasPointerMode_t pointer_mode;
    cublasMath_t math_mode;
    cublasAtomicsMode_t atomics_mode;
};

namespace cudalab {

void* blas_routine(const char* name);  // "sgemm" in Fortran's interface, or null
cublasStatus_t ready(LibraryCall& call, cublasHandle_t handle);

}  // namespace cudalab
