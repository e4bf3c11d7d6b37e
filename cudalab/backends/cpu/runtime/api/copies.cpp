// Copies between host and device. As on a GPU, a pointer to the wrong side, or a range that exceeds
// its allocation, is an error.

#include <string.h>

#include "order.h"
#include "sorted_map.h"

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
    const char* hint = "";
    if (to_device != from_device && is_device_address(target) != to_device &&
        is_device_address(source) != from_device)
        hint = ", and the source is on the other side: the target comes first";
    if (to_device ? !reaches(target, target_bytes, why, sizeof why)
                  : !is_for_host(target, why, sizeof why))
        return call.fail(cudaErrorInvalidValue, "the target %s%s", why, hint);
    if (from_device ? !reaches(source, source_bytes, why, sizeof why)
                    : !is_for_host(source, why, sizeof why))
        return call.fail(cudaErrorInvalidValue, "the source %s", why);
    return cudaSuccess;
}

// The number of bytes from the first to the last of `height` rows.
static size_t extent(size_t pitch, size_t width, size_t height) {
    return height ? pitch * (height - 1) + width : 0;
}

cudaError_t check(Call& call, const Copy& copy) {
    if (copy.of_symbol) return cudaSuccess;
    const size_t last = copy.depth - 1;
    return check_copy(
        call, copy.target,
        last * copy.target_slice + extent(copy.target_pitch, copy.width, copy.height), copy.source,
        last * copy.source_slice + extent(copy.source_pitch, copy.width, copy.height), copy.kind);
}

static bool is_to_device(const Copy& copy) {
    if (copy.kind != cudaMemcpyDefault) return copy.kind == cudaMemcpyHostToDevice;
    return is_device_address(copy.target) && !is_device_address(copy.source);
}

cudaError_t perform(Call& call, const Copy& copy) {
    if (copy.width == 0 || copy.height == 0 || copy.depth == 0) return cudaSuccess;
    if (cudaError_t error = check(call, copy)) return error;
    Access access(Access::COPY);
    for (size_t slice = 0; slice < copy.depth; ++slice)
        for (size_t row = 0; row < copy.height; ++row) {
            char* target = (char*)copy.target + slice * copy.target_slice + row * copy.target_pitch;
            const char* source =
                (const char*)copy.source + slice * copy.source_slice + row * copy.source_pitch;
            memmove(target, source, copy.width);
            if (kernels_get_other_data && is_to_device(copy))
                change_copied_data(target, source, copy.width);
            memory_read(source, copy.width);
            memory_written(target, copy.width);
        }
    if (!is_device_address(copy.target) && !is_symbol(copy.target)) copied_to_host(call, copy);
    return cudaSuccess;
}

cudaError_t check(Call& call, const Fill& fill) {
    const size_t width = fill.width * fill.element_bytes;
    char why[300];
    if (width && !reaches(fill.target, extent(fill.pitch, width, fill.height), why, sizeof why))
        return call.fail(cudaErrorInvalidValue, "the target %s", why);
    return cudaSuccess;
}
cudaError_t perform(Call& call, const Fill& fill) {
    const size_t width = fill.width * fill.element_bytes;
    if (width == 0 || fill.height == 0) return cudaSuccess;
    if (cudaError_t error = check(call, fill)) return error;
    Access access(Access::COPY);
    for (size_t row = 0; row < fill.height; ++row) {
        char* target = (char*)fill.target + row * fill.pitch;
        if (fill.element_bytes == 1)
            memset(target, (int)fill.value, width);
        else
            for (size_t at = 0; at < width; at += fill.element_bytes)  // the first bytes of value
                memcpy(target + at, &fill.value, fill.element_bytes);
        memory_written(target, width);
    }
    return cudaSuccess;
}

// A call that copies or fills: the checks that need no memory, then the work.
static cudaError_t copy(Call& call, cudaStream_t stream, const Copy& copy) {
    if (cudaError_t error = call.pending()) return error;
    if (copy.height && (copy.width > copy.target_pitch || copy.width > copy.source_pitch))
        return call.fail(cudaErrorInvalidPitchValue, "rows of %zu bytes, pitches of %zu and %zu",
                         copy.width, copy.target_pitch, copy.source_pitch);
    if (copy.width == 0 || copy.height == 0) return cudaSuccess;
    Work work(copy);
    return submit(call, stream, work);
}
static cudaError_t fill(Call& call, cudaStream_t stream, const Fill& fill) {
    if (cudaError_t error = call.pending()) return error;
    if (fill.height && fill.width > fill.pitch)
        return call.fail(cudaErrorInvalidValue, "rows of %zu bytes, a pitch of %zu", fill.width,
                         fill.pitch);
    if (fill.width == 0 || fill.height == 0) return cudaSuccess;
    Work work(fill);
    return submit(call, stream, work);
}

// A copy between a part of a device variable and `other`.
static cudaError_t check_symbol(Call& call, const SymbolPart& part, const void* other,
                                bool on_device) {
    if (!is_symbol(part.address))
        return call.fail(cudaErrorInvalidSymbol,
                         "this is not a __device__ or __constant__ variable");
    if (part.offset > part.size || part.count > part.size - part.offset)
        return call.fail(cudaErrorInvalidValue, "%zu bytes at offset %zu of a variable of %zu",
                         part.count, part.offset, part.size);
    char why[300];
    if (part.count && (on_device ? !reaches(other, part.count, why, sizeof why)
                                 : !is_for_host(other, why, sizeof why)))
        return call.fail(cudaErrorInvalidValue, "the other side of the copy %s", why);
    return cudaSuccess;
}

// `one_way` is the only direction between the host and the symbol that the call may have.
static cudaError_t copy_symbol(Call& call, const SymbolPart& part, const void* other,
                               cudaMemcpyKind one_way, cudaMemcpyKind kind, cudaStream_t stream) {
    if (cudaError_t error = call.pending()) return error;
    if (kind == cudaMemcpyDefault)
        kind = is_device_address(other) ? cudaMemcpyDeviceToDevice : one_way;
    if (kind != one_way && kind != cudaMemcpyDeviceToDevice)
        return call.fail(cudaErrorInvalidMemcpyDirection, "a symbol is device memory");
    if (cudaError_t error = check_symbol(call, part, other, kind == cudaMemcpyDeviceToDevice))
        return error;
    void* symbol = (char*)part.address + part.offset;
    const bool to = one_way == cudaMemcpyHostToDevice;
    return copy(call, stream,
                {to ? symbol : (void*)other, part.count, to ? other : symbol, part.count,
                 part.count, 1, kind, true});
}
cudaError_t copy_to_symbol(const char* name, SymbolPart part, const void* source,
                           cudaMemcpyKind kind, cudaStream_t stream, const char* file, int line) {
    Call call(name, {file, line});
    return copy_symbol(call, part, source, cudaMemcpyHostToDevice, kind, stream);
}
cudaError_t copy_from_symbol(const char* name, void* target, SymbolPart part, cudaMemcpyKind kind,
                             cudaStream_t stream, const char* file, int line) {
    Call call(name, {file, line});
    return copy_symbol(call, part, target, cudaMemcpyDeviceToHost, kind, stream);
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

}  // namespace cudalab

using namespace cudalab;

cudaError_t cudaMemcpy(void* target, const void* source, size_t bytes, cudaMemcpyKind kind,
                       const char* file, int line) {
    Call call("cudaMemcpy", {file, line});
    return copy(call, nullptr, {target, bytes, source, bytes, bytes, 1, kind, false});
}
cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream, const char* file, int line) {
    Call call("cudaMemcpyAsync", {file, line}, Call::ANYWHERE);
    return copy(call, stream, {target, bytes, source, bytes, bytes, 1, kind, false});
}
cudaError_t cudaMemcpy2D(void* target, size_t target_pitch, const void* source, size_t source_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind, const char* file,
                         int line) {
    Call call("cudaMemcpy2D", {file, line});
    return copy(call, nullptr,
                {target, target_pitch, source, source_pitch, width, height, kind, false});
}
cudaError_t cudaMemcpy2DAsync(void* target, size_t target_pitch, const void* source,
                              size_t source_pitch, size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream, const char* file, int line) {
    Call call("cudaMemcpy2DAsync", {file, line}, Call::ANYWHERE);
    return copy(call, stream,
                {target, target_pitch, source, source_pitch, width, height, kind, false});
}

// The byte that a fill takes of a value; each call that gives it more is told of once.
static unsigned byte_of(const Call& call, int value) {
    static SortedMap<bool> told;
    const unsigned byte = (unsigned)value & 0xff;
    bool& known = told[(uintptr_t)call.place.file + (uintptr_t)call.place.line];
    if (known || (value >= -128 && value <= 255)) return byte;
    known = true;
    char text[300];
    snprintf(text, sizeof text, "%s:%d: %s fills each byte with %u, not each number with %d",
             call.place.file, call.place.line, call.name, byte, value);
    report(MessageKind::BYTE_FILL, text);
    return byte;
}

cudaError_t cudaMemset(void* pointer, int value, size_t bytes, const char* file, int line) {
    Call call("cudaMemset", {file, line});
    return fill(call, nullptr, {pointer, bytes, byte_of(call, value), 1, bytes, 1});
}
cudaError_t cudaMemsetAsync(void* pointer, int value, size_t bytes, cudaStream_t stream,
                            const char* file, int line) {
    Call call("cudaMemsetAsync", {file, line}, Call::ANYWHERE);
    return fill(call, stream, {pointer, bytes, byte_of(call, value), 1, bytes, 1});
}
cudaError_t cudaMemset2D(void* pointer, size_t pitch, int value, size_t width, size_t height,
                         const char* file, int line) {
    Call call("cudaMemset2D", {file, line});
    return fill(call, nullptr, {pointer, pitch, byte_of(call, value), 1, width, height});
}
cudaError_t cudaMemset2DAsync(void* pointer, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream, const char* file, int line) {
    Call call("cudaMemset2DAsync", {file, line}, Call::ANYWHERE);
    return fill(call, stream, {pointer, pitch, byte_of(call, value), 1, width, height});
}
