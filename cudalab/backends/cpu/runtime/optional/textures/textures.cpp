// Objects of textures and surfaces, and what the references of earlier CUDA versions are bound to.

#include <stdlib.h>
#include <string.h>

#include "texels.h"

namespace cudalab {

// The limits of an H200.
static const size_t ALIGNMENT = 512, PITCH_ALIGNMENT = 32, MAX_LINEAR = (size_t)1 << 28,
                    MAX_PITCHED_WIDTH = 131072, MAX_PITCHED_HEIGHT = 65000;

// Objects are numbers, as on a GPU: an index of this table, which grows.
static Texture** textures;
static size_t num_textures, capacity;

static QuickTexture none;
QuickTexture* quick_textures = &none;
size_t num_quick_textures = 1;

Texture* texture_of(cudaTextureObject_t object) {
    return object && object <= num_textures ? textures[object - 1] : nullptr;
}
static cudaTextureObject_t add(const Texture& texture) {
    Texture* added = (Texture*)malloc(sizeof(Texture));
    *added = texture;
    size_t at = 0;
    while (at < num_textures && textures[at]) ++at;
    if (at == capacity) {
        capacity = capacity ? 2 * capacity : 16;
        textures = (Texture**)realloc((void*)textures, capacity * sizeof(Texture*));
        QuickTexture* before = quick_textures == &none ? nullptr : quick_textures;
        quick_textures = (QuickTexture*)realloc(before, (capacity + 1) * sizeof(QuickTexture));
        quick_textures[0] = none;
    }
    if (at == num_textures) num_quick_textures = ++num_textures + 1;
    textures[at] = added;
    quick_textures[at + 1] = quick_texture_of(texture);
    return added->object = at + 1;
}
static void remove(cudaTextureObject_t object) {
    if (Texture* texture = texture_of(object)) {
        free(texture);
        textures[object - 1] = nullptr;
        quick_textures[object] = none;
    }
}

// ------------------------------------------------------------------ resources

static cudaError_t check_linear(Call& call, const void* pointer, const cudaChannelFormatDesc& desc,
                                TexelFormat& format) {
    if (!format_of(desc, format))
        return call.fail(cudaErrorInvalidChannelDescriptor,
                         "no texel has channels of %d, %d, %d, %d bits and kind %d", desc.x, desc.y,
                         desc.z, desc.w, (int)desc.f);
    char why[300];
    if (!pointer || !reaches(pointer, 0, why, sizeof why))
        return call.fail(cudaErrorInvalidValue, "%p is not memory of the device", pointer);
    if ((uintptr_t)pointer % ALIGNMENT)
        return call.fail(cudaErrorInvalidValue, "%p is not a multiple of %zu, as textures need",
                         pointer, ALIGNMENT);
    return cudaSuccess;
}

static unsigned dimensions_of(const cudaArray& array) {
    if (array.extent.depth && !(array.flags & (cudaArrayLayered | cudaArrayCubemap))) return 3;
    return array.extent.height ? 2 : 1;
}

// Fills in what the resource describes.
static cudaError_t find_texels(Call& call, const cudaResourceDesc& resource, Texture& texture) {
    if (resource.resType == cudaResourceTypeArray) {
        cudaArray_const_t array = resource.res.array.array;
        if (!is_array(array))
            return call.fail(cudaErrorInvalidResourceHandle, "this is not an array");
        texture.format = array->format;
        texture.flags = array->flags;
        texture.dimensions = dimensions_of(*array);
        texture.levels = 1;
        texture.level[0] = array->texels;
    } else if (resource.resType == cudaResourceTypeMipmappedArray) {
        cudaMipmappedArray_const_t array = resource.res.mipmap.mipmap;
        if (!is_mipmapped_array(array))
            return call.fail(cudaErrorInvalidResourceHandle, "this is not a mipmapped array");
        texture.format = array->level[0].format;
        texture.flags = array->level[0].flags;
        texture.dimensions = dimensions_of(array->level[0]);
        texture.levels = array->levels;
        for (unsigned i = 0; i < array->levels; ++i) texture.level[i] = array->level[i].texels;
    } else if (resource.resType == cudaResourceTypeLinear) {
        const auto& linear = resource.res.linear;
        if (cudaError_t error = check_linear(call, linear.devPtr, linear.desc, texture.format))
            return error;
        const size_t width = linear.sizeInBytes / texture.format.bytes;
        if (width > MAX_LINEAR)
            return call.fail(cudaErrorInvalidValue, "%zu texels, but at most %zu are possible",
                             width, MAX_LINEAR);
        texture.levels = 1;
        texture.level[0] = {(char*)linear.devPtr, (int)width, 1, 1, linear.sizeInBytes, 0};
    } else if (resource.resType == cudaResourceTypePitch2D) {
        const auto& pitched = resource.res.pitch2D;
        if (cudaError_t error = check_linear(call, pitched.devPtr, pitched.desc, texture.format))
            return error;
        if (pitched.pitchInBytes % PITCH_ALIGNMENT)
            return call.fail(cudaErrorInvalidValue, "the pitch %zu is not a multiple of %zu",
                             pitched.pitchInBytes, PITCH_ALIGNMENT);
        if (pitched.width > MAX_PITCHED_WIDTH || pitched.height > MAX_PITCHED_HEIGHT)
            return call.fail(cudaErrorInvalidValue,
                             "%zu x %zu texels, but at most %zu x %zu are possible", pitched.width,
                             pitched.height, MAX_PITCHED_WIDTH, MAX_PITCHED_HEIGHT);
        texture.dimensions = 2;
        texture.levels = 1;
        texture.level[0] = {(char*)pitched.devPtr, (int)pitched.width,
                            (int)pitched.height,   1,
                            pitched.pitchInBytes,  0};
    } else {
        return call.fail(cudaErrorInvalidValue, "%d is not a type of resource",
                         (int)resource.resType);
    }
    texture.resource = resource;
    return cudaSuccess;
}

// Another format for the same texels, and some of the layers and levels.
static cudaError_t apply_view(Call& call, const cudaResourceViewDesc& view, Texture& texture) {
    const Texels& all = texture.level[0];
    texture.view = view;
    const size_t height = all.height > 1 || view.height ? (size_t)all.height : 0;
    if (view.width != (size_t)all.width || view.height != height)
        return call.fail(cudaErrorInvalidValue, "the view has %zu x %zu texels, the array %d x %d",
                         view.width, view.height, all.width, all.height);
    if (view.format != cudaResViewFormatNone) {
        static const struct {
            cudaChannelFormatKind kind;
            int bits;
        } formats[] = {
            {cudaChannelFormatKindUnsigned, 8},  {cudaChannelFormatKindSigned, 8},
            {cudaChannelFormatKindUnsigned, 16}, {cudaChannelFormatKindSigned, 16},
            {cudaChannelFormatKindUnsigned, 32}, {cudaChannelFormatKindSigned, 32},
            {cudaChannelFormatKindFloat, 16},    {cudaChannelFormatKindFloat, 32},
        };
        const unsigned index = (unsigned)view.format - 1, channels = 1u << index % 3;
        if (index >= 24)
            return call.fail(cudaErrorNotSupported, "compressed texels are not supported");
        const auto& format = formats[index / 3];
        const unsigned bytes = channels * format.bits / 8;
        if (bytes != texture.format.bytes)
            return call.fail(cudaErrorInvalidValue,
                             "texels of %u bytes in the view, of %u in the array", bytes,
                             texture.format.bytes);
        texture.format = {(unsigned char)channels, (unsigned char)format.bits, (unsigned char)bytes,
                          format.kind};
    }
    const unsigned first = view.firstMipmapLevel, last = view.lastMipmapLevel;
    if (first > last || last >= texture.levels || view.firstLayer > view.lastLayer ||
        (view.lastLayer && view.lastLayer >= (unsigned)all.depth))
        return call.fail(cudaErrorInvalidValue,
                         "the view has levels %u to %u and layers %u to %u, the array %u levels "
                         "and %d layers",
                         first, last, view.firstLayer, view.lastLayer, texture.levels, all.depth);
    texture.levels = last - first + 1;
    for (unsigned i = 0; i < texture.levels; ++i) {
        Texels& level = texture.level[i] = texture.level[first + i];
        if (!(texture.flags & cudaArrayLayered)) continue;
        level.data += view.firstLayer * level.slice;
        if (view.lastLayer) level.depth = (int)(view.lastLayer - view.firstLayer + 1);
    }
    return cudaSuccess;
}

static cudaError_t check_texture(Call& call, const cudaTextureDesc& desc,
                                 const TexelFormat& format) {
    for (int mode : desc.addressMode)
        if ((unsigned)mode > cudaAddressModeBorder)
            return call.fail(cudaErrorInvalidValue, "%d is not an address mode", mode);
    if ((unsigned)desc.filterMode > cudaFilterModeLinear)
        return call.fail(cudaErrorInvalidValue, "%d is not a filter mode", (int)desc.filterMode);
    const bool as_float = desc.readMode == cudaReadModeNormalizedFloat;
    const bool is_float = format.kind == cudaChannelFormatKindFloat;
    if (desc.filterMode == cudaFilterModeLinear && !is_float && !(as_float && format.bits < 32))
        return call.fail(cudaErrorInvalidFilterSetting,
                         "only floats are filtered: not integers "
                         "without cudaReadModeNormalizedFloat");
    if (as_float && (is_float || format.bits == 32))
        return call.fail(cudaErrorInvalidNormSetting,
                         "cudaReadModeNormalizedFloat is for integers of 8 and 16 bits");
    return cudaSuccess;
}

static cudaError_t create(Call& call, cudaTextureObject_t* object, const cudaResourceDesc* resource,
                          const cudaTextureDesc* desc, const cudaResourceViewDesc* view) {
    if (!object || !resource) return call.fail(cudaErrorInvalidValue, "a pointer is null");
    if (!desc)
        return call.fail(cudaErrorInvalidResourceHandle, "the texture's description is null");
    Texture texture;
    memset((void*)&texture, 0, sizeof texture);
    if (cudaError_t error = find_texels(call, *resource, texture)) return error;
    if (cudaError_t error = check_texture(call, *desc, texture.format)) return error;
    if (view)
        if (cudaError_t error = apply_view(call, *view, texture)) return error;
    if (desc->sRGB) return call.fail(cudaErrorNotSupported, "sRGB texels are not supported");
    if (desc->seamlessCubemap)
        return call.fail(cudaErrorNotSupported, "filtering across a cube's edges is not supported");
    texture.desc = *desc;
    *object = add(texture);
    return cudaSuccess;
}

// Tells `part` of what an object was made of.
template <class T>
static cudaError_t tell(Call& call, cudaTextureObject_t object, bool surface, T Texture::* part,
                        T* to) {
    if (cudaError_t error = call.pending()) return error;
    const Texture* texture = texture_of(object);
    if (!texture || texture->is_surface != surface)
        return call.fail(cudaErrorInvalidValue, "%llu is not an object of a %s", object,
                         surface ? "surface" : "texture");
    *to = texture->*part;
    return cudaSuccess;
}

// ------------------------------------------------------------------ references

static cudaTextureDesc desc_of(const textureReference& reference) {
    cudaTextureDesc desc;
    memset(&desc, 0, sizeof desc);
    memcpy(desc.addressMode, reference.addressMode, sizeof desc.addressMode);
    desc.filterMode = reference.filterMode;
    desc.readMode = reference.read_mode;
    desc.sRGB = reference.sRGB;
    desc.normalizedCoords = reference.normalized;
    desc.mipmapFilterMode = reference.mipmapFilterMode;
    desc.mipmapLevelBias = reference.mipmapLevelBias;
    desc.minMipmapLevelClamp = reference.minMipmapLevelClamp;
    desc.maxMipmapLevelClamp = reference.maxMipmapLevelClamp;
    return desc;
}

static cudaError_t bind(Call& call, const textureReference* reference,
                        const cudaResourceDesc& resource) {
    if (!reference) return call.fail(cudaErrorInvalidTexture, "the texture is null");
    textureReference& bound = *const_cast<textureReference*>(reference);
    const cudaTextureDesc desc = desc_of(bound);
    cudaTextureObject_t object;
    if (cudaError_t error = create(call, &object, &resource, &desc, nullptr)) return error;
    remove(bound.object);
    bound.object = object;
    return cudaSuccess;
}

// An address that is no multiple of the alignment is bound below it; kernels add the offset.
static cudaError_t aligned(Call& call, size_t* offset, const void*& pointer) {
    const size_t beyond = (uintptr_t)pointer % ALIGNMENT;
    if (beyond && !offset)
        return call.fail(cudaErrorInvalidValue,
                         "%p is not a multiple of %zu, and there is no place for the offset",
                         pointer, ALIGNMENT);
    if (offset) *offset = beyond;
    pointer = (const char*)pointer - beyond;
    return cudaSuccess;
}

cudaError_t bind_linear(size_t* offset, const textureReference* texture, const void* pointer,
                        const cudaChannelFormatDesc* format, size_t bytes, const char* file,
                        int line) {
    Call call("cudaBindTexture", {file, line});
    if (cudaError_t error = call.pending()) return error;
    if (!format) return call.fail(cudaErrorInvalidChannelDescriptor, "the format is null");
    const Allocation* in = find_allocation(pointer);
    if (!in) return call.fail(cudaErrorInvalidValue, "%p is not memory of the device", pointer);
    if (cudaError_t error = aligned(call, offset, pointer)) return error;
    const size_t left = in->begin + in->bytes - (uintptr_t)pointer;
    cudaResourceDesc resource;
    memset(&resource, 0, sizeof resource);
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear = {(void*)pointer, *format, bytes < left ? bytes : left};
    return bind(call, texture, resource);
}

cudaError_t bind_pitched(size_t* offset, const textureReference* texture, const void* pointer,
                         const cudaChannelFormatDesc* format, size_t width, size_t height,
                         size_t pitch, const char* file, int line) {
    Call call("cudaBindTexture2D", {file, line});
    if (cudaError_t error = call.pending()) return error;
    if (!format) return call.fail(cudaErrorInvalidChannelDescriptor, "the format is null");
    if (cudaError_t error = aligned(call, offset, pointer)) return error;
    cudaResourceDesc resource;
    memset(&resource, 0, sizeof resource);
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D = {(void*)pointer, *format, width, height, pitch};
    return bind(call, texture, resource);
}

}  // namespace cudalab

using namespace cudalab;

cudaError_t cudaBindTextureToArray(const textureReference* texture, cudaArray_const_t array,
                                   const cudaChannelFormatDesc*, const char* file, int line) {
    Call call("cudaBindTextureToArray", {file, line});
    if (cudaError_t error = call.pending()) return error;
    cudaResourceDesc resource;
    memset(&resource, 0, sizeof resource);
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = (cudaArray_t)array;
    return bind(call, texture, resource);
}
cudaError_t cudaBindTextureToMipmappedArray(const textureReference* texture,
                                            cudaMipmappedArray_const_t array,
                                            const cudaChannelFormatDesc*, const char* file,
                                            int line) {
    Call call("cudaBindTextureToMipmappedArray", {file, line});
    if (cudaError_t error = call.pending()) return error;
    cudaResourceDesc resource;
    memset(&resource, 0, sizeof resource);
    resource.resType = cudaResourceTypeMipmappedArray;
    resource.res.mipmap.mipmap = (cudaMipmappedArray_t)array;
    return bind(call, texture, resource);
}
cudaError_t cudaUnbindTexture(const textureReference* texture, const char* file, int line) {
    Call call("cudaUnbindTexture", {file, line});
    if (cudaError_t error = call.pending()) return error;
    if (!texture) return call.fail(cudaErrorInvalidTexture, "the texture is null");
    remove(texture->object);
    const_cast<textureReference*>(texture)->object = 0;
    return cudaSuccess;
}
cudaError_t cudaGetTextureAlignmentOffset(size_t* offset, const textureReference* texture,
                                          const char* file, int line) {
    Call call("cudaGetTextureAlignmentOffset", {file, line});
    if (cudaError_t error = call.pending()) return error;
    if (!texture || !texture_of(texture->object))
        return call.fail(cudaErrorInvalidTextureBinding, "the texture is not bound");
    *offset = 0;
    return cudaSuccess;
}
cudaError_t cudaBindSurfaceToArray(const surfaceReference* surface, cudaArray_const_t array,
                                   const cudaChannelFormatDesc*, const char* file, int line) {
    if (!surface) return cudaErrorInvalidSurface;
    cudaResourceDesc resource;
    memset(&resource, 0, sizeof resource);
    resource.res.array.array = (cudaArray_t)array;
    return cudaCreateSurfaceObject(&const_cast<surfaceReference*>(surface)->object, &resource, file,
                                   line);
}

// ------------------------------------------------------------------ objects

cudaError_t cudaCreateTextureObject(cudaTextureObject_t* object, const cudaResourceDesc* resource,
                                    const cudaTextureDesc* texture,
                                    const cudaResourceViewDesc* view, const char* file, int line) {
    Call call("cudaCreateTextureObject", {file, line});
    if (cudaError_t error = call.pending()) return error;
    return create(call, object, resource, texture, view);
}
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object, const char* file, int line) {
    Call call("cudaDestroyTextureObject", {file, line});
    if (cudaError_t error = call.pending()) return error;
    remove(object);
    return cudaSuccess;
}
cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc* resource, cudaTextureObject_t object,
                                             const char* file, int line) {
    Call call("cudaGetTextureObjectResourceDesc", {file, line});
    return tell(call, object, false, &Texture::resource, resource);
}
cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc* desc, cudaTextureObject_t object,
                                            const char* file, int line) {
    Call call("cudaGetTextureObjectTextureDesc", {file, line});
    return tell(call, object, false, &Texture::desc, desc);
}
cudaError_t cudaGetTextureObjectResourceViewDesc(cudaResourceViewDesc* view,
                                                 cudaTextureObject_t object, const char* file,
                                                 int line) {
    Call call("cudaGetTextureObjectResourceViewDesc", {file, line});
    return tell(call, object, false, &Texture::view, view);
}

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* object, const cudaResourceDesc* resource,
                                    const char* file, int line) {
    Call call("cudaCreateSurfaceObject", {file, line});
    if (cudaError_t error = call.pending()) return error;
    if (!object || !resource) return call.fail(cudaErrorInvalidValue, "a pointer is null");
    if (resource->resType != cudaResourceTypeArray)
        return call.fail(cudaErrorInvalidValue, "a surface needs an array");
    Texture texture;
    memset((void*)&texture, 0, sizeof texture);
    if (cudaError_t error = find_texels(call, *resource, texture)) return error;
    texture.is_surface = true;
    *object = add(texture);
    return cudaSuccess;
}
cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t object, const char* file, int line) {
    Call call("cudaDestroySurfaceObject", {file, line});
    if (cudaError_t error = call.pending()) return error;
    remove(object);
    return cudaSuccess;
}
cudaError_t cudaGetSurfaceObjectResourceDesc(cudaResourceDesc* resource, cudaSurfaceObject_t object,
                                             const char* file, int line) {
    Call call("cudaGetSurfaceObjectResourceDesc", {file, line});
    return tell(call, object, true, &Texture::resource, resource);
}

cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t* width, const cudaChannelFormatDesc* format,
                                                 int device, const char* file, int line) {
    Call call("cudaDeviceGetTexture1DLinearMaxWidth", {file, line});
    if (cudaError_t error = call.pending()) return error;
    TexelFormat texel;
    if (!width || !format || device || !format_of(*format, texel))
        return call.fail(cudaErrorInvalidValue, "the device or the format does not exist");
    *width = MAX_LINEAR;
    return cudaSuccess;
}
