// What calls of library functions have in common.

#include "library.h"

#include <stdarg.h>

#include "work.h"

namespace cudalab {

static const size_t UNNOTICED = 256;  // the gap between two allocations: a GPU survives that

bool LibraryCall::uses(const void* at, size_t bytes) {
    if (bytes == 0) return true;
    char why[300], text[500];
    if (const Allocation* in = reaches(at, 1, why, sizeof why) ? find_allocation(at) : nullptr) {
        const size_t left = in->begin + in->bytes - (uintptr_t)at;
        if (bytes <= left) return true;
        snprintf(text, sizeof text,
                 "%s: the memory allocated at %s:%d ends %zu bytes before the "
                 "last that is used",
                 name, in->where().file, in->where().line, bytes - left);
        if (bytes - left <= UNNOTICED) {
            snprintf(why, sizeof why, "%s:%d: %s", place.file, place.line, text);
            report(MessageKind::OVERRUN, why);
            return true;
        }
    } else {
        snprintf(text, sizeof text, "%s: %p %s", name, at, why);
    }
    fail_for_good(cudaErrorIllegalAddress, text);
    return false;
}

bool LibraryCall::is_captured(cudaStream_t stream, const char* library) const {
    if (!stream || stream == cudaStreamLegacy || stream == cudaStreamPerThread || !stream->capture)
        return false;
    fprintf(stderr,
            "cudalab: %s:%d: not supported on the CPU device: %s in a stream that is captured; the "
            "capture has failed\n",
            place.file, place.line, library);
    captures->launch_failed(stream);
    return true;
}

void LibraryCall::explain(const char* status, const char* why, ...) {
    char text[300], message[600];
    va_list values;
    va_start(values, why);
    vsnprintf(text, sizeof text, why, values);
    va_end(values);
    snprintf(message, sizeof message, "%s:%d: %s: %s: %s", place.file, place.line, name, status,
             text);
    report(MessageKind::FAILED_CALL, message);
}

}  // namespace cudalab
