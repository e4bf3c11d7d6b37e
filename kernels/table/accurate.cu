// /// cudalab
// summary  = "sinf(sqrtf(x)): an exactly reduced argument, at most 2 units in the last place"
// order    = 2
// dispatch = "one_per_item"
// applies  = { accuracy = ["accurate"] }
// default  = ["cuda", "cpu"]
// defines  = { THREADS_PER_BLOCK = 256 }
// ///
//
// y[i] = sin(sqrt(i * step)). sinf subtracts multiples of pi/2 with as many digits of pi as the
// argument needs, then evaluates a polynomial: at most 2 units in the last place for any argument.
// A thread computes one element; neighbours write neighbours.
//
// `step` is the same for all threads: constant memory has a cache of its own, and a warp whose
// lanes read one address gets it in a single access.
//
// Limits: the rounding of i, i * step and the root remains, and grows with the argument; large
// arguments take sinf's slow path.
//
// Macros from outside: THREADS_PER_BLOCK.

__constant__ float step;

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) tabulate(float* y, unsigned n) {
    const unsigned i = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    if (i < n) y[i] = sinf(sqrtf((float)i * step));
}
