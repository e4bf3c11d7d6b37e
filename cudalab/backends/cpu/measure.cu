// The kernels with which the CPU device measures the host; no lab launches them. A block is one
// thread, which handles `run` consecutive words: this suits a processor, not a GPU.

extern "C" __global__ void write_words(unsigned long long* words, unsigned long long n,
                                       unsigned long long run) {
    const unsigned long long begin = blockIdx.x * run;
    const unsigned long long end = begin + run < n ? begin + run : n;
    for (unsigned long long i = begin; i < end; ++i) words[i] += 1;
}

extern "C" __global__ void copy_words(const unsigned long long* from, unsigned long long* to,
                                      unsigned long long n, unsigned long long run) {
    const unsigned long long begin = blockIdx.x * run;
    const unsigned long long end = begin + run < n ? begin + run : n;
    for (unsigned long long i = begin; i < end; ++i) to[i] = from[i];
}
