// Tiles by ticket, for a launch that has a block for each.
#pragma once
#include "radixsort/parts/look_back_digits.cuh"

// Takes the next tile. Returns the launch's number, from 0,
// in the high half, and the tile in the low half; the ticket holds the same two numbers. The block
// that takes the last tile sets the ticket for the next launch, since no other block will look at
// it again. The whole block calls it.
__device__ inline Word take_tile(Word* ticket) {
    __shared__ Word taken;
    if (threadIdx.x == 0) {
        taken = atomicAdd(ticket, 1ull);
        if ((unsigned)taken == gridDim.x - 1) store(ticket, ((taken >> 32) + 1) << 32);
    }
    __syncthreads();  // all threads can read the tile
    return taken;
}
