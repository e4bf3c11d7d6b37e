// What a launch delivers: scalars of every type, the three dimensions of grid and block, the
// definitions T and FACTOR.

extern "C" __global__ void store_scalars(long long* out, bool flag, signed char i8,
                                         unsigned char u8, short i16, unsigned short u16, int i32,
                                         unsigned int u32, long long i64, unsigned long long u64,
                                         float f32, double f64) {
    out[0] = flag;
    out[1] = i8;
    out[2] = u8;
    out[3] = i16;
    out[4] = u16;
    out[5] = i32;
    out[6] = u32;
    out[7] = i64;
    out[8] = (long long)u64;
    out[9] = __float_as_int(f32);
    out[10] = __double_as_longlong(f64);
}

// Six coordinates a thread; threads and blocks counted with x fastest.
extern "C" __global__ void store_coordinates(unsigned* out) {
    const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    unsigned* mine = out + 6 * (block * (blockDim.x * blockDim.y * blockDim.z) + thread);
    mine[0] = blockIdx.z;
    mine[1] = blockIdx.y;
    mine[2] = blockIdx.x;
    mine[3] = threadIdx.z;
    mine[4] = threadIdx.y;
    mine[5] = threadIdx.x;
}

extern "C" __global__ void scale(const T* in, T* out, unsigned n) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] * (T)FACTOR;
}

extern "C" __global__ void count_blocks(unsigned* count) {
    if (threadIdx.x == 0) atomicAdd(count, 1u);
}

extern "C" __global__ void do_nothing() {}
