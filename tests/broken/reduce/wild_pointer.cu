// /// cudalab
// summary  = "A pointer that was never set"
// order    = 113
// dispatch = "multi_pass"
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_BLOCK = 256 }
// applies  = { along = ["all"], op = ["sum"] }
// ///
//
// /// expect
// kind   = "out_of_bounds"
// access = "load"
// ///
extern "C" __global__ void reduce_blocks(const T* x, const T*, T* out, unsigned n, int, unsigned) {
    __shared__ T sum;
    const unsigned tid = threadIdx.x, i = blockIdx.x * THREADS_PER_BLOCK + tid;
    if (tid == 0) sum = 0;
    __syncthreads();
    const T* volatile next = nullptr;
    if (i < n) atomicAdd(&sum, x[i]);
    if (i == 3) atomicAdd(&sum, *next);  // (1)
    __syncthreads();
    if (tid == 0) out[blockIdx.x] = sum;
}
