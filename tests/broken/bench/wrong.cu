// /// cudalab
// summary  = "Sums all items but the last"
// order    = 100
// dispatch = "halving"
// defines  = { THREADS_PER_BLOCK = 256 }
// applies  = { dtype = ["int32"], op = ["sum"], along = ["all"] }
// ///
//
// A right program with one bound too small: fast, almost right, refused.
extern "C" __global__ void combine_halves(const T* x, const T*, T* out, unsigned n, int level,
                                          unsigned) {
    const unsigned half = n - n / 2;
    const unsigned i = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    const unsigned end = level == 0 ? n - 1 : n;  // wrong: at level 0 the last item is left out
    if (i < half) out[i] = x[i] + (i + half < end ? x[i + half] : 0);
}
