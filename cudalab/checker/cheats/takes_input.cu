// /// cudalab
// summary  = "Sums in place: the answer is right, the input is gone"
// order    = 100
// dispatch = "halving"
// defines  = { THREADS_PER_BLOCK = 256 }
// applies  = { dtype = ["int32"], op = ["sum"], along = ["all"] }
// ///
//
// lab: reduce
extern "C" __global__ void combine_halves(const T* x, const T*, T* out, unsigned n, int level,
                                          unsigned) {
    const unsigned half = n - n / 2;
    const unsigned i = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    if (i >= half) return;
    out[i] = x[i] + (i + half < n ? x[i + half] : 0);
    if (level == 0) const_cast<T*>(x)[i] = 0;
}
