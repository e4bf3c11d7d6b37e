// Memory pools. The memory is the device's own: a pool only counts it.

#include <stdint.h>
#include <stdlib.h>

#include "order.h"

struct CUmemPoolHandle_st {
    cudalab::MemoryPool counters;
    int reuse[4];  // by cudaMemPoolReuse…: they have no effect
    bool of_device;
};

namespace cudalab {

static cudaMemPool_t add_pool(bool of_device) {
    cudaMemPool_t pool = (cudaMemPool_t)calloc(1, sizeof *pool);
    if (!pool) return nullptr;
    for (int& on : pool->reuse) on = 1;
    pool->of_device = of_device;
    pool->counters.next = memory_pools;
    memory_pools = &pool->counters;
    return pool;
}
static cudaMemPool_t default_pool() {
    static cudaMemPool_t pool = add_pool(true);
    return pool;
}
static cudaMemPool_t chosen;  // by cudaDeviceSetMemPool, or null
static cudaMemPool_t current_pool() {
    return chosen ? chosen : default_pool();
}

static bool is_device(const cudaMemLocation& location) {
    return location.type == cudaMemLocationTypeDevice && location.id == 0;
}
static cudaError_t check_pool(Call& call, cudaMemPool_t pool) {
    if (cudaError_t error = call.pending()) return error;
    for (MemoryPool* each = memory_pools; each; each = each->next)
        if (each == &pool->counters) return cudaSuccess;
    return call.fail(cudaErrorInvalidValue, "%p is not a memory pool", (void*)pool);
}
static cudaError_t check_device(Call& call, const void* pointer, int device) {
    if (cudaError_t error = call.pending()) return error;
    if (device != 0)
        return call.fail(cudaErrorInvalidDevice, "there is only device 0, not %d", device);
    if (!pointer) return call.fail(cudaErrorInvalidValue, "the pointer is null");
    return cudaSuccess;
}

static cudaError_t allocate_from(Call& call, void** pointer, size_t bytes, cudaMemPool_t pool,
                                 cudaStream_t stream) {
    if (!pointer) return call.fail(cudaErrorInvalidValue, "the pointer to the pointer is null");
    Work work(cudaGraphNodeTypeMemAlloc, PoolMemory{nullptr, bytes});
    cudaError_t result;
    if (captures && captures->take(call, stream, work, &result)) {
        *pointer = work.memory.address;
        return result;
    }
    if (cudaError_t error = call.pending_or_unsafe()) return error;
    if (cudaError_t error = allocate(call, pointer, bytes, &pool->counters)) return error;
    pool_gives(*pointer, call.place, stream);
    return cudaSuccess;
}

}  // namespace cudalab

using namespace cudalab;

// ------------------------------------------------------------------ allocations

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream, const char* file,
                            int line) {
    Call call("cudaMallocAsync", {file, line});
    if (cudaError_t error = call.pending()) return error;
    return allocate_from(call, pointer, bytes, current_pool(), stream);
}
cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream, const char* file, int line) {
    Call call("cudaMallocFromPoolAsync", {file, line});
    if (cudaError_t error = check_pool(call, pool)) return error;
    return allocate_from(call, pointer, bytes, pool, stream);
}
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream, const char* file, int line) {
    Call call("cudaFreeAsync", {file, line});
    if (cudaError_t error = call.pending()) return not_released(pointer, error);
    Work work(cudaGraphNodeTypeMemFree, PoolMemory{pointer, 0});
    cudaError_t result;
    if (captures && captures->take(call, stream, work, &result)) return result;
    if (cudaError_t error = call.pending_or_unsafe()) return error;
    pool_takes(pointer, call.place, stream);
    return do_in_order(call, stream, work);
}

// ------------------------------------------------------------------ pools

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties,
                              const char* file, int line) {
    Call call("cudaMemPoolCreate", {file, line});
    if (cudaError_t error = call.pending()) return error;
    if (!pool || !properties) return call.fail(cudaErrorInvalidValue, "a pointer is null");
    if (properties->allocType != cudaMemAllocationTypePinned || !is_device(properties->location))
        return call.fail(cudaErrorInvalidValue,
                         "a pool has memory of cudaMemAllocationTypePinned on device 0");
    if (properties->handleTypes != cudaMemHandleTypeNone)
        return call.fail(cudaErrorNotSupported, "memory cannot be shared with other processes");
    *pool = add_pool(false);
    return *pool ? cudaSuccess : call.fail(cudaErrorMemoryAllocation, "no memory for a pool");
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool, const char* file, int line) {
    Call call("cudaMemPoolDestroy", {file, line});
    if (cudaError_t error = check_pool(call, pool)) return error;
    if (pool->of_device)
        return call.fail(cudaErrorInvalidValue, "the device's own pool cannot be destroyed");
    if (chosen == pool) chosen = nullptr;
    // Its memory may still be in use: the counters stay, but the pool is no longer one of all.
    for (MemoryPool** each = &memory_pools; *each; each = &(*each)->next)
        if (*each == &pool->counters) {
            *each = pool->counters.next;
            break;
        }
    return cudaSuccess;
}

// The counter of an attribute, or null.
static size_t* counter_of(MemoryPool& pool, cudaMemPoolAttr attribute) {
    switch (attribute) {
        case cudaMemPoolAttrReleaseThreshold:
            return &pool.threshold;
        case cudaMemPoolAttrReservedMemCurrent:
            return &pool.reserved;
        case cudaMemPoolAttrReservedMemHigh:
            return &pool.reserved_high;
        case cudaMemPoolAttrUsedMemCurrent:
            return &pool.used;
        case cudaMemPoolAttrUsedMemHigh:
            return &pool.used_high;
        default:
            return nullptr;
    }
}
static bool is_switch(cudaMemPoolAttr attribute) {
    return attribute >= cudaMemPoolReuseFollowEventDependencies &&
           attribute <= cudaMemPoolReuseAllowInternalDependencies;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value,
                                    const char* file, int line) {
    Call call("cudaMemPoolSetAttribute", {file, line});
    if (cudaError_t error = check_pool(call, pool)) return error;
    if (!value) return call.fail(cudaErrorInvalidValue, "the pointer is null");
    MemoryPool& counters = pool->counters;
    const bool is_high =
        attribute == cudaMemPoolAttrReservedMemHigh || attribute == cudaMemPoolAttrUsedMemHigh;
    if (is_switch(attribute)) {
        pool->reuse[attribute] = *(int*)value;
    } else if (attribute == cudaMemPoolAttrReleaseThreshold) {
        counters.threshold = (size_t)*(uint64_t*)value;
    } else if (is_high && *(uint64_t*)value == 0) {
        const bool used = attribute == cudaMemPoolAttrUsedMemHigh;
        *counter_of(counters, attribute) = used ? counters.used : counters.reserved;
    } else {
        return call.fail(cudaErrorInvalidValue, "attribute %d cannot have this value",
                         (int)attribute);
    }
    return cudaSuccess;
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value,
                                    const char* file, int line) {
    Call call("cudaMemPoolGetAttribute", {file, line});
    if (cudaError_t error = check_pool(call, pool)) return error;
    if (!value) return call.fail(cudaErrorInvalidValue, "the pointer is null");
    if (is_switch(attribute))
        *(int*)value = pool->reuse[attribute];
    else if (const size_t* counter = counter_of(pool->counters, attribute))
        *(uint64_t*)value = *counter;
    else
        return call.fail(cudaErrorInvalidValue, "attribute %d is not known", (int)attribute);
    return cudaSuccess;
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes, const char* file, int line) {
    Call call("cudaMemPoolTrimTo", {file, line});
    if (cudaError_t error = check_pool(call, pool)) return error;
    trim(pool->counters, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* descriptions,
                                 size_t count, const char* file, int line) {
    Call call("cudaMemPoolSetAccess", {file, line});
    if (cudaError_t error = check_pool(call, pool)) return error;
    for (size_t i = 0; i < count; ++i) {
        if (!is_device(descriptions[i].location))
            return call.fail(cudaErrorInvalidDevice, "there is only device 0");
        if (descriptions[i].flags != cudaMemAccessFlagsProtReadWrite)
            return call.fail(cudaErrorInvalidDevice, "a device can access its own pools");
    }
    return cudaSuccess;
}
cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool,
                                 cudaMemLocation* location, const char* file, int line) {
    Call call("cudaMemPoolGetAccess", {file, line});
    if (cudaError_t error = check_pool(call, pool)) return error;
    if (!flags || !location) return call.fail(cudaErrorInvalidValue, "a pointer is null");
    *flags = is_device(*location) ? cudaMemAccessFlagsProtReadWrite : cudaMemAccessFlagsProtNone;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device, const char* file,
                                        int line) {
    Call call("cudaDeviceGetDefaultMemPool", {file, line});
    if (cudaError_t error = check_device(call, pool, device)) return error;
    *pool = default_pool();
    return cudaSuccess;
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device, const char* file, int line) {
    Call call("cudaDeviceGetMemPool", {file, line});
    if (cudaError_t error = check_device(call, pool, device)) return error;
    *pool = current_pool();
    return cudaSuccess;
}
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool, const char* file, int line) {
    Call call("cudaDeviceSetMemPool", {file, line});
    if (cudaError_t error = check_device(call, pool, device)) return error;
    if (cudaError_t error = check_pool(call, pool)) return error;
    chosen = pool;
    return cudaSuccess;
}
