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

// Numbers of a type that is known when the program runs.
size_t bytes_of(cudaDataType type);
float read_number(cudaDataType type, const void* from, size_t i);
void write_number(cudaDataType type, void* to, size_t i, float value);

}  // namespace cudalab
