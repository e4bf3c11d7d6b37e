// The kernels with which `cudalab device --measure` finds a GPU's numbers; no lab launches them.
//
// Each does a number of operations that its arguments say, and stores how many cycles of its
// multiprocessor they took. It also stores a result that depends on all of them, so that a compiler
// cannot leave any out, and a test can count them.

constexpr unsigned WHOLE_WARP = 0xFFFFFFFF;
constexpr int CHAINS = 4;  // independent ones in a thread, so that its operations wait for nothing

// Latencies: one warp, each operation needs the result of the one before it ----------------------

// An address, as the loads that name their cache take it.
using Link = unsigned long long;

// links[i * stride] = address of links[next[i] * stride]: a chain that begins at links[0].
extern "C" __global__ void link(Link* links, const unsigned* next, unsigned n, unsigned stride) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) links[size_t(i) * stride] = reinterpret_cast<Link>(&links[size_t(next[i]) * stride]);
}

// One thread follows `steps` links through L1. The first turn brings them there; the second counts.
extern "C" __global__ void follow_l1(const Link* links, unsigned long long* cycles, Link* end,
                                     unsigned steps) {
    for (int turn = 0; turn < 2; ++turn) {
        const Link* at = links;
        const long long first = clock64();
#pragma unroll 8
        for (unsigned i = 0; i < steps; ++i) at = reinterpret_cast<const Link*>(__ldg(at));
        *end = at - links;
        *cycles = clock64() - first;
    }
}

// One thread follows `steps` links past L1, once: whether they lie in L2 is decided before.
extern "C" __global__ void follow_l2(const Link* links, unsigned long long* cycles, Link* end,
                                     unsigned steps) {
    const Link* at = links;
    const long long first = clock64();
#pragma unroll 8
    for (unsigned i = 0; i < steps; ++i) at = reinterpret_cast<const Link*>(__ldcg(at));
    *end = at - links;
    *cycles = clock64() - first;
}

// A chain of `steps` loads from shared memory: each word holds the offset of the next one.
extern "C" __global__ void follow_shared(unsigned long long* cycles, unsigned* ends,
                                         unsigned steps) {
    __shared__ unsigned offsets[32];
    offsets[threadIdx.x] = sizeof(unsigned) * ((threadIdx.x + 1) % 32);
    __syncthreads();
    const char* base = reinterpret_cast<const char*>(offsets);
    unsigned at = 0;
    const long long first = clock64();
#pragma unroll 8
    for (unsigned i = 0; i < steps; ++i) at = *reinterpret_cast<const unsigned*>(base + at);
    ends[threadIdx.x] = at / sizeof(unsigned);
    if (threadIdx.x == 0) *cycles = clock64() - first;
}

// A chain of `steps` shuffles: every lane's value goes round the warp.
extern "C" __global__ void pass_round(unsigned long long* cycles, unsigned* ends, unsigned steps) {
    unsigned value = threadIdx.x;
    const unsigned neighbour = (threadIdx.x + 1) % 32;
    const long long first = clock64();
#pragma unroll 8
    for (unsigned i = 0; i < steps; ++i) value = __shfl_sync(WHOLE_WARP, value, neighbour);
    ends[threadIdx.x] = value;
    if (threadIdx.x == 0) *cycles = clock64() - first;
}

// A chain of `steps` multiplications with addition.
extern "C" __global__ void chain_floats(unsigned long long* cycles, float* ends, float factor,
                                        float term, unsigned steps) {
    float value = threadIdx.x;
    const long long first = clock64();
#pragma unroll 8
    for (unsigned i = 0; i < steps; ++i) value = fmaf(value, factor, term);
    ends[threadIdx.x] = value;
    if (threadIdx.x == 0) *cycles = clock64() - first;
}

// Rates: each thread has CHAINS chains ------------------------------------------------------------

// Calls `step` `steps` times on each of the chains, and sums them up; cycles are those of a block.
template <class Value, class Step>
__device__ void run_chains(unsigned long long* cycles, Value* ends, unsigned steps, Step step) {
    Value values[CHAINS];
    for (int chain = 0; chain < CHAINS; ++chain) values[chain] = Value(threadIdx.x + chain);
    __syncthreads();
    const long long first = clock64();
#pragma unroll 8
    for (unsigned i = 0; i < steps; ++i) {
#pragma unroll
        for (int chain = 0; chain < CHAINS; ++chain) values[chain] = step(values[chain]);
    }
    Value sum = 0;
    for (int chain = 0; chain < CHAINS; ++chain) sum += values[chain];
    ends[blockIdx.x * blockDim.x + threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0) cycles[blockIdx.x] = clock64() - first;
}

extern "C" __global__ void rate_of_floats(unsigned long long* cycles, float* ends, float factor,
                                          float term, unsigned steps) {
    run_chains(cycles, ends, steps, [=](float value) { return fmaf(value, factor, term); });
}

extern "C" __global__ void rate_of_doubles(unsigned long long* cycles, double* ends, double factor,
                                           double term, unsigned steps) {
    run_chains(cycles, ends, steps, [=](double value) { return fma(value, factor, term); });
}

// Two instructions: a shift of a pair of words, and an exclusive or.
extern "C" __global__ void rate_of_integers(unsigned long long* cycles, unsigned* ends,
                                            unsigned term, unsigned steps) {
    run_chains(cycles, ends, steps,
               [=](unsigned value) { return (value << 7 | value >> 25) ^ term; });
}

// Counting bits is as slow as a square root or an exponential function; the addition is not.
extern "C" __global__ void rate_of_slow(unsigned long long* cycles, unsigned* ends, unsigned term,
                                        unsigned steps) {
    run_chains(cycles, ends, steps, [=](unsigned value) { return __popc(value) + term; });
}

// The memories that all multiprocessors share -----------------------------------------------------

// Copies `n` pieces of 16 bytes `turns` times, past L1.
extern "C" __global__ void copy_turns(const uint4* source, uint4* target, unsigned n,
                                      unsigned turns) {
    const unsigned all = gridDim.x * blockDim.x;
    for (unsigned turn = 0; turn < turns; ++turn) {
        for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += all)
            __stcg(&target[i], __ldcg(&source[i]));
    }
}

// Each lane adds `turns` times to a word of another sector; all warps share the 32 sectors.
extern "C" __global__ void add_turns(unsigned* words, unsigned turns) {
    const unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    for (unsigned turn = 0; turn < turns; ++turn)
        atomicAdd(&words[threadIdx.x % 32 * 8 + (warp + turn) % 8], 1);
}

extern "C" __global__ void do_nothing() {}
