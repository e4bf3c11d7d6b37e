// NVTX: names for a profiler's timeline. There is none here, so its functions do nothing, as they
// do on a GPU without a profiler.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define NVTX_VERSION 3
#define NVTX_EVENT_ATTRIB_STRUCT_SIZE ((uint16_t)sizeof(nvtxEventAttributes_t))
#define NVTX_RESOURCE_ATTRIB_STRUCT_SIZE ((uint16_t)sizeof(nvtxResourceAttributes_t))
#define NVTX_NO_PUSH_POP_TRACKING (-2)

typedef uint64_t nvtxRangeId_t;
typedef struct nvtxDomainRegistration_st* nvtxDomainHandle_t;
typedef struct nvtxStringRegistration_st* nvtxStringHandle_t;
typedef struct nvtxResourceHandle* nvtxResourceHandle_t;

typedef enum nvtxColorType_t { NVTX_COLOR_UNKNOWN = 0, NVTX_COLOR_ARGB = 1 } nvtxColorType_t;
typedef enum nvtxMessageType_t {
    NVTX_MESSAGE_UNKNOWN = 0,
    NVTX_MESSAGE_TYPE_ASCII = 1,
    NVTX_MESSAGE_TYPE_UNICODE = 2,
    NVTX_MESSAGE_TYPE_REGISTERED = 3
} nvtxMessageType_t;
typedef enum nvtxPayloadType_t {
    NVTX_PAYLOAD_UNKNOWN = 0,
    NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 = 1,
    NVTX_PAYLOAD_TYPE_INT64 = 2,
    NVTX_PAYLOAD_TYPE_DOUBLE = 3,
    NVTX_PAYLOAD_TYPE_UNSIGNED_INT32 = 4,
    NVTX_PAYLOAD_TYPE_INT32 = 5,
    NVTX_PAYLOAD_TYPE_FLOAT = 6
} nvtxPayloadType_t;
typedef union nvtxMessageValue_t {
    const char* ascii;
    const wchar_t* unicode;
    nvtxStringHandle_t registered;
} nvtxMessageValue_t;
typedef struct nvtxEventAttributes_t {
    uint16_t version, size;
    uint32_t category;
    int32_t colorType;
    uint32_t color;
    int32_t payloadType, reserved0;
    union {
        uint64_t ullValue;
        int64_t llValue;
        double dValue;
        uint32_t uiValue;
        int32_t iValue;
        float fValue;
    } payload;
    int32_t messageType;
    nvtxMessageValue_t message;
} nvtxEventAttributes_t;
typedef struct nvtxResourceAttributes_t {
    uint16_t version, size;
    int32_t identifierType;
    union {
        const void* pValue;
        uint64_t ullValue;
    } identifier;
    int32_t messageType;
    nvtxMessageValue_t message;
} nvtxResourceAttributes_t;

// A function that does nothing, and one that does nothing and returns a value.
#define CUDALAB_NVTX(name, parameters) \
    static inline void name parameters {}
#define CUDALAB_NVTX_VALUE(type, name, parameters, value) \
    static inline type name parameters {                  \
        return value;                                     \
    }
#define CUDALAB_UNUSED __attribute__((unused))
#define CUDALAB_TEXTS(X, type, name, before, value)                   \
    X(type, name##A, (before CUDALAB_UNUSED const char* text), value) \
    X(type, name##W, (before CUDALAB_UNUSED const wchar_t* text), value)
#define CUDALAB_DOMAIN CUDALAB_UNUSED nvtxDomainHandle_t domain
#define CUDALAB_ATTRIBUTES CUDALAB_UNUSED const nvtxEventAttributes_t* attributes
#define CUDALAB_NO_VALUE(type, name, parameters, value) CUDALAB_NVTX(name, parameters)
#define CUDALAB_COMMA ,

CUDALAB_NVTX(nvtxInitialize, (CUDALAB_UNUSED const void* reserved))
CUDALAB_TEXTS(CUDALAB_NO_VALUE, void, nvtxMark, , )
CUDALAB_NVTX(nvtxMarkEx, (CUDALAB_ATTRIBUTES))
CUDALAB_NVTX(nvtxDomainMarkEx, (CUDALAB_DOMAIN, CUDALAB_ATTRIBUTES))
CUDALAB_TEXTS(CUDALAB_NVTX_VALUE, int, nvtxRangePush, , NVTX_NO_PUSH_POP_TRACKING)
CUDALAB_NVTX_VALUE(int, nvtxRangePushEx, (CUDALAB_ATTRIBUTES), NVTX_NO_PUSH_POP_TRACKING)
CUDALAB_NVTX_VALUE(int, nvtxRangePop, (void), NVTX_NO_PUSH_POP_TRACKING)
CUDALAB_NVTX_VALUE(int, nvtxDomainRangePushEx, (CUDALAB_DOMAIN, CUDALAB_ATTRIBUTES),
                   NVTX_NO_PUSH_POP_TRACKING)
CUDALAB_NVTX_VALUE(int, nvtxDomainRangePop, (CUDALAB_DOMAIN), NVTX_NO_PUSH_POP_TRACKING)
CUDALAB_TEXTS(CUDALAB_NVTX_VALUE, nvtxRangeId_t, nvtxRangeStart, , 0)
CUDALAB_NVTX_VALUE(nvtxRangeId_t, nvtxRangeStartEx, (CUDALAB_ATTRIBUTES), 0)
CUDALAB_NVTX_VALUE(nvtxRangeId_t, nvtxDomainRangeStartEx, (CUDALAB_DOMAIN, CUDALAB_ATTRIBUTES), 0)
CUDALAB_NVTX(nvtxRangeEnd, (CUDALAB_UNUSED nvtxRangeId_t range))
CUDALAB_NVTX(nvtxDomainRangeEnd, (CUDALAB_DOMAIN, CUDALAB_UNUSED nvtxRangeId_t range))
CUDALAB_TEXTS(CUDALAB_NVTX_VALUE, nvtxDomainHandle_t, nvtxDomainCreate, , NULL)
CUDALAB_NVTX(nvtxDomainDestroy, (CUDALAB_DOMAIN))
CUDALAB_TEXTS(CUDALAB_NVTX_VALUE, nvtxStringHandle_t, nvtxDomainRegisterString,
              CUDALAB_DOMAIN CUDALAB_COMMA, NULL)
CUDALAB_TEXTS(CUDALAB_NO_VALUE, void, nvtxNameCategory,
              CUDALAB_UNUSED uint32_t category CUDALAB_COMMA, )
CUDALAB_TEXTS(CUDALAB_NO_VALUE, void, nvtxDomainNameCategory,
              CUDALAB_DOMAIN CUDALAB_COMMA CUDALAB_UNUSED uint32_t category CUDALAB_COMMA, )
CUDALAB_TEXTS(CUDALAB_NO_VALUE, void, nvtxNameOsThread,
              CUDALAB_UNUSED uint32_t thread CUDALAB_COMMA, )
CUDALAB_NVTX_VALUE(nvtxResourceHandle_t, nvtxDomainResourceCreate,
                   (CUDALAB_DOMAIN, CUDALAB_UNUSED nvtxResourceAttributes_t* attributes), NULL)
CUDALAB_NVTX(nvtxDomainResourceDestroy, (CUDALAB_UNUSED nvtxResourceHandle_t resource))

#define nvtxMark nvtxMarkA
#define nvtxRangePush nvtxRangePushA
#define nvtxRangeStart nvtxRangeStartA
#define nvtxDomainCreate nvtxDomainCreateA
#define nvtxDomainRegisterString nvtxDomainRegisterStringA
#define nvtxNameCategory nvtxNameCategoryA
#define nvtxDomainNameCategory nvtxDomainNameCategoryA
#define nvtxNameOsThread nvtxNameOsThreadA
