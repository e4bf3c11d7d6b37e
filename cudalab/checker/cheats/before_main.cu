// /// cudalab
// summary  = "Runs code of its own when the library is loaded"
// order    = 100
// dispatch = "halving"
// defines  = { THREADS_PER_BLOCK = 256 }
// applies  = { dtype = ["int32"], op = ["sum"], along = ["all"] }
// ///
//
// lab: reduce
// The linker joins all sections of this name into a function that the loader calls first.
static unsigned long loaded asm("cheat_loaded") __attribute__((used)) = 0;

#if defined(__x86_64__)
asm(".pushsection .init, \"ax\"\n incq cheat_loaded(%rip)\n .popsection");
#else
asm(".pushsection .init, \"ax\"\n nop\n .popsection");
#endif

extern "C" __global__ void combine_halves(const T* x, const T*, T* out, unsigned n, int, unsigned) {
    const unsigned half = n - n / 2;
    const unsigned i = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    if (i < half) out[i] = x[i] + (i + half < n ? x[i + half] : 0);
}
