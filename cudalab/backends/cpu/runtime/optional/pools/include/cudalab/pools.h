// Memory pools: memory that is allocated and freed in the order of a stream.
#pragma once

#include "cudalab/launch.h"

typedef struct CUmemPoolHandle_st* cudaMemPool_t;

enum cudaMemAllocationType {
    cudaMemAllocationTypeInvalid = 0,
    cudaMemAllocationTypePinned = 1,
    cudaMemAllocationTypeManaged = 2,
};
enum cudaMemAllocationHandleType {
    cudaMemHandleTypeNone = 0,
    cudaMemHandleTypePosixFileDescriptor = 1,
    cudaMemHandleTypeWin32 = 2,
    cudaMemHandleTypeWin32Kmt = 4,
    cudaMemHandleTypeFabric = 8,
};
enum cudaMemAccessFlags {
    cudaMemAccessFlagsProtNone = 0,
    cudaMemAccessFlagsProtRead = 1,
    cudaMemAccessFlagsProtReadWrite = 3,
};
enum cudaMemPoolAttr {
    cudaMemPoolReuseFollowEventDependencies = 1,
    cudaMemPoolReuseAllowOpportunistic = 2,
    cudaMemPoolReuseAllowInternalDependencies = 3,
    cudaMemPoolAttrReleaseThreshold = 4,
    cudaMemPoolAttrReservedMemCurrent = 5,
    cudaMemPoolAttrReservedMemHigh = 6,
    cudaMemPoolAttrUsedMemCurrent = 7,
    cudaMemPoolAttrUsedMemHigh = 8,
};
struct cudaMemPoolProps {
    cudaMemAllocationType allocType;
    cudaMemAllocationHandleType handleTypes;
    cudaMemLocation location;
    void* win32SecurityAttributes;
    size_t maxSize;
    unsigned short usage;
    unsigned char reserved[54];
};
struct cudaMemAccessDesc {
    cudaMemLocation location;
    cudaMemAccessFlags flags;
};

#pragma GCC visibility push(default)

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream, CUDALAB_HERE);
cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream, CUDALAB_HERE);
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream, CUDALAB_HERE);
template <class T>
inline cudaError_t cudaMallocAsync(T** pointer, size_t bytes, cudaStream_t stream, CUDALAB_HERE) {
    return cudaMallocAsync((void**)pointer, bytes, stream, file, line);
}
template <class T>
inline cudaError_t cudaMallocFromPoolAsync(T** pointer, size_t bytes, cudaMemPool_t pool,
                                           cudaStream_t stream, CUDALAB_HERE) {
    return cudaMallocFromPoolAsync((void**)pointer, bytes, pool, stream, file, line);
}
template <class T>
inline cudaError_t cudaMallocAsync(T** pointer, size_t bytes, cudaMemPool_t pool,
                                   cudaStream_t stream, CUDALAB_HERE) {
    return cudaMallocFromPoolAsync((void**)pointer, bytes, pool, stream, file, line);
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties,
                              CUDALAB_HERE);
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool, CUDALAB_HERE);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value,
                                    CUDALAB_HERE);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value,
                                    CUDALAB_HERE);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes, CUDALAB_HERE);
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* descriptions,
                                 size_t count, CUDALAB_HERE);
cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool,
                                 cudaMemLocation* location, CUDALAB_HERE);
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device, CUDALAB_HERE);
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device, CUDALAB_HERE);
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool, CUDALAB_HERE);

#pragma GCC visibility pop
