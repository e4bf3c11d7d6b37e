// /// cudalab
// summary  = "Each thread adds what is left of it by recursion, which never ends"
// order    = 114
// dispatch = "multi_pass"
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_BLOCK = 256 }
// applies  = { along = ["all"], op = ["sum"] }
// ///
//
// /// expect
// kind = "crash"
// ///
__device__ T sum_to(const T* x, unsigned i, unsigned first) {
    if (i == first - 1) return 0;
    return x[i % first] + sum_to(x, i + 1, first);  // (1) it moves away from the end
}

extern "C" __global__ void reduce_blocks(const T* x, const T*, T* out, unsigned n, int, unsigned) {
    const unsigned first = blockIdx.x * THREADS_PER_BLOCK;
    const unsigned last = min(first + THREADS_PER_BLOCK, n);
    if (threadIdx.x == 0) out[blockIdx.x] = sum_to(x, last, last);
}
