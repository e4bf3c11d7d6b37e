// What kernel files begin with that an editor, or a book, has written.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_fp16.h>
#include <math_constants.h>
#include <stdio.h>

#include "cuda_runtime.h"
#include "device_launch_parameters.h"

namespace cg = cooperative_groups;

extern "C" __global__ void sums(const int* in, int* out, float* halves) {
    __shared__ int of_tiles[32];
    const cg::thread_block block = cg::this_thread_block();
    const auto tile = cg::tiled_partition<32>(block);
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int sum = cg::reduce(tile, in[i], cg::plus<int>());
    if (tile.thread_rank() == 0) of_tiles[tile.meta_group_rank()] = sum;
    block.sync();
    if (block.thread_rank() == 0) {
        int total = 0;
        for (unsigned k = 0; k < tile.meta_group_size(); ++k) total += of_tiles[k];
        out[block.group_index().x] = total;
    }
    halves[i] = in[i] < 0 ? CUDART_INF_F : __half2float(__float2half((float)in[i] / 3));
}
