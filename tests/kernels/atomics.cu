// Atomic operations on global and on shared memory; the results do not depend on the order.

struct Totals {
    int sum, difference, least, greatest;
    unsigned usum, uleast, ugreatest, conjunction, disjunction, parity, up, down;
    unsigned long long wide_sum, wide_least, wide_greatest, wide_parity;
    float fsum, fgreatest;
    double dsum;
};

__device__ float max_by_compare_and_swap(float* address, float value) {
    int* bits = (int*)address;
    int seen = *bits, expected;
    do {
        expected = seen;
        if (__int_as_float(expected) >= value) break;
        seen = atomicCAS(bits, expected, __float_as_int(value));
    } while (seen != expected);
    return __int_as_float(seen);
}

__device__ void clear(Totals* totals) {
    *totals = Totals();
    totals->least = 0x7fffffff;
    totals->greatest = (int)0x80000000;
    totals->uleast = totals->conjunction = 0xffffffffu;
    totals->wide_least = ~0ull;
    totals->down = 5;
    totals->fgreatest = -1.0f;
}

__device__ void add(Totals* totals, int value) {
    const unsigned word = (unsigned)value;
    const unsigned long long wide = (unsigned long long)word << 20;
    atomicAdd(&totals->sum, value);
    atomicSub(&totals->difference, value);
    atomicMin(&totals->least, value);
    atomicMax(&totals->greatest, value);
    atomicAdd(&totals->usum, word);
    atomicMin(&totals->uleast, word);
    atomicMax(&totals->ugreatest, word);
    atomicAnd(&totals->conjunction, word);
    atomicOr(&totals->disjunction, word);
    atomicXor(&totals->parity, word);
    atomicInc(&totals->up, 9u);     // 0 .. 9, then 0 again
    atomicDec(&totals->down, 12u);  // down to 0, then 12 again
    atomicAdd(&totals->wide_sum, wide);
    atomicMin(&totals->wide_least, wide);
    atomicMax(&totals->wide_greatest, wide);
    atomicXor(&totals->wide_parity, wide);
    atomicAdd(&totals->fsum, (float)(value & 7));
    max_by_compare_and_swap(&totals->fgreatest, (float)(value & 1023));
    atomicAdd(&totals->dsum, 0.5 * (value & 7));
}

extern "C" __global__ void clear_totals(Totals* totals) {
    clear(totals);
}

extern "C" __global__ void total_in_global_memory(const int* in, Totals* totals, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) add(totals, in[i]);
}

extern "C" __global__ void total_in_shared_memory(const int* in, Totals* totals, int n) {
    __shared__ __align__(16) unsigned char memory[sizeof(Totals)];
    Totals* shared = (Totals*)memory;
    if (threadIdx.x == 0) clear(shared);
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) add(shared, in[i]);
    __syncthreads();
    if (threadIdx.x == 0) *totals = *shared;
}

// Each thread draws a ticket, and hands its token on to whoever exchanges next.
extern "C" __global__ void draw_tickets(unsigned* next, unsigned* tickets, int* token,
                                        unsigned long long* wide_token, int* tokens,
                                        unsigned long long* wide_tokens) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    tickets[i] = atomicAdd(next, 1u);
    tokens[i] = atomicExch(token, i);
    wide_tokens[i] = atomicExch(wide_token, 0x100000000ull + i);
}

// A lock that one thread of each block holds in turn, taken and released by 64-bit exchanges.
extern "C" __global__ void count_under_lock(unsigned long long* lock, volatile int* count) {
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0ull, 1ull) != 0) {
        }
        __threadfence();
        *count = *count + 1;
        __threadfence();
        atomicExch(lock, 0ull);
    }
}
