// /// cudalab
// summary  = "A thread an element: both sides are coalesced, one of them backwards"
// order    = 1
// dispatch = "elements"
// defines  = { THREADS_PER_BLOCK = 256 }
// default  = ["cuda", "cpu"]
// ///
//
// out[i] = in[n - 1 - i]. The threads of a warp read 32 neighbours and write 32 neighbours, from
// the last to the first: that is coalesced, for the order within a memory transaction is free.
//
// Macros from outside: T (element type), THREADS_PER_BLOCK.

extern "C" __global__ void flip(const T* in, T* out, unsigned n) {
    const unsigned i = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    if (i < n) out[i] = in[n - 1 - i];
}
