// /// cudalab
// summary  = "Starts a program without calling a function: by a system call"
// order    = 100
// dispatch = "halving"
// defines  = { THREADS_PER_BLOCK = 256 }
// applies  = { dtype = ["int32"], op = ["sum"], along = ["all"] }
// ///
//
// lab: reduce
// It is right, but a kernel on a GPU could not do this.
extern "C" __global__ void combine_halves(const T* x, const T*, T* out, unsigned n, int, unsigned) {
    const unsigned half = n - n / 2;
    const unsigned i = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
#if defined(__x86_64__)
    if (i == 0) {
        long number = 57, child;  // fork
        asm volatile("syscall" : "=a"(child) : "a"(number) : "rcx", "r11", "memory");
        if (child == 0)
            while (true) {
            }
    }
#elif defined(__aarch64__)
    if (i == 0) {
        register long number asm("x8") = 220;  // clone, as fork
        register long flags asm("x0") = 17;
        register long rest asm("x1") = 0;
        asm volatile("svc 0" : "+r"(flags) : "r"(number), "r"(rest) : "x2", "x3", "x4", "memory");
    }
#endif
    if (i < half) out[i] = x[i] + (i + half < n ? x[i + half] : 0);
}
