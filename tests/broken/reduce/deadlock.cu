// /// cudalab
// summary  = "Half of a warp waits for the warp, the other half for the block"
// order    = 111
// dispatch = "multi_pass"
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_BLOCK = 256 }
// applies  = { along = ["all"], op = ["sum"] }
// ///
//
// /// expect
// kind = "deadlock"
// ///
extern "C" __global__ void reduce_blocks(const T* x, const T*, T* out, unsigned n, int, unsigned) {
    __shared__ T sum;
    const unsigned tid = threadIdx.x, i = blockIdx.x * THREADS_PER_BLOCK + tid;
    if (tid == 0) sum = 0;
    if (tid % 2)
        __syncwarp();  // (1)
    else
        __syncthreads();  // (2)
    if (i < n) atomicAdd(&sum, x[i]);
    __syncthreads();
    if (tid == 0) out[blockIdx.x] = sum;
}
