// /// cudalab
// summary  = "Launches and does nothing"
// order    = 100
// dispatch = "halving"
// defines  = { THREADS_PER_BLOCK = 256 }
// applies  = { dtype = ["int32"], op = ["sum"], along = ["all"] }
// ///
//
// Whatever an earlier run left in the output would pass for an answer, were it not poisoned.
extern "C" __global__ void combine_halves(const T*, const T*, T*, unsigned, int, unsigned) {}
