// How blocks of one launch signal each other, in the words of CUDA's memory model.
//
// A word that says everything by itself, a flag and a value in one or a count, need only be read
// and written as a whole: that is "relaxed". Where a word says that something else has been
// written, a fence stands between the two on either side. It releases what was written before it,
// and acquires what the other side has released:
//
//     data = …;                          while (load_relaxed(&flag) == 0) …;
//     fence_device();                    fence_device();
//     store_relaxed(&flag, 1);           … = data;
//
// All of it holds within the device (.gpu). `volatile` and __threadfence() say more than that: the
// whole system, and one order of all fences that every thread agrees on. `python -m tools.studies
// sass` shows LDG.STRONG.SYS and MEMBAR.SC for them, LDG.STRONG.GPU and MEMBAR.ALL for these. In
// C++ these are cuda::atomic_ref with memory_order_relaxed, and cuda::atomic_thread_fence with
// memory_order_acq_rel and thread_scope_device.
#pragma once

#if __CUDA_ARCH__ >= 800  // higher than the CPU device reports, as it takes no PTX
// Words of 4 or 8 bytes in global memory.
template <class W>
__device__ inline W load_relaxed(const W* word) {
    W value;
    if constexpr (sizeof(W) == 4) {
        unsigned bits;
        asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(bits) : "l"(word));
        memcpy(&value, &bits, sizeof value);
    } else {
        unsigned long long bits;
        asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(bits) : "l"(word));
        memcpy(&value, &bits, sizeof value);
    }
    return value;
}
template <class W>
__device__ inline void store_relaxed(W* word, W value) {
    if constexpr (sizeof(W) == 4) {
        unsigned bits;
        memcpy(&bits, &value, sizeof value);
        asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(word), "r"(bits));
    } else {
        unsigned long long bits;
        memcpy(&bits, &value, sizeof value);
        asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(bits));
    }
}
__device__ inline void fence_device() {
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
}
#else
template <class W>
__device__ inline W load_relaxed(const W* word) {
    return *(const volatile W*)word;
}
template <class W>
__device__ inline void store_relaxed(W* word, W value) {
    *(volatile W*)word = value;
}
__device__ inline void fence_device() {
    __threadfence();
}
#endif
