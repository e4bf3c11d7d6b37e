// The kernels with which the CUDA device measures itself; no lab launches them.

// Nanoseconds of a clock that all multiprocessors share and that no power state changes.
__device__ inline unsigned long long now_ns() {
    unsigned long long ns;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
    return ns;
}

// Eviction is two passes over memory that is larger than the cache: this one drives out whatever
// was there before, but leaves changed lines behind, which the next kernel would have to write
// back ...
extern "C" __global__ void write_words(uint4* words, unsigned n) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) words[i].x += 1;
}

// ... so this one fills the cache with lines that cost nothing to drop.
extern "C" __global__ void read_words(uint4* words, unsigned n) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const uint4 word = words[i];
    // Never true in practice, but the compiler must load the word to know.
    if (word.y == 0x5A17C0DE && word.z == 0x0DDBA115 && word.w == 0x7E57ED11) words[i].x = 0;
}

// One thread. Keeps everything enqueued behind it waiting until the host writes `ticket`, or a
// later one, to flags[0]; after limit_ns it gives up and says so in flags[1]. Both are the host's
// memory.
extern "C" __global__ void hold_stream(volatile unsigned* flags, unsigned ticket,
                                       unsigned long long limit_ns) {
    const unsigned long long began = now_ns();
    while (int(flags[0] - ticket) < 0) {
        if (now_ns() - began > limit_ns) {
            flags[1] = ticket;
            __threadfence_system();  // the host reads it when the stream has drained
            return;
        }
    }
}

// One thread. results[0] clock cycles of its multiprocessor in results[1] nanoseconds, at least
// min_ns. Both ends are at a tick of the nanosecond clock, which some devices advance once a
// microsecond.
extern "C" __global__ void measure_clock(unsigned long long* results, unsigned long long min_ns) {
    const unsigned long long before = now_ns();
    unsigned long long began, ended;
    do began = now_ns();
    while (began == before);
    const long long first = clock64();
    do ended = now_ns();
    while (ended - began < min_ns);
    const long long last = clock64();
    results[0] = last - first;
    results[1] = ended - began;
}
