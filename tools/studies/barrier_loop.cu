// What a block barrier costs: nothing but barriers.
extern "C" __global__ void barrier_loop(int* out, int barriers) {
    int value = threadIdx.x;
    for (int i = 0; i < barriers; ++i) {
        value = value * 3 + i;
        __syncthreads();
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}
