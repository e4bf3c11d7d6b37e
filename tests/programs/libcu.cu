// libcu++: cuda::std in kernels, atomics on which threads wait, barriers, pipelines, latches and
// semaphores.
#include <cooperative_groups.h>

#include <cstdio>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/pipeline>
#include <cuda/semaphore>
#include <cuda/std/array>
#include <cuda/std/bit>
#include <cuda/std/complex>
#include <cuda/std/limits>
#include <cuda/std/optional>
#include <cuda/std/span>
#include <cuda/std/tuple>
#include <cuda/std/type_traits>
#include <cuda/std/utility>

namespace cg = cooperative_groups;

void check(const char* what) {
    cudaError_t error = cudaDeviceSynchronize();
    if (error != cudaSuccess) printf("%s: %s\n", what, cudaGetErrorString(error));
}

__device__ cuda::std::optional<int> half_of(int v) {
    if (v % 2) return cuda::std::nullopt;
    return v / 2;
}

__global__ void use_types(int* out) {
    cuda::std::array<int, 4> values = {4, 3, 2, 1};
    cuda::std::span<int> three(values.data(), 3);
    int sum = 0;
    for (int v : three) sum += v;
    cuda::std::tuple<int, float> pair{7, 2.5f};
    cuda::std::complex<float> z(3, 4);
    static_assert(cuda::std::is_same_v<cuda::std::remove_const_t<const int>, int>);
    out[0] = sum;
    out[1] = cuda::std::get<0>(pair);
    out[2] = half_of(10).value_or(-1);
    out[3] = half_of(11).value_or(-1);
    out[4] = cuda::std::numeric_limits<int>::max();
    out[5] = cuda::std::popcount(0xffu);
    out[6] = (int)cuda::std::abs(z);
    out[7] = (int)(z * z).real();
}

__device__ cuda::atomic<int, cuda::thread_scope_device> lock{0}, flag{0}, arrived{0};
__device__ int guarded;
__device__ cuda::counting_semaphore<cuda::thread_scope_device, 4> places{2};
__device__ int inside, most_inside;

__global__ void update(int* out, float* sum) {
    const int rank = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    cuda::atomic_ref<int, cuda::thread_scope_device> count(out[0]), top(out[1]);
    count.fetch_add(1, cuda::std::memory_order_relaxed);
    top.fetch_max(rank);
    cuda::atomic_ref<float, cuda::thread_scope_device>(*sum).fetch_add(0.5f);
}
__global__ void take_lock() {  // one thread of each warp
    if (threadIdx.x % 32) return;
    int expected = 0;
    while (!lock.compare_exchange_weak(expected, 1, cuda::std::memory_order_acquire)) expected = 0;
    guarded = guarded + 1;
    lock.store(0, cuda::std::memory_order_release);
}
__global__ void take_place() {  // at most two at a time
    if (threadIdx.x % 32) return;
    places.acquire();
    atomicMax(&most_inside, atomicAdd(&inside, 1) + 1);
    atomicAdd(&inside, -1);
    places.release();
}
__global__ void poll_in_block(int* out) {  // thread 0 waits for the last thread of its block
    __shared__ cuda::atomic<int, cuda::thread_scope_block> ready;
    __shared__ int value;
    if (threadIdx.x == 0) ready.store(0);
    __syncthreads();
    if (threadIdx.x == 0) {
        while (ready.load(cuda::std::memory_order_acquire) == 0) {
        }
        *out = value;
    } else if (threadIdx.x == blockDim.x - 1) {
        value = 42;
        ready.store(1, cuda::std::memory_order_release);
    }
}
__global__ void wait_in_block(int* out) {
    if (threadIdx.x == 0) {
        flag.wait(0);
        *out += flag.load();
    } else if (threadIdx.x == 64) {
        flag.store(5);
        flag.notify_all();
    }
}
__global__ void take_turns(int* out) {  // each block waits for those before it
    if (threadIdx.x) return;
    while (arrived.load() < (int)blockIdx.x) {
    }
    out[blockIdx.x] = arrived.fetch_add(1);
}
__global__ void count_down(int* out) {
    __shared__ cuda::latch<cuda::thread_scope_block>* latch;
    __shared__ alignas(cuda::latch<cuda::thread_scope_block>) char memory[64];
    __shared__ int values[96];
    if (threadIdx.x == 0) latch = new (memory) cuda::latch<cuda::thread_scope_block>(blockDim.x);
    __syncthreads();
    values[threadIdx.x] = (int)threadIdx.x;
    latch->arrive_and_wait();
    out[threadIdx.x] = values[95 - threadIdx.x];
}

__global__ void shift(const int* in, int* out, int rounds) {
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    __shared__ int tile[128];
    cg::thread_block block = cg::this_thread_block();
    if (block.thread_rank() == 0) init(&barrier, block.size());
    block.sync();
    int v = in[threadIdx.x];
    for (int r = 0; r < rounds; ++r) {
        tile[threadIdx.x] = v;
        cuda::barrier<cuda::thread_scope_block>::arrival_token token = barrier.arrive();
        v = 0;  // something between arriving and waiting
        barrier.wait(cuda::std::move(token));
        v += tile[(threadIdx.x + 1) % blockDim.x];
        barrier.arrive_and_wait();
    }
    cuda::memcpy_async(block, tile, in, sizeof(int) * blockDim.x, barrier);
    barrier.arrive_and_wait();
    v += 1000 * tile[blockDim.x - 1 - threadIdx.x];
    barrier.arrive_and_wait();
    cuda::memcpy_async(&tile[threadIdx.x], &in[(threadIdx.x + 5) % blockDim.x], sizeof(int),
                       barrier);
    barrier.arrive_and_wait();
    out[threadIdx.x] = v + 1000000 * tile[(threadIdx.x + 1) % blockDim.x];
}

__global__ void pipe_of_thread(const int* in, int* out, int batches) {
    __shared__ int tile[2][64];
    auto pipe = cuda::make_pipeline();
    int sum = 0;
    for (int b = 0, ahead = 0; b < batches; ++b) {
        for (; ahead < batches && ahead < b + 2; ++ahead) {
            pipe.producer_acquire();
            cuda::memcpy_async(&tile[ahead % 2][threadIdx.x], &in[ahead * 64 + threadIdx.x],
                               cuda::aligned_size_t<4>(4), pipe);
            pipe.producer_commit();
        }
        cuda::pipeline_consumer_wait_prior<1>(pipe);
        if (b == batches - 1) cuda::pipeline_consumer_wait_prior<0>(pipe);
        sum += tile[b % 2][threadIdx.x];
        pipe.consumer_release();
    }
    out[threadIdx.x] = sum;
}
__global__ void pipe_of_block(const int* in, int* out, int batches) {
    __shared__ int tile[2][64];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    cg::thread_block block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    int sum = 0;
    for (int b = 0, ahead = 0; b < batches; ++b) {
        for (; ahead < batches && ahead < b + 2; ++ahead) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, tile[ahead % 2], in + ahead * 64, sizeof(int) * 64, pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        sum += tile[b % 2][63 - threadIdx.x];
        pipe.consumer_release();
    }
    out[threadIdx.x] = sum;
}
__global__ void pipe_with_roles(const int* in, int* out, int batches) {  // the first warp copies
    __shared__ int tile[2][64];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    cg::thread_block block = cg::this_thread_block();
    const bool copies = threadIdx.x < 32;
    auto pipe = cuda::make_pipeline(
        block, &state, copies ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
    int sum = 0;
    for (int b = 0; b < batches; ++b) {
        if (copies) {
            pipe.producer_acquire();
            for (int i = (int)threadIdx.x; i < 64; i += 32)
                cuda::memcpy_async(&tile[b % 2][i], &in[b * 64 + i], sizeof(int), pipe);
            pipe.producer_commit();
        } else {
            pipe.consumer_wait();
            sum += tile[b % 2][threadIdx.x - 32] + tile[b % 2][threadIdx.x];
            pipe.consumer_release();
        }
    }
    if (!copies) out[threadIdx.x] = sum;
}

int main() {
    int *in, *out, value;
    float* sum;
    cudaMallocManaged(&in, 5 * 64 * sizeof(int));
    cudaMallocManaged(&out, 128 * sizeof(int));
    cudaMallocManaged(&sum, sizeof(float));
    for (int i = 0; i < 5 * 64; ++i) in[i] = i;

    use_types<<<1, 1>>>(out);
    check("types");
    for (int i = 0; i < 8; ++i) printf("%d ", out[i]);
    puts("");

    out[0] = out[1] = 0;
    update<<<4, 64>>>(out, sum);
    check("atomics");
    printf("%d threads, the last is %d, sum %g\n", out[0], out[1], *sum);
    take_lock<<<8, 128>>>();
    cudaMemcpyFromSymbol(&value, guarded, sizeof value);
    printf("locked %d times\n", value);
    take_place<<<8, 128>>>();
    cudaMemcpyFromSymbol(&value, most_inside, sizeof value);
    printf("at most two inside: %d\n", value >= 1 && value <= 2);
    poll_in_block<<<1, 96>>>(out);
    check("polling");
    printf("polled %d\n", out[0]);
    wait_in_block<<<1, 96>>>(out);
    check("waiting");
    printf("notified %d\n", out[0]);
    take_turns<<<8, 32>>>(out);
    check("turns");
    printf("turns %d %d\n", out[0], out[7]);
    count_down<<<1, 96>>>(out);
    check("latch");
    printf("latch %d %d\n", out[0], out[95]);

    shift<<<1, 128>>>(in, out, 5);
    check("barrier");
    printf("barrier %d %d %d\n", out[0], out[1], out[127]);
    pipe_of_thread<<<1, 64>>>(in, out, 5);
    check("pipeline of a thread");
    printf("pipeline %d %d\n", out[0], out[63]);
    pipe_of_block<<<1, 64>>>(in, out, 5);
    check("pipeline of a block");
    printf("pipeline %d %d\n", out[0], out[63]);
    pipe_with_roles<<<1, 64>>>(in, out, 5);
    check("pipeline with roles");
    printf("pipeline %d %d\n", out[32], out[63]);
    cudaFree(in);
    cudaFree(out);
    cudaFree(sum);
}
