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

// ------------------------------------------------------------------ reading and writing in kernels

namespace cudalab {

// One read of a texture.
struct TextureRead {
    cudaTextureObject_t texture;
    unsigned char dimensions;  // of the texture; a cube's faces have two
    bool cube, layered;
    unsigned char component;  // 1 to 4: gather this one of four texels
    float x, y, z;
    int layer;
    float lod;  // level of detail
};
// The four channels of the result, as bits.
void read_texture(const TextureRead& read, unsigned* result);
void fetch(cudaTextureObject_t texture, int x, unsigned* result);
// The addresses that such a read loads from, and the number of bytes at each of them.
unsigned texels(const TextureRead& read, const void** addresses, unsigned* bytes);
unsigned texel(cudaTextureObject_t texture, int x, const void** address);
float level_of_detail(cudaTextureObject_t texture, unsigned dimensions, const float* dx,
                      const float* dy);
// Where a surface's element is, or null if it lies outside and is left alone.
char* element(cudaSurfaceObject_t surface, int x_bytes, int y, int z, unsigned bytes,
              cudaSurfaceBoundaryMode mode);

}  // namespace cudalab
#pragma GCC visibility pop

namespace cudalab {

template <class T>
inline T texel_from(const unsigned* bits) {
    typedef typename Texel<T>::channel C;
    T result;
    C channels[Texel<T>::count];
    for (int i = 0; i < Texel<T>::count; ++i) {
        channels[i] = (C)bits[i];
        if ((C)0.5f != 0) __builtin_memcpy((void*)&channels[i], &bits[i], sizeof(C));  // a float
    }
    __builtin_memcpy((void*)&result, channels, sizeof result);
    return result;
}
template <class T>
inline T read_texel(const TextureRead& at) {
    unsigned bits[4];
#ifdef CUDALAB_CHECK
    const void* addresses[16];
    unsigned bytes, count = texels(at, addresses, &bytes);
    for (unsigned i = 0; i < count; ++i) cudalab_access(addresses[i], bytes, 2, 0);
#endif
    read_texture(at, bits);
    return texel_from<T>(bits);
}
template <class T>
inline T read_texel(cudaTextureObject_t texture, int x) {
    unsigned bits[4];
#ifdef CUDALAB_CHECK
    const void* address;
    if (unsigned bytes = texel(texture, x, &address)) cudalab_access(address, bytes, 2, 0);
#endif
    fetch(texture, x, bits);
    return texel_from<T>(bits);
}
template <class T>
inline T read_texel(cudaSurfaceObject_t surface, int x_bytes, int y, int z,
                    cudaSurfaceBoundaryMode mode) {
    T result;
    __builtin_memset((void*)&result, 0, sizeof result);
    if (const char* at = element(surface, x_bytes, y, z, sizeof(T), mode)) {
        CUDALAB_LOADS((const T*)at);
        __builtin_memcpy((void*)&result, at, sizeof result);
    }
    return result;
}
template <class T>
inline void write_texel(const T& value, cudaSurfaceObject_t surface, int x_bytes, int y, int z,
                        cudaSurfaceBoundaryMode mode) {
    if (char* at = element(surface, x_bytes, y, z, sizeof(T), mode)) {
        CUDALAB_STORES((T*)at);
        __builtin_memcpy(at, (const void*)&value, sizeof value);
    }
}

// What the texels of a reference are read as.
template <int channels>
struct Floats;
template <>
struct Floats<1> {
    typedef float type;
};
template <>
struct Floats<2> {
    typedef float2 type;
};
template <>
struct Floats<4> {
    typedef float4 type;
};
template <class T, cudaTextureReadMode mode>
struct Read {
    typedef T type;
};
template <class T>
struct Read<T, cudaReadModeNormalizedFloat> : Floats<Texel<T>::count> {};

}  // namespace cudalab

// Each function three times: with a result, with a pointer to it, and with a reference. Lists of
// parameters are in parentheses.
#define CUDALAB_LIST(...) __VA_ARGS__
#define CUDALAB_TEXTURE(name, parameters, ...)                                          \
    template <class T>                                                                  \
    inline T name(cudaTextureObject_t object, CUDALAB_LIST parameters) {                \
        return cudalab::read_texel<T>(__VA_ARGS__);                                     \
    }                                                                                   \
    template <class T>                                                                  \
    inline void name(T* result, cudaTextureObject_t object, CUDALAB_LIST parameters) {  \
        *result = cudalab::read_texel<T>(__VA_ARGS__);                                  \
    }                                                                                   \
    CUDALAB_REFERENCE inline typename cudalab::Read<T, mode>::type name(                \
        const cudalab::texture<T, type, mode>& reference, CUDALAB_LIST parameters) {    \
        const cudaTextureObject_t object = reference.object;                            \
        return cudalab::read_texel<typename cudalab::Read<T, mode>::type>(__VA_ARGS__); \
    }
#define CUDALAB_SAMPLES(name, dimensions, cube, layered, coordinates, ...)                      \
    CUDALAB_TEXTURE(name, coordinates,                                                          \
                    cudalab::TextureRead{object, dimensions, cube, layered, 0, __VA_ARGS__, 0}) \
    CUDALAB_TEXTURE(                                                                            \
        name##Lod, (CUDALAB_LIST coordinates, float level),                                     \
        cudalab::TextureRead{object, dimensions, cube, layered, 0, __VA_ARGS__, level})
#define CUDALAB_GRADIENTS(name, dimensions, layered, D, coordinates, ...) \
    CUDALAB_TEXTURE(                                                      \
        name, (CUDALAB_LIST coordinates, D dx, D dy),                     \
        cudalab::TextureRead{                                             \
            object, dimensions, false, layered, 0, __VA_ARGS__,           \
            cudalab::level_of_detail(object, dimensions, (const float*)&dx, (const float*)&dy)})

CUDALAB_TEXTURE(tex1Dfetch, (int x), object, x)
CUDALAB_SAMPLES(tex1D, 1, false, false, (float x), x, 0, 0, 0)
CUDALAB_SAMPLES(tex2D, 2, false, false, (float x, float y), x, y, 0, 0)
CUDALAB_SAMPLES(tex3D, 3, false, false, (float x, float y, float z), x, y, z, 0)
CUDALAB_SAMPLES(tex1DLayered, 1, false, true, (float x, int layer), x, 0, 0, layer)
CUDALAB_SAMPLES(tex2DLayered, 2, false, true, (float x, float y, int layer), x, y, 0, layer)
CUDALAB_SAMPLES(texCubemap, 2, true, false, (float x, float y, float z), x, y, z, 0)
CUDALAB_SAMPLES(texCubemapLayered, 2, true, true, (float x, float y, float z, int layer), x, y, z,
                layer)
CUDALAB_GRADIENTS(tex1DGrad, 1, false, float, (float x), x, 0, 0, 0)
CUDALAB_GRADIENTS(tex2DGrad, 2, false, float2, (float x, float y), x, y, 0, 0)
CUDALAB_GRADIENTS(tex3DGrad, 3, false, float4, (float x, float y, float z), x, y, z, 0)
CUDALAB_GRADIENTS(tex1DLayeredGrad, 1, true, float, (float x, int layer), x, 0, 0, layer)
CUDALAB_GRADIENTS(tex2DLayeredGrad, 2, true, float2, (float x, float y, int layer), x, y, 0, layer)
CUDALAB_TEXTURE(tex2Dgather, (float x, float y, int component = 0),
                cudalab::TextureRead{object, 2, false, false, (unsigned char)(component + 1), x, y,
                                     0, 0, 0})

#define CUDALAB_SURFACE(name, parameters, ...)                                             \
    template <class T>                                                                     \
    inline T name##read(cudaSurfaceObject_t object, CUDALAB_LIST parameters,               \
                        cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {             \
        return cudalab::read_texel<T>(object, __VA_ARGS__, mode);                          \
    }                                                                                      \
    template <class T>                                                                     \
    inline void name##read(T* result, cudaSurfaceObject_t object, CUDALAB_LIST parameters, \
                           cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {          \
        *result = cudalab::read_texel<T>(object, __VA_ARGS__, mode);                       \
    }                                                                                      \
    template <class T>                                                                     \
    inline void name##write(T value, cudaSurfaceObject_t object, CUDALAB_LIST parameters,  \
                            cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {         \
        cudalab::write_texel(value, object, __VA_ARGS__, mode);                            \
    }

CUDALAB_SURFACE(surf1D, (int x), x, 0, 0)
CUDALAB_SURFACE(surf2D, (int x, int y), x, y, 0)
CUDALAB_SURFACE(surf3D, (int x, int y, int z), x, y, z)
CUDALAB_SURFACE(surf1DLayered, (int x, int layer), x, 0, layer)
CUDALAB_SURFACE(surf2DLayered, (int x, int y, int layer), x, y, layer)
CUDALAB_SURFACE(surfCubemap, (int x, int y, int face), x, y, face)
CUDALAB_SURFACE(surfCubemapLayered, (int x, int y, int face), x, y, face)

#undef CUDALAB_LIST
#undef CUDALAB_TEXTURE
#undef CUDALAB_SAMPLES
#undef CUDALAB_GRADIENTS
#undef CUDALAB_SURFACE
#undef CUDALAB_REFERENCE
