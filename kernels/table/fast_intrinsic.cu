// /// cudalab
// summary  = "__sinf on the special function unit: a few instructions, fewer digits"
// order    = 1
// ladder   = "fewer digits"
// adds     = "the special function unit instead of a polynomial"
// dispatch = "one_per_item"
// applies  = { accuracy = ["fast"] }
// default  = ["cuda", "cpu"]
// defines  = { THREADS_PER_BLOCK = 256 }
// ///
//
// y[i] = sin(sqrt(i * step)). __sinf is one multiplication, which turns radians into revolutions,
// and one instruction of the special function unit: its absolute error is about 2^-20.5 up to 2 pi,
// and the rounding of the multiplication makes it grow in proportion to the argument. Near a zero
// of the sine few digits of the result are right, and beyond an argument of about 10^6 none. A
// thread computes one element; neighbours write neighbours.
//
// `step` is the same for all threads: constant memory has a cache of its own, and a warp whose
// lanes read one address gets it in a single access.
//
// Limits: writing y takes longer than computing it, so on a large GPU the intrinsic gains little.
// On the CPU device __sinf is the host's sinf.
//
// Macros from outside: THREADS_PER_BLOCK.

__constant__ float step;

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) tabulate(float* y, unsigned n) {
    const unsigned i = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    if (i < n) y[i] = __sinf(sqrtf((float)i * step));
}

// Source: NVIDIA, CUDA C++ Programming Guide, Mathematical Functions.
