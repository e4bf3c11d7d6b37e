// Cooperative groups: blocks, tiles, coalesced threads and a grid that waits.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda_runtime.h>

#include <cstdio>

namespace cg = cooperative_groups;

struct Pair {
    double weight;
    int index, pad;
};

__global__ void tiles(int* out) {
    cg::thread_block block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    auto quad = cg::tiled_partition<4>(warp);
    const int t = block.thread_rank();
    int* o = out + 16 * t;
    o[0] = warp.meta_group_rank() * 1000 + warp.meta_group_size();
    o[1] = quad.meta_group_rank() * 1000 + quad.meta_group_size();
    o[2] = quad.thread_rank() * 10 + quad.size();
    o[3] = cg::reduce(quad, t, cg::plus<int>());
    o[4] = cg::reduce(warp, t, cg::greater<int>());
    o[5] = quad.shfl(t, 1);
    o[6] = quad.shfl_up(t, 1);
    o[7] = quad.shfl_down(t, 2);
    o[8] = warp.shfl_xor(t, 7);
    o[9] = quad.ballot(t & 1) * 100 + quad.any(t == 6) * 10 + quad.all(t > 3);
    o[10] = cg::inclusive_scan(quad, t);
    o[11] = cg::exclusive_scan(warp, 1, cg::plus<int>());
    o[12] = warp.match_any(t / 5) == warp.ballot(t / 5 == warp.shfl(t, 0) / 5);
    Pair pair = {t * 0.5, t, 0};
    pair = quad.shfl(pair, 3);
    o[13] = pair.index + (int)(2 * pair.weight);
    cg::thread_group group = cg::tiled_partition(block, 8);
    o[14] = (int)(group.thread_rank() * 100 + group.size());
    group.sync();
    o[15] = (int)block.group_index().x + (int)block.thread_index().x + block.num_threads();
    cg::sync(block);
}

// Each atomic addition stands for all lanes that come there together.
__global__ void aggregate(unsigned* counters, unsigned* sizes) {
    const unsigned t = threadIdx.x;
    if (t % 3 == 0) {
        cg::coalesced_group active = cg::coalesced_threads();
        unsigned before = 0;
        if (active.thread_rank() == 0) before = atomicAdd(&counters[0], active.size());
        before = active.shfl(before, 0) + active.thread_rank();
        atomicAdd(&counters[1], before);
        sizes[t] = active.size();
        auto parity = cg::labeled_partition(active, t % 2);
        atomicAdd(&counters[2], cg::reduce(parity, 1u, cg::plus<unsigned>()));
    } else {
        sizes[t] = __popc(__activemask());
    }
}

// Values go once around the grid; what a block keeps in shared memory must outlive the waiting.
__global__ void rounds(int* out, int* board, int turns) {
    __shared__ int own[64];
    extern __shared__ int dynamic[];
    cg::grid_group grid = cg::this_grid();
    own[threadIdx.x] = blockIdx.x * 1000 + threadIdx.x;
    dynamic[threadIdx.x] = -own[threadIdx.x];
    for (int turn = 0; turn < turns; ++turn) {
        if (threadIdx.x == 0) board[blockIdx.x] = own[turn];
        grid.sync();
        const int seen = board[(blockIdx.x + 1) % gridDim.x];
        grid.sync();
        own[threadIdx.x] += seen;
        __syncthreads();
    }
    out[grid.thread_rank()] = own[threadIdx.x] + dynamic[threadIdx.x];
}

// Tiles of several warps, and the order in which their sums are formed.
template <unsigned SIZE>
__global__ void large_tiles(float* out) {
    __shared__ cg::block_tile_memory<512> scratch;
    __shared__ float last[512 / SIZE];
    auto block = cg::this_thread_block(scratch);
    auto tile = cg::tiled_partition<SIZE>(block);
    float x = 1.0f / (1 + block.thread_rank());
    x = cg::reduce(tile, x, cg::plus<float>());
    if (tile.thread_rank() == SIZE - 1) last[tile.meta_group_rank()] = x;
    tile.sync();
    x += last[tile.meta_group_rank()];
    const int some = tile.any(block.thread_rank() == 300);
    const int all = tile.all(block.thread_rank() < 300);
    auto part = cg::tiled_partition<32>(tile);
    out[block.thread_rank()] = x + some * 10 + all * 100 + part.meta_group_rank() * 1000 +
                               cg::reduce(part, 1, cg::plus<int>());
}
template <unsigned SIZE>
void print_large_tiles() {
    float* out;
    cudaMallocManaged(&out, 512 * sizeof *out);
    large_tiles<SIZE><<<1, 512>>>(out);
    cudaDeviceSynchronize();
    for (int i = 0; i < 512; i += 37) printf("%.9g ", out[i]);
    puts("");
    cudaFree(out);
}

int main() {
    int *out, *board, h[64 * 16];
    cudaMalloc(&out, sizeof h);
    cudaMalloc(&board, 64 * sizeof(int));
    tiles<<<1, 64>>>(out);
    cudaMemcpy(h, out, sizeof h, cudaMemcpyDeviceToHost);
    for (int t : {0, 5, 6, 38, 63}) {
        for (int i = 0; i < 16; ++i) printf("%d ", h[16 * t + i]);
        printf("\n");
    }

    unsigned *counters = (unsigned*)board, *sizes = (unsigned*)out, c[3], s[64];
    cudaMemset(counters, 0, sizeof c);
    aggregate<<<1, 64>>>(counters, sizes);
    cudaMemcpy(c, counters, sizeof c, cudaMemcpyDeviceToHost);
    cudaMemcpy(s, sizes, sizeof s, cudaMemcpyDeviceToHost);
    printf("%u %u %u, groups of %u and %u\n", c[0], c[1], c[2], s[0], s[1]);

    int turns = 5;
    void* arguments[] = {&out, &board, &turns};
    cudaError_t error = cudaLaunchCooperativeKernel((void*)rounds, dim3(8), dim3(64), arguments,
                                                    64 * sizeof(int), 0);
    cudaMemcpy(h, out, 8 * 64 * sizeof(int), cudaMemcpyDeviceToHost);
    printf("%s: %d %d %d\n", cudaGetErrorName(error), h[0], h[64 + 7], h[8 * 64 - 1]);
    error = cudaLaunchCooperativeKernel(rounds, dim3(8), dim3(64), arguments, 64 * sizeof(int), 0);
    printf("%s, %s\n", cudaGetErrorName(error), cudaGetErrorName(cudaDeviceSynchronize()));

    int blocks, processors;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, rounds, 64, 64 * sizeof(int));
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
    error = cudaLaunchCooperativeKernel((void*)rounds, dim3(blocks * processors + 1), dim3(64),
                                        arguments, 64 * sizeof(int), 0);
    printf("%s, %s\n", cudaGetErrorName(error), cudaGetErrorName(cudaGetLastError()));
    print_large_tiles<64>();
    print_large_tiles<256>();
    print_large_tiles<512>();
    return 0;
}
