// The last kernel of a scan over blocks: data[i] = op(block_sums[block of i], data[i]), where
// block_sums[b] combines all items before block b. Neighbouring threads take neighbouring items.
#pragma once
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) add_block_sums(T* data,
                                                                               const T* block_sums,
                                                                               unsigned n) {
    const unsigned block_start = blockIdx.x * ITEMS_PER_BLOCK;
    const T before = block_sums[blockIdx.x];
#pragma unroll
    for (unsigned k = 0; k < ITEMS_PER_THREAD; ++k) {
        const unsigned i = block_start + k * THREADS_PER_BLOCK + threadIdx.x;
        if (i < n) data[i] = Op()(before, data[i]);
    }
}
