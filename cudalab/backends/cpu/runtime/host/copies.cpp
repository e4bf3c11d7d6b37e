// Copies between host and device. As on a GPU, a pointer to the wrong side, or a range that exceeds
// its allocation, is an error.

#include <string.h>

#include "internal.h"

namespace cudalab {

static cudaError_t check_copy(Call& call, const void* target, size_t target_bytes,
                              const void* source, size_t source_bytes, cudaMemcpyKind kind) {
    if ((unsigned)kind > cudaMemcpyDefault)
        return call.fail(cudaErrorInvalidMemcpyDirection, "%d is not a kind of copy", (int)kind);
    char why[300];
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (kind == cudaMemcpyDefault) {
        to_device = is_device_address(target);
        from_device = is_device_address(source);
    }
    if (to_device ? !reaches(target, target_bytes, why, sizeof why)
                  : !is_for_host(target, why, sizeof why))
        return call.fail(cudaErrorInvalidValue, "the target %s", why);
    if (from_device ? !reaches(source, source_bytes, why, sizeof why)
                    : !is_for_host(source, why, sizeof why))
        return call.fail(cudaErrorInvalidValue, "the source %s", why);
    return cudaSuccess;
}

// A copy between a device variable (`offset` bytes after `symbol`) and `other`.
static cudaError_t check_symbol(Call& call, const void* symbol, size_t size, size_t count,
                                size_t offset, const void* other, bool on_device) {
    if (!is_symbol(symbol))
        return call.fail(cudaErrorInvalidSymbol,
                         "this is not a __device__ or __constant__ variable");
    if (offset > size || count > size - offset)
        return call.fail(cudaErrorInvalidValue, "%zu bytes at offset %zu of a variable of %zu",
                         count, offset, size);
    char why[300];
    if (count && (on_device ? !reaches(other, count, why, sizeof why)
                            : !is_for_host(other, why, sizeof why)))
        return call.fail(cudaErrorInvalidValue, "the other side of the copy %s", why);
    return cudaSuccess;
}

cudaError_t copy_to_symbol(const void* symbol, size_t size, const void* source, size_t count,
                           size_t offset, cudaMemcpyKind kind, const char* file, int line) {
    Call call("cudaMemcpyToSymbol", {file, line});
    if (cudaError_t error = call.pending()) return error;
    if (kind == cudaMemcpyDefault)
        kind = is_device_address(source) ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice;
    if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToDevice)
        return call.fail(cudaErrorInvalidMemcpyDirection, "a symbol is device memory");
    if (cudaError_t error = check_symbol(call, symbol, size, count, offset, source,
                                         kind == cudaMemcpyDeviceToDevice))
        return error;
    Access access;
    memmove((char*)symbol + offset, source, count);
    return cudaSuccess;
}

cudaError_t copy_from_symbol(void* target, const void* symbol, size_t size, size_t count,
                             size_t offset, cudaMemcpyKind kind, const char* file, int line) {
    Call call("cudaMemcpyFromSymbol", {file, line});
    if (cudaError_t error = call.pending()) return error;
    if (kind == cudaMemcpyDefault)
        kind = is_device_address(target) ? cudaMemcpyDeviceToDevice : cudaMemcpyDeviceToHost;
    if (kind != cudaMemcpyDeviceToHost && kind != cudaMemcpyDeviceToDevice)
        return call.fail(cudaErrorInvalidMemcpyDirection, "a symbol is device memory");
    if (cudaError_t error = check_symbol(call, symbol, size, count, offset, target,
                                         kind == cudaMemcpyDeviceToDevice))
        return error;
    Access access;
    memmove(target, (const char*)symbol + offset, count);
    memory_written(target, count);
    return cudaSuccess;
}

cudaError_t symbol_address(void** address, const void* symbol, size_t bytes, const char* file,
                           int line) {
    Call call("cudaGetSymbolAddress", {file, line});
    if (cudaError_t error = call.pending()) return error;
    if (!is_symbol(symbol))
        return call.fail(cudaErrorInvalidSymbol,
                         "this is not a __device__ or __constant__ variable");
    name_variable(symbol, bytes, call.place);
    *address = (void*)symbol;
    return cudaSuccess;
}

cudaError_t symbol_size(size_t* size, const void* symbol, size_t bytes, const char* file,
                        int line) {
    Call call("cudaGetSymbolSize", {file, line});
    if (cudaError_t error = call.pending()) return error;
    if (!is_symbol(symbol))
        return call.fail(cudaErrorInvalidSymbol,
                         "this is not a __device__ or __constant__ variable");
    *size = bytes;
    return cudaSuccess;
}

// The number of bytes from the first to the last of `height` rows.
static size_t extent(size_t pitch, size_t width, size_t height) {
    return height ? pitch * (height - 1) + width : 0;
}

}  // namespace cudalab

using namespace cudalab;

cudaError_t cudaMemcpy(void* target, const void* source, size_t bytes, cudaMemcpyKind kind,
                       const char* file, int line) {
    Call call("cudaMemcpy", {file, line});
    if (cudaError_t error = call.pending()) return error;
    if (bytes == 0) return cudaSuccess;
    if (cudaError_t error = check_copy(call, target, bytes, source, bytes, kind)) return error;
    Access access;
    memmove(target, source, bytes);
    memory_written(target, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpy2D(void* target, size_t target_pitch, const void* source, size_t source_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind, const char* file,
                         int line) {
    Call call("cudaMemcpy2D", {file, line});
    if (cudaError_t error = call.pending()) return error;
    if (width > target_pitch || width > source_pitch)
        return call.fail(cudaErrorInvalidPitchValue, "rows of %zu bytes, pitches of %zu and %zu",
                         width, target_pitch, source_pitch);
    if (width == 0 || height == 0) return cudaSuccess;
    if (cudaError_t error = check_copy(call, target, extent(target_pitch, width, height), source,
                                       extent(source_pitch, width, height), kind))
        return error;
    Access access;
    for (size_t row = 0; row < height; ++row)
        memmove((char*)target + row * target_pitch, (const char*)source + row * source_pitch,
                width);
    for (size_t row = 0; row < height; ++row)
        memory_written((char*)target + row * target_pitch, width);
    return cudaSuccess;
}

cudaError_t cudaMemset(void* pointer, int value, size_t bytes, const char* file, int line) {
    Call call("cudaMemset", {file, line});
    if (cudaError_t error = call.pending()) return error;
    char why[300];
    if (bytes == 0) return cudaSuccess;
    if (!reaches(pointer, bytes, why, sizeof why))
        return call.fail(cudaErrorInvalidValue, "the target %s", why);
    Access access;
    memset(pointer, value, bytes);
    memory_written(pointer, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemset2D(void* pointer, size_t pitch, int value, size_t width, size_t height,
                         const char* file, int line) {
    Call call("cudaMemset2D", {file, line});
    if (cudaError_t error = call.pending()) return error;
    char why[300];
    if (width > pitch)
        return call.fail(cudaErrorInvalidValue, "rows of %zu bytes, a pitch of %zu", width, pitch);
    if (width == 0 || height == 0) return cudaSuccess;
    if (!reaches(pointer, extent(pitch, width, height), why, sizeof why))
        return call.fail(cudaErrorInvalidValue, "the target %s", why);
    Access access;
    for (size_t row = 0; row < height; ++row) {
        memset((char*)pointer + row * pitch, value, width);
        memory_written((char*)pointer + row * pitch, width);
    }
    return cudaSuccess;
}
