// /// cudalab
// summary  = "Waits for what nobody writes"
// order    = 100
// dispatch = "halving"
// defines  = { THREADS_PER_BLOCK = 256 }
// applies  = { dtype = ["int32"], op = ["sum"], along = ["all"] }
// ///
//
// lab: reduce
// needs: alone
__device__ volatile int flag = 0;

extern "C" __global__ void combine_halves(const T*, const T*, T* out, unsigned, int, unsigned) {
    while (flag == 0) {
    }
    out[0] = 0;
}
