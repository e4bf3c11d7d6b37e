// Memory: the functions of the API that allocate, free and describe it.

#include "allocations.h"
#include "cudalab/judged_run.h"
#include "cudalab/library_access.h"
#include "hints.h"

namespace cudalab {

void keep_accessible(bool on) {
    change_access(on ? 1 : -1, on ? 1 : -1);
}

// ------------------------------------------------------------------ libraries on the host

// What a library does for a grid is done by this thread of the host: a grid of one thread.
static void set_grid(unsigned threads) {
    current.block_dim = current.grid_dim = {threads, threads, threads};
}
bool cudalab_on_device() {
    return cudalab_in_kernel() || current.block_dim.x;
}
cudaError_t open_for_library() {
    if (cudalab_in_kernel()) return cudaSuccess;
    Call call("a library", {});
    wait_for_all_work();
    library_works();
    change_access(1, 0);
    library_writes(true);
    set_grid(1);
    return call.pending();
}
void close_for_library() {
    if (cudalab_in_kernel()) return;
    Call call("a library", {});
    library_writes(false);
    change_access(-1, 0);
    set_grid(0);
}

// ------------------------------------------------------------------ other data

// A course's judge lets kernels see other data than the program gives them, too: an answer that is
// right then was computed elsewhere. Bytes are others again at each launch, and never the old ones.
bool kernels_get_other_data;
CUDALAB_BEFORE_PROGRAM static void look_for_judge() {
    kernels_get_other_data = judged_run() == JudgedRun::WITH_OTHER_DATA;
}
static bool pinned_is_source;  // of copies to the device, from which the host may compute, too

static void change(const void* data, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) ((unsigned char*)data)[i] += 85;
}
void change_copied_data(void* target, const void* source, size_t bytes) {
    change(target, bytes);
    pinned_is_source |= find_allocation(source) != nullptr;
}
// What kernels share with the host.
void change_shared_data() {
    if (!kernels_get_other_data) return;
    const Section& variables = memory.managed;
    change(variables.begin, (size_t)(variables.end - variables.begin));
    for (const auto& each : memory.live) {
        const Kind kind = each.value.kind;
        const bool pinned = kind == Kind::PINNED || kind == Kind::REGISTERED;
        if (kind == Kind::MANAGED || (pinned && !pinned_is_source))
            change((const void*)each.value.begin, each.value.bytes);
    }
}

}  // namespace cudalab

using namespace cudalab;

// ------------------------------------------------------------------ the API

static const size_t PITCH = 512;  // a multiple of it, from one row to the next

cudaError_t cudaMalloc(void** pointer, size_t bytes, const char* file, int line) {
    Call call("cudaMalloc", {file, line}, Call::ANYWHERE);
    if (cudaError_t error = call.pending_or_unsafe()) return error;
    return allocate(call, pointer, bytes);
}

cudaError_t cudaFree(void* pointer, const char* file, int line) {
    Call call("cudaFree", {file, line}, Call::ANYWHERE);
    if (cudaError_t error = call.pending_after_all_work()) return not_released(pointer, error);
    return release(call, pointer, false);
}

cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height,
                            const char* file, int line) {
    Call call("cudaMallocPitch", {file, line});
    if (cudaError_t error = call.pending_or_unsafe()) return error;
    if (!pitch) return call.fail(cudaErrorInvalidValue, "the pointer to the pitch is null");
    *pitch = round_up(width, PITCH);
    return allocate(call, pointer, *pitch * height);
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* pointer, cudaExtent extent, const char* file, int line) {
    Call call("cudaMalloc3D", {file, line});
    if (cudaError_t error = call.pending_or_unsafe()) return error;
    size_t pitch = round_up(extent.width, PITCH);
    *pointer = {nullptr, pitch, extent.width, extent.height};
    return allocate(call, &pointer->ptr, pitch * extent.height * extent.depth);
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned flags, const char* file,
                          int line) {
    Call call("cudaHostAlloc", {file, line});
    if (cudaError_t error = call.pending_or_unsafe()) return error;
    if (flags & ~(cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined))
        return call.fail(cudaErrorInvalidValue, "flags %#x are not known", flags);
    return allocate_shared_with_host(call, pointer, bytes, Kind::PINNED, flags);
}

cudaError_t cudaFreeHost(void* pointer, const char* file, int line) {
    Call call("cudaFreeHost", {file, line});
    if (cudaError_t error = call.pending_after_all_work()) return not_released(pointer, error);
    return release(call, pointer, true);
}

cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned flags, const char* file,
                              int line) {
    Call call("cudaMallocManaged", {file, line});
    if (cudaError_t error = call.pending_or_unsafe()) return error;
    return allocate_shared_with_host(call, pointer, bytes, Kind::MANAGED, flags);
}

cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned flags, const char* file,
                             int line) {
    Call call("cudaHostRegister", {file, line});
    if (cudaError_t error = call.pending_or_unsafe()) return error;
    if (!pointer || !bytes || is_device_address(pointer))
        return call.fail(cudaErrorInvalidValue, "%zu bytes at %p are not host memory", bytes,
                         pointer);
    if (find_in(memory.live, (uintptr_t)pointer, false))
        return call.fail(cudaErrorHostMemoryAlreadyRegistered, "%p is registered", pointer);
    watch_memory(memory.live[(uintptr_t)pointer] = {(uintptr_t)pointer, bytes, Kind::REGISTERED,
                                                    flags, call.place},
                 0);
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* pointer, const char* file, int line) {
    Call call("cudaHostUnregister", {file, line});
    if (cudaError_t error = call.pending_after_all_work()) return error;
    auto found = memory.live.find((uintptr_t)pointer);
    if (found == memory.live.end() || found->value.kind != Kind::REGISTERED)
        return call.fail(cudaErrorHostMemoryNotRegistered, "%p is not registered", pointer);
    unwatch_memory(found->value);
    memory.live.erase(found);
    return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned, const char* file,
                                     int line) {
    Call call("cudaHostGetDevicePointer", {file, line});
    if (cudaError_t error = call.pending()) return error;
    const Allocation* in = find_in(memory.live, (uintptr_t)host, false);
    if (!device || !in || (in->kind != Kind::PINNED && in->kind != Kind::REGISTERED))
        return call.fail(cudaErrorInvalidValue, "%p is not pinned host memory", host);
    *device = host;
    return cudaSuccess;
}

cudaError_t cudaHostGetFlags(unsigned* flags, void* host, const char* file, int line) {
    Call call("cudaHostGetFlags", {file, line});
    if (cudaError_t error = call.pending()) return error;
    const Allocation* in = find_in(memory.live, (uintptr_t)host, false);
    if (!flags || !in || in->kind != Kind::PINNED)
        return call.fail(cudaErrorInvalidValue, "%p is not pinned host memory", host);
    *flags = in->flags | cudaHostAllocMapped;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total, const char* file, int line) {
    Call call("cudaMemGetInfo", {file, line});
    if (cudaError_t error = call.pending()) return error;
    if (free) *free = free_bytes();
    if (total) *total = device_bytes();
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer,
                                     const char* file, int line) {
    Call call("cudaPointerGetAttributes", {file, line});
    if (cudaError_t error = call.pending()) return error;
    if (!attributes) return call.fail(cudaErrorInvalidValue, "the attributes' pointer is null");
    void* address = (void*)pointer;
    const Allocation* in = find_in(memory.live, (uintptr_t)pointer, false);
    if (!in)
        *attributes = {cudaMemoryTypeUnregistered, cudaInvalidDeviceId, nullptr, address};
    else if (in->kind == Kind::DEVICE || in->kind == Kind::VARIABLE)
        *attributes = {cudaMemoryTypeDevice, 0, address, nullptr};
    else if (in->kind == Kind::MANAGED)
        *attributes = {cudaMemoryTypeManaged, 0, address, address};
    else
        *attributes = {cudaMemoryTypeHost, 0, address, address};
    return cudaSuccess;
}
