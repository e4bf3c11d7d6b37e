// Dynamic shared memory declared outside of the functions that use it.

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
