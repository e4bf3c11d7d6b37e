// /// cudalab
// summary  = "Thread 0 divides by its own number"
// order    = 112
// dispatch = "multi_pass"
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_BLOCK = 256 }
// applies  = { along = ["all"], op = ["sum"] }
// ///
//
// /// expect
// kind = "zero_division"
// ///
extern "C" __global__ void reduce_blocks(const T* x, const T*, T* out, unsigned n, int, unsigned) {
    __shared__ T sum;
    const unsigned tid = threadIdx.x, i = blockIdx.x * THREADS_PER_BLOCK + tid;
    if (tid == 0) sum = 0;
    __syncthreads();
    if (i < n) atomicAdd(&sum, x[n / i % n]);  // (1) i is 0 in thread 0
    __syncthreads();
    if (tid == 0) out[blockIdx.x] = sum;
}
