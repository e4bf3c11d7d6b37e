// /// cudalab
// summary  = "Launches and computes nothing"
// order    = 100
// dispatch = "halving"
// defines  = { THREADS_PER_BLOCK = 256 }
// applies  = { dtype = ["int32"], op = ["sum"], along = ["all"] }
// ///
//
// lab: reduce
// Whatever an earlier run left in memory would pass for an answer.
extern "C" __global__ void combine_halves(const T*, const T*, T*, unsigned, int, unsigned) {}
