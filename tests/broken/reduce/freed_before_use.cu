// /// cudalab
// summary  = "The block's array is freed before all threads have read it"
// order    = 115
// dispatch = "multi_pass"
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_BLOCK = 256 }
// applies  = { along = ["all"], op = ["sum"] }
// ///
//
// /// expect
// kind = "after_free"
// ///
extern "C" __global__ void reduce_blocks(const T* x, const T*, T* out, unsigned n, int, unsigned) {
    __shared__ T* values;
    const unsigned tid = threadIdx.x, i = blockIdx.x * THREADS_PER_BLOCK + tid;
    if (tid == 0) values = new T[THREADS_PER_BLOCK];
    __syncthreads();
    values[tid] = i < n ? x[i] : 0;
    __syncthreads();
    if (tid == 1) delete[] values;  // (1)
    __syncthreads();
    if (tid > 0) return;
    T sum = 0;
    for (unsigned other = 0; other < THREADS_PER_BLOCK; ++other) sum += values[other];  // (2)
    out[blockIdx.x] = sum;
}
