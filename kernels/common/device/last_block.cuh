// Finds the block of a launch that finishes last: the one that draws the last number of a counter.
//
// What a thread wrote before it drew is visible to those who draw later, and what those before it
// wrote to its whole block after a barrier. The atomic operation itself can order memory so; two
// __threadfence(), one on either side of it, do the same but are stronger than needed: they wait
// for everything that is under way, each for as long as a trip to the L2 cache and back.

// Draw one of the numbers 0 to `blocks` - 1. After the last, the counter is back at 0 and the next
// launch finds it as this one did. True for the last number.
__device__ inline bool is_last_to_draw(unsigned* ticket, unsigned blocks) {
#if __CUDA_ARCH__ >= 800  // more than the CPU device says of itself: it takes no PTX
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
