// Shared memory: dynamic, declared outside of the functions that use it; and with a storage class.

extern __shared__ int items[];

__device__ int item_from_the_end(int i, int n) {
    return items[n - 1 - i];
}

extern "C" __global__ void reverse_block(const int* in, int* out) {
    const int first = blockIdx.x * blockDim.x;
    items[threadIdx.x] = in[first + threadIdx.x];
    __syncthreads();
    out[first + threadIdx.x] = item_from_the_end(threadIdx.x, blockDim.x);
}

extern "C" __global__ void reverse_words(const int* in, int* out) {
    static __shared__ int words[1024];
    register const int first = blockIdx.x * blockDim.x;
    words[threadIdx.x] = in[first + threadIdx.x];
    __syncthreads();
    out[first + threadIdx.x] = words[blockDim.x - 1 - threadIdx.x];
}
