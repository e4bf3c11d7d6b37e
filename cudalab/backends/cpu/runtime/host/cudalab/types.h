// The types and numbers of the CUDA runtime API that lab programs use.
#pragma once

#include <stddef.h>

// The errors that the CPU device returns, and those that programs name: number, text.
#define CUDALAB_ERRORS(X)                                                                   \
    X(cudaSuccess, 0, "no error")                                                           \
    X(cudaErrorInvalidValue, 1, "invalid argument")                                         \
    X(cudaErrorMemoryAllocation, 2, "out of memory")                                        \
    X(cudaErrorInitializationError, 3, "initialization error")                              \
    X(cudaErrorCudartUnloading, 4, "driver shutting down")                                  \
    X(cudaErrorInvalidConfiguration, 9, "invalid configuration argument")                   \
    X(cudaErrorInvalidPitchValue, 12, "invalid pitch argument")                             \
    X(cudaErrorInvalidSymbol, 13, "invalid device symbol")                                  \
    X(cudaErrorInvalidHostPointer, 16, "invalid host pointer")                              \
    X(cudaErrorInvalidDevicePointer, 17, "invalid device pointer")                          \
    X(cudaErrorInvalidMemcpyDirection, 21, "invalid copy direction for memcpy")             \
    X(cudaErrorInsufficientDriver, 35,                                                      \
      "CUDA driver version is insufficient for CUDA runtime "                               \
      "version")                                                                            \
    X(cudaErrorMissingConfiguration, 52, "__global__ function call is not configured")      \
    X(cudaErrorPriorLaunchFailure, 53, "unspecified launch failure in prior launch")        \
    X(cudaErrorInvalidDeviceFunction, 98, "invalid device function")                        \
    X(cudaErrorNoDevice, 100, "no CUDA-capable device is detected")                         \
    X(cudaErrorInvalidDevice, 101, "invalid device ordinal")                                \
    X(cudaErrorDeviceUninitialized, 201, "invalid device context")                          \
    X(cudaErrorNoKernelImageForDevice, 209,                                                 \
      "no kernel image is available for execution on the device")                           \
    X(cudaErrorUnsupportedLimit, 215, "limit is not supported on this architecture")        \
    X(cudaErrorPeerAccessUnsupported, 217,                                                  \
      "peer access is not supported between these two devices")                             \
    X(cudaErrorInvalidResourceHandle, 400, "invalid resource handle")                       \
    X(cudaErrorIllegalState, 401, "the operation cannot be performed in the present state") \
    X(cudaErrorSymbolNotFound, 500, "named symbol not found")                               \
    X(cudaErrorNotReady, 600, "device not ready")                                           \
    X(cudaErrorIllegalAddress, 700, "an illegal memory access was encountered")             \
    X(cudaErrorLaunchOutOfResources, 701, "too many resources requested for launch")        \
    X(cudaErrorLaunchTimeout, 702, "the launch timed out and was terminated")               \
    X(cudaErrorPeerAccessNotEnabled, 705, "peer access has not been enabled")               \
    X(cudaErrorAssert, 710, "device-side assert triggered")                                 \
    X(cudaErrorHostMemoryAlreadyRegistered, 712,                                            \
      "part or all of the requested memory range is already mapped")                        \
    X(cudaErrorHostMemoryNotRegistered, 713,                                                \
      "pointer does not correspond to a registered memory region")                          \
    X(cudaErrorIllegalInstruction, 715, "an illegal instruction was encountered")           \
    X(cudaErrorMisalignedAddress, 716, "misaligned address")                                \
    X(cudaErrorLaunchFailure, 719, "unspecified launch failure")                            \
    X(cudaErrorCooperativeLaunchTooLarge, 720, "too many blocks in cooperative launch")     \
    X(cudaErrorNotPermitted, 800, "operation not permitted")                                \
    X(cudaErrorNotSupported, 801, "operation not supported")                                \
    X(cudaErrorUnknown, 999, "unknown error")

#define CUDALAB_ERROR_NUMBER(name, number, words) name = number,
enum cudaError { CUDALAB_ERRORS(CUDALAB_ERROR_NUMBER) };
#undef CUDALAB_ERROR_NUMBER
typedef enum cudaError cudaError_t;

enum cudaMemcpyKind {
    cudaMemcpyHostToHost = 0,
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3,
    cudaMemcpyDefault = 4,
};

enum cudaFuncCache {
    cudaFuncCachePreferNone = 0,
    cudaFuncCachePreferShared = 1,
    cudaFuncCachePreferL1 = 2,
    cudaFuncCachePreferEqual = 3,
};
enum cudaSharedMemConfig {
    cudaSharedMemBankSizeDefault = 0,
    cudaSharedMemBankSizeFourByte = 1,
    cudaSharedMemBankSizeEightByte = 2,
};
enum cudaSharedCarveout {
    cudaSharedmemCarveoutDefault = -1,
    cudaSharedmemCarveoutMaxL1 = 0,
    cudaSharedmemCarveoutMaxShared = 100,
};
enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9,
};
enum cudaLimit {
    cudaLimitStackSize = 0,
    cudaLimitPrintfFifoSize = 1,
    cudaLimitMallocHeapSize = 2,
};
enum cudaComputeMode {
    cudaComputeModeDefault = 0,
    cudaComputeModeExclusive = 1,
    cudaComputeModeProhibited = 2,
    cudaComputeModeExclusiveProcess = 3,
};
enum cudaMemoryType {
    cudaMemoryTypeUnregistered = 0,
    cudaMemoryTypeHost = 1,
    cudaMemoryTypeDevice = 2,
    cudaMemoryTypeManaged = 3,
};
enum cudaMemoryAdvise {
    cudaMemAdviseSetReadMostly = 1,
    cudaMemAdviseUnsetReadMostly = 2,
    cudaMemAdviseSetPreferredLocation = 3,
    cudaMemAdviseUnsetPreferredLocation = 4,
    cudaMemAdviseSetAccessedBy = 5,
    cudaMemAdviseUnsetAccessedBy = 6,
};
enum cudaMemLocationType {
    cudaMemLocationTypeInvalid = 0,
    cudaMemLocationTypeDevice = 1,
    cudaMemLocationTypeHost = 2,
};
struct cudaMemLocation {
    cudaMemLocationType type;
    int id;
};

enum cudaDeviceAttr {
    cudaDevAttrMaxThreadsPerBlock = 1,
    cudaDevAttrMaxBlockDimX = 2,
    cudaDevAttrMaxBlockDimY = 3,
    cudaDevAttrMaxBlockDimZ = 4,
    cudaDevAttrMaxGridDimX = 5,
    cudaDevAttrMaxGridDimY = 6,
    cudaDevAttrMaxGridDimZ = 7,
    cudaDevAttrMaxSharedMemoryPerBlock = 8,
    cudaDevAttrTotalConstantMemory = 9,
    cudaDevAttrWarpSize = 10,
    cudaDevAttrMaxPitch = 11,
    cudaDevAttrMaxRegistersPerBlock = 12,
    cudaDevAttrClockRate = 13,
    cudaDevAttrGpuOverlap = 15,
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrKernelExecTimeout = 17,
    cudaDevAttrIntegrated = 18,
    cudaDevAttrCanMapHostMemory = 19,
    cudaDevAttrComputeMode = 20,
    cudaDevAttrConcurrentKernels = 31,
    cudaDevAttrEccEnabled = 32,
    cudaDevAttrPciBusId = 33,
    cudaDevAttrPciDeviceId = 34,
    cudaDevAttrMemoryClockRate = 36,
    cudaDevAttrGlobalMemoryBusWidth = 37,
    cudaDevAttrL2CacheSize = 38,
    cudaDevAttrMaxThreadsPerMultiProcessor = 39,
    cudaDevAttrAsyncEngineCount = 40,
    cudaDevAttrUnifiedAddressing = 41,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76,
    cudaDevAttrStreamPrioritiesSupported = 78,
    cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
    cudaDevAttrMaxRegistersPerMultiprocessor = 82,
    cudaDevAttrManagedMemory = 83,
    cudaDevAttrPageableMemoryAccess = 88,
    cudaDevAttrConcurrentManagedAccess = 89,
    cudaDevAttrCooperativeLaunch = 95,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
    cudaDevAttrMaxBlocksPerMultiprocessor = 106,
    cudaDevAttrReservedSharedMemoryPerBlock = 111,
};

struct cudaUUID_t {
    char bytes[16];
};
struct cudaDeviceProp {
    char name[256];
    cudaUUID_t uuid;
    size_t totalGlobalMem;
    size_t sharedMemPerBlock;
    int regsPerBlock;
    int warpSize;
    size_t memPitch;
    int maxThreadsPerBlock;
    int maxThreadsDim[3];
    int maxGridSize[3];
    int clockRate;
    size_t totalConstMem;
    int major;
    int minor;
    size_t textureAlignment;
    size_t texturePitchAlignment;
    int deviceOverlap;
    int multiProcessorCount;
    int kernelExecTimeoutEnabled;
    int integrated;
    int canMapHostMemory;
    int computeMode;
    int concurrentKernels;
    int ECCEnabled;
    int pciBusID;
    int pciDeviceID;
    int pciDomainID;
    int tccDriver;
    int asyncEngineCount;
    int unifiedAddressing;
    int memoryClockRate;
    int memoryBusWidth;
    int l2CacheSize;
    int persistingL2CacheMaxSize;
    int maxThreadsPerMultiProcessor;
    int streamPrioritiesSupported;
    int globalL1CacheSupported;
    int localL1CacheSupported;
    size_t sharedMemPerMultiprocessor;
    int regsPerMultiprocessor;
    int managedMemory;
    int isMultiGpuBoard;
    int multiGpuBoardGroupID;
    int hostNativeAtomicSupported;
    int singleToDoublePrecisionPerfRatio;
    int pageableMemoryAccess;
    int concurrentManagedAccess;
    int computePreemptionSupported;
    int canUseHostPointerForRegisteredMem;
    int cooperativeLaunch;
    size_t sharedMemPerBlockOptin;
    int pageableMemoryAccessUsesHostPageTables;
    int directManagedMemAccessFromHost;
    int maxBlocksPerMultiProcessor;
    size_t reservedSharedMemPerBlock;
    int hostRegisterSupported;
    int memoryPoolsSupported;
};

struct cudaFuncAttributes {
    size_t sharedSizeBytes;
    size_t constSizeBytes;
    size_t localSizeBytes;
    int maxThreadsPerBlock;
    int numRegs;
    int ptxVersion;
    int binaryVersion;
    int cacheModeCA;
    int maxDynamicSharedSizeBytes;
    int preferredShmemCarveout;
};
struct cudaPointerAttributes {
    cudaMemoryType type;
    int device;
    void* devicePointer;
    void* hostPointer;
};

struct cudaExtent {
    size_t width, height, depth;
};
struct cudaPos {
    size_t x, y, z;
};
struct cudaPitchedPtr {
    void* ptr;
    size_t pitch, xsize, ysize;
};

typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
typedef void (*cudaStreamCallback_t)(cudaStream_t stream, cudaError_t status, void* data);
typedef void (*cudaHostFn_t)(void* data);

#define cudaStreamLegacy ((cudaStream_t)0x1)
#define cudaStreamPerThread ((cudaStream_t)0x2)

enum {
    cudaStreamDefault = 0,
    cudaStreamNonBlocking = 1,
    cudaEventDefault = 0,
    cudaEventBlockingSync = 1,
    cudaEventDisableTiming = 2,
    cudaEventInterprocess = 4,
    cudaHostAllocDefault = 0,
    cudaHostAllocPortable = 1,
    cudaHostAllocMapped = 2,
    cudaHostAllocWriteCombined = 4,
    cudaHostRegisterDefault = 0,
    cudaHostRegisterPortable = 1,
    cudaHostRegisterMapped = 2,
    cudaMemAttachGlobal = 1,
    cudaMemAttachHost = 2,
    cudaMemAttachSingle = 4,
    cudaDeviceScheduleAuto = 0,
    cudaDeviceScheduleSpin = 1,
    cudaDeviceScheduleYield = 2,
    cudaDeviceScheduleBlockingSync = 4,
    cudaDeviceMapHost = 8,
    cudaOccupancyDefault = 0,
    cudaCpuDeviceId = -1,
    cudaInvalidDeviceId = -2,
};

enum cudaLaunchAttributeID {
    cudaLaunchAttributeIgnore = 0,
    cudaLaunchAttributeCooperative = 2,
};
union cudaLaunchAttributeValue {
    char pad[64];
    int cooperative;
};
struct cudaLaunchAttribute {
    cudaLaunchAttributeID id;
    cudaLaunchAttributeValue val;
};
