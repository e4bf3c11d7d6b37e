// The sum of int32 numbers modulo 2^32. The kernel is a template over the size of the block, so
// that its loops unroll; the size is chosen when the program runs, from a table of kernels.
//
// stdin: int32 n, n int32. stdout: one int32. An argument is the number of threads a block.

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#define FATAL(...)                    \
    {                                 \
        fprintf(stderr, __VA_ARGS__); \
        fputc('\n', stderr);          \
        exit(1);                      \
    }
#define CUDA(function, ...)                                                                     \
    {                                                                                           \
        const cudaError_t status = cuda##function(__VA_ARGS__);                                 \
        if (status) FATAL("cuda" #function ": %s: line %d", cudaGetErrorName(status), __LINE__) \
    }

// Two items a thread while loading, a tree in shared memory, the last six levels in one warp.
template <unsigned THREADS>
__global__ void reduce(const unsigned* items, unsigned* sums, unsigned n) {
    __shared__ unsigned s[THREADS];
    const unsigned t = threadIdx.x;
    const unsigned i = blockIdx.x * (2 * THREADS) + t;
    s[t] = (i < n ? items[i] : 0) + (i + THREADS < n ? items[i + THREADS] : 0);
    __syncthreads();
#pragma unroll
    for (unsigned half = THREADS / 2; half > 32; half /= 2) {
        if (t < half) s[t] += s[t + half];
        __syncthreads();
    }
    if (t < 32) {
        // Every step reads before any lane writes: without the barriers this is a race.
#pragma unroll
        for (unsigned half = THREADS >= 64 ? 32 : THREADS / 2; half > 0; half /= 2) {
            const unsigned other = t + half < THREADS ? s[t + half] : 0;
            __syncwarp();
            s[t] += other;
            __syncwarp();
        }
        if (t == 0) sums[blockIdx.x] = s[0];
    }
}

typedef void (*Kernel)(const unsigned*, unsigned*, unsigned);
static const struct {
    unsigned threads;
    Kernel kernel;
} table[] = {
    {32, reduce<32>},   {64, reduce<64>},   {128, reduce<128>},
    {256, reduce<256>}, {512, reduce<512>}, {1024, reduce<1024>},
};

int main(int argc, char* argv[]) {
    const unsigned threads = argc > 1 ? atoi(argv[1]) : 256;
    Kernel kernel = nullptr;
    for (const auto& each : table)
        if (each.threads == threads) kernel = each.kernel;
    if (!kernel) FATAL("blocks of 32, 64, 128, 256, 512 or 1024 threads, not %s", argv[1])

    int32_t n;
    if (fread(&n, 4, 1, stdin) != 1) FATAL("the input is shorter than its header")
    if (n < 0) FATAL("n is %d", n)
    std::unique_ptr<unsigned[], decltype(&free)> items(
        static_cast<unsigned*>(malloc(n ? size_t{4} * n : 4)), &free);
    if (!items || fread(items.get(), 4, n, stdin) != static_cast<size_t>(n))
        FATAL("fewer than %d numbers", n)

    unsigned sum = 0;
    if (n > 0) {
        unsigned left = n, *from, *to;
        CUDA(Malloc, &from, sizeof(unsigned) * left);
        CUDA(Malloc, &to, sizeof(unsigned) * ((left + 2 * threads - 1) / (2 * threads)));
        CUDA(Memcpy, from, items.get(), sizeof(unsigned) * left, cudaMemcpyHostToDevice);
        do {  // each pass leaves one sum a block
            const unsigned blocks = (left + 2 * threads - 1) / (2 * threads);
            kernel<<<blocks, threads>>>(from, to, left);
            CUDA(PeekAtLastError);
            std::swap(from, to);
            left = blocks;
        } while (left > 1);
        CUDA(Memcpy, &sum, from, sizeof sum, cudaMemcpyDeviceToHost);
        CUDA(Free, from);
        CUDA(Free, to);
    }
    return fwrite(&sum, sizeof sum, 1, stdout) == 1 ? 0 : 1;
}
