// How kernels read textures: in the same steps as an H200, and so with the same bits.
//
// 1. A coordinate becomes a number with 21 fractional bits, or 22 or 23 in large textures, rounded
//    down; a normalised one before it is multiplied by the size. Linear filtering rounds to 8 bits.
// 2. The weights of 2, 4 or 8 texels are whole numbers whose sum is 256.
// 3. Texels are aligned to the greatest exponent among them, which cuts off all bits but 4 below
//    the mantissa of the greatest. Their weighted sum is exact, and is rounded once: halves away
//    from zero. Of a volume each slice is summed by itself.
// 4. Integers of 8 and 16 bits, read as floats, are summed as integers and give 16 bits.

#include <math.h>
#include <string.h>

#include "blends.h"
#include "texels.h"

namespace cudalab {

// ------------------------------------------------------------------ where texels are

// One coordinate: a texel's index, or of linear filtering the first of two.
struct Axis {
    int index[2];  // -1: the border
    int fraction;  // of the second, from 0 to 255
};

static int resolve(int index, int size, bool wraps, int mode) {
    if ((unsigned)index < (unsigned)size) return index;
    if (mode == cudaAddressModeBorder) return -1;
    if (wraps) return index < 0 ? index + size : index - size;
    return index < 0 ? 0 : size - 1;
}

static int fractional_bits(int size) {
    return size <= 8192 ? 21 : size <= 65536 ? 22 : 23;
}
// A coordinate as a whole number with `bits` fractional bits; `offset` is added to it.
struct Position {
    int64_t value;
    int bits;
    bool wraps, mirrors, mirrored;
};
static inline Position position_of(double x, double offset, int size, int mode, bool normalized) {
    Position position;
    const int bits = position.bits = fractional_bits(size);
    const double scale = (double)(1 << bits);
    if (!(fabs(x) >= (offset ? 0x1p-127 : 0x1p-126))) x = 0;  // neither denormal nor NaN
    const bool wraps = position.wraps = normalized && mode == cudaAddressModeWrap;
    const bool mirrors = position.mirrors = normalized && mode == cudaAddressModeMirror;
    // Beyond these limits a position is a whole number, or clamped.
    const double limit = wraps || mirrors ? 1 << 30 : normalized ? 4 : 1 << 20;
    if (wraps || mirrors)
        x = fabs(x) <= limit ? x : 0;
    else
        x = x < -limit ? -limit : x > limit ? limit : x;
    int64_t value = (int64_t)floor(x * scale) + (int64_t)(offset * scale);
    position.mirrored = mirrors && value >> bits & 1;
    if (wraps || mirrors) value &= ((int64_t)1 << bits) - 1;
    position.value = normalized ? value * size : value;
    return position;
}
static inline int index_at(const Position& position, int first, int size, int mode) {
    return resolve(position.mirrored ? size - 1 - first : first, size, position.wraps, mode);
}

static inline Axis locate(double x, double offset, int size, int mode, bool normalized, bool linear,
                          bool clamped) {
    const Position position = position_of(x, offset, size, mode, normalized);
    Axis axis = {{0, 0}, 0};
    if (!linear) {
        axis.index[0] = index_at(position, (int)(position.value >> position.bits), size, mode);
        return axis;
    }
    const int drop = position.bits - WEIGHT_BITS;
    int64_t at = ((position.value + ((int64_t)1 << (drop - 1))) >> drop) - ONE / 2;
    if (clamped && !position.wraps && !position.mirrors && mode != cudaAddressModeBorder) {
        const int64_t last = (int64_t)(size - 1) * ONE;
        at = at < 0 ? 0 : at > last ? last : at;
    }
    axis.fraction = (int)(at & (ONE - 1));
    for (int i = 0; i < 2; ++i)
        axis.index[i] = index_at(position, (int)(at >> WEIGHT_BITS) + i, size, mode);
    return axis;
}

// Texels and their weights, in slices of four.
struct Footprint {
    const char* texel[16];  // null: the border
    Four weight[4];
    bool touched[16];  // a NaN counts although the weight is rounded to 0
    int slices;
};

// Adds one slice of `total` weights: the texel at two axes, or two or four of them.
static void add_slice(Footprint& to, const Texture& texture, const Texels& texels, const Axis& x,
                      const Axis& y, int z, int total) {
    const size_t bytes = texture.format.bytes;
    for (int i = 0; i < 4; ++i) {
        const int column = x.index[i & 1], row = y.index[i >> 1], at = to.slices * 4 + i;
        const size_t distance =
            (size_t)z * texels.slice + (size_t)row * texels.row + (size_t)column * bytes;
        to.texel[at] = column < 0 || row < 0 || z < 0 ? nullptr : texels.data + distance;
        to.touched[at] = total && (!(i & 1) || x.fraction) && (!(i & 2) || y.fraction);
    }
    to.weight[to.slices++] = weights_at(x.fraction, y.fraction, total);
}

// A cube's face, and the place on it, from -1 to 1. nvcc divides by the greatest coordinate.
static int face_of(const TextureRead& read, double& u, double& v) {
    float c[] = {read.x, read.y, read.z}, sizes[3], greatest = 0;
    for (float each : c)
        if (fabsf(each) > greatest) greatest = fabsf(each);
    const float reciprocal =  // a GPU's: neither of a denormal nor one itself
        greatest > 0x1p126f ? 0 : 1 / (greatest < 0x1p-126f ? 0 : greatest);
    for (int i = 0; i < 3; ++i) {
        c[i] *= reciprocal;
        sizes[i] = isnan(c[i]) ? -1 : fabsf(c[i]);
        if (!(sizes[i] >= 0x1p-126f)) c[i] = 0;
    }
    const int axis = sizes[2] >= sizes[0] && sizes[2] >= sizes[1] ? 2 : sizes[1] >= sizes[0];
    const bool negative = c[axis] < 0;
    u = (double)c[0];
    v = -(double)c[1];
    if (axis == 0) u = (double)(negative ? c[2] : -c[2]);
    if (axis == 1) v = (double)(negative ? -c[2] : c[2]);
    if (axis == 2 && negative) u = -u;
    return 2 * axis + negative;
}

static void add_level(Footprint& to, const Texture& texture, const Texels& texels,
                      const TextureRead& s, int total) {
    const cudaTextureDesc& desc = texture.desc;
    const bool gathers = s.component, linear = desc.filterMode == cudaFilterModeLinear || gathers;
    const bool normalized = desc.normalizedCoords;
    // Half a border's row lies before that of a line, but not of a line among others.
    double u = (double)s.x, v = s.dimensions > 1 ? (double)s.y : s.layered ? 0.5 : 0;
    double offset = 0;
    int mode_x = desc.addressMode[0], mode_y = desc.addressMode[1], layer = 0;
    if (s.dimensions == 1) mode_y = mode_x;
    if (s.cube) {
        layer = face_of(s, u, v);
        u /= 2, v /= 2, offset = 0.5;
    }
    if (s.layered) {
        const unsigned layers = (unsigned)texels.depth / (s.cube ? 6 : 1);
        const unsigned last = (unsigned)s.layer < layers ? (unsigned)s.layer : layers - 1;
        layer += (int)last * (s.cube ? 6 : 1);
    }
    const Axis x = locate(u, offset, texels.width, mode_x, normalized, linear, !gathers);
    const Axis y = locate(v, offset, texels.height, mode_y, normalized, linear, !gathers);
    if (s.dimensions < 3 || s.cube) return add_slice(to, texture, texels, x, y, layer, total);
    const Axis z =
        locate((double)s.z, 0, texels.depth, desc.addressMode[2], normalized, linear, true);
    const int behind = (total * z.fraction + ONE / 2) >> WEIGHT_BITS;
    add_slice(to, texture, texels, x, y, z.index[0], total - behind);
    if (linear) add_slice(to, texture, texels, x, y, z.index[1], behind);
}

// Kinds of textures that a GPU tells apart: any read of a plane reads lines and layers, too.
enum class Shape { MEMORY, PLANE, LINES, VOLUME, CUBE };
static Shape shape_of(unsigned dimensions, bool layered, bool cube) {
    if (cube) return Shape::CUBE;
    if (dimensions == 1 && layered) return Shape::LINES;
    return dimensions == 3 ? Shape::VOLUME : dimensions ? Shape::PLANE : Shape::MEMORY;
}

// False if the texture is of another kind than this read: it then gives zeros, as on a GPU.
static bool find_texels(const Texture& texture, const TextureRead& s, Footprint& to) {
    const bool layered = texture.flags & cudaArrayLayered, cube = texture.flags & cudaArrayCubemap;
    to.slices = 0;
    if (shape_of(texture.dimensions, layered, cube) != shape_of(s.dimensions, s.layered, s.cube))
        return false;
    const cudaTextureDesc& desc = texture.desc;
    const float last = (float)(texture.levels - 1);
    float lod = 0;
    if (texture.levels > 1) {
        const float bottom = fmaxf(desc.minMipmapLevelClamp, 0);
        const float top = fminf(fmaxf(desc.maxMipmapLevelClamp, bottom), last);
        lod = fminf(fmaxf(s.lod + desc.mipmapLevelBias, bottom), top);  // NaN: bottom
    }
    if (desc.mipmapFilterMode == cudaFilterModePoint) {
        add_level(to, texture, texture.level[(int)floor((double)lod + 0.5)], s, ONE);
        return true;
    }
    const int at = (int)floorf(lod * ONE), level = at >> WEIGHT_BITS, finer = at & (ONE - 1);
    add_level(to, texture, texture.level[level], s, ONE - finer);
    if (finer) add_level(to, texture, texture.level[level + 1], s, finer);
    return true;
}

// ------------------------------------------------------------------ results

static uint32_t read_channel(const Texture& texture, const char* texel, unsigned channel) {
    const TexelFormat& format = texture.format;
    if (format.kind == cudaChannelFormatKindFloat && format.bits == 16) {
        unsigned short half;
        memcpy(&half, texel + channel * 2, 2);
        return float_of_half(half);
    }
    const int value = channel_of(format, texel, channel);
    if (texture.desc.readMode == cudaReadModeNormalizedFloat && format.bits < 32 &&
        format.kind != cudaChannelFormatKindFloat)
        return bits_of(fmaxf((float)value / greatest_of(format), -1));
    return (uint32_t)value;
}
static uint32_t read_border(const Texture& texture, unsigned channel) {
    const TexelFormat& format = texture.format;
    const float color = texture.desc.borderColor[channel];
    if (format.kind == cudaChannelFormatKindFloat)
        return format.bits == 16 ? float_of_half(half_of_border(color)) : bits_of(color);
    if (texture.desc.readMode == cudaReadModeNormalizedFloat)
        return bits_of((float)border_of(format, color) / greatest_of(format));
    const uint32_t bits = bits_of(color);  // its first bytes
    return (uint32_t)channel_of(format, (const char*)&bits, 0);
}

static uint32_t filter_channel(const Texture& texture, const Footprint& footprint,
                               unsigned channel) {
    const TexelFormat& format = texture.format;
    const float color = texture.desc.borderColor[channel];
    const int count = footprint.slices * 4;
    if (format.kind != cudaChannelFormatKindFloat) {
        int64_t sum = 0;
        for (int i = 0; i < count; ++i)
            if (const int weight = footprint.weight[i / 4][i % 4])
                sum += (int64_t)weight * (footprint.texel[i]
                                              ? channel_of(format, footprint.texel[i], channel)
                                              : border_of(format, color));
        return blend_integers(format, (int)sum);
    }
    Four values[4];
    const unsigned bytes = format.bits / 8;
    for (int i = 0; i < count; ++i) {
        uint32_t value = 0;
        if (footprint.texel[i])
            memcpy(&value, footprint.texel[i] + channel * bytes, bytes);
        else
            value = bytes == 2 ? half_of_border(color) : bits_of(color);
        values[i / 4][i % 4] = footprint.touched[i] ? (int)value : 0;
    }
    if (bytes == 2) return float_of_half(Half::blend(footprint.slices, footprint.weight, values));
    return Float::blend(footprint.slices, footprint.weight, values);
}

// ------------------------------------------------------------------ what kernels do by themselves

static QuickAxis quick_axis(const cudaTextureDesc& desc, int size, int mode) {
    const bool normalized = desc.normalizedCoords, linear = desc.filterMode == cudaFilterModeLinear;
    QuickAxis axis;
    memset((void*)&axis, 0, sizeof axis);
    axis.end = normalized ? 1 : (float)size;
    axis.bits = normalized ? fractional_bits(size) : WEIGHT_BITS + 1;
    axis.scale = (float)(1 << axis.bits);
    axis.size = normalized ? size : 1;
    axis.drop = axis.bits - WEIGHT_BITS;
    // A filter's position is rounded, and that of the texel whose middle lies before it.
    if (linear) axis.offset = (1 << (axis.drop - 1)) - ((int64_t)(ONE / 2) << axis.drop);
    axis.last = (size - 1) * ONE;
    axis.wraps = normalized && mode == cudaAddressModeWrap;
    axis.mirrors = normalized && mode == cudaAddressModeMirror;
    axis.bordered = mode == cudaAddressModeBorder;
    axis.low = linear ? 0.5f : 0;
    axis.high = linear ? (float)size - 0.5f : nextafterf(axis.end, 0);
    if (linear && normalized) axis.high = 0;  // none
    return axis;
}

QuickTexture quick_texture_of(const Texture& texture) {
    const cudaTextureDesc& desc = texture.desc;
    const TexelFormat& format = texture.format;
    const Texels& texels = texture.level[0];
    const bool layered = texture.flags & cudaArrayLayered, cube = texture.flags & cudaArrayCubemap;
    QuickTexture quick;
    memset((void*)&quick, 0, sizeof quick);
    quick.data = texels.data;
    quick.row = texels.row;
    quick.slice = texels.slice;
    quick.bits = format.bits;
    quick.bytes = format.bytes;
    quick.width = (unsigned)texels.width;
    quick.height = (unsigned)texels.height;
    quick.depth = (unsigned)texels.depth;
    const int sizes[] = {texels.width, texels.height, texels.depth};
    for (unsigned i = 0; i < 3; ++i)
        quick.axes[i] = quick_axis(desc, sizes[i], desc.addressMode[i]);
    if (texture.is_surface) {
        quick.code = QUICK_SURFACE;
        return quick;
    }
    const bool is_float = format.kind == cudaChannelFormatKindFloat;
    quick.is_signed = format.kind == cudaChannelFormatKindSigned;
    quick.linear = texture.dimensions && desc.filterMode == cudaFilterModeLinear;
    quick.mask = quick.linear ? ~0 : -ONE;
    quick.channels = format.channels;
    quick.converts = desc.readMode == cudaReadModeNormalizedFloat && !is_float && format.bits < 32;
    if (texture.levels > 1 || cube || (is_float && format.bits == 16)) return quick;
    if (texture.dimensions == 1 && !layered && quick.linear && quick.axes[0].bordered) return quick;
    const unsigned ways = texture.dimensions | (layered ? QUICK_LAYERED : 0);
    if (quick.converts || is_float)
        quick.code = quick_code(ways, format.channels, 4, true, true);
    else
        quick.code = quick_code(ways, format.channels, format.bits / 8, false, quick.is_signed);
    return quick;
}

static inline Four loaded(const char* const* corners, unsigned offset) {
    int values[4];
    for (int i = 0; i < 4; ++i) memcpy(&values[i], corners[i] + offset, sizeof values[i]);
    return Four{values[0], values[1], values[2], values[3]};
}
// Corners that are not apart are the same texel, so that each is touched.
void blend_corners(const QuickTexture& quick, const char* const* corners, const int* fractions,
                   unsigned* result) {
    const int behind = fractions[2], slices = behind ? 2 : 1;
    const Four weights[] = {weights_at(fractions[0], fractions[1], ONE - behind),
                            weights_at(fractions[0], fractions[1], behind)};
    if (!quick.converts) {
        for (unsigned i = 0; i < quick.channels; ++i) {
            if (slices == 1) {
                const Four values[] = {loaded(corners, 4 * i)};
                result[i] = (unsigned)Float::blend(1, weights, values);
            } else {
                const Four values[] = {loaded(corners, 4 * i), loaded(corners + 4, 4 * i)};
                result[i] = (unsigned)Float::blend(2, weights, values);
            }
        }
        return;
    }
    const TexelFormat format = {
        quick.channels, quick.bits, quick.bytes,
        quick.is_signed ? cudaChannelFormatKindSigned : cudaChannelFormatKindUnsigned};
    for (unsigned channel = 0; channel < quick.channels; ++channel) {
        int64_t sum = 0;
        for (int i = 0; i < 4 * slices; ++i)
            sum += (int64_t)weights[i / 4][i % 4] * channel_of(format, corners[i], channel);
        result[channel] = blend_integers(format, (int)sum);
    }
}

// ------------------------------------------------------------------ what kernels call

// The object's texture. As on a GPU, reads of what is none give zeros, and writes are lost.
static const Texture* used(cudaTextureObject_t object, bool surface) {
    const Texture* texture = texture_of(object);
    if (texture && texture->is_surface == surface) return texture;
    static bool told;
    if (!__atomic_exchange_n(&told, true, __ATOMIC_RELAXED))
        fprintf(stderr, "cudalab: a kernel uses a %s that does not exist (%llu): %s\n",
                surface ? "surface" : "texture", object,
                surface ? "nothing is read or written" : "it reads zeros");
    return nullptr;
}

// The quick case: a read of a plane of which a single texel is the result. False in other cases.
static bool find_texel(const Texture& texture, const TextureRead& s, const char*& texel) {
    const cudaTextureDesc& desc = texture.desc;
    const bool linear = desc.filterMode == cudaFilterModeLinear;
    if (texture.levels > 1 || texture.flags || texture.dimensions - 1 > 1 || s.dimensions > 2 ||
        s.component || s.layered || s.cube)
        return false;
    if (linear && (s.dimensions == 1 || texture.format.bits < 32 || desc.normalizedCoords))
        return false;  // rarely a single one
    const Texels& texels = texture.level[0];
    const Axis x = locate((double)s.x, 0, texels.width, desc.addressMode[0], desc.normalizedCoords,
                          linear, true);
    const double v = s.dimensions == 1 ? 0 : (double)s.y;
    const Axis y = locate(v, 0, texels.height, desc.addressMode[s.dimensions - 1],
                          desc.normalizedCoords, linear, true);
    if (x.fraction || y.fraction) return false;
    texel = x.index[0] < 0 || y.index[0] < 0 ? nullptr
                                             : texels.data + (size_t)y.index[0] * texels.row +
                                                   (size_t)x.index[0] * texture.format.bytes;
    return true;
}
static void read_any(const Texture& texture, const TextureRead& s, unsigned* result) {
    const unsigned channels = texture.format.channels;
    if (const char* texel; find_texel(texture, s, texel)) {
        const bool linear = texture.desc.filterMode == cudaFilterModeLinear;
        for (unsigned i = 0; i < channels; ++i) {
            result[i] = texel ? read_channel(texture, texel, i) : read_border(texture, i);
            if (linear) result[i] = passed(result[i]);
        }
        return;
    }
    Footprint footprint;
    if (!find_texels(texture, s, footprint)) return;
    if (s.component) {
        static const int order[] = {2, 3, 1, 0};
        const unsigned channel = s.component - 1u;
        for (int i = 0; channel < channels && i < 4; ++i) {
            const char* texel = footprint.texel[order[i]];
            result[i] =
                texel ? read_channel(texture, texel, channel) : read_border(texture, channel);
        }
        return;
    }
    const bool filtered =
        texture.desc.filterMode == cudaFilterModeLinear ||
        (texture.levels > 1 && texture.desc.mipmapFilterMode == cudaFilterModeLinear);
    for (unsigned i = 0; i < channels; ++i)
        result[i] = filtered             ? filter_channel(texture, footprint, i)
                    : footprint.texel[0] ? read_channel(texture, footprint.texel[0], i)
                                         : read_border(texture, i);
}

void read_texture(const TextureRead& s, unsigned* result) {
    result[0] = result[1] = result[2] = result[3] = 0;
    if (const Texture* texture = used(s.texture, false)) read_any(*texture, s, result);
}

unsigned texels(const TextureRead& s, const void** addresses, unsigned* bytes) {
    const Texture* texture = used(s.texture, false);
    Footprint footprint;
    if (!texture || !find_texels(*texture, s, footprint)) return 0;
    *bytes = texture->format.bytes;
    unsigned count = 0;
    for (int i = 0; i < footprint.slices * 4; ++i)
        if (footprint.texel[i] && (footprint.weight[i / 4][i % 4] || s.component))
            addresses[count++] = footprint.texel[i];
    return count;
}

// A texel of linear memory, or null.
static const char* texel_of(const Texture* texture, int x) {
    if (!texture || texture->dimensions || (unsigned)x >= (unsigned)texture->level[0].width)
        return nullptr;
    return texture->level[0].data + (size_t)x * texture->format.bytes;
}
void fetch(cudaTextureObject_t object, int x, unsigned* result) {
    const Texture* texture = used(object, false);
    const char* texel = texel_of(texture, x);
    for (unsigned i = 0; i < 4; ++i)
        result[i] = texel && i < texture->format.channels ? read_channel(*texture, texel, i) : 0;
}
unsigned texel(cudaTextureObject_t object, int x, const void** address) {
    const Texture* texture = used(object, false);
    *address = texel_of(texture, x);
    return *address ? texture->format.bytes : 0;
}

// The greater of the two lengths in texels, as a level. (A GPU only estimates it.)
float level_of_detail(cudaTextureObject_t object, unsigned dimensions, const float* dx,
                      const float* dy) {
    const Texture* texture = used(object, false);
    if (!texture) return 0;
    const Texels& texels = texture->level[0];
    const int sizes[] = {texels.width, texels.height, texels.depth};
    double squares[2] = {0, 0};
    for (unsigned i = 0; i < dimensions; ++i) {
        squares[0] += pow((double)dx[i] * sizes[i], 2);
        squares[1] += pow((double)dy[i] * sizes[i], 2);
    }
    return (float)log2(fmax(squares[0], squares[1])) / 2;
}

// Says what a kernel has done with a surface, and fails as a GPU does: at an address that is
// misaligned, or illegal. The sanitizer reads the text.
extern "C" __attribute__((visibility("default"))) char cudalab_crash_cause[200] = "";
#define FAIL_AT(address, ...)                                                   \
    do {                                                                        \
        snprintf(cudalab_crash_cause, sizeof cudalab_crash_cause, __VA_ARGS__); \
        fprintf(stderr, "cudalab: %s\n", cudalab_crash_cause);                  \
        *(volatile char*)(address) = 0;                                         \
    } while (0)

static int clamp(int x, int last) {
    return x < 0 ? 0 : x > last ? last : x;
}
char* find_element(cudaSurfaceObject_t object, int x_bytes, int y, int z, unsigned bytes,
                   cudaSurfaceBoundaryMode mode) {
    const Texture* surface = used(object, true);
    if (!surface) return nullptr;
    const Texels& t = surface->level[0];
    if ((unsigned)x_bytes % bytes)
        FAIL_AT(0x8000000000000000, "byte %d of a surface's row does not begin an element of %u",
                x_bytes, bytes);
    const int last = (int)(t.row - bytes);
    if (x_bytes >= 0 && x_bytes <= last && (unsigned)y < (unsigned)t.height &&
        (unsigned)z < (unsigned)t.depth)
        return t.data + (size_t)z * t.slice + (size_t)y * t.row + (size_t)x_bytes;
    if (mode == cudaBoundaryModeZero) return nullptr;
    if (mode == cudaBoundaryModeTrap)
        FAIL_AT(8,
                "byte %d of row %d of slice %d is outside a surface with rows of %zu bytes, %d "
                "rows and %d slices",
                x_bytes, y, z, t.row, t.height, t.depth);
    return t.data + (size_t)clamp(z, t.depth - 1) * t.slice +
           (size_t)clamp(y, t.height - 1) * t.row + (size_t)clamp(x_bytes, last);
}

}  // namespace cudalab
