// Detects the block of a launch that finishes last: the one that draws a counter's last number.
//
// What a thread wrote before drawing is visible to threads that draw later, and after a barrier to
// their whole block. The atomic operation itself can order memory in this way; two __threadfence(),
// one on either side of it, do the same but are stronger than needed: they wait for everything in
// flight, each for a round trip to the L2 cache.
#pragma once

// Draw one of the numbers 0 to `blocks` - 1; true for the last. After that the counter is back at 0
// for the next launch.
__device__ inline bool is_last_to_draw(unsigned* ticket, unsigned blocks) {
#if __CUDA_ARCH__ >= 800  // higher than the CPU device reports, as it takes no PTX
    unsigned number;
    asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
                 : "=r"(number)
                 : "l"(ticket), "r"(blocks - 1)
                 : "memory");
#else
    __threadfence();  // what was written is visible before the number is drawn
    const unsigned number = atomicInc(ticket, blocks - 1);
    __threadfence();  // nothing is read before the number was drawn
#endif
    return number == blocks - 1;
}
