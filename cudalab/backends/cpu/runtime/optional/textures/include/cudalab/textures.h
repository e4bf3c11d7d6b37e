// Textures and surfaces: objects, the references of earlier CUDA versions, and how kernels read and
// write them.
#pragma once

#include "arrays.h"

enum cudaTextureAddressMode {
    cudaAddressModeWrap = 0,
    cudaAddressModeClamp = 1,
    cudaAddressModeMirror = 2,
    cudaAddressModeBorder = 3,
};
enum cudaTextureFilterMode { cudaFilterModePoint = 0, cudaFilterModeLinear = 1 };
enum cudaTextureReadMode { cudaReadModeElementType = 0, cudaReadModeNormalizedFloat = 1 };
enum cudaSurfaceBoundaryMode {
    cudaBoundaryModeZero = 0,
    cudaBoundaryModeClamp = 1,
    cudaBoundaryModeTrap = 2,
};
enum cudaResourceType {
    cudaResourceTypeArray = 0,
    cudaResourceTypeMipmappedArray = 1,
    cudaResourceTypeLinear = 2,
    cudaResourceTypePitch2D = 3,
};
enum cudaResourceViewFormat {
    cudaResViewFormatNone,
    cudaResViewFormatUnsignedChar1,
    cudaResViewFormatUnsignedChar2,
    cudaResViewFormatUnsignedChar4,
    cudaResViewFormatSignedChar1,
    cudaResViewFormatSignedChar2,
    cudaResViewFormatSignedChar4,
    cudaResViewFormatUnsignedShort1,
    cudaResViewFormatUnsignedShort2,
    cudaResViewFormatUnsignedShort4,
    cudaResViewFormatSignedShort1,
    cudaResViewFormatSignedShort2,
    cudaResViewFormatSignedShort4,
    cudaResViewFormatUnsignedInt1,
    cudaResViewFormatUnsignedInt2,
    cudaResViewFormatUnsignedInt4,
    cudaResViewFormatSignedInt1,
    cudaResViewFormatSignedInt2,
    cudaResViewFormatSignedInt4,
    cudaResViewFormatHalf1,
    cudaResViewFormatHalf2,
    cudaResViewFormatHalf4,
    cudaResViewFormatFloat1,
    cudaResViewFormatFloat2,
    cudaResViewFormatFloat4,
};

struct cudaResourceDesc {
    cudaResourceType resType;
    union {
        struct {
            cudaArray_t array;
        } array;
        struct {
            cudaMipmappedArray_t mipmap;
        } mipmap;
        struct {
            void* devPtr;
            cudaChannelFormatDesc desc;
            size_t sizeInBytes;
        } linear;
        struct {
            void* devPtr;
            cudaChannelFormatDesc desc;
            size_t width, height, pitchInBytes;
        } pitch2D;
        struct {
            int reserved[32];
        } reserved;
    } res;
    unsigned flags;
};
struct cudaResourceViewDesc {
    cudaResourceViewFormat format;
    size_t width, height, depth;
    unsigned firstMipmapLevel, lastMipmapLevel, firstLayer, lastLayer;
    unsigned reserved[16];
};
struct cudaTextureDesc {
    cudaTextureAddressMode addressMode[3];
    cudaTextureFilterMode filterMode;
    cudaTextureReadMode readMode;
    int sRGB;
    float borderColor[4];
    int normalizedCoords;
    unsigned maxAnisotropy;
    cudaTextureFilterMode mipmapFilterMode;
    float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
    int disableTrilinearOptimization;
    int seamlessCubemap;
};
typedef unsigned long long cudaTextureObject_t, cudaSurfaceObject_t;

#pragma GCC visibility push(default)

cudaError_t cudaCreateTextureObject(cudaTextureObject_t* object, const cudaResourceDesc* resource,
                                    const cudaTextureDesc* texture,
                                    const cudaResourceViewDesc* view = nullptr, CUDALAB_HERE);
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object, CUDALAB_HERE);
cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc* resource, cudaTextureObject_t object,
                                             CUDALAB_HERE);
cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc* texture, cudaTextureObject_t object,
                                            CUDALAB_HERE);
cudaError_t cudaGetTextureObjectResourceViewDesc(cudaResourceViewDesc* view,
                                                 cudaTextureObject_t object, CUDALAB_HERE);
cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* object, const cudaResourceDesc* resource,
                                    CUDALAB_HERE);
cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t object, CUDALAB_HERE);
cudaError_t cudaGetSurfaceObjectResourceDesc(cudaResourceDesc* resource, cudaSurfaceObject_t object,
                                             CUDALAB_HERE);
cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t* width, const cudaChannelFormatDesc* format,
                                                 int device, CUDALAB_HERE);

// ------------------------------------------------------------------ references

#define cudaTextureType1D 0x01
#define cudaTextureType2D 0x02
#define cudaTextureType3D 0x03
#define cudaTextureTypeCubemap 0x0C
#define cudaTextureType1DLayered 0xF1
#define cudaTextureType2DLayered 0xF2
#define cudaTextureTypeCubemapLayered 0xFC
#define cudaSurfaceType1D 0x01
#define cudaSurfaceType2D 0x02
#define cudaSurfaceType3D 0x03
#define cudaSurfaceTypeCubemap 0x0C
#define cudaSurfaceType1DLayered 0xF1
#define cudaSurfaceType2DLayered 0xF2
#define cudaSurfaceTypeCubemapLayered 0xFC

struct textureReference {
    int normalized;
    cudaTextureFilterMode filterMode;
    cudaTextureAddressMode addressMode[3];
    cudaChannelFormatDesc channelDesc;
    int sRGB;
    unsigned maxAnisotropy;
    cudaTextureFilterMode mipmapFilterMode;
    float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
    int disableTrilinearOptimization;
    // Ours: what it is bound to, and how it is read.
    cudaTextureObject_t object;
    cudaTextureReadMode read_mode;
};
struct surfaceReference {
    cudaChannelFormatDesc channelDesc;
    cudaSurfaceObject_t object;
    operator cudaSurfaceObject_t() const { return object; }
};

namespace cudalab {  // the rewriter names it: programs may call something else `texture`
template <class T, int type = cudaTextureType1D, cudaTextureReadMode mode = cudaReadModeElementType>
struct texture : textureReference {
    texture(int norm = 0, cudaTextureFilterMode filter = cudaFilterModePoint,
            cudaTextureAddressMode address = cudaAddressModeClamp)
        : texture(norm, filter, address, cudaCreateChannelDesc<T>()) {}
    texture(int norm, cudaTextureFilterMode filter, cudaTextureAddressMode address,
            cudaChannelFormatDesc format)
        : textureReference() {
        normalized = norm;
        filterMode = filter;
        addressMode[0] = addressMode[1] = addressMode[2] = address;
        channelDesc = format;
        read_mode = mode;
    }
};
template <class T, int type = cudaSurfaceType1D>
struct surface : surfaceReference {
    surface() : surfaceReference() {}
};

cudaError_t bind_linear(size_t* offset, const textureReference* texture, const void* pointer,
                        const cudaChannelFormatDesc* format, size_t bytes, CUDALAB_HERE);
cudaError_t bind_pitched(size_t* offset, const textureReference* texture, const void* pointer,
                         const cudaChannelFormatDesc* format, size_t width, size_t height,
                         size_t pitch, CUDALAB_HERE);
}  // namespace cudalab
cudaError_t cudaBindTextureToArray(const textureReference* texture, cudaArray_const_t array,
                                   const cudaChannelFormatDesc* format, CUDALAB_HERE);
cudaError_t cudaBindTextureToMipmappedArray(const textureReference* texture,
                                            cudaMipmappedArray_const_t array,
                                            const cudaChannelFormatDesc* format, CUDALAB_HERE);
cudaError_t cudaUnbindTexture(const textureReference* texture, CUDALAB_HERE);
cudaError_t cudaGetTextureAlignmentOffset(size_t* offset, const textureReference* texture,
                                          CUDALAB_HERE);
cudaError_t cudaBindSurfaceToArray(const surfaceReference* surface, cudaArray_const_t array,
                                   const cudaChannelFormatDesc* format, CUDALAB_HERE);

#define CUDALAB_REFERENCE template <class T, int type, cudaTextureReadMode mode>
CUDALAB_REFERENCE inline cudaError_t cudaBindTexture(size_t* offset,
                                                     const cudalab::texture<T, type, mode>& texture,
                                                     const void* pointer,
                                                     const cudaChannelFormatDesc& format,
                                                     size_t bytes = ~0u, CUDALAB_HERE) {
    return cudalab::bind_linear(offset, &texture, pointer, &format, bytes, file, line);
}
CUDALAB_REFERENCE inline cudaError_t cudaBindTexture(size_t* offset,
                                                     const cudalab::texture<T, type, mode>& texture,
                                                     const void* pointer, size_t bytes = ~0u,
                                                     CUDALAB_HERE) {
    return cudalab::bind_linear(offset, &texture, pointer, &texture.channelDesc, bytes, file, line);
}
inline cudaError_t cudaBindTexture(size_t* offset, const textureReference* texture,
                                   const void* pointer, const cudaChannelFormatDesc* format,
                                   size_t bytes = ~0u, CUDALAB_HERE) {
    return cudalab::bind_linear(offset, texture, pointer, format, bytes, file, line);
}
CUDALAB_REFERENCE inline cudaError_t cudaBindTexture2D(
    size_t* offset, const cudalab::texture<T, type, mode>& texture, const void* pointer,
    const cudaChannelFormatDesc& format, size_t width, size_t height, size_t pitch, CUDALAB_HERE) {
    return cudalab::bind_pitched(offset, &texture, pointer, &format, width, height, pitch, file,
                                 line);
}
CUDALAB_REFERENCE inline cudaError_t cudaBindTexture2D(
    size_t* offset, const cudalab::texture<T, type, mode>& texture, const void* pointer,
    size_t width, size_t height, size_t pitch, CUDALAB_HERE) {
    return cudalab::bind_pitched(offset, &texture, pointer, &texture.channelDesc, width, height,
                                 pitch, file, line);
}
inline cudaError_t cudaBindTexture2D(size_t* offset, const textureReference* texture,
                                     const void* pointer, const cudaChannelFormatDesc* format,
                                     size_t width, size_t height, size_t pitch, CUDALAB_HERE) {
    return cudalab::bind_pitched(offset, texture, pointer, format, width, height, pitch, file,
                                 line);
}
CUDALAB_REFERENCE inline cudaError_t cudaBindTextureToArray(
    const cudalab::texture<T, type, mode>& texture, cudaArray_const_t array,
    const cudaChannelFormatDesc& format, CUDALAB_HERE) {
    return cudaBindTextureToArray(&texture, array, &format, file, line);
}
CUDALAB_REFERENCE inline cudaError_t cudaBindTextureToArray(
    const cudalab::texture<T, type, mode>& texture, cudaArray_const_t array, CUDALAB_HERE) {
    return cudaBindTextureToArray(&texture, array, nullptr, file, line);
}
CUDALAB_REFERENCE inline cudaError_t cudaBindTextureToMipmappedArray(
    const cudalab::texture<T, type, mode>& texture, cudaMipmappedArray_const_t array,
    const cudaChannelFormatDesc& format, CUDALAB_HERE) {
    return cudaBindTextureToMipmappedArray(&texture, array, &format, file, line);
}
CUDALAB_REFERENCE inline cudaError_t cudaBindTextureToMipmappedArray(
    const cudalab::texture<T, type, mode>& texture, cudaMipmappedArray_const_t array,
    CUDALAB_HERE) {
    return cudaBindTextureToMipmappedArray(&texture, array, nullptr, file, line);
}
CUDALAB_REFERENCE inline cudaError_t cudaUnbindTexture(
    const cudalab::texture<T, type, mode>& texture, CUDALAB_HERE) {
    return cudaUnbindTexture(&texture, file, line);
}
CUDALAB_REFERENCE inline cudaError_t cudaGetTextureAlignmentOffset(
    size_t* offset, const cudalab::texture<T, type, mode>& texture, CUDALAB_HERE) {
    return cudaGetTextureAlignmentOffset(offset, &texture, file, line);
}
inline cudaError_t cudaGetTextureReference(const textureReference** texture, const void* symbol) {
    *texture = (const textureReference*)symbol;
    return cudaSuccess;
}
template <class T, int type>
inline cudaError_t cudaBindSurfaceToArray(const cudalab::surface<T, type>& surface,
                                          cudaArray_const_t array,
                                          const cudaChannelFormatDesc& format, CUDALAB_HERE) {
    return cudaBindSurfaceToArray(&surface, array, &format, file, line);
}
template <class T, int type>
inline cudaError_t cudaBindSurfaceToArray(const cudalab::surface<T, type>& surface,
                                          cudaArray_const_t array, CUDALAB_HERE) {
    return cudaBindSurfaceToArray(&surface, array, nullptr, file, line);
}
