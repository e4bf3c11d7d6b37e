// The range of a block's numbers.
//
// Macros from outside: SPLIT_THREADS, the threads of the block.
#pragma once

// The greatest and the least exponent among the numbers of all threads, as floats store exponents,
// for all threads; each gives the bits of its greatest magnitude and of its least one but 0
// (255 << 23 if there is none). Called once in a kernel.
__device__ inline uint2 exponents_of_block(uint2 range) {
    __shared__ uint2 ranges[SPLIT_THREADS / 32];
    range.x = __reduce_max_sync(0xFFFFFFFF, range.x);
    range.y = __reduce_min_sync(0xFFFFFFFF, range.y);
    if (threadIdx.x % 32 == 0) ranges[threadIdx.x / 32] = range;
    __syncthreads();  // the warps' ranges are ready
    for (unsigned warp = 0; warp < SPLIT_THREADS / 32; ++warp) {
        range.x = max(range.x, ranges[warp].x);
        range.y = min(range.y, ranges[warp].y);
    }
    return make_uint2(range.x >> 23, range.y >> 23);
}
