// How kernels read textures, and read and write surfaces.
#pragma once

#include "quick_reads.h"
#include "textures.h"

#pragma GCC visibility push(default)

#ifdef CUDALAB_CHECK
#define CUDALAB_TRACES true  // the runtime makes each read, and says what it loads
#else
#define CUDALAB_TRACES false
#endif

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
char* find_element(cudaSurfaceObject_t surface, int x_bytes, int y, int z, unsigned bytes,
                   cudaSurfaceBoundaryMode mode);

}  // namespace cudalab
#pragma GCC visibility pop

namespace cudalab {

inline char* element(cudaSurfaceObject_t surface, int x_bytes, int y, int z, unsigned bytes,
                     cudaSurfaceBoundaryMode mode) {
    char* quick = quick_element(surface, x_bytes, y, z, bytes);
    return quick ? quick : find_element(surface, x_bytes, y, z, bytes, mode);
}

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
// Not inlined, as it is long: only what is most frequent is.
template <class T, unsigned dimensions, bool cube, bool layered>
__attribute__((noinline)) T read_shaped(unsigned long long object, float x, float y, float z,
                                        int layer, float lod) {
    T result;
    const ShapedRead<dimensions, cube, layered> at = {object, x, y, z, layer, lod};
    if (!CUDALAB_TRACES && read_quickly(at, result)) return result;
    return read_texel<T>(TextureRead{object, dimensions, cube, layered, 0, x, y, z, layer, lod});
}
template <class T, unsigned dimensions, bool cube, bool layered>
inline T read_texel(const ShapedRead<dimensions, cube, layered>& at) {
    T result;
    if (!CUDALAB_TRACES && read_inside(at, result)) return result;
    return read_shaped<T, dimensions, cube, layered>(at.object, at.x, at.y, at.z, at.layer, at.lod);
}
template <class T>
inline T read_texel(cudaTextureObject_t texture, int x) {
    T result;
    if (!CUDALAB_TRACES && fetch_quickly(texture, x, result)) return result;
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
#define CUDALAB_SAMPLES(name, dimensions, cube, layered, coordinates, ...)                  \
    CUDALAB_TEXTURE(name, coordinates,                                                      \
                    cudalab::ShapedRead<dimensions, cube, layered>{object, __VA_ARGS__, 0}) \
    CUDALAB_TEXTURE(name##Lod, (CUDALAB_LIST coordinates, float level),                     \
                    cudalab::ShapedRead<dimensions, cube, layered>{object, __VA_ARGS__, level})
#define CUDALAB_GRADIENTS(name, dimensions, layered, D, coordinates, ...) \
    CUDALAB_TEXTURE(                                                      \
        name, (CUDALAB_LIST coordinates, D dx, D dy),                     \
        cudalab::ShapedRead<dimensions, false, layered>{                  \
            object, __VA_ARGS__,                                          \
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
