// The second kernel of a histogram without atomics: each class adds up what all blocks counted.
#pragma once
#include "common/block/block_scan.cuh"

// counts[bin] = the sum of partials[bin * num_partials + block] over all blocks. A block per class:
// the partial counts of a class are neighbours in memory, so its threads read them coalesced.
extern "C" __global__ void __launch_bounds__(MERGE_THREADS) merge_partials(const unsigned* partials,
                                                                           unsigned* counts,
                                                                           unsigned num_partials) {
    const unsigned* mine = partials + (size_t)blockIdx.x * num_partials;
    unsigned sum = 0, total;
    for (unsigned i = threadIdx.x; i < num_partials; i += MERGE_THREADS) sum += mine[i];
    exclusive_scan_block<MERGE_THREADS>(sum, total);
    if (threadIdx.x == 0) counts[blockIdx.x] = total;
}
