// /// cudalab
// summary  = "Lanes without an item have left when the others shuffle"
// order    = 109
// dispatch = "multi_pass"
// defines  = { THREADS_PER_BLOCK = 32, ITEMS_PER_BLOCK = 32 }
// applies  = { along = ["all"], op = ["sum"] }
// ///
//
// /// expect
// kind = "wrong_mask"
// ///
extern "C" __global__ void reduce_blocks(const T* x, const T*, T* out, unsigned n, int, unsigned) {
    const unsigned i = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    if (i >= n) return;  // the mask below names these lanes too
    T sum = x[i];
    for (unsigned distance = 16; distance > 0; distance /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, distance);  // (1)
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
