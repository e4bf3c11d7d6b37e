// Reads of textures and surfaces that kernels make by themselves: of one level, of no cube, and of
// texels that have the type that is read or are small integers read as floats. sampling.cpp says
// how textures are read, and reads the others.
#pragma once

#include "arrays.h"

namespace cudalab {

const int WEIGHT_BITS = 8, ONE = 1 << WEIGHT_BITS;  // weights, and fractions of a texel

// One dimension of a texture. A coordinate becomes a whole number of steps, and these a position in
// parts of a texel: (steps * size + offset) >> drop.
struct QuickAxis {
    float end, scale;  // the coordinate behind the last texel; steps to 1
    int64_t size, offset;
    int drop, last;   // the last texel's position
    int bits;         // of the steps to 1
    float low, high;  // the coordinates between which no texel is a border's, if any may be
    bool bordered, wraps, mirrors;
};
// What a read needs to know of a texture or a surface, by its object.
struct QuickTexture {
    unsigned code;  // of the reads that may use this, or 0
    int mask;       // drops the parts of a texel if nothing is filtered
    bool linear, converts;
    unsigned char channels, bits, bytes;  // of a texel; of a channel; of a texel
    bool is_signed;
    unsigned width, height, depth;  // or layers
    const char* data;
    size_t row, slice;  // distances in bytes
    QuickAxis axes[3];
};

#pragma GCC visibility push(default)
extern QuickTexture*
    quick_textures;  // the first belongs to no object, as does each with the code 0
extern size_t num_quick_textures;
// Sums of the texels at the corners, for each channel.
void blend_corners(const QuickTexture& texture, const char* const* corners, const int* fractions,
                   unsigned* result);
#pragma GCC visibility pop

// A type of texels and a way to read them as a number.
const unsigned QUICK_LAYERED = 4;
const unsigned QUICK_SURFACE = 2, QUICK_NONE = 4;  // codes of textures are odd
constexpr unsigned quick_code(unsigned ways, unsigned channels, unsigned bytes, bool is_float,
                              bool is_signed) {
    return 1 | ways << 1 | (unsigned)is_float << 5 | (unsigned)is_signed << 6 | bytes << 7 |
           channels << 10;
}
template <class T>
constexpr unsigned quick_code(unsigned ways) {
    typedef typename Texel<T>::channel C;
    return quick_code(ways, Texel<T>::count, sizeof(C), (C)0.5f != 0, (C)-1 < 0);
}

inline const QuickTexture& quick_texture(unsigned long long object) {
    return quick_textures[object < num_quick_textures ? object : 0];
}

// The position that so many steps lead to.
inline int position_of(const QuickTexture& texture, const QuickAxis& axis, int64_t steps) {
    return (int)((steps * axis.size + axis.offset) >> axis.drop) & texture.mask;
}
// The texel at a coordinate, the next one, and how far it is to that.
struct QuickPlace {
    int index, next, fraction;
};
inline QuickPlace place_of(const QuickTexture& texture, const QuickAxis& axis, float x) {
    const int last = axis.last >> WEIGHT_BITS;
    if (!axis.wraps && !axis.mirrors) {
        x = x > 0 ? x : 0;  // NaNs, too
        x = x < axis.end ? x : axis.end;
        int at = position_of(texture, axis, (int64_t)(x * axis.scale));
        at = at < 0 ? 0 : at > axis.last ? axis.last : at;
        const int index = at >> WEIGHT_BITS, fraction = at & (ONE - 1);
        return {index, index + (fraction != 0), fraction};
    }
    const float size = __builtin_fabsf(x);
    const double scaled =
        size >= 1.17549435e-38f && size <= 1073741824.f ? (double)x * axis.scale : 0;
    int64_t steps = (int64_t)scaled;
    steps -= (double)steps > scaled;  // rounded down
    const int at = position_of(texture, axis, steps & (((int64_t)1 << axis.bits) - 1));
    const int fraction = at & (ONE - 1);
    int index = at >> WEIGHT_BITS, next = index + (fraction != 0);
    if (axis.wraps) return {index < 0 ? last : index, next > last ? 0 : next, fraction};
    if (steps >> axis.bits & 1) index = last - index, next = last - next;
    index = index < 0 ? 0 : index > last ? last : index;
    return {index, next < 0 ? 0 : next > last ? last : next, fraction};
}

// A float that a filter lets pass: no denormal, and only one NaN.
inline unsigned passed(unsigned bits) {
    if (!(bits & 0x7f800000)) return bits & 0x80000000;
    return (bits & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : bits;
}
// A channel of a texel, an integer of 8 or 16 bits.
inline int small_integer(const char* texel, unsigned channel, unsigned bits, bool is_signed) {
    if (bits == 8) {
        const unsigned char value = (unsigned char)texel[channel];
        return is_signed ? (signed char)value : value;
    }
    unsigned short value;
    __builtin_memcpy(&value, texel + 2 * channel, sizeof value);
    return is_signed ? (short)value : value;
}

// The texel as it is stored.
template <class T>
inline T stored_texel(const char* texel, bool linear) {
    typedef typename Texel<T>::channel C;
    T result;
    if ((C)0.5f == 0 || !linear) {
        __builtin_memcpy((void*)&result, texel, sizeof result);
        return result;
    }
    unsigned channels[Texel<T>::count];
    __builtin_memcpy(channels, texel, sizeof channels);
    for (unsigned& each : channels) each = passed(each);
    __builtin_memcpy((void*)&result, channels, sizeof result);
    return result;
}
// Small integers as floats from 0 or -1 to 1.
template <class T>
inline T converted_texel(const QuickTexture& texture, const char* texel) {
    float channels[Texel<T>::count];
    const float greatest = (float)((1 << (texture.bits - texture.is_signed)) - 1);
    for (int i = 0; i < Texel<T>::count; ++i) {
        const float value =
            (float)small_integer(texel, i, texture.bits, texture.is_signed) / greatest;
        channels[i] = value < -1 ? -1 : value;
    }
    T result;
    __builtin_memcpy((void*)&result, channels, sizeof result);
    return result;
}

// The kinds of reads that the compiler knows.
template <unsigned dimensions, bool is_cube, bool is_layered>
struct ShapedRead {
    unsigned long long object;
    float x, y, z;
    int layer;
    float lod;
    template <class T>
    static constexpr unsigned code() {
        return is_cube ? QUICK_NONE : quick_code<T>(dimensions | (is_layered ? QUICK_LAYERED : 0));
    }
    const char* layer_of(const QuickTexture& texture) const {
        if (!is_layered) return texture.data;
        const unsigned last = texture.depth - 1;
        return texture.data + ((unsigned)layer < last ? (unsigned)layer : last) * texture.slice;
    }
    float coordinate(unsigned axis) const { return axis == 0 ? x : axis == 1 ? y : z; }
};

// A read inside a texture that leads to a single texel, the same in all modes.
inline bool is_inside(const QuickTexture& texture, const QuickAxis& axis, float x, int& at) {
    if (!(x >= 0 && x < axis.end)) return false;
    at = position_of(texture, axis, (int64_t)(x * axis.scale));
    return (unsigned)at <= (unsigned)axis.last && at % ONE == 0;
}
template <class T, unsigned dimensions, bool cube, bool layered>
inline bool read_inside(const ShapedRead<dimensions, cube, layered>& at, T& result) {
    const QuickTexture& texture = quick_texture(at.object);
    if (texture.code != at.template code<T>() || texture.converts) return false;
    int x = 0, y = 0, z = 0;
    if (!is_inside(texture, texture.axes[0], at.x, x)) return false;
    if (dimensions > 1 && !is_inside(texture, texture.axes[1], at.y, y)) return false;
    if (dimensions > 2 && !is_inside(texture, texture.axes[2], at.z, z)) return false;
    const size_t column = (size_t)x / ONE, row = (size_t)y / ONE, slice = (size_t)z / ONE;
    const char* texel =
        at.layer_of(texture) + slice * texture.slice + row * texture.row + column * sizeof(T);
    result = stored_texel<T>(texel, texture.linear);
    return true;
}
// Any read that needs nothing of the runtime but the sum of several texels.
template <class T, unsigned dimensions, bool cube, bool layered>
inline __attribute__((always_inline)) bool read_quickly(
    const ShapedRead<dimensions, cube, layered>& at, T& result) {
    const QuickTexture& texture = quick_texture(at.object);
    if (texture.code != at.template code<T>()) return false;
    size_t first[3] = {}, next[3] = {};  // distances of the texels along each axis
    const size_t strides[] = {texture.bytes, texture.row, texture.slice};
    int fractions[3] = {}, fraction = 0;
    for (unsigned i = 0; i < dimensions; ++i) {
        const QuickAxis& axis = texture.axes[i];
        const float x = at.coordinate(i);
        if (axis.bordered && !(x >= axis.low && x <= axis.high)) return false;
        const QuickPlace place = place_of(texture, axis, x);
        first[i] = (size_t)place.index * strides[i];
        next[i] = (size_t)place.next * strides[i];
        fraction |= fractions[i] = place.fraction;
    }
    const char* data = at.layer_of(texture);
    const char* texel = data + first[0] + first[1] + first[2];
    if (fraction || (texture.converts && texture.linear)) {
        const char* corners[8];
        for (unsigned i = 0; i < (dimensions > 2 ? 8 : 4); ++i)
            corners[i] = data + (i & 1 ? next : first)[0] + (i & 2 ? next : first)[1] +
                         (i & 4 ? next : first)[2];
        unsigned bits[4];
        blend_corners(texture, corners, fractions, bits);
        __builtin_memcpy((void*)&result, bits, sizeof result);
        return true;
    }
    result = texture.converts ? converted_texel<T>(texture, texel)
                              : stored_texel<T>(texel, texture.linear);
    return true;
}

// A texel of linear memory.
template <class T>
inline bool fetch_quickly(unsigned long long object, int x, T& result) {
    const QuickTexture& texture = quick_texture(object);
    if (texture.code != quick_code<T>(0) || (unsigned)x >= texture.width) return false;
    const char* texel = texture.data + (size_t)x * texture.bytes;
    result = texture.converts ? converted_texel<T>(texture, texel) : stored_texel<T>(texel, false);
    return true;
}
// An element of a surface, or null if the runtime has to look for it.
inline char* quick_element(unsigned long long object, int x_bytes, int y, int z, unsigned bytes) {
    const QuickTexture& surface = quick_texture(object);
    const size_t x = (unsigned)x_bytes;
    if (surface.code != QUICK_SURFACE || x + bytes > surface.row || x % bytes ||
        (unsigned)y >= surface.height || (unsigned)z >= surface.depth)
        return nullptr;
    return (char*)surface.data + (size_t)z * surface.slice + (size_t)y * surface.row + x;
}

}  // namespace cudalab
