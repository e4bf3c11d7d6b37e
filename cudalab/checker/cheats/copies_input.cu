// /// cudalab
// summary  = "Copies its input instead of adding it up"
// order    = 100
// dispatch = "halving"
// defines  = { THREADS_PER_BLOCK = 256 }
// applies  = { dtype = ["int32"], op = ["sum"], along = ["all"] }
// ///
//
// lab: reduce
extern "C" __global__ void combine_halves(const T* x, const T*, T* out, unsigned n, int, unsigned) {
    const unsigned i = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    if (i < n - n / 2) out[i] = x[i];
}
