// The histogram of bytes, in chunks: while one chunk is counted, the next one is copied. Two
// streams, two pinned buffers; each block counts in shared memory.
//
// stdin: int32 n, n bytes. stdout: 256 uint32 counts.

#include <cuda_runtime.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

static const int CLASSES = 256, THREADS = 256, BLOCKS = 64, STREAMS = 2;
static const size_t CHUNK = 1 << 20;

__device__ unsigned counts[CLASSES];

__global__ void count(const unsigned char* bytes, size_t n) {
    __shared__ unsigned own[CLASSES];
    for (int c = threadIdx.x; c < CLASSES; c += blockDim.x) own[c] = 0;
    __syncthreads();
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x)
        atomicAdd(own + bytes[i], 1u);
    __syncthreads();
    for (int c = threadIdx.x; c < CLASSES; c += blockDim.x)
        if (own[c]) atomicAdd(&counts[c], own[c]);
}

static void or_die(cudaError_t status) {
    if (status != cudaSuccess) {
        fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(status));
        _exit(EXIT_FAILURE);
    }
}

// read() may give less than asked for, from a pipe above all.
static size_t read_fully(void* buffer, size_t size) {
    size_t done = 0;
    while (done < size) {
        const ssize_t got = read(STDIN_FILENO, (char*)buffer + done, size - done);
        if (got <= 0) break;
        done += got;
    }
    return done;
}

int main() {
    int32_t n;
    if (read_fully(&n, sizeof n) != sizeof n || n < 0) {
        fprintf(stderr, "bad header\n");
        return EXIT_FAILURE;
    }
    struct {
        cudaStream_t stream;
        cudaEvent_t copied;
        unsigned char *pinned, *on_device;
    } lanes[STREAMS];
    for (auto& lane : lanes) {
        or_die(cudaStreamCreateWithFlags(&lane.stream, cudaStreamNonBlocking));
        or_die(cudaEventCreateWithFlags(&lane.copied, cudaEventDisableTiming));
        or_die(cudaMallocHost(&lane.pinned, CHUNK));
        or_die(cudaMalloc(&lane.on_device, CHUNK));
    }
    size_t left = n;
    for (int turn = 0; left > 0; ++turn) {
        auto& lane = lanes[turn % STREAMS];
        const size_t size = left < CHUNK ? left : CHUNK;
        or_die(cudaEventSynchronize(lane.copied));  // its buffer is free again
        if (read_fully(lane.pinned, size) != size) {
            fprintf(stderr, "%zu of %d bytes are missing\n", left, n);
            return EXIT_FAILURE;
        }
        or_die(cudaMemcpyAsync(lane.on_device, lane.pinned, size, cudaMemcpyHostToDevice,
                               lane.stream));
        or_die(cudaEventRecord(lane.copied, lane.stream));
        count<<<BLOCKS, THREADS, 0, lane.stream>>>(lane.on_device, size);
        or_die(cudaGetLastError());
        left -= size;
    }
    for (auto& lane : lanes) or_die(cudaStreamSynchronize(lane.stream));

    unsigned answer[CLASSES];
    or_die(cudaMemcpyFromSymbol(answer, counts, sizeof answer));
    for (auto& lane : lanes) {
        or_die(cudaFree(lane.on_device));
        or_die(cudaFreeHost(lane.pinned));
        or_die(cudaEventDestroy(lane.copied));
        or_die(cudaStreamDestroy(lane.stream));
    }
    return fwrite(answer, sizeof *answer, CLASSES, stdout) == CLASSES ? 0 : EXIT_FAILURE;
}
