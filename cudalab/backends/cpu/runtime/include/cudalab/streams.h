// Streams and events. Work is done in order, at the time of the call, unless its stream is
// captured.
#pragma once

#include "launch.h"

#pragma GCC visibility push(default)

namespace cudalab {
// The error for work of a captured stream that graphs do not have here.
cudaError_t check_uncaptured(const char* name, cudaStream_t stream, const char* file, int line);
}  // namespace cudalab

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority,
                                         CUDALAB_HERE);
inline cudaError_t cudaStreamCreate(cudaStream_t* stream, CUDALAB_HERE) {
    return cudaStreamCreateWithPriority(stream, 0, 0, file, line);
}
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags, CUDALAB_HERE) {
    return cudaStreamCreateWithPriority(stream, flags, 0, file, line);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream, CUDALAB_HERE);
cudaError_t cudaStreamSynchronize(cudaStream_t stream, CUDALAB_HERE);
cudaError_t cudaStreamQuery(cudaStream_t stream, CUDALAB_HERE);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0,
                                CUDALAB_HERE);
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                  unsigned flags, CUDALAB_HERE);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data,
                               CUDALAB_HERE);
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority, CUDALAB_HERE);
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags, CUDALAB_HERE);
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id, CUDALAB_HERE);
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device, CUDALAB_HERE);
cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaStreamAttrID attribute,
                                   cudaStreamAttrValue* value, CUDALAB_HERE);
cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaStreamAttrID attribute,
                                   const cudaStreamAttrValue* value, CUDALAB_HERE);
cudaError_t cudaStreamCopyAttributes(cudaStream_t target, cudaStream_t source, CUDALAB_HERE);
cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* pointer, size_t bytes,
                                     unsigned flags, CUDALAB_HERE);
template <class T>
inline cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, T* pointer, size_t bytes = 0,
                                            unsigned flags = cudaMemAttachSingle, CUDALAB_HERE) {
    return cudaStreamAttachMemAsync(stream, (void*)pointer, bytes, flags, file, line);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags, CUDALAB_HERE);
inline cudaError_t cudaEventCreate(cudaEvent_t* event, unsigned flags = 0, CUDALAB_HERE) {
    return cudaEventCreateWithFlags(event, flags, file, line);
}
cudaError_t cudaEventDestroy(cudaEvent_t event, CUDALAB_HERE);
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags,
                                     CUDALAB_HERE);
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr, CUDALAB_HERE) {
    return cudaEventRecordWithFlags(event, stream, 0, file, line);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event, CUDALAB_HERE);
cudaError_t cudaEventQuery(cudaEvent_t event, CUDALAB_HERE);
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t stop, CUDALAB_HERE);

#pragma GCC visibility pop
