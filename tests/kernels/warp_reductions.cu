// Reductions of a warp in one instruction: compute capability 8.0.

extern "C" __global__ void reduce_warps(const int* in, unsigned* out) {
    const unsigned first = threadIdx.x & ~31u, rest = blockDim.x - first;
    const unsigned mask = rest >= 32 ? 0xffffffffu : (1u << rest) - 1;
    const int value = in[threadIdx.x];
    unsigned* mine = out + 9 * threadIdx.x;
    mine[0] = __reduce_add_sync(mask, (unsigned)value);
    mine[1] = (unsigned)__reduce_add_sync(mask, value);
    mine[2] = __reduce_min_sync(mask, (unsigned)value);
    mine[3] = (unsigned)__reduce_min_sync(mask, value);
    mine[4] = __reduce_max_sync(mask, (unsigned)value);
    mine[5] = (unsigned)__reduce_max_sync(mask, value);
    mine[6] = __reduce_and_sync(mask, (unsigned)value);
    mine[7] = __reduce_or_sync(mask, (unsigned)value);
    mine[8] = __reduce_xor_sync(mask, (unsigned)value);
}
