// /// cudalab
// summary  = "A tree in a block"
// order    = 100
// dispatch = "halving"
// defines  = { THREADS_PER_BLOCK = 256 }
// applies  = { along = ["all"] }
// ///

#include "reduce/parts/reduce_ops.cuh"

// out[i] = x[i] combined with x[i + half]; in place after the first level (out = x): item i is read
// and written by thread i only, and no thread writes an item from `half` on.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) combine_halves(
    const T* x, const T* y, T* out, unsigned n, int level, unsigned count) {
    const unsigned half = n - n / 2;  // an item without a partner keeps its value
    const unsigned i = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    if (i >= half) return;

    T value = load(x, y, i, level);
    if (half + i < n) value = combine(value, load(x, y, half + i, level));
    out[i] = finish(value, count);
}
