// /// cudalab
// summary  = "Pairs combined in global memory: a launch for each halving"
// order    = 0
// dispatch = "halving"
// defines  = { THREADS_PER_BLOCK = 256 }
// applies  = { along = ["all"] }
// ///
//
// The upper half of the array is combined with the lower half until one value is left: thread i
// takes items i and i + half. Neighbours read neighbours, no thread waits for another, and the end
// of a launch is the barrier between two levels.
//
// Limits: this is the baseline for all that follows. Every level reads its values from global
// memory and writes them back, about 2 n reads and n writes in all, where the sum needs n reads;
// and there are log2(n) launches, most of them for a handful of values.
//
// Macros from outside: T (element type), OP_* (one of them: the operation), THREADS_PER_BLOCK.
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
