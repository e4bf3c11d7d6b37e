// A barrier of some of a block's warps (barrier.sync).
#pragma once

// Waits for all threads of the block's first `warps` warps; the others go on.
__device__ inline void meet_warps(unsigned warps) {
    asm volatile("barrier.sync 1, %0;" ::"r"(32 * warps) : "memory");
}
