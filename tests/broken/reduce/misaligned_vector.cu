// /// cudalab
// summary  = "16-byte loads that begin at the second item"
// order    = 107
// dispatch = "multi_pass"
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_BLOCK = 1024 }
// applies  = { along = ["all"], op = ["sum"], dtype = ["int32"] }
// ///
//
// /// expect
// kind   = "misaligned"
// space  = "global"
// buffer = "x"
// ///
extern "C" __global__ void reduce_blocks(const T* x, const T*, T* out, unsigned n, int, unsigned) {
    __shared__ T values[THREADS_PER_BLOCK];
    const unsigned tid = threadIdx.x, first = blockIdx.x * ITEMS_PER_BLOCK + 4 * tid + 1;
    T sum = 0;
    if (first == 1) sum = x[0];
    if (first + 3 < n && tid < THREADS_PER_BLOCK - 1) {
        const int4 four = *reinterpret_cast<const int4*>(x + first);  // (1)
        sum += four.x + four.y + four.z + four.w;
    } else {
        const unsigned end = min(n, (blockIdx.x + 1) * ITEMS_PER_BLOCK + 1);
        for (unsigned i = first; i < end && i < first + 4; ++i) sum += x[i];
    }
    values[tid] = sum;
    __syncthreads();
    for (unsigned s = THREADS_PER_BLOCK / 2; s > 0; s /= 2) {
        if (tid < s) values[tid] += values[tid + s];
        __syncthreads();
    }
    if (tid == 0) out[blockIdx.x] = values[0];
}
