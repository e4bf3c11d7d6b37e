// /// cudalab
// summary  = "Adds up shared memory to which nobody has written"
// order    = 100
// dispatch = "halving"
// defines  = { THREADS_PER_BLOCK = 256 }
// applies  = { dtype = ["int32"], op = ["sum"], along = ["all"] }
// ///
//
// lab: reduce
// On a GPU it has what the last block left there, which may be the reference's numbers.
extern "C" __global__ void combine_halves(const T* x, const T*, T* out, unsigned n, int, unsigned) {
    __shared__ T held[THREADS_PER_BLOCK];
    const unsigned i = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    if (i < n - n / 2) out[i] = held[threadIdx.x];
}
