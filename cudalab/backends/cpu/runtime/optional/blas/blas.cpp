// cuBLAS: calls of the routines of the host's BLAS, and the handle.
//
// The BLAS is opened when the program runs. Its Fortran interface takes every argument by its
// address, so one description of the arguments serves all routines.

#include "blas.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <initializer_list>

#include "cudalab/blas_call.h"

namespace cudalab {

// ------------------------------------------------------------------ the host's BLAS

// CUDALAB_BLAS, which `cudalab run` sets, or the system's library.
static void* open_blas() {
    if (const char* path = getenv("CUDALAB_BLAS")) return dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void* const openblas = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    return openblas ? openblas : dlopen("libblas.so.3", RTLD_NOW | RTLD_LOCAL);
}
static void* blas() {
    static void* const library = open_blas();
    return library;
}

// As many threads as run kernels. (Only OpenBLAS has this function.)
static void set_threads() {
    typedef void (*Function)(const long long*);
    cpu_set_t cores;
    const char* asked = getenv("CUDALAB_THREADS");
    long long threads = asked ? atoi(asked) : 0;
    if (threads < 1 && sched_getaffinity(0, sizeof cores, &cores) == 0) threads = CPU_COUNT(&cores);
    void* const function = blas_routine("openblas_set_num_threads");
    if (function && threads > 0) ((Function)function)(&threads);
}

void* blas_routine(const char* name) {
    if (!blas()) return nullptr;
    char symbol[40];
    // NumPy's wheel with integers of 64 bits, scipy-openblas32, and other builds.
    for (const char* form : {"scipy_%s_64_", "scipy_%s_", "%s_64_", "%s_"}) {
        snprintf(symbol, sizeof symbol, form, name);
        if (void* found = dlsym(blas(), symbol)) return found;
    }
    return nullptr;
}

// ------------------------------------------------------------------ arguments

void BlasCall::invalid(int number, const char* why) {
    if (wrong) return;
    wrong = why;
    wrong_number = number;
}
BlasCall& BlasCall::add(Argument argument) {
    arguments[count++] = argument;
    return *this;
}
BlasCall& BlasCall::letter(char code, bool valid, const char* why) {
    if (!valid) invalid(count + 1, why);
    return add({Argument::LETTER, code, nullptr, 0, 0, 0, false});
}
BlasCall& BlasCall::op(cublasOperation_t op) {
    return letter("NTC"[op % 3], (unsigned)op <= CUBLAS_OP_C, "an operation is not known");
}
BlasCall& BlasCall::fill(cublasFillMode_t mode) {
    return letter("LU"[mode % 2], (unsigned)mode <= CUBLAS_FILL_MODE_UPPER,
                  "the triangle is neither the lower nor the upper one");
}
BlasCall& BlasCall::diag(cublasDiagType_t type) {
    return letter("NU"[type % 2], (unsigned)type <= CUBLAS_DIAG_UNIT,
                  "the kind of diagonal is not known");
}
BlasCall& BlasCall::side(cublasSideMode_t mode) {
    return letter("LR"[mode % 2], (unsigned)mode <= CUBLAS_SIDE_RIGHT, "the side is not known");
}
BlasCall& BlasCall::size(int n) {
    if (n < 0) invalid(count + 1, "a size is negative");
    return add({Argument::INTEGER, n, nullptr, 0, 0, 0, false});
}
BlasCall& BlasCall::length(int n) {
    level_1 = true;
    nothing_to_do = n <= 0;
    return add({Argument::INTEGER, n, nullptr, 0, 0, 0, false});
}
BlasCall& BlasCall::number(const void* values, size_t bytes, bool written) {
    if (!values) invalid(count + 1, "the pointer to a number is null");
    return add({Argument::NUMBER, 0, values, bytes, 0, 1, written});
}
BlasCall& BlasCall::returns(void* value, char type) {
    if (!value) invalid(count + 1, "the pointer to the result is null");
    const size_t bytes = type == 'z' ? 16 : type == 'd' || type == 'c' ? 8 : 4;
    output = {Argument::NUMBER, 0, value, bytes, 0, 1, true};
    output_type = type;
    return *this;
}
BlasCall& BlasCall::add_memory(const void* at, size_t bytes, size_t gap, size_t pieces,
                               bool written) {
    return add({Argument::MEMORY, 0, at, bytes, gap, pieces, written});
}
BlasCall& BlasCall::strided(const void* x, size_t size, bool written, int n, int increment) {
    if (increment == 0 && !level_1) invalid(count + 2, "an increment is 0");
    const size_t step = (size_t)(increment < 0 ? -(long long)increment : increment);
    add_memory(x, size, step ? (step - 1) * size : 0, n > 0 ? (step ? (size_t)n : 1) : 0, written);
    return add({Argument::INTEGER, increment, nullptr, 0, 0, 0, false});
}
BlasCall& BlasCall::pitched(const void* a, size_t size, bool written, int rows, int columns,
                            int leading) {
    if (leading < (rows > 1 ? rows : 1))
        invalid(count + 2, "a leading dimension is less than the rows");
    const bool empty = rows <= 0 || columns <= 0 || leading < rows;
    add_memory(a, empty ? 0 : (size_t)rows * size, empty ? 0 : (size_t)(leading - rows) * size,
               empty ? 0 : (size_t)columns, written);
    return add({Argument::INTEGER, leading, nullptr, 0, 0, 0, false});
}
BlasCall& BlasCall::copied(const void* b, size_t size, int rows, int columns, int leading) {
    pitched(b, size, false, rows, columns, leading);
    source = arguments[count -= 2];
    return *this;
}

// ------------------------------------------------------------------ the call

// Further arguments than a routine takes do no harm: it is the caller who removes them.
typedef const void* P;
template <class R>
static R call_routine(void* routine, const P* p) {
    typedef R (*Routine)(P, P, P, P, P, P, P, P, P, P, P, P, P, P, P);
    return ((Routine)routine)(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10],
                              p[11], p[12], p[13], p[14]);
}

cublasStatus_t BlasCall::run(const char* routine) {
    LibraryCall call(name, {file, line});
    if (cublasStatus_t status = ready(call, handle)) return status;
    if (nothing_to_do && !output_type) return CUBLAS_STATUS_SUCCESS;
    if (wrong) {
        char upper[8] = {};
        for (int i = 0; i < 7 && routine[i]; ++i) upper[i] = (char)(routine[i] & ~0x20);
        if (!output_type && strcmp(routine + 1, "gemv"))  // on stdout, as cuBLAS does
            printf(" ** On entry to %-6s parameter number %d had an illegal value\n", upper,
                   wrong_number);
        call.explain("CUBLAS_STATUS_INVALID_VALUE", "%s", wrong);
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    void* const function = blas_routine(routine);
    if (!function) {
        call.explain("CUBLAS_STATUS_NOT_SUPPORTED", "the BLAS of this machine has no %s", routine);
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    const bool numbers_on_device = handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE;
    const Argument* const end = arguments + count;
    for (const Argument* a = arguments; a <= end; ++a) {
        const Argument& each = a < end ? *a : output;
        if (each.kind == Argument::NUMBER && each.pointer && !numbers_on_device)
            (void)*(const volatile char*)each.pointer;  // a device pointer ends the program here
        else if (each.kind >= Argument::NUMBER && each.count && each.pointer && !nothing_to_do &&
                 !call.uses(each.pointer, each.count * (each.bytes + each.gap) - each.gap))
            return CUBLAS_STATUS_EXECUTION_FAILED;
    }
    if (source.count &&
        !call.uses(source.pointer, source.count * (source.bytes + source.gap) - source.gap))
        return CUBLAS_STATUS_EXECUTION_FAILED;

    Access access;
    if (source.count) {
        const Argument& target = arguments[count - 2];
        for (size_t i = 0; i < source.count; ++i)
            memmove((char*)target.pointer + i * (target.bytes + target.gap),
                    (const char*)source.pointer + i * (source.bytes + source.gap), source.bytes);
    }
    const void* passed[sizeof arguments / sizeof *arguments] = {};
    for (int i = 0; i < count; ++i)
        passed[i] =
            arguments[i].kind >= Argument::NUMBER ? arguments[i].pointer : &arguments[i].integer;
    void* const result = (void*)output.pointer;
    // The norm of a vector, or its greatest number: 0 without a positive increment.
    const bool is_zero =
        output_type && (nothing_to_do || (count == 3 && arguments[2].integer <= 0));
    if (is_zero) memset(result, 0, output.bytes);
    switch (is_zero ? 'r' : output_type) {
        case 'r':
            break;
        case 's':
            *(float*)result = call_routine<float>(function, passed);
            break;
        case 'd':
            *(double*)result = call_routine<double>(function, passed);
            break;
        case 'i':
            *(int*)result = call_routine<int>(function, passed);
            break;
        case 'c':
            *(__complex__ float*)result = call_routine<__complex__ float>(function, passed);
            break;
        case 'z':
            *(__complex__ double*)result = call_routine<__complex__ double>(function, passed);
            break;
        default:
            call_routine<void>(function, passed);
    }
    for (const Argument* a = arguments; a <= end; ++a) {
        const Argument& each = a < end ? *a : output;
        if (!each.written || (nothing_to_do && a < end)) continue;
        const size_t pieces = each.gap ? each.count : 1;
        const size_t bytes = each.gap ? each.bytes : each.bytes * each.count;
        for (size_t i = 0; i < pieces; ++i)
            memory_written((const char*)each.pointer + i * (each.bytes + each.gap), bytes);
    }
    return CUBLAS_STATUS_SUCCESS;
}

// Whether the library can work: there is a handle, no kernel has failed for good, and the work is
// to be done now.
cublasStatus_t ready(LibraryCall& call, cublasHandle_t handle) {
    if (!handle) {
        call.explain("CUBLAS_STATUS_NOT_INITIALIZED", "the handle is null");
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    if (call.pending()) return CUBLAS_STATUS_EXECUTION_FAILED;
    return call.is_captured(handle->stream, "cuBLAS") ? CUBLAS_STATUS_NOT_SUPPORTED
                                                      : CUBLAS_STATUS_SUCCESS;
}

}  // namespace cudalab

using namespace cudalab;

// ------------------------------------------------------------------ the handle

cublasStatus_t cublasCreate(cublasHandle_t* handle, const char* file, int line) {
    LibraryCall call("cublasCreate", {file, line});
    if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
    if (call.pending()) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!blas()) {
        fprintf(stderr,
                "cudalab: %s:%d: cuBLAS needs OpenBLAS on the CPU device: pip install "
                "'cudalab[libraries]'\n",
                file, line);
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    set_threads();
    *handle = (cublasHandle_t)calloc(1, sizeof **handle);
    return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}
cublasStatus_t cublasDestroy(cublasHandle_t handle, const char* file, int line) {
    LibraryCall call("cublasDestroy", {file, line});
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetVersion(cublasHandle_t handle, int* version, const char*, int) {
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    *version = CUBLAS_VERSION;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value, const char*, int) {
    if ((unsigned)type > PATCH_LEVEL || !value) return CUBLAS_STATUS_INVALID_VALUE;
    const int numbers[] = {CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, CUBLAS_VER_PATCH};
    *value = numbers[type];
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream, const char*, int) {
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    handle->stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t* stream, const char*, int) {
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    *stream = handle->stream;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void*, size_t, const char*, int) {
    return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

#define MODE(Name, Mode, field, highest)                                                           \
    cublasStatus_t cublasSet##Name(cublasHandle_t handle, Mode mode, const char* file, int line) { \
        LibraryCall call("cublasSet" #Name, {file, line});                                         \
        if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;                                         \
        if ((unsigned)mode > highest) return CUBLAS_STATUS_INVALID_VALUE;                          \
        handle->field = mode;                                                                      \
        return CUBLAS_STATUS_SUCCESS;                                                              \
    }                                                                                              \
    cublasStatus_t cublasGet##Name(cublasHandle_t handle, Mode* mode, const char*, int) {          \
        if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;                                         \
        if (!mode) return CUBLAS_STATUS_INVALID_VALUE;                                             \
        *mode = handle->field;                                                                     \
        return CUBLAS_STATUS_SUCCESS;                                                              \
    }
MODE(PointerMode, cublasPointerMode_t, pointer_mode, CUBLAS_POINTER_MODE_DEVICE)
MODE(AtomicsMode, cublasAtomicsMode_t, atomics_mode, CUBLAS_ATOMICS_ALLOWED)
MODE(MathMode, cublasMath_t, math_mode,
     (CUBLAS_TF32_TENSOR_OP_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION))

static const struct {
    cublasStatus_t status;
    const char *name, *words;
} statuses[] = {
#define STATUS(name, number, words) {name, #name, words},
    CUDALAB_CUBLAS_STATUSES(STATUS)};
const char* cublasGetStatusName(cublasStatus_t status) {
    for (const auto& each : statuses)
        if (each.status == status) return each.name;
    return "unrecognized status";
}
const char* cublasGetStatusString(cublasStatus_t status) {
    for (const auto& each : statuses)
        if (each.status == status) return each.words;
    return "unrecognized status";
}

// ------------------------------------------------------------------ copies

// Copies `columns` pieces of `bytes` bytes; the distances from piece to piece are in bytes.
static cublasStatus_t copy(LibraryCall& call, bool to_device, size_t columns, size_t bytes,
                           const void* source, size_t source_step, void* target,
                           size_t target_step) {
    if (call.pending()) return CUBLAS_STATUS_MAPPING_ERROR;
    char why[300];
    const void* host = to_device ? source : target;
    const void* device = to_device ? target : source;
    const size_t device_step = to_device ? target_step : source_step;
    if (!is_for_host(host, why, sizeof why) ||
        !reaches(device, (columns - 1) * device_step + bytes, why, sizeof why)) {
        call.explain("CUBLAS_STATUS_MAPPING_ERROR", "a pointer %s", why);
        return CUBLAS_STATUS_MAPPING_ERROR;
    }
    Access access;
    for (size_t i = 0; i < columns; ++i) {
        void* const to = (char*)target + i * target_step;
        memmove(to, (const char*)source + i * source_step, bytes);
        memory_written(to, bytes);
    }
    return CUBLAS_STATUS_SUCCESS;
}
static cublasStatus_t copy_vector(const char* name, bool to_device, int n, int size, const void* x,
                                  int incx, void* y, int incy, Place place) {
    LibraryCall call(name, place);
    if (n < 0 || size <= 0 || incx <= 0 || incy <= 0) {
        call.explain("CUBLAS_STATUS_INVALID_VALUE", "n %d, size %d, increments %d and %d", n, size,
                     incx, incy);
        return n < 0 ? CUBLAS_STATUS_MAPPING_ERROR : CUBLAS_STATUS_INVALID_VALUE;
    }
    if (n == 0) return CUBLAS_STATUS_SUCCESS;
    const size_t bytes = (size_t)size;
    if (incx == 1 && incy == 1) return copy(call, to_device, 1, (size_t)n * bytes, x, 0, y, 0);
    return copy(call, to_device, (size_t)n, bytes, x, (size_t)incx * bytes, y,
                (size_t)incy * bytes);
}
static cublasStatus_t copy_matrix(const char* name, bool to_device, int rows, int columns, int size,
                                  const void* a, int lda, void* b, int ldb, Place place) {
    LibraryCall call(name, place);
    if (rows < 0 || columns < 0 || size <= 0 || lda < rows || ldb < rows || !lda || !ldb) {
        call.explain("CUBLAS_STATUS_INVALID_VALUE",
                     "%d rows, %d columns, size %d, leading dimensions %d and %d", rows, columns,
                     size, lda, ldb);
        const bool sizes = rows >= 0 && columns >= 0 && size > 0;
        return sizes ? CUBLAS_STATUS_MAPPING_ERROR : CUBLAS_STATUS_INVALID_VALUE;
    }
    if (rows == 0 || columns == 0) return CUBLAS_STATUS_SUCCESS;
    return copy(call, to_device, (size_t)columns, (size_t)rows * (size_t)size, a,
                (size_t)lda * (size_t)size, b, (size_t)ldb * (size_t)size);
}
cublasStatus_t cublasSetVector(int n, int size, const void* x, int incx, void* y, int incy,
                               const char* file, int line) {
    return copy_vector("cublasSetVector", true, n, size, x, incx, y, incy, {file, line});
}
cublasStatus_t cublasGetVector(int n, int size, const void* x, int incx, void* y, int incy,
                               const char* file, int line) {
    return copy_vector("cublasGetVector", false, n, size, x, incx, y, incy, {file, line});
}
cublasStatus_t cublasSetMatrix(int rows, int columns, int size, const void* a, int lda, void* b,
                               int ldb, const char* file, int line) {
    return copy_matrix("cublasSetMatrix", true, rows, columns, size, a, lda, b, ldb, {file, line});
}
cublasStatus_t cublasGetMatrix(int rows, int columns, int size, const void* a, int lda, void* b,
                               int ldb, const char* file, int line) {
    return copy_matrix("cublasGetMatrix", false, rows, columns, size, a, lda, b, ldb, {file, line});
}
