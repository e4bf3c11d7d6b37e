// How many blocks fit on a multiprocessor at once: a launch bound should ask for no more. If it
// does, the compiler saves registers for blocks that never come.
#pragma once

#ifdef __CUDA_ARCH__
constexpr unsigned ARCH = __CUDA_ARCH__;
#else
constexpr unsigned ARCH = 900;
#endif
constexpr bool IS_DATA_CENTRE = ARCH == 800 || ARCH == 900 || (ARCH >= 1000 && ARCH < 1100);
constexpr unsigned MAX_RESIDENT_THREADS = ARCH == 750 ? 1024 : IS_DATA_CENTRE ? 2048 : 1536;
constexpr unsigned SHARED_KB = ARCH == 750                      ? 64
                               : ARCH == 800 || ARCH == 870     ? 164
                               : IS_DATA_CENTRE || ARCH == 1100 ? 228
                                                                : 100;
constexpr unsigned RESERVED_BYTES = 1024;  // of shared memory in each block, for the system

// At most `wanted` blocks, each with so many threads and bytes of shared memory.
constexpr unsigned resident_blocks(unsigned wanted, unsigned threads, unsigned shared_bytes) {
    const unsigned by_threads = MAX_RESIDENT_THREADS / threads;
    const unsigned by_memory = SHARED_KB * 1024 / (shared_bytes + RESERVED_BYTES);
    const unsigned fitting = by_threads < by_memory ? by_threads : by_memory;
    return wanted <= fitting ? wanted : fitting > 0 ? fitting : 1;
}
