// Streams and events.

#include <stdlib.h>
#include <time.h>

#include "order.h"

namespace cudalab {

const Captures* captures;

static const int URGENT = -5;  // the greatest priority, as on a GPU

static cudaError_t succeed(const char* name, Place place) {
    return Call(name, place).pending();
}
bool is_legacy(cudaStream_t stream) {
    return !stream || stream == cudaStreamLegacy;
}
static bool is_default(cudaStream_t stream) {
    return is_legacy(stream) || stream == cudaStreamPerThread;
}
CUstream_st& object_of(cudaStream_t stream) {
    static CUstream_st legacy = {0, 0, 1, {}, nullptr};
    static thread_local CUstream_st of_thread = {0, 0, 2, {}, nullptr};
    return is_legacy(stream) ? legacy : stream == cudaStreamPerThread ? of_thread : *stream;
}

// ------------------------------------------------------------------ the order of work

cudaError_t submit(Call& call, cudaStream_t stream, Work& work) {
    if (call.of_kernel) return add_child(call, stream, work);
    cudaError_t result;
    if (captures && captures->take(call, stream, work, &result)) return result;
    const Ordered ordered(call.name, call.place, stream, work);
    return do_in_order(call, stream, work);
}
cudaError_t perform(Call& call, const Work& work) {
    switch (work.type) {
        case cudaGraphNodeTypeMemcpy:
            return perform(call, work.copy);
        case cudaGraphNodeTypeMemset:
            return perform(call, work.fill);
        case cudaGraphNodeTypeKernel:
            return perform(call, work.kernel);
        case cudaGraphNodeTypeMemFree:
            return release(call, work.memory.address, false);
        default:
            return cudaSuccess;
    }
}

// The children of a block are done in the order in which it submits them, whatever their streams:
// in a kernel there is no need to record an event, and nothing to wait for.
cudaError_t record_event(Call& call, cudaEvent_t event, cudaStream_t stream, unsigned flags) {
    if (call.of_kernel) return cudaSuccess;
    cudaError_t result;
    if (captures && captures->record(call, event, stream, flags, &result)) return result;
    if (flags & cudaEventRecordExternal)
        return call.fail(cudaErrorIllegalState, "the stream is not captured");
    event_recorded(event, stream);
    if (has_work(stream))
        record_later(event, stream);
    else
        record_now(event);
    return cudaSuccess;
}
void record_now(cudaEvent_t event) {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    event->ms = (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
    event->recorded = true;
    event->task = 0;
}
cudaError_t check_uncaptured(const char* name, cudaStream_t stream, const char* file, int line) {
    Call call(name, {file, line});
    return captures && object_of(stream).capture
               ? call.fail(cudaErrorNotSupported, "graphs do not have copies of boxes and arrays")
               : cudaSuccess;
}
cudaError_t wait_for_event(Call& call, cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    if (call.of_kernel) return cudaSuccess;
    cudaError_t result;
    if (captures && captures->wait(call, stream, event, flags, &result)) return result;
    if (flags & cudaEventWaitExternal)
        return call.fail(cudaErrorIllegalState, "the stream is not captured");
    if (!is_done(event)) wait_later(stream, event);
    event_awaited(stream, event);
    return cudaSuccess;
}

}  // namespace cudalab

using namespace cudalab;

// ------------------------------------------------------------------ streams

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority,
                                         const char* file, int line) {
    Call call("cudaStreamCreate", {file, line}, Call::ANYWHERE);
    if (cudaError_t error = call.pending()) return error;
    if (!stream) return call.fail(cudaErrorInvalidValue, "the pointer is null");
    if (flags & ~cudaStreamNonBlocking)
        return call.fail(cudaErrorInvalidValue, "flags %#x are not known", flags);
    *stream = (cudaStream_t)malloc(sizeof **stream);
    if (!*stream) return call.fail(cudaErrorMemoryAllocation, "no memory for a stream");
    static unsigned long long last_id = 2;
    priority = priority < URGENT ? URGENT : priority > 0 ? 0 : priority;
    **stream = {flags, priority, ++last_id, {}, nullptr};
    stream_made(*stream, call.place);
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream, const char* file, int line) {
    Call call("cudaStreamDestroy", {file, line}, Call::ANYWHERE);
    if (cudaError_t error = call.pending()) return error;
    if (is_default(stream))
        return call.fail(cudaErrorInvalidResourceHandle, "the default stream cannot be destroyed");
    if (stream->capture) captures->forget_stream(stream);
    stream_destroyed(stream);
    free(stream);
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream, const char* file, int line) {
    Call call("cudaStreamSynchronize", {file, line});
    if (cudaError_t error = call.pending_for_host()) return error;
    if (captures)
        if (cudaError_t error = captures->forbid_stream(call, stream)) return error;
    wait_for_work(stream);
    keep_to_thresholds();
    host_waits(stream);
    return call.pending();
}
cudaError_t cudaStreamQuery(cudaStream_t stream, const char* file, int line) {
    Call call("cudaStreamQuery", {file, line});
    if (cudaError_t error = call.pending_for_host()) return error;
    if (captures)
        if (cudaError_t error = captures->forbid_stream(call, stream)) return error;
    if (is_busy(stream)) return cudaErrorNotReady;
    host_waits(stream);
    return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags,
                                const char* file, int line) {
    Call call("cudaStreamWaitEvent", {file, line}, Call::ANYWHERE);
    if (cudaError_t error = call.pending()) return error;
    if (!event) return call.fail(cudaErrorInvalidResourceHandle, "the event is null");
    if (flags & ~cudaEventWaitExternal)
        return call.fail(cudaErrorInvalidValue, "flags %#x are not known", flags);
    return wait_for_event(call, stream, event, flags);
}
namespace {
struct Callback {
    cudaStream_t stream;
    cudaStreamCallback_t function;
    void* data;
};
void call_back(void* callback) {
    const Callback own = *(Callback*)callback;
    free(callback);
    own.function(own.stream, cudaSuccess, own.data);
}
}  // namespace
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                  unsigned, const char* file, int line) {
    {
        Call call("cudaStreamAddCallback", {file, line});
        if (cudaError_t error = call.pending()) return error;
        if (captures)
            if (cudaError_t error = captures->forbid_stream(call, stream)) return error;
    }
    {
        Call call("cudaStreamAddCallback", {file, line});
        if (has_work(stream)) {
            Callback* later = (Callback*)malloc(sizeof *later);
            if (!later) return call.fail(cudaErrorMemoryAllocation, "no memory for a callback");
            *later = {stream, callback, data};
            return do_in_order(call, stream, HostCall{call_back, later});
        }
    }
    const Work work(HostCall{});
    const Ordered ordered("cudaStreamAddCallback", {file, line}, stream, work);
    callback(stream, cudaSuccess, data);
    return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data,
                               const char* file, int line) {
    Work work(HostCall{function, data});
    {
        Call call("cudaLaunchHostFunc", {file, line});
        if (cudaError_t error = call.pending()) return error;
        if (!function) return call.fail(cudaErrorInvalidValue, "the function is null");
        cudaError_t result;
        if (captures && captures->take(call, stream, work, &result)) return result;
        if (has_work(stream)) return do_in_order(call, stream, work);
    }
    const Ordered ordered("cudaLaunchHostFunc", {file, line}, stream, work);
    function(data);  // it may wait for another thread that calls the API
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest, const char* file,
                                             int line) {
    if (least) *least = 0;
    if (greatest) *greatest = URGENT;
    return succeed("cudaDeviceGetStreamPriorityRange", {file, line});
}
// Reads a property of a stream.
template <class T, class Read>
static cudaError_t read(const char* name, Place place, T* value, Read property) {
    Call call(name, place);
    if (cudaError_t error = call.pending()) return error;
    if (!value) return call.fail(cudaErrorInvalidValue, "the pointer is null");
    *value = property();
    return cudaSuccess;
}
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority, const char* file, int line) {
    return read("cudaStreamGetPriority", {file, line}, priority,
                [&] { return object_of(stream).priority; });
}
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags, const char* file, int line) {
    return read("cudaStreamGetFlags", {file, line}, flags, [&] { return object_of(stream).flags; });
}
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id, const char* file,
                            int line) {
    return read("cudaStreamGetId", {file, line}, id, [&] { return object_of(stream).id; });
}
cudaError_t cudaStreamGetDevice(cudaStream_t, int* device, const char* file, int line) {
    return read("cudaStreamGetDevice", {file, line}, device, [] { return 0; });
}

// Attributes are hints: they are kept, and have no effect.
static cudaError_t check_attribute(Call& call, cudaStreamAttrID attribute, const void* value) {
    if (cudaError_t error = call.pending()) return error;
    if (!value) return call.fail(cudaErrorInvalidValue, "the pointer is null");
    if (attribute != cudaStreamAttributeAccessPolicyWindow &&
        attribute != cudaStreamAttributeSynchronizationPolicy &&
        attribute != cudaStreamAttributePriority)
        return call.fail(cudaErrorInvalidValue, "attribute %d is not one of streams",
                         (int)attribute);
    return cudaSuccess;
}
cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaStreamAttrID attribute,
                                   cudaStreamAttrValue* value, const char* file, int line) {
    Call call("cudaStreamGetAttribute", {file, line});
    if (cudaError_t error = check_attribute(call, attribute, value)) return error;
    *value = {};
    if (attribute == cudaStreamAttributeAccessPolicyWindow)
        value->accessPolicyWindow = object_of(stream).window;
    else if (attribute == cudaStreamAttributePriority)
        value->priority = object_of(stream).priority;
    else
        value->syncPolicy = cudaSyncPolicyAuto;
    return cudaSuccess;
}
cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaStreamAttrID attribute,
                                   const cudaStreamAttrValue* value, const char* file, int line) {
    Call call("cudaStreamSetAttribute", {file, line});
    if (cudaError_t error = check_attribute(call, attribute, value)) return error;
    const cudaAccessPolicyWindow& window = value->accessPolicyWindow;
    if (attribute == cudaStreamAttributeAccessPolicyWindow) {
        if (!(window.hitRatio >= 0 && window.hitRatio <= 1))
            return call.fail(cudaErrorInvalidValue, "a hit ratio of %g", (double)window.hitRatio);
        if (!is_default(stream)) stream->window = window;
    } else if (attribute == cudaStreamAttributePriority && !is_default(stream)) {
        stream->priority = value->priority;
    }
    return cudaSuccess;
}
cudaError_t cudaStreamCopyAttributes(cudaStream_t target, cudaStream_t source, const char* file,
                                     int line) {
    Call call("cudaStreamCopyAttributes", {file, line});
    if (cudaError_t error = call.pending()) return error;
    if (!is_default(target)) target->window = object_of(source).window;
    return cudaSuccess;
}
cudaError_t cudaCtxResetPersistingL2Cache(const char* file, int line) {
    return succeed("cudaCtxResetPersistingL2Cache", {file, line});
}

// ------------------------------------------------------------------ events: the host's clock

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags, const char* file,
                                     int line) {
    Call call("cudaEventCreate", {file, line}, Call::ANYWHERE);
    if (cudaError_t error = call.pending()) return error;
    if (!event) return call.fail(cudaErrorInvalidValue, "the pointer is null");
    if (flags & ~(cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess))
        return call.fail(cudaErrorInvalidValue, "flags %#x are not known", flags);
    if (call.of_kernel && !(flags & cudaEventDisableTiming))
        return call.fail(cudaErrorInvalidValue, "events of kernels have no time");
    *event = (cudaEvent_t)malloc(sizeof **event);
    if (!*event) return call.fail(cudaErrorMemoryAllocation, "no memory for an event");
    **event = {flags, false, 0, nullptr, 0};
    return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event, const char* file, int line) {
    Call call("cudaEventDestroy", {file, line}, Call::ANYWHERE);
    if (cudaError_t error = call.pending()) return error;
    if (!event) return call.fail(cudaErrorInvalidResourceHandle, "the event is null");
    if (event->captured) captures->forget(event);
    forget_in_background(event);
    event_destroyed(event);
    free(event);
    return cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags,
                                     const char* file, int line) {
    Call call("cudaEventRecord", {file, line}, Call::ANYWHERE);
    if (cudaError_t error = call.pending()) return error;
    if (!event) return call.fail(cudaErrorInvalidResourceHandle, "the event is null");
    if (flags & ~cudaEventRecordExternal)
        return call.fail(cudaErrorInvalidValue, "flags %#x are not known", flags);
    return record_event(call, event, stream, flags);
}
static cudaError_t check_event(Call& call, cudaEvent_t event) {
    if (cudaError_t error = call.pending_for_host()) return error;
    if (!event) return call.fail(cudaErrorInvalidResourceHandle, "the event is null");
    if (captures)
        if (cudaError_t error = captures->forbid_event(call, event)) return error;
    return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event, const char* file, int line) {
    Call call("cudaEventSynchronize", {file, line});
    if (cudaError_t error = check_event(call, event)) return error;
    wait_for_event_of_work(event);
    host_waits(event);
    keep_to_thresholds();
    return call.pending();
}
cudaError_t cudaEventQuery(cudaEvent_t event, const char* file, int line) {
    Call call("cudaEventQuery", {file, line});
    if (cudaError_t error = check_event(call, event)) return error;
    if (!is_done(event)) return cudaErrorNotReady;
    host_waits(event);
    keep_to_thresholds();
    return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t stop, const char* file,
                                 int line) {
    Call call("cudaEventElapsedTime", {file, line});
    if (cudaError_t error = call.pending()) return error;
    if (!start || !stop) return call.fail(cudaErrorInvalidResourceHandle, "an event is null");
    if ((start->flags | stop->flags) & cudaEventDisableTiming)
        return call.fail(cudaErrorInvalidResourceHandle, "an event was created without timing");
    if (!start->recorded || !stop->recorded)
        return call.fail(cudaErrorInvalidResourceHandle, "an event was never recorded");
    if (!is_done(start) || !is_done(stop)) return cudaErrorNotReady;
    time_is_read(call, start);
    time_is_read(call, stop);
    *ms = (float)(stop->ms - start->ms);
    return cudaSuccess;
}
