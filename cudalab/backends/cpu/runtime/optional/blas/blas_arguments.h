// Arguments of the functions of cuBLAS that BLAS lacks, and batches of them. Part of
// blas_batches.cpp.
#pragma once

#include <stdlib.h>
#include <string.h>

#include <initializer_list>

#include "blas.h"
#include "cublas_v2.h"

namespace cudalab {
namespace {

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

}  // namespace
}  // namespace cudalab
