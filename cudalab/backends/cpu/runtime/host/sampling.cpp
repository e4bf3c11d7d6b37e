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

#include "texels.h"

namespace cudalab {

static const int WEIGHT_BITS = 8, ONE = 1 << WEIGHT_BITS;  // weights, and fractions of a texel
static const int GUARD_BITS = 4, SLICE_GUARD_BITS = 14;    // below the mantissa

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

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

// A coordinate as a whole number with `bits` fractional bits; `offset` is added to it.
struct Position {
    int64_t value;
    int bits;
    bool wraps, mirrors, mirrored;
};
static inline Position position_of(double x, double offset, int size, int mode, bool normalized) {
    Position position;
    const int bits = position.bits = size <= 8192 ? 21 : size <= 65536 ? 22 : 23;
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
    int weight[16];
    bool touched[16];  // a NaN counts although the weight is rounded to 0
    int slices;
};

// Adds one slice of `total` weights: the texel at two axes, or two or four of them.
static void add_slice(Footprint& to, const Texture& texture, const Texels& texels, const Axis& x,
                      const Axis& y, int z, int total) {
    const int right = (total * x.fraction + ONE / 2) >> WEIGHT_BITS, left = total - right;
    const int below_left = (left * y.fraction + ONE / 2 - 1) >> WEIGHT_BITS;
    const int below_right = (right * y.fraction + ONE / 2) >> WEIGHT_BITS;
    const int weights[] = {left - below_left, right - below_right, below_left, below_right};
    const size_t bytes = texture.format.bytes;
    for (int i = 0; i < 4; ++i) {
        const int column = x.index[i & 1], row = y.index[i >> 1], at = to.slices * 4 + i;
        const bool border = column < 0 || row < 0 || z < 0;
        to.texel[at] = border ? nullptr
                              : texels.data + (size_t)z * texels.slice + (size_t)row * texels.row +
                                    (size_t)column * bytes;
        to.weight[at] = weights[i];
        to.touched[at] = total && (!(i & 1) || x.fraction) && (!(i & 2) || y.fraction);
    }
    ++to.slices;
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

// ------------------------------------------------------------------ floats and halves

// The format of a floating-point number.
struct FloatFormat {
    int mantissa_bits, exponent_bits;
    bool has_denormals;
};
static const FloatFormat FLOAT = {23, 8, false}, HALF = {10, 5, true};

static uint32_t blend(const FloatFormat& format, const Footprint& footprint,
                      const uint32_t* values) {
    const int top = (1 << format.exponent_bits) - 1;
    const uint32_t hidden = 1u << format.mantissa_bits, sign_bit = hidden << format.exponent_bits;
    const uint32_t infinity = (uint32_t)top << format.mantissa_bits;
    bool nan = false, negative = true, infinite[2] = {false, false};
    int64_t sums[4];
    int exponents[4], greatest = 0;
    for (int slice = 0; slice < footprint.slices; ++slice) {
        int exponent[4], highest = 0;
        uint32_t mantissa[4];
        for (int i = 0; i < 4; ++i) {
            const int at = slice * 4 + i;
            const uint32_t value = values[at];
            exponent[i] = (int)(value >> format.mantissa_bits) & top;
            mantissa[i] = value & (hidden - 1);
            if (!footprint.touched[at]) continue;
            if (exponent[i] == top) {
                if (mantissa[i])
                    nan = true;
                else
                    infinite[(value & sign_bit) != 0] = true;
            }
            if (exponent[i]) {
                mantissa[i] |= hidden;
            } else {
                if (!format.has_denormals) mantissa[i] = 0;
                exponent[i] = mantissa[i] ? 1 : 0;
            }
            if (footprint.weight[at] && exponent[i] > highest) highest = exponent[i];
        }
        int64_t sum = 0;
        for (int i = 0; i < 4; ++i) {
            const int at = slice * 4 + i, shift = highest - exponent[i];
            if (!footprint.weight[at]) continue;
            negative = negative && values[at] & sign_bit;
            if (shift > 31) continue;
            const int64_t product =
                ((int64_t)mantissa[i] << GUARD_BITS >> shift) * footprint.weight[at];
            sum += values[at] & sign_bit ? -product : product;
        }
        sums[slice] = sum;
        exponents[slice] = sum ? highest : 0;
        if (exponents[slice] > greatest) greatest = exponents[slice];
    }
    if (nan || (infinite[0] && infinite[1])) return sign_bit - 1;
    if (infinite[0] || infinite[1]) return infinity | (infinite[1] ? sign_bit : 0);
    int below = GUARD_BITS + WEIGHT_BITS;  // bits of the sum below the last one of the mantissa
    int64_t sum = sums[0];
    if (footprint.slices > 1) {
        sum = 0;
        for (int slice = 0; slice < footprint.slices; ++slice) {
            const int shift = greatest - exponents[slice] + below - SLICE_GUARD_BITS;
            if (sums[slice])
                sum += shift < 0 ? sums[slice] << -shift : sums[slice] >> (shift > 63 ? 63 : shift);
        }
        below = SLICE_GUARD_BITS;
    }
    if (!sum) return negative ? sign_bit : 0;
    const uint32_t sign = sum < 0 ? sign_bit : 0;
    const uint64_t magnitude = sum < 0 ? (uint64_t)-sum : (uint64_t)sum;
    int shift = 63 - __builtin_clzll(magnitude) - format.mantissa_bits;
    int exponent = greatest + shift - below;
    if (exponent < 1) {
        if (!format.has_denormals) return sign;
        shift += 1 - exponent;
        exponent = 1;
    }
    const uint64_t rounded =
        shift > 0 ? (magnitude + ((uint64_t)1 << (shift - 1))) >> shift : magnitude << -shift;
    // The hidden bit, where there is one, adds 1 to the exponent.
    const uint64_t result = ((uint64_t)(exponent - 1) << format.mantissa_bits) + rounded;
    return sign | (result < infinity ? (uint32_t)result : infinity);
}

static uint32_t float_of_half(uint32_t half) {
    const uint32_t sign = (half & 0x8000) << 16, exponent = half >> 10 & 31, mantissa = half & 1023;
    if (exponent == 31) return sign | 0x7f800000 | mantissa << 13;
    if (exponent) return sign | (exponent + 112) << 23 | mantissa << 13;
    return sign | bits_of((float)mantissa * 0x1p-24f);
}
// A border's color: cut off, not rounded.
static uint32_t half_of_border(float x) {
    const uint32_t bits = bits_of(fminf(fmaxf(x, -65504), 65504)), sign = bits >> 16 & 0x8000;
    const int exponent = (int)(bits >> 23 & 255) - 112;
    if (exponent > 0) return sign | (uint32_t)exponent << 10 | (bits >> 13 & 1023);
    return sign | (exponent < -10 ? 0 : (0x400 | (bits >> 13 & 1023)) >> (1 - exponent));
}

// ------------------------------------------------------------------ integers

static int channel_of(const TexelFormat& format, const char* texel, unsigned channel) {
    const bool is_signed = format.kind == cudaChannelFormatKindSigned;
    if (format.bits == 8) {
        const unsigned char value = (unsigned char)texel[channel];
        return is_signed ? (signed char)value : value;
    }
    if (format.bits == 16) {
        unsigned short value;
        memcpy(&value, texel + channel * 2, 2);
        return is_signed ? (short)value : value;
    }
    int value;
    memcpy(&value, texel + channel * 4, 4);
    return value;
}
static float greatest_of(const TexelFormat& format) {
    const bool is_signed = format.kind == cudaChannelFormatKindSigned;
    return (float)((1 << (format.bits - is_signed)) - 1);
}
// A border's color: rounded, halves towards zero.
static int border_of(const TexelFormat& format, float color) {
    const float least = format.kind == cudaChannelFormatKindSigned ? -1 : 0;
    const float value = fminf(fmaxf(color, least), 1) * greatest_of(format);
    int rounded = (int)fabsf(value);
    rounded += fabsf(value) - (float)rounded > 0.5f;
    return value < 0 ? -rounded : rounded;
}

// A number of 16 bits, from the sum of weighted integers.
static uint32_t blend_integers(const TexelFormat& format, int sum) {
    if (format.kind == cudaChannelFormatKindUnsigned) {
        const int value = format.bits == 8 ? sum + ((sum + ONE / 2) >> WEIGHT_BITS)
                                           : (int)(((unsigned)sum + ONE / 2) >> WEIGHT_BITS);
        return bits_of((float)value / 65535);
    }
    int value = format.bits == 8 ? sum + (((sum >> 4) + (sum >> 12) + 4) >> 3)
                                 : (sum + ONE / 2) >> WEIGHT_BITS;
    value = value < -32767 ? -32767 : value > 32767 ? 32767 : value;
    return bits_of((float)value / 32767);
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
    uint32_t values[16];
    if (format.kind != cudaChannelFormatKindFloat) {
        int64_t sum = 0;
        for (int i = 0; i < count; ++i)
            if (footprint.weight[i])
                sum += (int64_t)footprint.weight[i] *
                       (footprint.texel[i] ? channel_of(format, footprint.texel[i], channel)
                                           : border_of(format, color));
        return blend_integers(format, (int)sum);
    }
    const unsigned bytes = format.bits / 8;
    for (int i = 0; i < count; ++i) {
        values[i] = 0;
        if (!footprint.touched[i]) continue;
        if (footprint.texel[i])
            memcpy(&values[i], footprint.texel[i] + channel * bytes, bytes);
        else
            values[i] = bytes == 2 ? half_of_border(color) : bits_of(color);
    }
    if (bytes == 2) return float_of_half(blend(HALF, footprint, values));
    return blend(FLOAT, footprint, values);
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
// The same for a texture that is_plain: the index at one coordinate, or -1 if more is to be done.
static inline int plain_index(float x, int size, bool linear) {
    if (!(fabsf(x) < 1 << 20) || (fabsf(x) < 0x1p-126f && x != 0)) return -1;
    const int64_t value = (int64_t)floorf(x * (1 << 21));
    int64_t index = value >> 21;
    if (linear) {
        const int drop = 21 - WEIGHT_BITS, last = (size - 1) * ONE;
        const int64_t at = ((value + (1 << (drop - 1))) >> drop) - ONE / 2;
        const int64_t inside = at < 0 ? 0 : at > last ? last : at;
        if (inside & (ONE - 1)) return -1;
        index = inside >> WEIGHT_BITS;
    }
    return index < 0 ? 0 : index >= size ? size - 1 : (int)index;
}
static inline const char* plain_texel(const Texture& texture, const TextureRead& s) {
    const bool linear = texture.desc.filterMode == cudaFilterModeLinear;
    if (s.dimensions - 1u > 1 || s.component || s.layered || s.cube) return nullptr;
    if (linear && s.dimensions == 1) return nullptr;
    const Texels& texels = texture.level[0];
    const int x = plain_index(s.x, texels.width, linear);
    const int y = s.dimensions == 1 ? 0 : plain_index(s.y, texels.height, linear);
    return x < 0 || y < 0 ? nullptr
                          : texels.data + (size_t)y * texels.row + (size_t)x * texture.format.bytes;
}

// A float that a filter lets pass: no denormal, and only one NaN.
static uint32_t passed(uint32_t bits) {
    if (!(bits & 0x7f800000)) return bits & 0x80000000;
    return (bits & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : bits;
}

static __attribute__((noinline)) void read_any(const Texture& texture, const TextureRead& s,
                                               unsigned* result) {
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
    const Texture* texture = used(s.texture, false);
    if (!texture) return;
    const char* texel = texture->is_plain ? plain_texel(*texture, s) : nullptr;
    if (!texel) return read_any(*texture, s, result);
    const bool linear = texture->desc.filterMode == cudaFilterModeLinear;
    for (unsigned i = 0; i < texture->format.channels; ++i) {
        memcpy(&result[i], texel + 4 * i, 4);
        if (linear) result[i] = passed(result[i]);
    }
}

unsigned texels(const TextureRead& s, const void** addresses, unsigned* bytes) {
    const Texture* texture = used(s.texture, false);
    Footprint footprint;
    if (!texture || !find_texels(*texture, s, footprint)) return 0;
    *bytes = texture->format.bytes;
    unsigned count = 0;
    for (int i = 0; i < footprint.slices * 4; ++i)
        if (footprint.texel[i] && (footprint.weight[i] || s.component))
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

static int clamp(int x, int last) {
    return x < 0 ? 0 : x > last ? last : x;
}
char* element(cudaSurfaceObject_t object, int x_bytes, int y, int z, unsigned bytes,
              cudaSurfaceBoundaryMode mode) {
    const Texture* surface = used(object, true);
    if (!surface) return nullptr;
    const Texels& t = surface->level[0];
    if ((unsigned)x_bytes % bytes) {
        fprintf(stderr, "cudalab: byte %d of a surface's row does not begin an element of %u\n",
                x_bytes, bytes);
        *(volatile char*)0x8000000000000000 = 0;  // fails as a misaligned address does
    }
    const int last = (int)(t.row - bytes);
    if (x_bytes >= 0 && x_bytes <= last && (unsigned)y < (unsigned)t.height &&
        (unsigned)z < (unsigned)t.depth)
        return t.data + (size_t)z * t.slice + (size_t)y * t.row + (size_t)x_bytes;
    if (mode == cudaBoundaryModeZero) return nullptr;
    if (mode == cudaBoundaryModeTrap) {
        fprintf(stderr,
                "cudalab: byte %d of row %d of slice %d is outside a surface with rows of %zu "
                "bytes, %d rows and %d slices\n",
                x_bytes, y, z, t.row, t.height, t.depth);
        *(volatile char*)8 = 0;  // fails as an illegal address does
    }
    return t.data + (size_t)clamp(z, t.depth - 1) * t.slice +
           (size_t)clamp(y, t.height - 1) * t.row + (size_t)clamp(x_bytes, last);
}

}  // namespace cudalab
