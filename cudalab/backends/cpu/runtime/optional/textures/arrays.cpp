// CUDA arrays, and copies of boxes. An array lies row after row in device memory, which only this
// runtime addresses: programs copy to and from it, and read it through textures and surfaces.

#include <stdlib.h>
#include <string.h>

#include "sorted_map.h"
#include "texels.h"

namespace cudalab {

// The limits of an H200, in texels.
static const size_t MAX_1D = 131072, MAX_2D[] = {131072, 65536}, MAX_3D = 16384,
                    MAX_LAYERED = 32768, MAX_LAYERS = 2048;

static SortedMap<cudaArray*> arrays;  // of every kind, by address; those of levels, too
static SortedMap<cudaMipmappedArray*> mipmapped;

bool is_array(cudaArray_const_t array) {
    return arrays.find((uintptr_t)array) != arrays.end();
}
bool is_mipmapped_array(cudaMipmappedArray_const_t array) {
    return mipmapped.find((uintptr_t)array) != mipmapped.end();
}

bool format_of(const cudaChannelFormatDesc& desc, TexelFormat& format) {
    const int bits[] = {desc.x, desc.y, desc.z, desc.w};
    unsigned channels = 0;
    while (channels < 4 && bits[channels]) ++channels;
    for (unsigned i = 0; i < 4; ++i)
        if (bits[i] != (i < channels ? desc.x : 0)) return false;
    if (channels == 0 || channels == 3) return false;
    if (desc.x != 8 && desc.x != 16 && desc.x != 32) return false;
    const bool is_float = desc.f == cudaChannelFormatKindFloat;
    if (desc.f != cudaChannelFormatKindSigned && desc.f != cudaChannelFormatKindUnsigned &&
        !is_float)
        return false;
    if (is_float && desc.x == 8) return false;
    format = {(unsigned char)channels, (unsigned char)desc.x,
              (unsigned char)(channels * desc.x / 8), desc.f};
    return true;
}

static size_t at_least_1(size_t n) {
    return n ? n : 1;
}

static cudaError_t check_extent(Call& call, const cudaExtent& e, unsigned flags) {
    const bool layered = flags & cudaArrayLayered, cube = flags & cudaArrayCubemap;
    bool good = e.width > 0;
    if (cube)
        good = good && e.width == e.height && e.width <= MAX_LAYERED &&
               (layered ? e.depth && e.depth % 6 == 0 && e.depth <= MAX_LAYERS : e.depth == 6);
    else if (layered)
        good = good && e.depth && e.depth <= MAX_LAYERS && e.width <= MAX_LAYERED &&
               e.height <= MAX_LAYERED;
    else if (e.depth)
        good = good && e.height && e.width <= MAX_3D && e.height <= MAX_3D && e.depth <= 2 * MAX_3D;
    else if (e.height)
        good = good && e.width <= MAX_2D[0] && e.height <= MAX_2D[1];
    else
        good = good && e.width <= MAX_1D;
    if (flags & cudaArrayTextureGather) good = good && e.height && (!e.depth || layered);
    if (good) return cudaSuccess;
    return call.fail(cudaErrorInvalidValue, "no array has %zu x %zu x %zu texels and flags %#x",
                     e.width, e.height, e.depth, flags);
}

static size_t bytes_of(const TexelFormat& format, const cudaExtent& e) {
    return e.width * at_least_1(e.height) * at_least_1(e.depth) * format.bytes;
}
static void describe(cudaArray& array, const cudaChannelFormatDesc& desc, const TexelFormat& format,
                     const cudaExtent& e, unsigned flags, char* data) {
    const size_t row = e.width * format.bytes, height = at_least_1(e.height);
    array.desc = desc;
    array.extent = e;
    array.flags = flags;
    array.format = format;
    array.texels = {data, (int)e.width, (int)height, (int)at_least_1(e.depth), row, row * height};
    array.owned = nullptr;
    arrays[(uintptr_t)&array] = &array;
}

static cudaError_t check_new(Call& call, const void* array, const cudaChannelFormatDesc* desc,
                             const cudaExtent& extent, unsigned flags, TexelFormat& format) {
    if (cudaError_t error = call.pending()) return error;
    if (!array || !desc) return call.fail(cudaErrorInvalidValue, "a pointer is null");
    if (!format_of(*desc, format))
        return call.fail(cudaErrorInvalidChannelDescriptor,
                         "no texel has channels of %d, %d, %d, %d bits and kind %d", desc->x,
                         desc->y, desc->z, desc->w, (int)desc->f);
    return check_extent(call, extent, flags);
}

static cudaError_t new_array(Call& call, cudaArray_t* array, const cudaChannelFormatDesc* desc,
                             const cudaExtent& extent, unsigned flags) {
    TexelFormat format;
    if (cudaError_t error = check_new(call, array, desc, extent, flags, format)) return error;
    void* data;
    if (cudaError_t error = allocate(call, &data, bytes_of(format, extent))) return error;
    *array = (cudaArray*)malloc(sizeof(cudaArray));
    describe(**array, *desc, format, extent, flags, (char*)data);
    (*array)->owned = data;
    return cudaSuccess;
}

// ------------------------------------------------------------------ boxes

// One side of a copy: where the first byte is, and the distances between rows and slices.
struct Side {
    char* data;
    size_t row, slice;
    bool on_device;
};

// `bytes` wide, `height` rows, `depth` slices. The sides may overlap only where they are the same.
static void copy_box(const Side& to, const Side& from, size_t bytes, size_t height, size_t depth) {
    Access access;
    for (size_t z = 0; z < depth; ++z)
        for (size_t y = 0; y < height; ++y) {
            char* target = to.data + z * to.slice + y * to.row;
            memmove(target, from.data + z * from.slice + y * from.row, bytes);
            memory_written(target, bytes);
        }
}

// A box of an array, in bytes from the start of its rows; CUDA rounds down to whole texels.
static cudaError_t side_of(Call& call, const char* which, cudaArray_const_t array, size_t x_bytes,
                           size_t y, size_t z, size_t bytes, size_t height, size_t depth,
                           Side& side) {
    if (!is_array(array))
        return call.fail(cudaErrorInvalidResourceHandle, "the %s is not an array", which);
    const Texels& t = array->texels;
    if (x_bytes > t.row || bytes > t.row - x_bytes || y > (size_t)t.height ||
        height > t.height - y || z > (size_t)t.depth || depth > t.depth - z)
        return call.fail(cudaErrorInvalidValue,
                         "%zu bytes x %zu x %zu at (%zu, %zu, %zu) of the %s, which has rows of "
                         "%zu bytes, %d rows and %d slices",
                         bytes, height, depth, x_bytes, y, z, which, t.row, t.height, t.depth);
    side = {t.data + z * t.slice + y * t.row + x_bytes, t.row, t.slice, true};
    return cudaSuccess;
}
// A box of ordinary memory; the address tells on which side it is.
static cudaError_t side_of(Call& call, const char* which, const void* data, size_t row,
                           size_t slice_rows, size_t bytes, size_t height, size_t depth,
                           Side& side) {
    const size_t slice = row * slice_rows;
    const size_t reach = (depth - 1) * slice + (height - 1) * row + bytes;
    char why[300];
    const bool on_device = is_device_address(data);
    if (on_device ? !reaches(data, reach, why, sizeof why) : !is_for_host(data, why, sizeof why))
        return call.fail(cudaErrorInvalidValue, "the %s %s", which, why);
    side = {(char*)data, row, slice, on_device};
    return cudaSuccess;
}

static cudaError_t check_kind(Call& call, cudaMemcpyKind kind, bool to_array, bool from_array) {
    const bool good = kind == cudaMemcpyDefault || kind == cudaMemcpyDeviceToDevice ||
                      (to_array && !from_array && kind == cudaMemcpyHostToDevice) ||
                      (from_array && !to_array && kind == cudaMemcpyDeviceToHost);
    if (good) return cudaSuccess;
    return call.fail(cudaErrorInvalidMemcpyDirection, "an array is device memory");
}

// Copies that go on in the next row where one has ended. Where only part of a row is copied, the
// rest follows with the rows after it.
static cudaError_t run_of(Call& call, const char* which, cudaArray_const_t array, size_t x_bytes,
                          size_t y, size_t bytes, Side& run) {
    if (!is_array(array))
        return call.fail(cudaErrorInvalidResourceHandle, "the %s is not an array", which);
    const Texels& t = array->texels;
    const size_t all = t.row * t.height, offset = y * t.row + x_bytes;
    if (offset > all || bytes > all - offset || (bytes && y >= (size_t)t.height))
        return call.fail(cudaErrorInvalidValue,
                         "%zu bytes from (%zu, %zu) of the %s, which has rows of %zu bytes and "
                         "%d rows",
                         bytes, x_bytes, y, which, t.row, t.height);
    run = {t.data + offset, bytes, bytes, true};
    return cudaSuccess;
}

// A copy between an array and other memory: to the array, or from it.
struct Direction {
    bool to_array;
    const char *array = to_array ? "target" : "source", *memory = to_array ? "source" : "target";
    cudaError_t check(Call& call, cudaMemcpyKind kind) const {
        return check_kind(call, kind, to_array, !to_array);
    }
    void copy(const Side& array, const Side& memory, size_t bytes, size_t height) const {
        copy_box(to_array ? array : memory, to_array ? memory : array, bytes, height, 1);
    }
};
static const Direction TO_ARRAY{true}, FROM_ARRAY{false};

static cudaError_t copy_run(Call& call, Direction way, cudaArray_const_t array, size_t x_bytes,
                            size_t y, const void* memory, size_t bytes, cudaMemcpyKind kind) {
    if (cudaError_t error = call.pending()) return error;
    Side run, other;
    if (cudaError_t error = way.check(call, kind)) return error;
    if (cudaError_t error = run_of(call, way.array, array, x_bytes, y, bytes, run)) return error;
    if (!bytes) return cudaSuccess;
    if (cudaError_t error = side_of(call, way.memory, memory, bytes, 1, bytes, 1, 1, other))
        return error;
    way.copy(run, other, bytes, 1);
    return cudaSuccess;
}
static cudaError_t copy_rows(Call& call, Direction way, cudaArray_const_t array, size_t x_bytes,
                             size_t y, const void* memory, size_t pitch, size_t width,
                             size_t height, cudaMemcpyKind kind) {
    if (cudaError_t error = call.pending()) return error;
    Side rows, other;
    if (cudaError_t error = way.check(call, kind)) return error;
    if (width > pitch)
        return call.fail(cudaErrorInvalidPitchValue, "rows of %zu bytes, a pitch of %zu", width,
                         pitch);
    if (cudaError_t error = side_of(call, way.array, array, x_bytes, y, 0, width, height, 1, rows))
        return error;
    if (!width || !height) return cudaSuccess;
    if (cudaError_t error = side_of(call, way.memory, memory, pitch, 1, width, height, 1, other))
        return error;
    way.copy(rows, other, width, height);
    return cudaSuccess;
}

// ------------------------------------------------------------------ cudaMemcpy3D

static cudaError_t copy_3d(Call& call, const cudaMemcpy3DParms& p) {
    if (!!p.srcArray == !!p.srcPtr.ptr || !!p.dstArray == !!p.dstPtr.ptr)
        return call.fail(cudaErrorInvalidValue,
                         "each side of the copy is either an array or a pointer");
    const cudaExtent& e = p.extent;
    if (!e.width || !e.height || !e.depth) return cudaSuccess;
    if ((p.srcArray && !is_array(p.srcArray)) || (p.dstArray && !is_array(p.dstArray)))
        return call.fail(cudaErrorInvalidResourceHandle, "a side of the copy is no array");
    // Where an array takes part, widths are in its texels.
    const size_t unit = p.srcArray   ? p.srcArray->format.bytes
                        : p.dstArray ? p.dstArray->format.bytes
                                     : 1;
    const size_t bytes = e.width * unit;
    Side sides[2];
    const struct {
        const char* name;
        cudaArray_const_t array;
        const cudaPitchedPtr& memory;
        const cudaPos& at;
    } both[] = {{"target", p.dstArray, p.dstPtr, p.dstPos},
                {"source", p.srcArray, p.srcPtr, p.srcPos}};
    for (int i = 0; i < 2; ++i) {
        const auto& side = both[i];
        const cudaPos& at = side.at;
        if (side.array) {
            const size_t x_bytes = at.x * side.array->format.bytes;
            if (cudaError_t error = side_of(call, side.name, side.array, x_bytes, at.y, at.z, bytes,
                                            e.height, e.depth, sides[i]))
                return error;
            continue;
        }
        const cudaPitchedPtr& m = side.memory;
        const bool too_wide = m.pitch && at.x * unit + bytes > m.pitch;
        const bool too_high = e.depth > 1 && at.y + e.height > m.ysize;
        if (too_wide || too_high)
            return call.fail(p.srcArray || p.dstArray || at.y ? cudaErrorInvalidValue
                                                              : cudaErrorInvalidPitchValue,
                             "%zu bytes x %zu rows at (%zu, %zu) of the %s, whose pitch is %zu and "
                             "whose slices have %zu rows",
                             bytes, e.height, at.x * unit, at.y, side.name, m.pitch, m.ysize);
        const char* first = (const char*)m.ptr + at.z * m.pitch * m.ysize + at.y * m.pitch;
        if (cudaError_t error = side_of(call, side.name, first + at.x * unit, m.pitch, m.ysize,
                                        bytes, e.height, e.depth, sides[i]))
            return error;
    }
    copy_box(sides[0], sides[1], bytes, e.height, e.depth);
    return cudaSuccess;
}

}  // namespace cudalab

using namespace cudalab;

// ------------------------------------------------------------------ arrays

cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* format, size_t width,
                            size_t height, unsigned flags, const char* file, int line) {
    Call call("cudaMallocArray", {file, line});
    if (flags & (cudaArrayLayered | cudaArrayCubemap))
        return call.fail(cudaErrorInvalidValue, "layers and faces need cudaMalloc3DArray");
    return new_array(call, array, format, {width, height, 0}, flags);
}
cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* format,
                              cudaExtent extent, unsigned flags, const char* file, int line) {
    Call call("cudaMalloc3DArray", {file, line});
    return new_array(call, array, format, extent, flags);
}

cudaError_t cudaFreeArray(cudaArray_t array, const char* file, int line) {
    Call call("cudaFreeArray", {file, line});
    if (cudaError_t error = call.pending())
        return array ? not_released(array->owned, error) : error;
    if (!array) return cudaSuccess;
    auto found = arrays.find((uintptr_t)array);
    if (found == arrays.end() || !array->owned)
        return call.fail(cudaErrorInvalidResourceHandle, "this is not an array, or it is freed");
    wait_for_all_work();
    arrays.erase(found);
    cudaError_t error = release(call, array->owned, false);
    free(array);
    return error;
}

cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* format, cudaExtent* extent, unsigned* flags,
                             cudaArray_t array, const char* file, int line) {
    Call call("cudaArrayGetInfo", {file, line});
    if (cudaError_t error = call.pending()) return error;
    if (!is_array(array)) return call.fail(cudaErrorInvalidResourceHandle, "this is not an array");
    if (format) *format = array->desc;
    if (extent) *extent = array->extent;
    if (flags) *flags = array->flags;
    return cudaSuccess;
}
cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* format, cudaArray_const_t array,
                               const char* file, int line) {
    return cudaArrayGetInfo(format, nullptr, nullptr, (cudaArray_t)array, file, line);
}

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t* array, const cudaChannelFormatDesc* desc,
                                     cudaExtent extent, unsigned levels, unsigned flags,
                                     const char* file, int line) {
    Call call("cudaMallocMipmappedArray", {file, line});
    TexelFormat format;
    if (cudaError_t error = check_new(call, array, desc, extent, flags, format)) return error;
    const bool has_depth = !(flags & (cudaArrayLayered | cudaArrayCubemap));
    unsigned possible = 1;
    for (size_t size = extent.width | extent.height | (has_depth ? extent.depth : 0); size > 1;
         size /= 2)
        ++possible;
    if (levels > possible) levels = possible;
    if (levels == 0) return call.fail(cudaErrorInvalidValue, "a mipmapped array has levels");
    auto halved = [](size_t n, unsigned times) { return n ? at_least_1(n >> times) : 0; };
    cudaExtent extents[MAX_LEVELS];
    size_t offsets[MAX_LEVELS], bytes = 0;
    for (unsigned i = 0; i < levels; ++i) {
        extents[i] = {halved(extent.width, i), halved(extent.height, i),
                      has_depth ? halved(extent.depth, i) : extent.depth};
        offsets[i] = bytes;
        bytes += (bytes_of(format, extents[i]) + 511) / 512 * 512;
    }
    void* data;
    if (cudaError_t error = allocate(call, &data, bytes)) return error;
    cudaMipmappedArray* made = (cudaMipmappedArray*)malloc(sizeof(cudaMipmappedArray));
    made->levels = levels;
    made->owned = data;
    for (unsigned i = 0; i < levels; ++i)
        describe(made->level[i], *desc, format, extents[i], flags, (char*)data + offsets[i]);
    mipmapped[(uintptr_t)made] = made;
    *array = made;
    return cudaSuccess;
}

cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t array, const char* file, int line) {
    Call call("cudaFreeMipmappedArray", {file, line});
    if (cudaError_t error = call.pending())
        return array ? not_released(array->owned, error) : error;
    if (!array) return cudaSuccess;
    auto found = mipmapped.find((uintptr_t)array);
    if (found == mipmapped.end())
        return call.fail(cudaErrorInvalidResourceHandle,
                         "this is not a mipmapped array, or it is freed");
    wait_for_all_work();
    mipmapped.erase(found);
    for (unsigned i = 0; i < array->levels; ++i)
        arrays.erase(arrays.find((uintptr_t)&array->level[i]));
    cudaError_t error = release(call, array->owned, false);
    free(array);
    return error;
}

cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t* level_array, cudaMipmappedArray_const_t array,
                                       unsigned level, const char* file, int line) {
    Call call("cudaGetMipmappedArrayLevel", {file, line});
    if (cudaError_t error = call.pending()) return error;
    if (!is_mipmapped_array(array))
        return call.fail(cudaErrorInvalidResourceHandle, "this is not a mipmapped array");
    if (!level_array || level >= array->levels)
        return call.fail(cudaErrorInvalidValue, "level %u of %u", level, array->levels);
    *level_array = (cudaArray_t)&array->level[level];
    return cudaSuccess;
}

// ------------------------------------------------------------------ copies

cudaError_t cudaMemset3D(cudaPitchedPtr pointer, int value, cudaExtent extent, const char* file,
                         int line) {
    Call call("cudaMemset3D", {file, line});
    if (cudaError_t error = call.pending()) return error;
    if (!extent.width || !extent.height || !extent.depth) return cudaSuccess;
    if (extent.width > pointer.pitch || extent.height > pointer.ysize)
        return call.fail(cudaErrorInvalidValue,
                         "%zu bytes x %zu rows, a pitch of %zu, slices of %zu rows", extent.width,
                         extent.height, pointer.pitch, pointer.ysize);
    Side side;
    if (cudaError_t error = side_of(call, "target", pointer.ptr, pointer.pitch, pointer.ysize,
                                    extent.width, extent.height, extent.depth, side))
        return error;
    Access access;
    for (size_t z = 0; z < extent.depth; ++z)
        for (size_t y = 0; y < extent.height; ++y) {
            char* row = side.data + z * side.slice + y * side.row;
            memset(row, value, extent.width);
            memory_written(row, extent.width);
        }
    return cudaSuccess;
}

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* copy, const char* file, int line) {
    Call call("cudaMemcpy3D", {file, line});
    if (cudaError_t error = call.pending()) return error;
    if (!copy) return call.fail(cudaErrorInvalidValue, "the description of the copy is null");
    return copy_3d(call, *copy);
}

cudaError_t cudaMemcpyToArray(cudaArray_t target, size_t x_bytes, size_t y, const void* source,
                              size_t bytes, cudaMemcpyKind kind, const char* file, int line) {
    Call call("cudaMemcpyToArray", {file, line});
    return copy_run(call, TO_ARRAY, target, x_bytes, y, source, bytes, kind);
}
cudaError_t cudaMemcpyFromArray(void* target, cudaArray_const_t source, size_t x_bytes, size_t y,
                                size_t bytes, cudaMemcpyKind kind, const char* file, int line) {
    Call call("cudaMemcpyFromArray", {file, line});
    return copy_run(call, FROM_ARRAY, source, x_bytes, y, target, bytes, kind);
}
cudaError_t cudaMemcpyArrayToArray(cudaArray_t target, size_t target_x_bytes, size_t target_y,
                                   cudaArray_const_t source, size_t source_x_bytes, size_t source_y,
                                   size_t bytes, cudaMemcpyKind kind, const char* file, int line) {
    Call call("cudaMemcpyArrayToArray", {file, line});
    if (cudaError_t error = call.pending()) return error;
    Side to, from;
    if (cudaError_t error = check_kind(call, kind, true, true)) return error;
    if (cudaError_t error = run_of(call, "target", target, target_x_bytes, target_y, bytes, to))
        return error;
    if (cudaError_t error = run_of(call, "source", source, source_x_bytes, source_y, bytes, from))
        return error;
    if (bytes) copy_box(to, from, bytes, 1, 1);
    return cudaSuccess;
}

cudaError_t cudaMemcpy2DToArray(cudaArray_t target, size_t x_bytes, size_t y, const void* source,
                                size_t pitch, size_t width, size_t height, cudaMemcpyKind kind,
                                const char* file, int line) {
    Call call("cudaMemcpy2DToArray", {file, line});
    return copy_rows(call, TO_ARRAY, target, x_bytes, y, source, pitch, width, height, kind);
}
cudaError_t cudaMemcpy2DFromArray(void* target, size_t pitch, cudaArray_const_t source,
                                  size_t x_bytes, size_t y, size_t width, size_t height,
                                  cudaMemcpyKind kind, const char* file, int line) {
    Call call("cudaMemcpy2DFromArray", {file, line});
    return copy_rows(call, FROM_ARRAY, source, x_bytes, y, target, pitch, width, height, kind);
}
cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t target, size_t target_x_bytes, size_t target_y,
                                     cudaArray_const_t source, size_t source_x_bytes,
                                     size_t source_y, size_t width, size_t height,
                                     cudaMemcpyKind kind, const char* file, int line) {
    Call call("cudaMemcpy2DArrayToArray", {file, line});
    if (cudaError_t error = call.pending()) return error;
    Side to, from;
    if (cudaError_t error = check_kind(call, kind, true, true)) return error;
    if (cudaError_t error =
            side_of(call, "target", target, target_x_bytes, target_y, 0, width, height, 1, to))
        return error;
    if (cudaError_t error =
            side_of(call, "source", source, source_x_bytes, source_y, 0, width, height, 1, from))
        return error;
    copy_box(to, from, width, height, 1);
    return cudaSuccess;
}
