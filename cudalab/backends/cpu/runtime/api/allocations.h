// Allocating and freeing memory of the device and of the host, for pools and graphs too. Part of
// memory.cpp.
#pragma once

#include <string.h>

#include "addresses.h"

namespace cudalab {

static const size_t ALIGNMENT = 512, GAP = 256;

// ------------------------------------------------------------------ pools

MemoryPool* memory_pools;
static const size_t CHUNK = 32 << 20;  // a pool reserves memory in pieces of this size, as on a GPU

static void count(MemoryPool* pool, size_t added, size_t removed) {
    if (!pool) return;
    pool->used = pool->used + added - removed;
    const size_t needed = round_up(pool->used, CHUNK);
    if (pool->reserved < needed) pool->reserved = needed;
    if (pool->used_high < pool->used) pool->used_high = pool->used;
    if (pool->reserved_high < pool->reserved) pool->reserved_high = pool->reserved;
}
void trim(MemoryPool& pool, size_t bytes) {
    const size_t needed = round_up(pool.used > bytes ? pool.used : bytes, CHUNK);
    if (needed < pool.reserved) pool.reserved = needed;
}
void keep_to_thresholds() {
    for (MemoryPool* pool = memory_pools; pool; pool = pool->next)
        if (pool->reserved > pool->threshold) trim(*pool, 0);
}

// ------------------------------------------------------------------ allocations

static size_t with_gap(size_t bytes) {
    return round_up(bytes + GAP, ALIGNMENT);
}

cudaError_t allocate(Call& call, void** pointer, size_t bytes, MemoryPool* pool) {
    if (!pointer) return call.fail(cudaErrorInvalidValue, "the pointer to the pointer is null");
    *pointer = nullptr;
    if (bytes == 0 && call.of_kernel) return call.fail(cudaErrorInvalidValue, "no bytes");
    if (bytes == 0) return cudaSuccess;
    size_t needed = with_gap(bytes);
    if (needed < bytes || !reserve_arena() || needed > memory.size - memory.used)
        return call.fail(cudaErrorMemoryAllocation,
                         "%zu bytes requested, but %zu of the device's %zu are free", bytes,
                         free_bytes(), device_bytes());
    uintptr_t begin = take(needed);
    if (!begin)
        return call.fail(cudaErrorMemoryAllocation,
                         "%zu bytes requested, but no free range is that long", bytes);
    memory.used += needed;
    auto stale = memory.freed.lower_bound(begin);
    if (stale != memory.freed.begin()) --stale;
    while (stale != memory.freed.end() && stale->key < begin + needed)
        stale = stale->key + stale->value.bytes > begin ? memory.freed.erase(stale) : stale + 1;
    watch_memory(memory.live[begin] = {begin, bytes, Kind::DEVICE, 0, call.place, {}, pool}, GAP);
    count(pool, bytes, 0);
    *pointer = (void*)begin;
    return cudaSuccess;
}

// ------------------------------------------------------------------ memory of graphs

static SortedMap<size_t>& reserved() {  // addresses of graphs, and their bytes
    static SortedMap<size_t> ranges;
    return ranges;
}
void* reserve(size_t bytes) {
    if (!reserve_arena() || with_gap(bytes) < bytes) return nullptr;
    const uintptr_t begin = take(with_gap(bytes));
    if (begin) reserved()[begin] = bytes;
    return (void*)begin;
}
void unreserve(void* address, size_t bytes) {
    reserved().erase(reserved().find((uintptr_t)address));
    auto found = memory.live.find((uintptr_t)address);
    if (found == memory.live.end()) {
        give_back((uintptr_t)address, with_gap(bytes));
    } else {  // freeing it gives back the addresses
        memory.used += with_gap(bytes);
    }
}
cudaError_t allocate_reserved(Call& call, void* address, size_t bytes) {
    if (is_live(address)) return call.fail(cudaErrorInvalidValue, "%p is still allocated", address);
    auto stale = memory.freed.find((uintptr_t)address);
    if (stale != memory.freed.end()) memory.freed.erase(stale);
    Allocation& made = memory.live[(uintptr_t)address];
    made = {(uintptr_t)address, bytes, Kind::DEVICE, 0, call.place};
    made.of_graph = true;
    watch_memory(made, GAP);
    return cudaSuccess;
}
bool is_reserved(const void* address) {
    return reserved().find((uintptr_t)address) != reserved().end();
}
bool is_reserved_range(const void* address) {
    const auto next = reserved().upper_bound((uintptr_t)address);
    return next != reserved().begin() && (uintptr_t)address - next[-1].key < next[-1].value;
}
bool is_live(const void* address) {
    return memory.live.find((uintptr_t)address) != memory.live.end();
}
size_t live_of_graphs() {
    size_t bytes = 0;
    for (const auto& each : memory.live)
        if (each.value.of_graph) bytes += each.value.bytes;
    return bytes;
}

// ------------------------------------------------------------------ memory of the host

static cudaError_t allocate_shared_with_host(Call& call, void** pointer, size_t bytes, Kind kind,
                                             unsigned flags) {
    if (!pointer) return call.fail(cudaErrorInvalidValue, "the pointer to the pointer is null");
    *pointer = nullptr;
    if (bytes == 0) return cudaSuccess;
    char* pages = nullptr;  // a page before it and a gap behind it keep overruns from the heap
    if (bytes > SIZE_MAX / 2 ||
        posix_memalign((void**)&pages, PAGE, PAGE + round_up(bytes + GAP, PAGE)) != 0)
        return call.fail(cudaErrorMemoryAllocation, "%zu bytes requested", bytes);
    *pointer = pages + PAGE;
    if (kind == Kind::MANAGED) memset(*pointer, 0, bytes);
    uintptr_t begin = (uintptr_t)*pointer;
    watch_memory(memory.live[begin] = {begin, bytes, kind, flags, call.place}, 0);
    return cudaSuccess;
}

cudaError_t release(Call& call, void* pointer, bool pinned) {
    if (!pointer) return cudaSuccess;
    auto found = memory.live.find((uintptr_t)pointer);
    if (found == memory.live.end()) {
        auto freed = memory.freed.find((uintptr_t)pointer);
        if (freed != memory.freed.end())
            return call.fail(cudaErrorInvalidValue, "freed twice: allocated at %s:%d",
                             freed->value.where().file, freed->value.where().line);
        return call.fail(cudaErrorInvalidValue, "%p is not what an allocation returned", pointer);
    }
    Allocation freed = found->value;
    bool is_pinned = freed.kind == Kind::PINNED;
    if (freed.kind == Kind::VARIABLE || freed.kind == Kind::REGISTERED || is_pinned != pinned)
        return call.fail(cudaErrorInvalidValue, "the memory allocated at %s:%d is %s",
                         freed.where().file, freed.where().line,
                         is_pinned ? "pinned: it is freed by cudaFreeHost"
                                   : "not pinned: it is freed by cudaFree");
    memory.live.erase(found);
    unwatch_memory(freed);
    if (freed.kind != Kind::DEVICE) {
        free((char*)pointer - PAGE);
        return cudaSuccess;
    }
    if (is_reserved(pointer)) {
        memory.freed[freed.begin] = freed;
        return cudaSuccess;
    }
    size_t bytes = with_gap(freed.bytes);
    memory.used -= bytes;
    count(freed.pool, 0, freed.bytes);
    uintptr_t first = round_up(freed.begin, HUGE_PAGE);
    uintptr_t last = (freed.begin + bytes) / HUGE_PAGE * HUGE_PAGE;
    if (last > first) madvise((void*)first, last - first, MADV_DONTNEED);
    give_back(freed.begin, bytes);
    memory.freed[freed.begin] = freed;
    return cudaSuccess;
}

cudaError_t not_released(const void* pointer, cudaError_t error) {
    const auto found = memory.live.find((uintptr_t)pointer);
    if (found != memory.live.end()) found->value.is_given_back = true;
    return error;
}

void free_all() {
    for (auto next = memory.live.begin(); next != memory.live.end();) {
        const Allocation& each = next->value;
        if (each.kind == Kind::VARIABLE || each.kind == Kind::REGISTERED) {
            ++next;
            continue;
        }
        Call call("cudaDeviceReset", each.place);
        release(call, (void*)next->key, each.kind == Kind::PINNED);  // `next` is now the one behind
    }
}

void tell_leaks() {
    for (const auto& each : memory.live) {
        const Allocation& left = each.value;
        if (left.kind == Kind::VARIABLE || left.kind == Kind::REGISTERED) continue;
        if (left.is_given_back) continue;
        char text[400];
        snprintf(text, sizeof text, "%s:%d: %zu bytes of %s memory are never freed",
                 left.where().file, left.where().line, left.bytes,
                 left.kind == Kind::DEVICE    ? "device"
                 : left.kind == Kind::MANAGED ? "managed"
                                              : "pinned");
        report(MessageKind::LEAK, text);
    }
}

void name_variable(const void* address, size_t bytes, Place place) {
    memory.live[(uintptr_t)address] = {(uintptr_t)address, bytes, Kind::VARIABLE, 0, place};
}

}  // namespace cudalab
