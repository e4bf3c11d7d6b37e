// Bulk copies from global to shared memory, and the barriers in shared memory that count their
// bytes (compute capability 9.0). One thread starts a copy of any multiple of 16 bytes; the copy
// engine writes shared memory by itself and tells the barrier how many bytes have arrived.
//
// A barrier goes through phases. A phase ends when as many threads have arrived as init_barrier
// said and all announced bytes have been copied; phases alternate between parity 0 and 1. Waiting
// for parity 1 on a fresh barrier returns at once: the phase before the first counts as ended.
#pragma once

typedef unsigned long long Barrier;  // eight bytes of shared memory in the hardware's format

__device__ inline unsigned shared_address(const void* pointer) {
    return (unsigned)__cvta_generic_to_shared(pointer);
}
__device__ inline void init_barrier(Barrier* barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals)
                 : "memory");
}
// Between init_barrier and the first use: makes the barriers known to the copy engine. The other
// threads of the block need a block barrier, too.
__device__ inline void publish_barriers() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ inline void arrive(Barrier* barrier) {
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
// Arrives, and lets the phase last until `bytes` have been copied.
__device__ inline void arrive_expecting(Barrier* barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
                 "r"(bytes)
                 : "memory");
}
// Returns when the phase of this parity has ended.
__device__ inline void wait_for_phase(Barrier* barrier, unsigned parity) {
    unsigned ended;
    do {
        asm volatile(
            "{\n"
            ".reg .pred ended;\n"
            "mbarrier.try_wait.parity.shared.b64 ended, [%1], %2;\n"
            "selp.u32 %0, 1, 0, ended;\n"
            "}"
            : "=r"(ended)
            : "r"(shared_address(barrier)), "r"(parity)
            : "memory");
    } while (!ended);
}
// Starts copying; both addresses and `bytes` are multiples of 16.
__device__ inline void copy_bulk(void* target, const void* source, unsigned bytes,
                                 Barrier* barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(shared_address(target)),
        "l"(source), "r"(bytes), "r"(shared_address(barrier))
        : "memory");
}
