// The warpgroup's matrix instruction of compute capability 9.0a, for bfloat16 and for fp16: 128
// threads multiply a 64 x 16 matrix by a 16 x 96, 16 x 128 or 16 x 192 matrix, both in shared
// memory, and add the product to float accumulators in registers. They are four consecutive warps,
// whose first has a multiple of 4 as its number in the block.
//
// A factor lies in shared memory as lines along k (rows of the left factor, columns of the right
// one) of 64 bytes, line after line; the first line begins at a multiple of 1024 bytes. The 64-byte
// swizzle spreads them over the banks: the 16-byte chunk c of line l is stored as chunk
// c ^ (l / 2 % 4). The instruction reads 16 numbers of each line, 32 bytes; the next 16 are
// described by an address 32 bytes higher.
//
// Warp w of the four has rows 16w to 16w + 15 of the product. In a lane, element
// 4j + 2h + e is at row 16w + lane / 4 + 8h, column 8j + lane % 4 * 2 + e.
#pragma once
#include "common/thread/bf16.cuh"
#include "common/thread/bulk_copy.cuh"

constexpr unsigned LINE_BYTES = 64;
constexpr unsigned CHUNKS = LINE_BYTES / 16;  // in a line

__device__ inline unsigned swizzled(unsigned line, unsigned chunk) {
    return line * CHUNKS + (chunk ^ line / 2 % CHUNKS);
}

// The descriptor of a factor whose lines start at an address in shared memory: the address in units
// of 16 bytes; from bit 32 on, in the same units, the 8 lines from one swizzle pattern to the next;
// from bit 62 on, the kind of swizzle, 2 for 64 bytes. The distance at bit 16 has no meaning here.
__device__ inline unsigned long long describe(unsigned address) {
    return address >> 4 | 1ull << 16 | (unsigned long long)(8 * LINE_BYTES >> 4) << 32 | 2ull << 62;
}

// The accumulators of 96, 128 and 192 columns: as operands that an instruction reads and writes,
// and their names in its text, which the names of other operands follow.
#define EIGHT(i)                                                                          \
    "+f"(acc[i]), "+f"(acc[i + 1]), "+f"(acc[i + 2]), "+f"(acc[i + 3]), "+f"(acc[i + 4]), \
        "+f"(acc[i + 5]), "+f"(acc[i + 6]), "+f"(acc[i + 7])
#define ACCUMULATORS48 EIGHT(0), EIGHT(8), EIGHT(16), EIGHT(24), EIGHT(32), EIGHT(40)
#define ACCUMULATORS64 ACCUMULATORS48, EIGHT(48), EIGHT(56)
#define ACCUMULATORS96 ACCUMULATORS64, EIGHT(64), EIGHT(72), EIGHT(80), EIGHT(88)
#define NAMES48                                                                   \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "      \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, " \
    "%31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, " \
    "%46, %47"
#define NAMES64 \
    NAMES48 ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define NAMES96                                                                \
    NAMES64                                                                    \
    ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, " \
    "%78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, "   \
    "%92, %93, %94, %95"

// Comes before the first of a row of instructions, after whatever the threads did with the
// accumulators.
__device__ inline void begin_products() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// What this thread has written to shared memory becomes visible to instructions that start after
// the next barrier. Copies of the copy engine need no such call.
__device__ inline void publish_factors() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Starts acc = left x right, or acc += left x right if `add`. The accumulators belong to the tensor
// core until finish_products. The right factor has two lines for each accumulator. Both factors lie
// along k, and their signs are as they are.
#define START_PRODUCT(name, kind, count, columns, left_name, right_name, add_name)                 \
    __device__ inline void name(float (&acc)[count], unsigned long long left,                      \
                                unsigned long long right, bool add) {                              \
        asm volatile(                                                                              \
            "{\n"                                                                                  \
            ".reg .pred add;\n"                                                                    \
            "setp.ne.b32 add, " add_name                                                           \
            ", 0;\n"                                                                               \
            "wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." kind "." kind " {" NAMES##count \
            "}, " left_name ", " right_name                                                        \
            ", add, 1, 1, 0, 0;\n"                                                                 \
            "}"                                                                                    \
            : ACCUMULATORS##count                                                                  \
            : "l"(left), "l"(right), "r"((int)add));                                               \
    }
START_PRODUCT(start_bf16_product, "bf16", 48, "96", "%48", "%49", "%50")
START_PRODUCT(start_bf16_product, "bf16", 64, "128", "%64", "%65", "%66")
START_PRODUCT(start_bf16_product, "bf16", 96, "192", "%96", "%97", "%98")
START_PRODUCT(start_fp16_product, "f16", 64, "128", "%64", "%65", "%66")
START_PRODUCT(start_fp16_product, "f16", 96, "192", "%96", "%97", "%98")

// Waits for all products that were started. The accumulators are operands, so that the compiler
// does not read them any earlier.
#define COMMIT_AND_WAIT "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;"
__device__ inline void finish_products(float (&acc)[48]) {
    asm volatile(COMMIT_AND_WAIT : ACCUMULATORS48::"memory");
}
__device__ inline void finish_products(float (&acc)[64]) {
    asm volatile(COMMIT_AND_WAIT : ACCUMULATORS64::"memory");
}
__device__ inline void finish_products(float (&acc)[96]) {
    asm volatile(COMMIT_AND_WAIT : ACCUMULATORS96::"memory");
}

#undef COMMIT_AND_WAIT
#undef START_PRODUCT
#undef NAMES96
#undef NAMES64
#undef NAMES48
#undef ACCUMULATORS96
#undef ACCUMULATORS64
#undef ACCUMULATORS48
#undef EIGHT

// Redistribute the registers of a multiprocessor between warpgroups: from now on each thread of
// this one has N, a multiple of 8. take_registers waits until others have given enough.
template <unsigned N>
__device__ inline void give_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}
template <unsigned N>
__device__ inline void take_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}
