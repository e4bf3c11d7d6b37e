// cuBLASLt: a product by cublasGemmStridedBatchedEx, then the bias and the activation.

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <initializer_list>

#include "blas.h"
#include "cublasLt.h"
#include "cudalab/blas_batches.h"

struct cublasLtMatmulDescOpaque {
    cublasComputeType_t type;
    cudaDataType scale;
    cublasPointerMode_t pointer_mode;
    cublasOperation_t transa, transb, transc;
    unsigned epilogue;
    const void* bias;
};
struct cublasLtMatrixLayoutOpaque {
    cudaDataType type;
    cublasLtOrder_t order;
    uint64_t rows, columns;
    int64_t leading;
    int count;
    int64_t stride;

    size_t bytes() const {  // of all matrices
        return ((size_t)(count - 1) * (size_t)stride + (columns - 1) * (size_t)leading + rows) *
               cudalab::bytes_of(type);
    }
};

namespace cudalab {
namespace {

// What BLAS has no name for: bit 2 of an epilogue.
const unsigned WITH_BIAS = CUBLASLT_EPILOGUE_BIAS;

bool is_known(unsigned epilogue) {
    const unsigned activation = epilogue & ~WITH_BIAS;
    return activation == 0 || epilogue == CUBLASLT_EPILOGUE_DEFAULT ||
           activation == CUBLASLT_EPILOGUE_RELU || activation == CUBLASLT_EPILOGUE_GELU;
}
float activate(unsigned epilogue, float x) {
    if (epilogue & CUBLASLT_EPILOGUE_RELU) return x > 0 ? x : 0;
    if (epilogue & CUBLASLT_EPILOGUE_GELU)
        return 0.5f * x * (1 + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
    return x;
}

cublasStatus_t lacks(LibraryCall& call, const char* what) {
    fprintf(stderr, "cudalab: %s:%d: not supported on the CPU device: %s: %s\n", call.place.file,
            call.place.line, call.name, what);
    return CUBLAS_STATUS_NOT_SUPPORTED;
}

template <class T>
cublasStatus_t set(T* field, const void* value, size_t bytes) {
    if (!value || bytes < sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(field, value, sizeof(T));
    return CUBLAS_STATUS_SUCCESS;
}

template <class T>
cublasStatus_t allocate(T** object) {
    *object = (T*)calloc(1, sizeof(T));
    return *object ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t finish(LibraryCall& call, const cublasLtMatmulDescOpaque& description, char* d,
                      const cublasLtMatrixLayoutOpaque& layout) {
    if (description.epilogue == CUBLASLT_EPILOGUE_DEFAULT) return CUBLAS_STATUS_SUCCESS;
    const void* const bias = description.epilogue & WITH_BIAS ? description.bias : nullptr;
    if (bias && !call.uses(bias, layout.rows * bytes_of(layout.type)))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    Access access;
    for (int i = 0; i < layout.count; ++i) {
        void* const matrix = d + (size_t)i * (size_t)layout.stride * bytes_of(layout.type);
        for (uint64_t column = 0; column < layout.columns; ++column)
            for (uint64_t row = 0; row < layout.rows; ++row) {
                const size_t at = column * (uint64_t)layout.leading + row;
                const float x = read_number(layout.type, matrix, at);
                const float sum = bias ? x + read_number(layout.type, bias, row) : x;
                write_number(layout.type, matrix, at, activate(description.epilogue, sum));
            }
    }
    return CUBLAS_STATUS_SUCCESS;
}

}  // namespace
}  // namespace cudalab

using namespace cudalab;

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle, const char* file, int line) {
    return cublasCreate((cublasHandle_t*)handle, file, line);
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle, const char* file, int line) {
    return cublasDestroy((cublasHandle_t)handle, file, line);
}
size_t cublasLtGetVersion() {
    return CUBLAS_VERSION;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description, cublasComputeType_t type,
                                        cudaDataType scale) {
    if (cublasStatus_t status = allocate(description)) return status;
    (*description)->type = type;
    (*description)->scale = scale;
    (*description)->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
    free(description);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes, const char* file,
                                              int line) {
    LibraryCall call("cublasLtMatmulDescSetAttribute", {file, line});
    switch (attribute) {
        case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE:
            return set(&description->type, value, bytes);
        case CUBLASLT_MATMUL_DESC_SCALE_TYPE:
            return set(&description->scale, value, bytes);
        case CUBLASLT_MATMUL_DESC_POINTER_MODE:
            return set(&description->pointer_mode, value, bytes);
        case CUBLASLT_MATMUL_DESC_TRANSA:
            return set(&description->transa, value, bytes);
        case CUBLASLT_MATMUL_DESC_TRANSB:
            return set(&description->transb, value, bytes);
        case CUBLASLT_MATMUL_DESC_TRANSC:
            return set(&description->transc, value, bytes);
        case CUBLASLT_MATMUL_DESC_EPILOGUE:
            return set(&description->epilogue, value, bytes);
        case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
            return set(&description->bias, value, bytes);
        default:
            return lacks(call, "this attribute");
    }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t leading) {
    if (cublasStatus_t status = allocate(layout)) return status;
    **layout = {type, CUBLASLT_ORDER_COL, rows, columns, leading, 1, 0};
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
    free(layout);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, size_t bytes, const char* file,
                                                int line) {
    LibraryCall call("cublasLtMatrixLayoutSetAttribute", {file, line});
    switch (attribute) {
        case CUBLASLT_MATRIX_LAYOUT_TYPE:
            return set(&layout->type, value, bytes);
        case CUBLASLT_MATRIX_LAYOUT_ORDER:
            return set(&layout->order, value, bytes);
        case CUBLASLT_MATRIX_LAYOUT_ROWS:
            return set(&layout->rows, value, bytes);
        case CUBLASLT_MATRIX_LAYOUT_COLS:
            return set(&layout->columns, value, bytes);
        case CUBLASLT_MATRIX_LAYOUT_LD:
            return set(&layout->leading, value, bytes);
        case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
            return set(&layout->count, value, bytes);
        case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
            return set(&layout->stride, value, bytes);
    }
    return lacks(call, "this attribute");
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
    *preference = (cublasLtMatmulPreference_t)malloc(1);
    return *preference ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
    free(preference);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                    cublasLtMatmulPreferenceAttributes_t,
                                                    const void*, size_t) {
    return CUBLAS_STATUS_SUCCESS;
}

// Whether cublasLtMatmul can do this.
static cublasStatus_t check(LibraryCall& call, cublasLtHandle_t handle,
                            cublasLtMatmulDesc_t description, cublasLtMatrixLayout_t a,
                            cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                            cublasLtMatrixLayout_t d) {
    if (cublasStatus_t status = ready(call, (cublasHandle_t)handle)) return status;
    if (!description || !a || !b || !c || !d) return CUBLAS_STATUS_INVALID_VALUE;
    for (cublasLtMatrixLayout_t each : {a, b, c, d})
        if (each->order != CUBLASLT_ORDER_COL) return lacks(call, "matrices stored row by row");
    if (description->transc != CUBLAS_OP_N) return lacks(call, "a transposed C");
    if (!is_known(description->epilogue)) return lacks(call, "this epilogue");
    if (description->epilogue != CUBLASLT_EPILOGUE_DEFAULT && bytes_of(d->type) > 4)
        return lacks(call, "an epilogue for these types");
    const bool plain_a = description->transa == CUBLAS_OP_N;
    const bool plain_b = description->transb == CUBLAS_OP_N;
    const bool fits = (plain_a ? a->rows : a->columns) == d->rows &&
                      (plain_b ? b->columns : b->rows) == d->columns &&
                      (plain_a ? a->columns : a->rows) == (plain_b ? b->rows : b->columns) &&
                      c->rows == d->rows && c->columns == d->columns && c->type == d->type &&
                      a->count == d->count && b->count == d->count && c->count == d->count;
    const bool extra = description->bias && !(description->epilogue & WITH_BIAS);
    if (fits && !extra) return CUBLAS_STATUS_SUCCESS;
    call.explain("CUBLAS_STATUS_INVALID_VALUE", extra
                                                    ? "there is a bias, but the epilogue takes none"
                                                    : "the matrices do not fit together");
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle,
                                              cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int* count,
                                              const char* file, int line) {
    LibraryCall call("cublasLtMatmulAlgoGetHeuristic", {file, line});
    if (cublasStatus_t status = check(call, handle, description, a, b, c, d)) return status;
    if (wanted < 1 || !results || !count) return CUBLAS_STATUS_INVALID_VALUE;
    results[0] = {};
    *count = 1;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                              const void* alpha, const void* a, cublasLtMatrixLayout_t layout_a,
                              const void* b, cublasLtMatrixLayout_t layout_b, const void* beta,
                              const void* c, cublasLtMatrixLayout_t layout_c, void* d,
                              cublasLtMatrixLayout_t layout_d, const cublasLtMatmulAlgo_t*, void*,
                              size_t, cudaStream_t, const char* file, int line) {
    LibraryCall call("cublasLtMatmul", {file, line});
    if (cublasStatus_t status =
            check(call, handle, description, layout_a, layout_b, layout_c, layout_d))
        return status;
    if (c != d && c) {
        if (layout_c->leading != layout_d->leading || layout_c->stride != layout_d->stride)
            return lacks(call, "a C and a D with different layouts");
        if (!call.uses(c, layout_c->bytes()) || !call.uses(d, layout_d->bytes()))
            return CUBLAS_STATUS_EXECUTION_FAILED;
        Access access;
        memmove(d, c, layout_d->bytes());
    }
    cublasContext context = {};
    context.pointer_mode = description->pointer_mode;
    const bool plain_a = description->transa == CUBLAS_OP_N;
    const int depth = (int)(plain_a ? layout_a->columns : layout_a->rows);
    const cublasStatus_t status = cublasGemmStridedBatchedEx(
        &context, description->transa, description->transb, (int)layout_d->rows,
        (int)layout_d->columns, depth, alpha, a, layout_a->type, (int)layout_a->leading,
        layout_a->stride, b, layout_b->type, (int)layout_b->leading, layout_b->stride, beta, d,
        layout_d->type, (int)layout_d->leading, layout_d->stride, layout_d->count,
        description->type, CUBLAS_GEMM_DEFAULT, file, line);
    return status ? status : finish(call, *description, (char*)d, *layout_d);
}
