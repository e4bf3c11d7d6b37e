// How arrays and textures lie in memory: shared by arrays.cpp, textures.cpp and sampling.cpp.
#pragma once

#include <stdint.h>

#include "internal.h"

namespace cudalab {

const unsigned MAX_LEVELS = 18;

// The texels of an array, of one of its levels, or of linear or pitched memory.
struct Texels {
    char* data;
    int width, height, depth;  // at least 1; depth: slices, layers or faces
    size_t row, slice;         // distances in bytes
};

// What a texel consists of.
struct TexelFormat {
    unsigned char channels, bits, bytes;
    cudaChannelFormatKind kind;
};
// False if there are no such texels.
bool format_of(const cudaChannelFormatDesc& desc, TexelFormat& format);

// What an object of a texture or a surface stands for.
struct Texture {
    cudaResourceDesc resource;
    cudaTextureDesc desc;
    cudaResourceViewDesc view;
    TexelFormat format;
    unsigned flags;       // of the array
    unsigned dimensions;  // 0: linear memory, which is only fetched from
    unsigned levels;
    Texels level[MAX_LEVELS];
    bool is_surface;
    cudaTextureObject_t object;
};
// What kernels' own reads need to know of it.
QuickTexture quick_texture_of(const Texture& texture);
// The object's texture, or null.
Texture* texture_of(cudaTextureObject_t object);

}  // namespace cudalab

struct cudaArray {
    cudaChannelFormatDesc desc;
    cudaExtent extent;
    unsigned flags;
    cudalab::TexelFormat format;
    cudalab::Texels texels;
    void* owned;  // the memory, unless it belongs to a mipmapped array
};
struct cudaMipmappedArray {
    unsigned levels;
    cudaArray level[cudalab::MAX_LEVELS];
    void* owned;
};

namespace cudalab {
// Whether it is an array that has not been freed.
bool is_array(cudaArray_const_t array);
bool is_mipmapped_array(cudaMipmappedArray_const_t array);
}  // namespace cudalab
