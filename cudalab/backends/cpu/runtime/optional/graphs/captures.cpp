// The capture of streams: their work becomes nodes of a graph.
//
// A captured stream has a front: the nodes that its next work depends on. An event that it records
// remembers the front, and a stream that waits for the event takes part in the capture with it.

#include <pthread.h>

#include "nodes.h"

namespace cudalab {

struct Front {
    CUstream_st* stream;
    List<cudaGraphNode_t> nodes;
};
struct Capture {
    unsigned long long id;
    cudaGraph_t graph;
    CUstream_st* origin;
    pthread_t thread;
    cudaStreamCaptureMode mode;
    bool invalid, is_own_graph;
    unsigned first_node;  // the number of the first node that it made
    List<Front*> fronts;
    List<cudaGraphEdgeData> edges;  // of the last front that the program has read
};
struct CapturedPoint {
    unsigned long long id;  // of the capture
    List<cudaGraphNode_t> nodes;
};

static List<Capture*> active;
static unsigned long long last_id;
static thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

// ------------------------------------------------------------------ fronts

static Front& front_of(Capture& capture, const CUstream_st* stream) {
    for (Front* front : capture.fronts)
        if (front->stream == stream) return *front;
    Front* front = (Front*)calloc(1, sizeof *front);
    front->stream = (CUstream_st*)stream;
    front->stream->capture = &capture;
    capture.fronts.add(front);
    return *front;
}
static void leave(Capture& capture, Front* front) {
    front->stream->capture = nullptr;
    capture.fronts.remove(front);
    front->~Front();
    free(front);
}
static Capture* capture_with(unsigned long long id) {
    for (Capture* capture : active)
        if (capture->id == id) return capture;
    return nullptr;
}

static void invalidate(Capture& capture) {
    capture.invalid = true;
}
static cudaError_t refuse(Call& call, Capture& capture) {
    return call.fail(cudaErrorStreamCaptureInvalidated, "the capture of the stream has failed (%s)",
                     capture.invalid ? "an earlier call was not permitted" : "");
}

// ------------------------------------------------------------------ what is not permitted

// The default stream waits for all blocking streams, so it can have no work while one is captured.
static bool has_blocking_stream(const Capture& capture) {
    for (const Front* front : capture.fronts)
        if (!(front->stream->flags & cudaStreamNonBlocking)) return true;
    return false;
}
static bool has_blocking_stream() {
    for (const Capture* capture : active)
        if (has_blocking_stream(*capture)) return true;
    return false;
}
static bool forbids_legacy(Call& call, cudaError_t* result) {
    if (!has_blocking_stream()) return false;
    for (Capture* capture : active)
        if (has_blocking_stream(*capture)) invalidate(*capture);
    *result = call.fail(cudaErrorStreamCaptureImplicit,
                        "the default stream would wait for a captured one");
    return true;
}
static cudaError_t forbid_unsafe(Call& call) {
    bool any = false;
    for (Capture* capture : active) {
        const bool own = pthread_equal(capture->thread, pthread_self());
        const bool counts = capture->mode == cudaStreamCaptureModeGlobal
                                ? own || thread_mode == cudaStreamCaptureModeGlobal
                                : capture->mode == cudaStreamCaptureModeThreadLocal && own;
        if (!counts || thread_mode == cudaStreamCaptureModeRelaxed) continue;
        any = true;
        invalidate(*capture);
    }
    return any ? call.fail(cudaErrorStreamCaptureUnsupported, "not while a stream is captured")
               : cudaSuccess;
}
static cudaError_t forbid_device(Call& call) {
    for (Capture* capture : active) invalidate(*capture);
    return active.size()
               ? call.fail(cudaErrorStreamCaptureUnsupported, "not while a stream is captured")
               : cudaSuccess;
}
static cudaError_t forbid_stream(Call& call, cudaStream_t stream) {
    if (Capture* capture = object_of(stream).capture) {
        invalidate(*capture);
        return call.fail(cudaErrorStreamCaptureUnsupported, "the stream is captured");
    }
    return forbid_unsafe(call);
}
static cudaError_t forbid_event(Call& call, cudaEvent_t event) {
    if (!event->captured) return forbid_unsafe(call);
    if (Capture* capture = capture_with(event->captured->id)) invalidate(*capture);
    return call.fail(cudaErrorCapturedEvent, "a captured stream recorded the event");
}

// ------------------------------------------------------------------ work becomes nodes

static cudaGraphNode_t add_node(Capture& capture, CUstream_st& stream, const Content& content,
                                Place place) {
    Front& front = front_of(capture, &stream);
    cudaGraphNode_t node = new_node(capture.graph, content, place);
    for (cudaGraphNode_t earlier : front.nodes) connect(earlier, node);
    front.nodes.clear();
    front.nodes.add(node);
    return node;
}

static cudaError_t take_work(Call& call, Capture& capture, CUstream_st& stream, Work& work) {
    Content content = {};
    content.type = work.type;
    switch (work.type) {
        case cudaGraphNodeTypeKernel:
            if (!content.launch.copy(work.kernel))
                return call.fail(cudaErrorMemoryAllocation, "no memory for a node");
            break;
        case cudaGraphNodeTypeMemcpy:
            if (!is_reserved_range(work.copy.target) && !is_reserved_range(work.copy.source))
                if (cudaError_t error = check(call, work.copy)) return error;
            content.copy = work.copy;
            content.copy_params.srcPtr = {(void*)work.copy.source, work.copy.source_pitch,
                                          work.copy.width, work.copy.height};
            content.copy_params.dstPtr = {work.copy.target, work.copy.target_pitch, work.copy.width,
                                          work.copy.height};
            content.copy_params.extent = {work.copy.width, work.copy.height, 1};
            content.copy_params.kind = work.copy.kind;
            break;
        case cudaGraphNodeTypeMemset:
            content.fill = work.fill;
            break;
        case cudaGraphNodeTypeHost:
            content.host = work.host;
            break;
        case cudaGraphNodeTypeMemFree:
            content.memory = work.memory;
            if (cudaError_t error = check_free(call, capture.graph, content.memory)) return error;
            break;
        case cudaGraphNodeTypeMemAlloc:
            content.memory = work.memory;
            break;
        case cudaGraphNodeTypeGraph:
            invalidate(capture);
            return call.fail(cudaErrorStreamCaptureUnsupported,
                             "an instance of a graph cannot be part of another graph");
        default:
            break;
    }
    cudaGraphNode_t node = add_node(capture, stream, content, call.place);
    if (work.type != cudaGraphNodeTypeMemAlloc || work.memory.bytes == 0) return cudaSuccess;
    const cudaError_t error = place_memory(call, node);
    work.memory.address = node->content.memory.address;
    return error;
}

static bool take(Call& call, cudaStream_t stream, Work& work, cudaError_t* result) {
    CUstream_st& object = object_of(stream);
    if (!object.capture) return is_legacy(stream) && forbids_legacy(call, result);
    *result = object.capture->invalid ? refuse(call, *object.capture)
                                      : take_work(call, *object.capture, object, work);
    return true;
}

static void forget(cudaEvent_t event) {
    event->captured->~CapturedPoint();
    free(event->captured);
    event->captured = nullptr;
}
static bool record(Call& call, cudaEvent_t event, cudaStream_t stream, unsigned flags,
                   cudaError_t* result) {
    CUstream_st& object = object_of(stream);
    Capture* capture = object.capture;
    if (!capture && is_legacy(stream) && forbids_legacy(call, result)) return true;
    if (event->captured && !(flags & cudaEventRecordExternal)) forget(event);
    if (!capture) return false;
    *result = cudaSuccess;
    if (capture->invalid) {
        *result = refuse(call, *capture);
    } else if (flags & cudaEventRecordExternal) {
        Content content = {};
        content.type = cudaGraphNodeTypeEventRecord;
        content.event = event;
        add_node(*capture, object, content, call.place);
    } else {
        event->captured = (CapturedPoint*)calloc(1, sizeof *event->captured);
        event->captured->id = capture->id;
        event->captured->nodes.append(front_of(*capture, &object).nodes);
    }
    return true;
}

static bool wait(Call& call, cudaStream_t stream, cudaEvent_t event, unsigned flags,
                 cudaError_t* result) {
    CUstream_st& object = object_of(stream);
    Capture* capture = object.capture;
    Capture* of_event = event->captured ? capture_with(event->captured->id) : nullptr;
    *result = cudaSuccess;
    if (capture && capture->invalid) {
        *result = refuse(call, *capture);
    } else if (flags & cudaEventWaitExternal) {
        if (!capture) return false;
        Content content = {};
        content.type = cudaGraphNodeTypeWaitEvent;
        content.event = event;
        add_node(*capture, object, content, call.place);
    } else if (of_event && capture && of_event != capture) {
        invalidate(*capture);
        invalidate(*of_event);
        *result = call.fail(cudaErrorStreamCaptureMerge, "the event belongs to another capture");
    } else if (of_event && is_legacy(stream)) {
        invalidate(*of_event);
        *result = call.fail(cudaErrorStreamCaptureImplicit,
                            "the default stream would wait for a captured one");
    } else if (of_event) {
        Front& front = front_of(*of_event, &object);
        for (cudaGraphNode_t node : event->captured->nodes) front.nodes.add_new(node);
    } else if (capture && event->recorded) {
        invalidate(*capture);
        *result = call.fail(cudaErrorStreamCaptureIsolation,
                            "the event was recorded outside of the capture");
    } else {
        return capture != nullptr;
    }
    return true;
}

static void launch_failed(cudaStream_t stream) {
    if (Capture* capture = object_of(stream).capture) invalidate(*capture);
}

static void end(Capture& capture) {
    while (capture.fronts.size()) leave(capture, capture.fronts[0]);
    active.remove(&capture);
    capture.~Capture();
    free(&capture);
}
// The stream is destroyed: without the one in which it began a capture cannot end.
static void forget_stream(cudaStream_t stream) {
    Capture& capture = *stream->capture;
    if (capture.origin != stream) {
        leave(capture, &front_of(capture, stream));
        return;
    }
    if (capture.is_own_graph) destroy(capture.graph);
    end(capture);
}

static const Captures functions = {take,         record,        wait,          forbid_stream,
                                   forbid_event, forbid_device, forbid_unsafe, launch_failed,
                                   forget,       forget_stream};

// ------------------------------------------------------------------ the beginning and the end

static cudaError_t begin(Call& call, cudaStream_t stream, cudaStreamCaptureMode mode,
                         cudaGraph_t graph, const cudaGraphNode_t* after, size_t count) {
    if (cudaError_t error = call.pending()) return error;
    if ((unsigned)mode > cudaStreamCaptureModeRelaxed)
        return call.fail(cudaErrorInvalidValue, "%d is not a mode of captures", (int)mode);
    if (is_legacy(stream))
        return call.fail(cudaErrorStreamCaptureUnsupported,
                         "the default stream cannot be captured");
    CUstream_st& object = object_of(stream);
    if (object.capture) return call.fail(cudaErrorIllegalState, "the stream is captured already");
    Capture* capture = (Capture*)calloc(1, sizeof *capture);
    if (!capture) return call.fail(cudaErrorMemoryAllocation, "no memory for a capture");
    capture->id = ++last_id;
    capture->is_own_graph = !graph;
    capture->graph = graph ? graph : new_graph();
    capture->origin = &object;
    capture->thread = pthread_self();
    capture->mode = mode;
    capture->first_node = capture->graph->last_number;
    Front& front = front_of(*capture, &object);
    for (size_t i = 0; i < count; ++i) front.nodes.add(after[i]);
    active.add(capture);
    captures = &functions;
    return cudaSuccess;
}

// Whether every node that nothing depends on is part of the origin's front.
static bool is_joined(Capture& capture) {
    const Front& front = front_of(capture, capture.origin);
    for (cudaGraphNode_t node : capture.graph->nodes)
        if (node->number >= capture.first_node && !node->after.size() && !front.nodes.has(node))
            return false;
    return true;
}
}  // namespace cudalab

using namespace cudalab;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode,
                                   const char* file, int line) {
    Call call("cudaStreamBeginCapture", {file, line});
    return begin(call, stream, mode, nullptr, nullptr, 0);
}
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                          const cudaGraphNode_t* after, const cudaGraphEdgeData*,
                                          size_t count, cudaStreamCaptureMode mode,
                                          const char* file, int line) {
    Call call("cudaStreamBeginCaptureToGraph", {file, line});
    if (!graph || (count && !after)) return call.fail(cudaErrorInvalidValue, "a pointer is null");
    return begin(call, stream, mode, graph, after, count);
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph, const char* file,
                                 int line) {
    Call call("cudaStreamEndCapture", {file, line});
    if (cudaError_t error = call.pending()) return error;
    CUstream_st& object = object_of(stream);
    if (!object.capture) return call.fail(cudaErrorIllegalState, "the stream is not captured");
    Capture& capture = *object.capture;
    if (capture.origin != &object) {
        invalidate(capture);
        return call.fail(cudaErrorStreamCaptureUnmatched, "the capture began in another stream");
    }
    if (capture.mode != cudaStreamCaptureModeRelaxed &&
        !pthread_equal(capture.thread, pthread_self()))
        return call.fail(cudaErrorStreamCaptureWrongThread, "the capture began in another thread");
    cudaError_t error = cudaSuccess;
    if (capture.invalid)
        error = refuse(call, capture);
    else if (!is_joined(capture))
        error =
            call.fail(cudaErrorStreamCaptureUnjoined, "a stream has work that nothing waits for");
    if (graph) *graph = error ? nullptr : capture.graph;
    if (capture.is_own_graph && (error || !graph)) destroy(capture.graph);
    end(capture);
    return error;
}

static cudaStreamCaptureStatus status_of(const Capture* capture) {
    return !capture           ? cudaStreamCaptureStatusNone
           : capture->invalid ? cudaStreamCaptureStatusInvalidated
                              : cudaStreamCaptureStatusActive;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                  const char* file, int line) {
    Call call("cudaStreamIsCapturing", {file, line});
    if (cudaError_t error = call.pending()) return error;
    if (!status) return call.fail(cudaErrorInvalidValue, "the pointer is null");
    if (is_legacy(stream) && has_blocking_stream())
        return call.fail(cudaErrorStreamCaptureImplicit, "a blocking stream is captured");
    *status = status_of(object_of(stream).capture);
    return cudaSuccess;
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** after, const cudaGraphEdgeData** data,
                                     size_t* count, const char* file, int line) {
    if (cudaError_t error = cudaStreamIsCapturing(stream, status, file, line)) return error;
    Call call("cudaStreamGetCaptureInfo", {file, line});
    Capture* capture = object_of(stream).capture;
    if (!capture || capture->invalid) return cudaSuccess;
    const Front& front = front_of(*capture, &object_of(stream));
    while (capture->edges.size() < front.nodes.size()) capture->edges.add({});
    if (id) *id = capture->id;
    if (graph) *graph = capture->graph;
    if (after) *after = front.nodes.begin();
    if (data) *data = capture->edges.begin();
    if (count) *count = front.nodes.size();
    return cudaSuccess;
}
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* nodes,
                                                const cudaGraphEdgeData*, size_t count,
                                                unsigned flags, const char* file, int line) {
    Call call("cudaStreamUpdateCaptureDependencies", {file, line});
    if (cudaError_t error = call.pending()) return error;
    Capture* capture = object_of(stream).capture;
    if (!capture) return call.fail(cudaErrorIllegalState, "the stream is not captured");
    if (flags > cudaStreamSetCaptureDependencies || (count && !nodes))
        return call.fail(cudaErrorInvalidValue, "flags %#x", flags);
    Front& front = front_of(*capture, &object_of(stream));
    if (flags == cudaStreamSetCaptureDependencies) front.nodes.clear();
    for (size_t i = 0; i < count; ++i) front.nodes.add_new(nodes[i]);
    return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode, const char* file,
                                                int line) {
    Call call("cudaThreadExchangeStreamCaptureMode", {file, line});
    if (cudaError_t error = call.pending()) return error;
    if (!mode || (unsigned)*mode > cudaStreamCaptureModeRelaxed)
        return call.fail(cudaErrorInvalidValue, "this is not a mode of captures");
    const cudaStreamCaptureMode before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return cudaSuccess;
}
