// Hints about managed memory: they have no effect, since there is only one managed memory, but a
// program can read them. Part of memory.cpp.
#pragma once

#include "addresses.h"

using namespace cudalab;

static cudaError_t find_managed(Call& call, const void* pointer, size_t bytes, Hints** hints) {
    static Hints of_variables;
    if (cudaError_t error = call.pending()) return error;
    *hints = &of_variables;
    if (is_in(memory.managed, pointer)) return cudaSuccess;
    Allocation* in = (Allocation*)find_in(memory.live, (uintptr_t)pointer, false);
    if (!in || in->kind != Kind::MANAGED || bytes > in->begin + in->bytes - (uintptr_t)pointer)
        return call.fail(cudaErrorInvalidValue, "%zu bytes at %p are not managed memory", bytes,
                         pointer);
    *hints = &in->hints;
    return cudaSuccess;
}
static int number_of(cudaMemLocation location) {
    return location.type == cudaMemLocationTypeDevice ? location.id
           : location.type == cudaMemLocationTypeNone ? cudaInvalidDeviceId
                                                      : cudaCpuDeviceId;
}
cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, int device, cudaStream_t,
                                 const char* file, int line) {
    Call call("cudaMemPrefetchAsync", {file, line});
    Hints* hints;
    if (cudaError_t error = find_managed(call, pointer, bytes, &hints)) return error;
    if (device != 0 && device != cudaCpuDeviceId)
        return call.fail(cudaErrorInvalidDevice, "there is only device 0, not %d", device);
    hints->prefetched = device;
    return cudaSuccess;
}
cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, cudaMemLocation location,
                                 unsigned, cudaStream_t stream, const char* file, int line) {
    return cudaMemPrefetchAsync(pointer, bytes, number_of(location), stream, file, line);
}
cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, cudaMemoryAdvise advice, int device,
                          const char* file, int line) {
    Call call("cudaMemAdvise", {file, line});
    Hints* hints;
    if (cudaError_t error = find_managed(call, pointer, bytes, &hints)) return error;
    switch (advice) {
        case cudaMemAdviseSetReadMostly:
        case cudaMemAdviseUnsetReadMostly:
            hints->read_mostly = advice == cudaMemAdviseSetReadMostly;
            return cudaSuccess;
        case cudaMemAdviseSetPreferredLocation:
            hints->preferred = device;
            return cudaSuccess;
        case cudaMemAdviseUnsetPreferredLocation:
            hints->preferred = cudaInvalidDeviceId;
            return cudaSuccess;
        case cudaMemAdviseSetAccessedBy:
            hints->accessed_by = device;
            return cudaSuccess;
        case cudaMemAdviseUnsetAccessedBy:
            hints->accessed_by = cudaInvalidDeviceId;
            return cudaSuccess;
    }
    return call.fail(cudaErrorInvalidValue, "%d is not a piece of advice", (int)advice);
}
cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, cudaMemoryAdvise advice,
                          cudaMemLocation location, const char* file, int line) {
    return cudaMemAdvise(pointer, bytes, advice, number_of(location), file, line);
}

cudaError_t cudaMemRangeGetAttribute(void* data, size_t size, cudaMemRangeAttribute attribute,
                                     const void* pointer, size_t bytes, const char* file,
                                     int line) {
    Call call("cudaMemRangeGetAttribute", {file, line});
    Hints* hints;
    if (cudaError_t error = find_managed(call, pointer, bytes, &hints)) return error;
    if (!data || size < sizeof(int) || size % sizeof(int))
        return call.fail(cudaErrorInvalidValue, "%zu bytes for the attribute", size);
    int* values = (int*)data;
    switch (attribute) {
        case cudaMemRangeAttributeReadMostly:
            *values = hints->read_mostly;
            return cudaSuccess;
        case cudaMemRangeAttributePreferredLocation:
            *values = hints->preferred;
            return cudaSuccess;
        case cudaMemRangeAttributeLastPrefetchLocation:
            *values = hints->prefetched;
            return cudaSuccess;
        case cudaMemRangeAttributeAccessedBy:
            for (size_t i = 0; i < size / sizeof(int); ++i)
                values[i] = i == 0 ? hints->accessed_by : (int)cudaInvalidDeviceId;
            return cudaSuccess;
        default:
            return call.fail(cudaErrorInvalidValue, "attribute %d is not known", (int)attribute);
    }
}
cudaError_t cudaMemRangeGetAttributes(void** data, size_t* sizes, cudaMemRangeAttribute* attributes,
                                      size_t count, const void* pointer, size_t bytes,
                                      const char* file, int line) {
    cudaError_t error = cudaSuccess;
    for (size_t i = 0; i < count && !error; ++i)
        error =
            cudaMemRangeGetAttribute(data[i], sizes[i], attributes[i], pointer, bytes, file, line);
    return error;
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* pointer, size_t bytes,
                                     unsigned flags, const char* file, int line) {
    Call call("cudaStreamAttachMemAsync", {file, line});
    Hints* hints;
    if (cudaError_t error = find_managed(call, pointer, bytes, &hints)) return error;
    if (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost && flags != cudaMemAttachSingle)
        return call.fail(cudaErrorInvalidValue, "flags %#x are not one of the three", flags);
    if (flags == cudaMemAttachSingle && !stream)
        return call.fail(cudaErrorInvalidValue, "the default stream cannot own memory");
    return cudaSuccess;
}
