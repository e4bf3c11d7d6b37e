// Atomic operations of every type and scope: what many threads have done must be there, once.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdio>

struct Totals {
    double sum;
    unsigned long long most, least, all, some, odd, swapped;
    long long lowest, highest;
    int blockwise, systemwide, built_in;
    unsigned wrapped, counted, downwards;
    float built_in_float;
    float2 pair;
    float4 four;
    __half half;
    __half2 halves;
    __nv_bfloat16 narrow;
    __nv_bfloat162 narrows;
    unsigned short slots[4];
    unsigned lock, protected_sum;
};
__device__ Totals totals = {.least = ~0ull, .all = ~0ull, .lowest = 1 << 20};

// A 16-bit addition out of compare-and-swap.
__device__ void add_short(unsigned short* p, unsigned short value) {
    unsigned short old = *(volatile unsigned short*)p, seen;
    while ((seen = atomicCAS(p, old, (unsigned short)(old + value))) != old) old = seen;
}

__global__ void update() {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned long long wide = (unsigned long long)i << 32 | i;
    atomicAdd(&totals.sum, 0.5);
    atomicAdd_system(&totals.sum, 0.25);
    atomicMax(&totals.most, wide);
    atomicMin_system(&totals.least, wide + 5);
    atomicAnd(&totals.all, ~(1ull << i % 60));
    atomicOr_system(&totals.some, 1ull << i % 50);
    atomicXor(&totals.odd, wide);
    atomicMin(&totals.lowest, -(long long)wide);
    atomicMax_block(&totals.highest, (long long)wide - 7);
    atomicAdd_block(&totals.blockwise, 1);
    atomicSub_system(&totals.systemwide, 2);
    atomicInc_system(&totals.wrapped, 6);
    atomicInc_block(&totals.counted, 1000000);
    atomicDec_system(&totals.downwards, 4);
    atomicAdd(&totals.pair, make_float2(1, 2));
    atomicAdd(&totals.four, make_float4(1, 2, 3, 4));
    if (i < 128) {
        atomicAdd(&totals.half, __float2half(1.0f));
        atomicAdd(&totals.halves, __floats2half2_rn(1.0f, 2.0f));
        atomicAdd(&totals.narrow, __float2bfloat16(1.0f));
        atomicAdd(&totals.narrows, __floats2bfloat162_rn(1.0f, 2.0f));
    }
    add_short(&totals.slots[i % 4], (unsigned short)(i % 3));
    if (i == 77) atomicExch_system(&totals.swapped, 0xabcdefull);
    __nv_atomic_fetch_add(&totals.built_in, 3, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
    __nv_atomic_add(&totals.built_in_float, 0.5f, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_SYSTEM);
    for (bool done = false; !done;) {
        unsigned expected = 0;
        if (__nv_atomic_compare_exchange_n(&totals.lock, &expected, 1u, false, __NV_ATOMIC_ACQUIRE,
                                           __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE)) {
            totals.protected_sum += i;
            __nv_atomic_store_n(&totals.lock, 0u, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_DEVICE);
            done = true;
        }
    }
}

int main() {
    update<<<4, 96>>>();
    Totals t;
    const cudaError_t error = cudaMemcpyFromSymbol(&t, totals, sizeof t);
    if (error != cudaSuccess) printf("%s\n", cudaGetErrorString(error));
    printf("%g %llx %llx %llx %llx %llx\n", t.sum, t.most, t.least, t.all, t.some, t.odd);
    printf("%llx %llx %d %d %u %u %u\n", (unsigned long long)t.lowest,
           (unsigned long long)t.highest, t.blockwise, t.systemwide, t.wrapped, t.counted,
           t.downwards);
    printf("%g %g %g %g %g %g\n", t.pair.x, t.pair.y, t.four.x, t.four.y, t.four.z, t.four.w);
    printf("%g %g %g %g %g %g\n", __half2float(t.half), __low2float(t.halves),
           __high2float(t.halves), __bfloat162float(t.narrow), __low2float(t.narrows),
           __high2float(t.narrows));
    printf("%d %d %d %d %llx %d %g %u\n", t.slots[0], t.slots[1], t.slots[2], t.slots[3], t.swapped,
           t.built_in, t.built_in_float, t.protected_sum);
    return 0;
}
