// The sum of int32 numbers modulo 2^32 in one cooperative launch: every block sums its share, the
// grid waits, and the first block sums the blocks.
//
// stdin: int32 n, n int32. stdout: one int32.

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace cg = cooperative_groups;

constexpr int THREADS = 256;

// The block's sum, in thread 0. `warps` has a place for each warp.
__device__ unsigned sum_block(const cg::thread_block& block, unsigned value, unsigned* warps) {
    const auto warp = cg::tiled_partition<32>(block);
    const unsigned sum = cg::reduce(warp, value, cg::plus<unsigned>());
    if (warp.thread_rank() == 0) warps[warp.meta_group_rank()] = sum;
    block.sync();
    if (warp.meta_group_rank() > 0) return 0;
    const unsigned part =
        warp.thread_rank() < warp.meta_group_size() ? warps[warp.thread_rank()] : 0;
    return cg::reduce(warp, part, cg::plus<unsigned>());
}

__global__ void __launch_bounds__(THREADS) reduce_all(const unsigned* items, unsigned* sums,
                                                      unsigned* total, unsigned n) {
    __shared__ unsigned warps[THREADS / 32];
    const cg::grid_group grid = cg::this_grid();
    const cg::thread_block block = cg::this_thread_block();
    unsigned sum = 0;
    for (unsigned long long i = grid.thread_rank(); i < n; i += grid.size()) sum += items[i];
    sum = sum_block(block, sum, warps);
    if (block.thread_rank() == 0) sums[blockIdx.x] = sum;
    grid.sync();  // all sums are written, and every block still has its shared memory
    if (blockIdx.x > 0) return;
    sum = 0;
    for (unsigned i = block.thread_rank(); i < gridDim.x; i += block.size()) sum += sums[i];
    sum = sum_block(block, sum, warps);
    if (block.thread_rank() == 0) *total = sum;
}

void check(cudaError_t status, int line) {
    if (status == cudaSuccess) return;
    std::fprintf(stderr, "line %d: %s (%s)\n", line, cudaGetErrorString(status),
                 cudaGetErrorName(status));
    std::exit(1);
}
#define CHECK(call) check(call, __LINE__)

int main() {
    int n;
    if (std::fread(&n, sizeof n, 1, stdin) != 1 || n < 0) {
        std::fputs("no count of the numbers\n", stderr);
        return 1;
    }
    unsigned *items = nullptr, *d_items = nullptr, *d_sums = nullptr, *d_total = nullptr;
    if (n > 0) items = static_cast<unsigned*>(std::malloc(sizeof(unsigned) * n));
    if (n > 0 && (!items || std::fread(items, sizeof(unsigned), n, stdin) != size_t(n))) {
        std::fprintf(stderr, "less than %d numbers\n", n);
        return 1;
    }

    int device, processors, cooperative, resident;
    CHECK(cudaGetDevice(&device));
    CHECK(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, device));
    CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
    if (!cooperative) {
        std::fputs("this device has no cooperative launches\n", stderr);
        return 1;
    }
    // As many blocks as the device holds at once: more could not wait for each other.
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, reduce_all, THREADS, 0));
    const int blocks = processors * (resident < 2 ? resident : 2);

    if (n > 0) {
        CHECK(cudaMalloc(&d_items, sizeof(unsigned) * n));
        CHECK(cudaMemcpy(d_items, items, sizeof(unsigned) * n, cudaMemcpyHostToDevice));
    }
    CHECK(cudaMalloc(&d_sums, sizeof(unsigned) * blocks));
    CHECK(cudaMalloc(&d_total, sizeof(unsigned)));
    unsigned count = n;
    void* arguments[] = {&d_items, &d_sums, &d_total, &count};
    CHECK(cudaLaunchCooperativeKernel((void*)reduce_all, blocks, THREADS, arguments, 0, 0));
    unsigned total;
    CHECK(cudaMemcpy(&total, d_total, sizeof total, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(d_items));
    CHECK(cudaFree(d_sums));
    CHECK(cudaFree(d_total));
    std::free(items);
    return std::fwrite(&total, sizeof total, 1, stdout) == 1 ? 0 : 1;
}
