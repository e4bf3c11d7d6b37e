// CUDA arrays, and copies of boxes: from and to arrays, and between pitched memory.
#pragma once

#include "cudalab/launch.h"
#include "cudalab/streams.h"

enum cudaChannelFormatKind {
    cudaChannelFormatKindSigned = 0,
    cudaChannelFormatKindUnsigned = 1,
    cudaChannelFormatKindFloat = 2,
    cudaChannelFormatKindNone = 3,
};
struct cudaChannelFormatDesc {
    int x, y, z, w;  // bits of each channel
    cudaChannelFormatKind f;
};

typedef const struct cudaArray* cudaArray_const_t;
typedef struct cudaMipmappedArray* cudaMipmappedArray_t;
typedef const struct cudaMipmappedArray* cudaMipmappedArray_const_t;

enum {
    cudaArrayDefault = 0,
    cudaArrayLayered = 1,
    cudaArraySurfaceLoadStore = 2,
    cudaArrayCubemap = 4,
    cudaArrayTextureGather = 8,
};

inline cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                   cudaChannelFormatKind f) {
    return {x, y, z, w, f};
}

namespace cudalab {

// The type and the number of the channels of a texel, for each type that a texel can be read as.
template <class C, int N>
struct Channels {
    typedef C channel;
    static const int count = N;
};
template <class T>
struct Texel;
#define CUDALAB_TEXEL(type, name)                 \
    template <>                                   \
    struct Texel<type> : Channels<type, 1> {};    \
    template <>                                   \
    struct Texel<name##1> : Channels<type, 1> {}; \
    template <>                                   \
    struct Texel<name##2> : Channels<type, 2> {}; \
    template <>                                   \
    struct Texel<name##4> : Channels<type, 4> {};
CUDALAB_TEXEL(signed char, char)
CUDALAB_TEXEL(unsigned char, uchar)
CUDALAB_TEXEL(short, short)
CUDALAB_TEXEL(unsigned short, ushort)
CUDALAB_TEXEL(int, int)
CUDALAB_TEXEL(unsigned, uint)
CUDALAB_TEXEL(float, float)
#undef CUDALAB_TEXEL
template <>
struct Texel<char> : Channels<char, 1> {};

}  // namespace cudalab

template <class T>
inline cudaChannelFormatDesc cudaCreateChannelDesc() {
    typedef typename cudalab::Texel<T>::channel C;
    const int bits = 8 * (int)sizeof(C), count = cudalab::Texel<T>::count;
    return {bits, count > 1 ? bits : 0, count > 2 ? bits : 0, count > 2 ? bits : 0,
            (C)0.5f != 0 ? cudaChannelFormatKindFloat
            : (C)-1 < 0  ? cudaChannelFormatKindSigned
                         : cudaChannelFormatKindUnsigned};
}
inline cudaChannelFormatDesc cudaCreateChannelDescHalf() {
    return {16, 0, 0, 0, cudaChannelFormatKindFloat};
}
inline cudaChannelFormatDesc cudaCreateChannelDescHalf1() {
    return {16, 0, 0, 0, cudaChannelFormatKindFloat};
}
inline cudaChannelFormatDesc cudaCreateChannelDescHalf2() {
    return {16, 16, 0, 0, cudaChannelFormatKindFloat};
}
inline cudaChannelFormatDesc cudaCreateChannelDescHalf4() {
    return {16, 16, 16, 16, cudaChannelFormatKindFloat};
}

#pragma GCC visibility push(default)

// ------------------------------------------------------------------ arrays

cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* format, size_t width,
                            size_t height = 0, unsigned flags = 0, CUDALAB_HERE);
cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* format,
                              cudaExtent extent, unsigned flags = 0, CUDALAB_HERE);
cudaError_t cudaFreeArray(cudaArray_t array, CUDALAB_HERE);
cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* format, cudaExtent* extent, unsigned* flags,
                             cudaArray_t array, CUDALAB_HERE);
cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* format, cudaArray_const_t array,
                               CUDALAB_HERE);
cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t* array,
                                     const cudaChannelFormatDesc* format, cudaExtent extent,
                                     unsigned levels, unsigned flags = 0, CUDALAB_HERE);
cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t array, CUDALAB_HERE);
cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t* level_array, cudaMipmappedArray_const_t array,
                                       unsigned level, CUDALAB_HERE);

// ------------------------------------------------------------------ copies

cudaError_t cudaMemset3D(cudaPitchedPtr pointer, int value, cudaExtent extent, CUDALAB_HERE);
cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* copy, CUDALAB_HERE);
cudaError_t cudaMemcpyToArray(cudaArray_t target, size_t x_bytes, size_t y, const void* source,
                              size_t bytes, cudaMemcpyKind kind, CUDALAB_HERE);
cudaError_t cudaMemcpyFromArray(void* target, cudaArray_const_t source, size_t x_bytes, size_t y,
                                size_t bytes, cudaMemcpyKind kind, CUDALAB_HERE);
cudaError_t cudaMemcpyArrayToArray(cudaArray_t target, size_t target_x_bytes, size_t target_y,
                                   cudaArray_const_t source, size_t source_x_bytes, size_t source_y,
                                   size_t bytes, cudaMemcpyKind kind = cudaMemcpyDeviceToDevice,
                                   CUDALAB_HERE);
cudaError_t cudaMemcpy2DToArray(cudaArray_t target, size_t x_bytes, size_t y, const void* source,
                                size_t pitch, size_t width, size_t height, cudaMemcpyKind kind,
                                CUDALAB_HERE);
cudaError_t cudaMemcpy2DFromArray(void* target, size_t pitch, cudaArray_const_t source,
                                  size_t x_bytes, size_t y, size_t width, size_t height,
                                  cudaMemcpyKind kind, CUDALAB_HERE);
cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t target, size_t target_x_bytes, size_t target_y,
                                     cudaArray_const_t source, size_t source_x_bytes,
                                     size_t source_y, size_t width, size_t height,
                                     cudaMemcpyKind kind = cudaMemcpyDeviceToDevice, CUDALAB_HERE);

inline cudaError_t cudaMemset3DAsync(cudaPitchedPtr pointer, int value, cudaExtent extent,
                                     cudaStream_t stream = nullptr, CUDALAB_HERE) {
    if (cudaError_t error = cudalab::check_uncaptured("cudaMemset3DAsync", stream, file, line))
        return error;
    return cudaMemset3D(pointer, value, extent, file, line);
}
inline cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* copy, cudaStream_t stream = nullptr,
                                     CUDALAB_HERE) {
    if (cudaError_t error = cudalab::check_uncaptured("cudaMemcpy3DAsync", stream, file, line))
        return error;
    return cudaMemcpy3D(copy, file, line);
}
inline cudaError_t cudaMemcpyToArrayAsync(cudaArray_t target, size_t x_bytes, size_t y,
                                          const void* source, size_t bytes, cudaMemcpyKind kind,
                                          cudaStream_t stream = nullptr, CUDALAB_HERE) {
    if (cudaError_t error = cudalab::check_uncaptured("cudaMemcpyToArrayAsync", stream, file, line))
        return error;
    return cudaMemcpyToArray(target, x_bytes, y, source, bytes, kind, file, line);
}
inline cudaError_t cudaMemcpyFromArrayAsync(void* target, cudaArray_const_t source, size_t x_bytes,
                                            size_t y, size_t bytes, cudaMemcpyKind kind,
                                            cudaStream_t stream = nullptr, CUDALAB_HERE) {
    if (cudaError_t error =
            cudalab::check_uncaptured("cudaMemcpyFromArrayAsync", stream, file, line))
        return error;
    return cudaMemcpyFromArray(target, source, x_bytes, y, bytes, kind, file, line);
}
inline cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t target, size_t x_bytes, size_t y,
                                            const void* source, size_t pitch, size_t width,
                                            size_t height, cudaMemcpyKind kind,
                                            cudaStream_t stream = nullptr, CUDALAB_HERE) {
    if (cudaError_t error =
            cudalab::check_uncaptured("cudaMemcpy2DToArrayAsync", stream, file, line))
        return error;
    return cudaMemcpy2DToArray(target, x_bytes, y, source, pitch, width, height, kind, file, line);
}
inline cudaError_t cudaMemcpy2DFromArrayAsync(void* target, size_t pitch, cudaArray_const_t source,
                                              size_t x_bytes, size_t y, size_t width, size_t height,
                                              cudaMemcpyKind kind, cudaStream_t stream = nullptr,
                                              CUDALAB_HERE) {
    if (cudaError_t error =
            cudalab::check_uncaptured("cudaMemcpy2DFromArrayAsync", stream, file, line))
        return error;
    return cudaMemcpy2DFromArray(target, pitch, source, x_bytes, y, width, height, kind, file,
                                 line);
}

#pragma GCC visibility pop
