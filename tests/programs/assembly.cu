// Inline PTX that the CPU device translates: registers of the machine, arithmetic, memory, warps.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>

__device__ __forceinline__ unsigned lane_id() {
    unsigned lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}
#define WARP(name) asm("mov.u32 %0, %%warpid;" : "=r"(name))

__global__ void machine(unsigned* out) {
    unsigned tid, ntid, ctaid, warp;
    asm("mov.u32 %0, %tid.x;" : "=r"(tid));
    asm("mov.u32 %0, %%ntid.x;" : "=r"(ntid));
    asm("mov.u32 %0, %%ctaid.x;" : "=r"(ctaid));
    WARP(warp);
    unsigned lt, le, gt, ge, eq;
    asm("mov.u32 %0, %%lanemask_lt;\n\tmov.u32 %1, %%lanemask_le;" : "=r"(lt), "=r"(le));
    asm("mov.u32 %0, %%lanemask_gt; mov.u32 %1, %%lanemask_ge;" : "=r"(gt), "=r"(ge));
    asm("mov.u32 %0, %%lanemask_eq;" : "=r"(eq));
    unsigned sm, count;
    asm("{ .reg .u32 t; mov.u32 t, %%smid; mov.u32 %0, t; mov.u32 %1, %%nsmid; }"
        : "=r"(sm), "=r"(count));
    unsigned long long before, after, cycles;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(before));
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(cycles));
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(after));
    const bool good = sm < count && after >= before && cycles > 0;
    unsigned sum = tid + 3 * ntid + 5 * ctaid + 7 * warp + 11 * lane_id();
    sum = sum * 31 + lt, sum = sum * 31 + le, sum = sum * 31 + gt, sum = sum * 31 + ge;
    out[blockIdx.x * blockDim.x + threadIdx.x] = good ? sum * 31 + eq : 0;
}

__device__ unsigned word(unsigned i) {
    const unsigned edges[] = {0u,          1u,          31u,         32u,         33u,
                              0x7fffffffu, 0x80000000u, 0xffffffffu, 0x3f800000u, 0xff0f1234u};
    if (i < sizeof edges / sizeof *edges) return edges[i];
    i = (i ^ i >> 16) * 0x7feb352du;
    i = (i ^ i >> 15) * 0x846ca68bu;
    return i ^ i >> 16;
}

// What an instruction makes of three words, or floats, over many of them.
#define EACH(...)                                              \
    {                                                          \
        Checksum sum;                                          \
        for (unsigned i = 0; i < 400; ++i) {                   \
            const unsigned a = word(i % 20), b = word(i / 20); \
            const unsigned c = word(i * 7 % 31);               \
            unsigned r = 0;                                    \
            __VA_ARGS__;                                       \
            sum.add(r);                                        \
        }                                                      \
        *sums++ = sum.value;                                   \
    }
#define EACH_FLOAT(...)                                        \
    {                                                          \
        Checksum sum;                                          \
        for (unsigned i = 0; i < 400; ++i) {                   \
            const float a = __uint_as_float(word(i));          \
            const float b = __uint_as_float(word(i / 2 + 40)); \
            const float c = (float)(int)i;                     \
            float r = 0;                                       \
            __VA_ARGS__;                                       \
            sum.add(r == r ? __float_as_uint(r) : 1);          \
        }                                                      \
        *sums++ = sum.value;                                   \
    }
struct Checksum {
    unsigned value = 0x811c9dc5u;
    __device__ void add(unsigned word) { value = (value ^ word) * 0x01000193u ^ value >> 15; }
};

__global__ void words(unsigned* sums) {
    EACH(asm("add.u32 %0, %1, %2;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("sub.s32 %0, %1, %2;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("mul.lo.u32 %0, %1, %2;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("mul.hi.u32 %0, %1, %2;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("mul.hi.s32 %0, %1, %2;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("mad.lo.s32 %0, %1, %2, %3;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("mad.hi.u32 %0, %1, %2, %3;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("and.b32 %0, %1, %2;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("xor.b32 %0, %1, %2;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("not.b32 %0, %1;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("cnot.b32 %0, %1;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("shl.b32 %0, %1, %2;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("shr.u32 %0, %1, %2;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("shr.s32 %0, %1, %2;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("min.s32 %0, %1, %2;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("max.u32 %0, %1, %2;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("abs.s32 %0, %1;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("neg.s32 %0, %1;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("popc.b32 %0, %1;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("clz.b32 %0, %1;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("brev.b32 %0, %1;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("bfind.u32 %0, %1;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("bfind.s32 %0, %1;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("bfind.shiftamt.u32 %0, %1;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("bfe.u32 %0, %1, %2, %3;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("bfe.s32 %0, %1, %2, %3;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("bfe.u32 %0, %1, 4, 8;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("bfi.b32 %0, %1, %2, %3, 7;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("bfi.b32 %0, %1, %2, 5, %3;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("prmt.b32 %0, %1, %2, %3;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("prmt.b32 %0, %1, %2, 0x9a4f;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("lop3.b32 %0, %1, %2, %3, 0xe8;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("lop3.b32 %0, %1, %2, %3, 0x1b;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("shf.l.wrap.b32 %0, %1, %2, %3;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("shf.r.clamp.b32 %0, %1, %2, %3;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("sad.u32 %0, %1, %2, %3;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("sad.s32 %0, %1, %2, %3;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("add.sat.s32 %0, %1, %2;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("dp4a.u32.u32 %0, %1, %2, %3;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
    EACH(asm("{ .reg .pred p; setp.lt.s32 p, %1, %2; selp.b32 %0, %3, %1, p; }" : "+r"(r) : "r"(a),
             "r"(b), "r"(c)));
    EACH(
        asm("{ .reg .pred p, q; setp.hi.u32 p|q, %1, %2; @p add.u32 %0, %1, 1; @!p sub.u32 %0, %2, "
            "1; }" : "+r"(r) : "r"(a),
            "r"(b), "r"(c)));
    EACH(asm("{ .reg .u32 t; add.cc.u32 t, %1, %2; addc.u32 %0, %3, t; }" : "+r"(r) : "r"(a),
             "r"(b), "r"(c)));
    EACH(asm("{ .reg .u32 t; sub.cc.u32 t, %1, %2; subc.u32 %0, %3, t; }" : "+r"(r) : "r"(a),
             "r"(b), "r"(c)));
    EACH(asm("{ .reg .u64 t; mul.wide.u32 t, %1, %2; mov.b64 {%0, _}, t; }" : "+r"(r) : "r"(a),
             "r"(b), "r"(c)));
    EACH(
        asm("{ .reg .b64 t; .reg .b32 low; mov.b64 t, {%1, %2}; shr.u64 t, t, 7; cvt.u32.u64 %0, "
            "t; }" : "+r"(r) : "r"(a),
            "r"(b), "r"(c)));
    EACH(asm("{ .reg .s16 h; cvt.s16.s32 h, %1; cvt.s32.s16 %0, h; }" : "+r"(r) : "r"(a), "r"(b),
             "r"(c)));
    EACH(asm("{ .reg .u16 h; cvt.sat.u16.s32 h, %1; cvt.u32.u16 %0, h; }" : "+r"(r) : "r"(a),
             "r"(b), "r"(c)));
    EACH(asm("set.gt.u32.s32 %0, %1, %2;" : "+r"(r) : "r"(a), "r"(b), "r"(c)));
}
__global__ void floats(unsigned* sums) {
    EACH_FLOAT(asm("fma.rn.f32 %0, %1, %2, %3;" : "+f"(r) : "f"(a), "f"(b), "f"(c)));
    EACH_FLOAT(asm("fma.rz.f32 %0, %1, %2, %3;" : "+f"(r) : "f"(a), "f"(b), "f"(c)));
    EACH_FLOAT(asm("add.rm.f32 %0, %1, %2;" : "+f"(r) : "f"(a), "f"(b), "f"(c)));
    EACH_FLOAT(asm("add.rp.f32 %0, %1, %2;" : "+f"(r) : "f"(a), "f"(b), "f"(c)));
    EACH_FLOAT(asm("mul.rz.f32 %0, %1, %2;" : "+f"(r) : "f"(a), "f"(b), "f"(c)));
    EACH_FLOAT(asm("div.rn.f32 %0, %1, %2;" : "+f"(r) : "f"(a), "f"(b), "f"(c)));
    EACH_FLOAT(asm("rcp.rn.f32 %0, %1;" : "+f"(r) : "f"(a), "f"(b), "f"(c)));
    EACH_FLOAT(asm("sqrt.rn.f32 %0, %1;" : "+f"(r) : "f"(a), "f"(b), "f"(c)));
    EACH_FLOAT(asm("neg.f32 %0, %1;" : "+f"(r) : "f"(a), "f"(b), "f"(c)));
    EACH_FLOAT(asm("abs.f32 %0, %1;" : "+f"(r) : "f"(a), "f"(b), "f"(c)));
    EACH_FLOAT(asm("add.ftz.f32 %0, %1, %2;" : "+f"(r) : "f"(a), "f"(b), "f"(c)));
    EACH_FLOAT(asm("add.sat.f32 %0, %1, %2;" : "+f"(r) : "f"(a), "f"(b), "f"(c)));
    EACH_FLOAT(
        asm("{ .reg .s32 i; cvt.rni.s32.f32 i, %1; cvt.rn.f32.s32 %0, i; }" : "+f"(r) : "f"(a),
            "f"(b), "f"(c)));
    EACH_FLOAT(
        asm("{ .reg .u32 i; cvt.rzi.u32.f32 i, %1; cvt.rz.f32.u32 %0, i; }" : "+f"(r) : "f"(a),
            "f"(b), "f"(c)));
    EACH_FLOAT(asm("cvt.rmi.f32.f32 %0, %1;" : "+f"(r) : "f"(a), "f"(b), "f"(c)));
    EACH_FLOAT(asm("mov.f32 %0, 0f3fc00000;" : "+f"(r) : "f"(a), "f"(b), "f"(c)));
    EACH_FLOAT(
        asm("{ .reg .f64 d; cvt.f64.f32 d, %1; mul.rn.f64 d, d, 0d3FF8000000000000; cvt.rp.f32.f64 "
            "%0, d; }" : "+f"(r) : "f"(a),
            "f"(b), "f"(c)));
    EACH_FLOAT(
        asm("{ .reg .pred p; setp.ge.f32 p, %1, %2; selp.f32 %0, %1, %3, p; }" : "+f"(r) : "f"(a),
            "f"(b), "f"(c)));
}

// Memory in the global and the shared space, atomics, and exchange in a warp.
__global__ void spaces(unsigned* data, float4* vectors, unsigned* out) {
    __shared__ unsigned shared[64];
    extern __shared__ unsigned dynamic[];
    const unsigned t = threadIdx.x;
    const unsigned address = (unsigned)__cvta_generic_to_shared(&shared[t]);
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(address), "r"(t * 3) : "memory");
    asm volatile(
        "st.volatile.shared.u32 [%0+4], %1;" ::"r"((unsigned)__cvta_generic_to_shared(dynamic + t)),
        "r"(t * 5));
    asm volatile("bar.sync 0;" ::: "memory");
    unsigned left, right, cached, streamed, old, previous;
    asm volatile("ld.shared.u32 %0, [%1];"
                 : "=r"(left)
                 : "r"((unsigned)__cvta_generic_to_shared(&shared[63 - t])));
    asm volatile("ld.volatile.shared.u32 %0, [%1 + 4];"
                 : "=r"(right)
                 : "r"((unsigned)__cvta_generic_to_shared(&dynamic[63 - t])));
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(cached) : "l"(data + t));
    asm("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(streamed) : "l"(data + 63 - t));
    float4 v;
    asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "l"(vectors + t));
    asm volatile("st.global.v2.f32 [%0+8], {%1, %2};" ::"l"(vectors + t), "f"(v.x), "f"(v.y));
    asm volatile("atom.global.add.u32 %0, [%1], %2;"
                 : "=r"(old)
                 : "l"(data + 64), "r"(1)
                 : "memory");
    asm volatile("red.global.max.u32 [%0], %1;" ::"l"(data + 65), "r"(t) : "memory");
    __syncthreads();
    asm volatile("atom.shared.exch.b32 %0, [%1], %2;" : "=r"(previous) : "r"(address), "r"(t + 9));
    asm volatile("membar.gl;" ::: "memory");
    unsigned votes, neighbour, sum, wide;
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; vote.sync.ballot.b32 %0, p, 0xffffffff; }"
                 : "=r"(votes)
                 : "r"(t & 4));
    asm volatile("shfl.sync.bfly.b32 %0, %1, 3, 0x1f, 0xffffffff;" : "=r"(neighbour) : "r"(t));
    asm volatile(
        "{ .reg .pred p; shfl.sync.up.b32 %0|p, %1, 2, 0x1800, 0xffffffff;\n"
        "  @!p mov.u32 %0, 77; }"
        : "=r"(wide)
        : "r"(t));
    asm volatile("redux.sync.add.u32 %0, %1, 0xffffffff;" : "=r"(sum) : "r"(t));
    __syncthreads();
    unsigned hash = left;
    for (unsigned each :
         {right, cached, streamed, (unsigned)v.w, previous, votes, neighbour, sum, wide,
          (unsigned)vectors[63 - t].z, data[65], data[64], (unsigned)(old < 64)})
        hash = hash * 31 + each;
    out[t] = hash;
}

int main() {
    const unsigned NUM_WORDS = 49, NUM_FLOATS = 18;
    unsigned *sums, *out, *data;
    float4* vectors;
    cudaMallocManaged(&sums, (NUM_WORDS + NUM_FLOATS) * sizeof *sums);
    cudaMallocManaged(&out, 256 * sizeof *out);
    cudaMallocManaged(&data, 66 * sizeof *data);
    cudaMallocManaged(&vectors, 64 * sizeof *vectors);
    for (unsigned i = 0; i < 66; ++i) data[i] = i < 64 ? i * i : 0;
    for (unsigned i = 0; i < 64; ++i) vectors[i] = make_float4(i, i + 1, i + 2, i + 3);
    machine<<<2, 64>>>(out);
    words<<<1, 1>>>(sums);
    floats<<<1, 1>>>(sums + NUM_WORDS);
    spaces<<<1, 64, 65 * sizeof(unsigned)>>>(data, vectors, out + 128);
    const cudaError_t error = cudaDeviceSynchronize();
    if (error != cudaSuccess) printf("%s\n", cudaGetErrorString(error));
    for (unsigned i = 0; i < NUM_WORDS + NUM_FLOATS; ++i)
        printf("%08x%c", sums[i], i % 10 == 9 ? '\n' : ' ');
    puts("");
    for (unsigned i = 0; i < 192; ++i) printf("%08x%c", out[i], i % 10 == 9 ? '\n' : ' ');
    puts("");
    return 0;
}
