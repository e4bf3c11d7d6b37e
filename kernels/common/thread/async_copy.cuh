// Copies from global to shared memory that a thread starts and does not wait for (cp.async, compute
// capability 8.0 and higher): the data bypass the registers. Elsewhere, and on the CPU device, each
// is an ordinary copy, complete when the call returns.
//
// Copies are grouped: commit_copies() closes a group, wait_for_copies<N>() waits until at most the
// N groups closed last are in flight. A wait covers the thread's own copies; a block barrier after
// it makes those of all threads visible.
#pragma once

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800

// Four bytes.
__device__ inline void copy_async(float* target, const float* source) {
    const unsigned address = (unsigned)__cvta_generic_to_shared(target);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address), "l"(source) : "memory");
}
// Eight bytes; both addresses must be multiples of 8.
__device__ inline void copy_async_8(float* target, const float* source) {
    const unsigned address = (unsigned)__cvta_generic_to_shared(target);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(address), "l"(source) : "memory");
}
// Sixteen bytes; both addresses must be multiples of 16. Bypasses the L1 cache, since a block uses
// them once.
__device__ inline void copy_async_16(float* target, const float* source) {
    const unsigned address = (unsigned)__cvta_generic_to_shared(target);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(source)
                 : "memory");
}
// The same, or zeros if nothing is to be read (`source` must still be a valid address).
__device__ inline void copy_async(float* target, const float* source, bool inside) {
    const unsigned address = (unsigned)__cvta_generic_to_shared(target);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(source),
                 "r"(inside ? 4 : 0)
                 : "memory");
}
__device__ inline void copy_async_8(float* target, const float* source, bool inside) {
    const unsigned address = (unsigned)__cvta_generic_to_shared(target);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(address), "l"(source),
                 "r"(inside ? 8 : 0)
                 : "memory");
}
__device__ inline void copy_async_16(float* target, const float* source, bool inside) {
    const unsigned address = (unsigned)__cvta_generic_to_shared(target);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(source),
                 "r"(inside ? 16 : 0)
                 : "memory");
}
// Sixteen bytes, of which only the first `count` numbers are read; zeros after them.
__device__ inline void copy_async_some(float* target, const float* source, unsigned count) {
    const unsigned address = (unsigned)__cvta_generic_to_shared(target);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(source),
                 "r"(count * 4)
                 : "memory");
}
__device__ inline void commit_copies() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int N>
__device__ inline void wait_for_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

#elif defined(CUDALAB_CPU)

__device__ inline void copy_async(float* target, const float* source) {
    __pipeline_memcpy_async(target, source, 4);
}
__device__ inline void copy_async_8(float* target, const float* source) {
    __pipeline_memcpy_async(target, source, 8);
}
__device__ inline void copy_async_16(float* target, const float* source) {
    __pipeline_memcpy_async(target, source, 16);
}
__device__ inline void copy_async(float* target, const float* source, bool inside) {
    __pipeline_memcpy_async(target, source, 4, inside ? 0 : 4);
}
__device__ inline void copy_async_8(float* target, const float* source, bool inside) {
    __pipeline_memcpy_async(target, source, 8, inside ? 0 : 8);
}
__device__ inline void copy_async_16(float* target, const float* source, bool inside) {
    __pipeline_memcpy_async(target, source, 16, inside ? 0 : 16);
}
__device__ inline void copy_async_some(float* target, const float* source, unsigned count) {
    __pipeline_memcpy_async(target, source, 16, 16 - 4 * count);
}
__device__ inline void commit_copies() {
    __pipeline_commit();
}
template <int N>
__device__ inline void wait_for_copies() {
    __pipeline_wait_prior(N);
}

#else

__device__ inline void copy_async(float* target, const float* source) {
    *target = *source;
}
__device__ inline void copy_async_8(float* target, const float* source) {
    *reinterpret_cast<float2*>(target) = *reinterpret_cast<const float2*>(source);
}
__device__ inline void copy_async_16(float* target, const float* source) {
    *reinterpret_cast<float4*>(target) = *reinterpret_cast<const float4*>(source);
}
__device__ inline void copy_async(float* target, const float* source, bool inside) {
    *target = inside ? *source : 0;
}
__device__ inline void copy_async_8(float* target, const float* source, bool inside) {
    *reinterpret_cast<float2*>(target) =
        inside ? *reinterpret_cast<const float2*>(source) : make_float2(0, 0);
}
__device__ inline void copy_async_16(float* target, const float* source, bool inside) {
    *reinterpret_cast<float4*>(target) =
        inside ? *reinterpret_cast<const float4*>(source) : make_float4(0, 0, 0, 0);
}
__device__ inline void copy_async_some(float* target, const float* source, unsigned count) {
    for (unsigned i = 0; i < 4; ++i) target[i] = i < count ? source[i] : 0;
}
__device__ inline void commit_copies() {}
template <int N>
__device__ inline void wait_for_copies() {}

#endif
