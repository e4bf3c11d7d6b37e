// A barrier of a block's first warps in plain C++, in the place of solve/parts/meet_warps.cuh on a
// device without it. The threads of a block take turns there, so nothing has to be atomic.

__device__ inline void meet_warps(unsigned warps) {
    __shared__ volatile unsigned arrived, meetings;
    if (threadIdx.x >= 32 * warps) __trap();
    const unsigned before = meetings;
    arrived = arrived + 1;
    if (arrived == 32 * warps) {
        arrived = 0;
        meetings = before + 1;
    }
    for (unsigned tries = 0; meetings == before; ++tries) {
        if (tries > 1000000) __trap();  // somebody does not come
        __nanosleep(20);
    }
}
