// cuRAND's host interface: generators that fill memory of the device, or of the host, with the
// sequences of a GPU.
#pragma once
#define CURAND_H_

#include "cuda_runtime.h"
#include "cudalab/curand_types.h"
#include "library_types.h"

#define CURANDAPI
#define CURAND_VER_MAJOR 10
#define CURAND_VER_MINOR 4
#define CURAND_VER_PATCH 0
#define CURAND_VERSION (CURAND_VER_MAJOR * 1000 + CURAND_VER_MINOR * 100 + CURAND_VER_PATCH)

enum curandStatus {
    CURAND_STATUS_SUCCESS = 0,
    CURAND_STATUS_VERSION_MISMATCH = 100,
    CURAND_STATUS_NOT_INITIALIZED = 101,
    CURAND_STATUS_ALLOCATION_FAILED = 102,
    CURAND_STATUS_TYPE_ERROR = 103,
    CURAND_STATUS_OUT_OF_RANGE = 104,
    CURAND_STATUS_LENGTH_NOT_MULTIPLE = 105,
    CURAND_STATUS_DOUBLE_PRECISION_REQUIRED = 106,
    CURAND_STATUS_LAUNCH_FAILURE = 201,
    CURAND_STATUS_PREEXISTING_FAILURE = 202,
    CURAND_STATUS_INITIALIZATION_FAILED = 203,
    CURAND_STATUS_ARCH_MISMATCH = 204,
    CURAND_STATUS_INTERNAL_ERROR = 999,
};
typedef enum curandStatus curandStatus_t;

enum curandOrdering {
    CURAND_ORDERING_PSEUDO_BEST = 100,
    CURAND_ORDERING_PSEUDO_DEFAULT = 101,
    CURAND_ORDERING_PSEUDO_SEEDED = 102,
    CURAND_ORDERING_PSEUDO_LEGACY = 103,
    CURAND_ORDERING_PSEUDO_DYNAMIC = 104,
    CURAND_ORDERING_QUASI_DEFAULT = 201,
};
typedef enum curandOrdering curandOrdering_t;

enum curandDirectionVectorSet {
    CURAND_DIRECTION_VECTORS_32_JOEKUO6 = 101,
    CURAND_SCRAMBLED_DIRECTION_VECTORS_32_JOEKUO6 = 102,
    CURAND_DIRECTION_VECTORS_64_JOEKUO6 = 103,
    CURAND_SCRAMBLED_DIRECTION_VECTORS_64_JOEKUO6 = 104,
};
typedef enum curandDirectionVectorSet curandDirectionVectorSet_t;
typedef struct curandGenerator_st* curandGenerator_t;

#pragma GCC visibility push(default)

curandStatus_t curandCreateGenerator(curandGenerator_t* generator, curandRngType_t type,
                                     CUDALAB_HERE);
curandStatus_t curandCreateGeneratorHost(curandGenerator_t* generator, curandRngType_t type,
                                         CUDALAB_HERE);
curandStatus_t curandDestroyGenerator(curandGenerator_t generator, CUDALAB_HERE);
curandStatus_t curandGetVersion(int* version);
curandStatus_t curandGetProperty(libraryPropertyType type, int* value);
curandStatus_t curandSetStream(curandGenerator_t generator, cudaStream_t stream, CUDALAB_HERE);
curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t generator,
                                                  unsigned long long seed, CUDALAB_HERE);
curandStatus_t curandSetGeneratorOffset(curandGenerator_t generator, unsigned long long offset,
                                        CUDALAB_HERE);
curandStatus_t curandSetGeneratorOrdering(curandGenerator_t generator, curandOrdering_t order,
                                          CUDALAB_HERE);
curandStatus_t curandSetQuasiRandomGeneratorDimensions(curandGenerator_t generator,
                                                       unsigned dimensions, CUDALAB_HERE);
curandStatus_t curandGenerateSeeds(curandGenerator_t generator, CUDALAB_HERE);

curandStatus_t curandGenerate(curandGenerator_t generator, unsigned* to, size_t count,
                              CUDALAB_HERE);
curandStatus_t curandGenerateLongLong(curandGenerator_t generator, unsigned long long* to,
                                      size_t count, CUDALAB_HERE);
curandStatus_t curandGenerateUniform(curandGenerator_t generator, float* to, size_t count,
                                     CUDALAB_HERE);
curandStatus_t curandGenerateUniformDouble(curandGenerator_t generator, double* to, size_t count,
                                           CUDALAB_HERE);
curandStatus_t curandGenerateNormal(curandGenerator_t generator, float* to, size_t count,
                                    float mean, float deviation, CUDALAB_HERE);
curandStatus_t curandGenerateNormalDouble(curandGenerator_t generator, double* to, size_t count,
                                          double mean, double deviation, CUDALAB_HERE);
curandStatus_t curandGenerateLogNormal(curandGenerator_t generator, float* to, size_t count,
                                       float mean, float deviation, CUDALAB_HERE);
curandStatus_t curandGenerateLogNormalDouble(curandGenerator_t generator, double* to, size_t count,
                                             double mean, double deviation, CUDALAB_HERE);

// Direction vectors of Sobol's sequences, for the first 128 dimensions.
curandStatus_t curandGetDirectionVectors32(curandDirectionVectors32_t* vectors[],
                                           curandDirectionVectorSet_t set, CUDALAB_HERE);
curandStatus_t curandGetDirectionVectors64(curandDirectionVectors64_t* vectors[],
                                           curandDirectionVectorSet_t set, CUDALAB_HERE);

#pragma GCC visibility pop
