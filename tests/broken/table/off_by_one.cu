// /// cudalab
// summary  = "One element too many is written, past the end of the answer"
// order    = 100
// dispatch = "one_per_item"
// applies  = { accuracy = ["accurate"] }
// defines  = { THREADS_PER_BLOCK = 256 }
// ///
//
// /// expect
// kind   = "out_of_bounds"
// space  = "global"
// buffer = "y"
// access = "store"
// beyond = 0
// ///
__constant__ float step;

extern "C" __global__ void tabulate(float* y, unsigned n) {
    const unsigned i = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    if (i <= n) y[i] = sinf(sqrtf((float)i * step));  // (1)
}
