// What the threads of a block share: static and dynamic memory, barriers, barriers that vote.

// Inclusive scan of the first n threads of each block; the others leave before any barrier.
extern "C" __global__ void scan_after_early_return(const int* in, int* out, int n) {
    __shared__ int sums[1024];
    const int i = threadIdx.x;
    if (i >= n) return;
    sums[i] = in[blockIdx.x * n + i];
    for (int stride = 1; stride < n; stride *= 2) {
        __syncthreads();  // sums of the stride before are complete
        const int left = i >= stride ? sums[i - stride] : 0;
        __syncthreads();  // all have read before any writes
        sums[i] += left;
    }
    out[blockIdx.x * n + i] = sums[i];
}

extern "C" __global__ void reverse_static(const int* in, int* out) {
    __shared__ int items[1024];
    const int first = blockIdx.x * blockDim.x;
    items[threadIdx.x] = in[first + threadIdx.x];
    __syncthreads();
    out[first + threadIdx.x] = items[blockDim.x - 1 - threadIdx.x];
}

// One block reverses n items, held in dynamic shared memory all at once.
extern "C" __global__ void reverse_dynamic(const int* in, int* out, int n) {
    extern __shared__ int dynamic[];
    for (int i = threadIdx.x; i < n; i += blockDim.x) dynamic[i] = in[i];
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = dynamic[n - 1 - i];
}

extern "C" __global__ void vote_at_barrier(const int* in, int* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int count = __syncthreads_count(in[i]);
    const int all = __syncthreads_and(in[i]);
    const int any = __syncthreads_or(in[i]);
    out[3 * i] = count;
    out[3 * i + 1] = all != 0;
    out[3 * i + 2] = any != 0;
}

template <typename Item, int SIZE>
__device__ Item sum_of_block(Item mine) {
    __shared__ Item items[SIZE];
    items[threadIdx.x] = mine;
    __syncthreads();
    Item sum = 0;
    for (int i = 0; i < SIZE; ++i) sum += items[i];
    __syncthreads();  // the next call overwrites items
    return sum;
}

// Barriers inside a function, called in a loop, with two types and a block of SIZE threads.
extern "C" __global__ void sum_by_template(const int* in, long long* out, double* halves) {
    const int i = blockIdx.x * 100 + threadIdx.x;
    long long sum = 0;
    for (int round = 1; round <= 3; ++round) sum += sum_of_block<long long, 100>(round * in[i]);
    const double half = sum_of_block<double, 100>(0.5 * in[i]);
    out[i] = sum;
    halves[i] = half;
}

// Item of block b: the sum of in[0 .. b]. Each block waits for the one before it.
extern "C" __global__ void chain_blocks(const unsigned* in, unsigned* out, volatile unsigned* sums,
                                        volatile unsigned* ready) {
    __shared__ unsigned before;
    const unsigned block = blockIdx.x;
    if (threadIdx.x == 0) {
        unsigned sum = 0;
        if (block > 0) {
            while (ready[block - 1] == 0) {
            }
            __threadfence();  // the flag was read before the sum is
            sum = sums[block - 1];
        }
        before = sum;
        sums[block] = sum + in[block];
        __threadfence();  // the sum is visible before the flag
        ready[block] = 1;
    }
    __syncthreads();
    out[block * blockDim.x + threadIdx.x] = before + in[block];
}
