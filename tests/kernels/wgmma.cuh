// What the PTX manual says of wgmma for bfloat16 and for fp16, with the 64-byte swizzle, in plain
// C++: in the place of common/warpgroup/wgmma.cuh on a device without the instruction. An address
// in shared memory is here the distance from the beginning of the block's dynamic shared memory.
#pragma once
#include "common/thread/bf16.cuh"
#include "common/thread/bulk_copy.cuh"
#include "common/thread/fp16.cuh"

constexpr unsigned LINE_BYTES = 64;
constexpr unsigned CHUNKS = LINE_BYTES / 16;

__device__ inline unsigned swizzled(unsigned line, unsigned chunk) {
    return line * CHUNKS + (chunk ^ line / 2 % CHUNKS);
}
__device__ inline const unsigned char* shared_start() {
    extern __shared__ __align__(1024) uint4 ring[];
    return reinterpret_cast<const unsigned char*>(ring);
}
__device__ inline unsigned shared_address(const void* pointer) {
    return (unsigned)(static_cast<const unsigned char*>(pointer) - shared_start());
}
__device__ inline unsigned long long describe(unsigned address) {
    return address;
}

// Number k of a line of a factor: the descriptor's address is a multiple of 8 lines, and 32 bytes
// more for the second sixteen numbers.
__device__ inline unsigned short factor_at(unsigned long long factor, unsigned line, unsigned k) {
    const unsigned chunk = (unsigned)factor % LINE_BYTES / 16 + k / 8;
    const unsigned at = (unsigned)(factor / LINE_BYTES * LINE_BYTES) + swizzled(line, chunk) * 16;
    unsigned short bits;
    memcpy(&bits, shared_start() + at + k % 8 * 2, 2);
    return bits;
}
template <unsigned ACCUMULATORS, typename Value>
__device__ inline void add_product(float (&acc)[ACCUMULATORS], unsigned long long left,
                                   unsigned long long right, bool add, const Value& value) {
    const unsigned warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
    for (unsigned i = 0; i < ACCUMULATORS; ++i) {
        const unsigned row = 16 * warp + lane / 4 + 8 * (i / 2 % 2);
        const unsigned column = 8 * (i / 4) + lane % 4 * 2 + i % 2;
        float sum = add ? acc[i] : 0;
        for (unsigned k = 0; k < 16; ++k)
            sum += value(factor_at(left, row, k)) * value(factor_at(right, column, k));
        acc[i] = sum;
    }
}
template <unsigned ACCUMULATORS>
__device__ inline void start_bf16_product(float (&acc)[ACCUMULATORS], unsigned long long left,
                                          unsigned long long right, bool add) {
    add_product(acc, left, right, add,
                [](unsigned short bits) { return __uint_as_float((unsigned)bits << 16); });
}
template <unsigned ACCUMULATORS>
__device__ inline void start_fp16_product(float (&acc)[ACCUMULATORS], unsigned long long left,
                                          unsigned long long right, bool add) {
    add_product(acc, left, right, add, [](unsigned short bits) { return from_fp16(bits); });
}
__device__ inline void publish_factors() {}
__device__ inline void begin_products() {}
template <unsigned ACCUMULATORS>
__device__ inline void finish_products(float (&)[ACCUMULATORS]) {}
template <unsigned N>
__device__ inline void give_registers() {}
template <unsigned N>
__device__ inline void take_registers() {}
