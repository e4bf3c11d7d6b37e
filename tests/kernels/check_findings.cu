// Kernels with one mistake each, and their correct twins. `// @name` marks the lines that findings
// must name.

#include <cuda_pipeline.h>

extern "C" __global__ void missing_barrier(const int* in, int* out) {
    __shared__ int values[64];
    values[threadIdx.x] = in[threadIdx.x];        // @stored
    out[threadIdx.x] = values[63 - threadIdx.x];  // @loaded
}

extern "C" __global__ void with_barrier(const int* in, int* out) {
    __shared__ int values[64];
    values[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = values[63 - threadIdx.x];
}

extern "C" __global__ void missing_syncwarp(const int* in, int* out) {
    __shared__ int values[32];
    values[threadIdx.x] = in[threadIdx.x];        // @stored_by_lane
    out[threadIdx.x] = values[31 - threadIdx.x];  // @loaded_by_lane
}

extern "C" __global__ void with_syncwarp(const int* in, int* out) {
    __shared__ int values[32];
    values[threadIdx.x] = in[threadIdx.x];
    __syncwarp();
    out[threadIdx.x] = values[31 - threadIdx.x];
}

// A shuffle brings all lanes together, but orders no memory.
extern "C" __global__ void shuffle_is_no_barrier(const int* in, int* out) {
    __shared__ int values[32];
    values[threadIdx.x] = in[threadIdx.x];  // @before_shuffle
    const int other = __shfl_xor_sync(0xffffffffu, in[threadIdx.x], 1);
    out[threadIdx.x] = values[31 - threadIdx.x] + other;  // @after_shuffle
}

// A barrier of the lower half orders nothing in the upper one.
extern "C" __global__ void half_a_warp(const int* in, int* out) {
    __shared__ int values[32];
    values[threadIdx.x] = in[threadIdx.x];  // @half_stored
    if (threadIdx.x < 16) __syncwarp(0x0000ffffu);
    out[threadIdx.x] = values[threadIdx.x ^ 1];  // @half_loaded
}

extern "C" __global__ void warp_synchronous(volatile int* in, int* out) {
    volatile __shared__ int values[64];
    const unsigned t = threadIdx.x;
    values[t] = in[t];
    if (t + 32 < 64) values[t + 32] = in[t + 32];
    __syncwarp();
    if (t < 16) values[t] = values[t] + values[t + 16];  // @level16
    if (t < 8) values[t] = values[t] + values[t + 8];    // @level8
    if (t == 0) out[0] = values[0];
}

extern "C" __global__ void counter(int* out) {
    out[0] = out[0] + 1;  // @counted
}

extern "C" __global__ void atomic_counter(int* out) {
    atomicAdd(out, 1);
}

extern "C" __global__ void one_wins(const int* in, int* out) {
    __shared__ int winner;
    winner = in[threadIdx.x];  // @one_wins
    __syncthreads();
    out[threadIdx.x] = winner;
}

extern "C" __global__ void blocks_collide(int* out) {
    out[threadIdx.x] = blockIdx.x;  // @collide
}

extern "C" __global__ void reads_neighbour(const int* in, int* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i];            // @written
    if (i + 1 < n) out[i] += out[i + 1];  // @neighbour
}

extern "C" __global__ void off_by_one(const int* in, int* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) out[i] = in[i % n];  // @past_the_end
}

extern "C" __global__ void before_the_start(const int* in, int* out) {
    out[threadIdx.x] = in[(int)threadIdx.x - 1];  // @before_the_start
}

extern "C" __global__ void overrun_into_neighbour(int* out) {
    __shared__ int first[32];
    __shared__ int second[32];
    first[threadIdx.x] = second[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 31) first[threadIdx.x + 1] = 7;  // @overrun
    __syncthreads();
    out[threadIdx.x] = first[threadIdx.x] + second[threadIdx.x];
}

extern "C" __global__ void dynamic_overrun(int* out) {
    extern __shared__ int dynamic[];
    dynamic[threadIdx.x + 1] = threadIdx.x;  // @dynamic_overrun
    __syncthreads();
    out[threadIdx.x] = dynamic[threadIdx.x + 1];
}

extern "C" __global__ void wild(int* out) {
    int* nowhere = (int*)0x123456789000;
    if (threadIdx.x == 3) *nowhere = 1;  // @wild
    out[threadIdx.x] = 1;
}

extern "C" __global__ void misaligned(const int* in, int4* out) {
    out[threadIdx.x] = *(const int4*)(in + threadIdx.x);  // @misaligned
}

extern "C" __global__ void uninitialised_shared(int* out) {
    __shared__ int values[64];
    if (threadIdx.x < 63) values[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = values[threadIdx.x];  // @never_written
}

extern "C" __global__ void async_copies(const int* in, int* out, int closed, int waits) {
    __shared__ int values[64];
    const int t = threadIdx.x;
    __pipeline_memcpy_async(&values[t], &in[t], 4);
    if (closed) __pipeline_commit();
    if (waits) __pipeline_wait_prior(0);
    __syncthreads();
    out[t] = values[63 - t];  // @under_way
}

// Two stages: the second is on its way while the first is read.
extern "C" __global__ void async_stages(const int* in, int* out, int under_way) {
    __shared__ int values[2][64];
    const int t = threadIdx.x;
    for (int stage = 0; stage < 2; ++stage) {
        __pipeline_memcpy_async(&values[stage][t], &in[t], 4, stage ? 4 : 0);
        __pipeline_commit();
    }
    __pipeline_wait_prior(under_way);
    __syncthreads();
    out[t] = values[0][63 - t];
    if (under_way == 0) out[t] += values[1][63 - t];
}

extern "C" __global__ void accumulates(int* sums) {
    sums[threadIdx.x] += 1;  // @accumulates
}

extern "C" __global__ void two_barriers(int* out) {
    if (threadIdx.x < 40) {
        __syncthreads();  // @barrier_one
    } else {
        __syncthreads();  // @barrier_two
    }
    out[threadIdx.x] = 1;
}

extern "C" __global__ void barrier_in_branch(int* out) {
    for (unsigned s = 32; s > 0; s /= 2)
        if (threadIdx.x < s) {
            out[threadIdx.x] += out[threadIdx.x + s];
            __syncthreads();  // @barrier_in_branch
        }
}

extern "C" __global__ void barrier_before_the_end(int* out) {
    if (threadIdx.x < 16) __syncthreads();  // @barrier_before_the_end
    out[threadIdx.x] = 1;
}

extern "C" __global__ void early_return(int* out, int n) {
    __shared__ int values[64];
    if (threadIdx.x >= n) return;
    for (int i = 0; i < 3; ++i) {
        values[threadIdx.x] = i;
        __syncthreads();
        out[threadIdx.x] = values[(threadIdx.x + 1) % n];
        __syncthreads();
    }
}

extern "C" __global__ void early_return_with_work(int* out, int n) {
    for (int i = 0; i < 3; ++i) {
        if (i == 1 && threadIdx.x >= n) {
            out[threadIdx.x] = -1;
            return;
        }
        __syncthreads();
    }
    out[threadIdx.x] = 1;
}

extern "C" __global__ void full_mask_in_branch(int* out) {
    int value = threadIdx.x;
    if (threadIdx.x < 16) value += __shfl_down_sync(0xffffffffu, value, 8);  // @full_mask
    __syncthreads();                                                         // @others_wait
    out[threadIdx.x] = value;
}

extern "C" __global__ void not_in_mask(int* out) {
    out[threadIdx.x] = __ballot_sync(0x0000ffffu, 1);  // @not_in_mask
}

extern "C" __global__ void different_masks(int* out) {
    const unsigned mask = threadIdx.x < 16 ? 0x0001ffffu : 0xffff0000u;
    out[threadIdx.x] = __ballot_sync(mask, 1);  // @different_masks
}

extern "C" __global__ void reads_a_lane_that_left(int* out, int n) {
    if (threadIdx.x >= n) return;
    out[threadIdx.x] = __shfl_down_sync(0xffffffffu, (int)threadIdx.x, 8);  // @lane_left
}

extern "C" __global__ void endless(volatile int* out) {
    while (out[0] == 0) {  // @endless
    }
}

extern "C" __global__ void divides(int* out, int zero) {
    out[threadIdx.x] = 7 / zero;  // @divides
}

// The last block to finish adds up what all have left: ordered by fences and the ticket.
extern "C" __global__ void last_block_sums(const int* in, int* partials, unsigned* ticket,
                                           int* out) {
    __shared__ bool is_last;
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = in[blockIdx.x];
        __threadfence();
        is_last = atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    if (threadIdx.x < gridDim.x) atomicAdd(out, partials[threadIdx.x]);
}

extern "C" __global__ void last_block_without_fence(const int* in, int* partials, unsigned* ticket,
                                                    int* out) {
    __shared__ bool is_last;
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = in[blockIdx.x];  // @partial
        is_last = atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!is_last) return;
    if (threadIdx.x < gridDim.x) atomicAdd(out, partials[threadIdx.x]);  // @partials
}

// A flag in shared memory hands a value from one warp to another.
extern "C" __global__ void handed_over(int* out) {
    __shared__ int value, flag;
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        value = 42;
        __threadfence_block();
        atomicExch(&flag, 1);
    }
    if (threadIdx.x == 32) {
        while (atomicAdd(&flag, 0) == 0) {
        }
        __threadfence_block();
        out[0] = value;
    }
}

extern "C" __global__ void handed_over_without_fence(int* out) {
    __shared__ int value, flag;
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        value = 42;  // @handed
        atomicExch(&flag, 1);
    }
    if (threadIdx.x == 32) {
        while (atomicAdd(&flag, 0) == 0) {
        }
        out[0] = value;  // @taken
    }
}

// The place in the output is the order of arrival.
extern "C" __global__ void in_order_of_arrival(int* next, int* out) {
    out[atomicAdd(next, 1)] = blockIdx.x * blockDim.x + threadIdx.x;
}

// The first rounds bring lanes of one warp together, the last one two warps.
extern "C" __global__ void tree_without_barriers(const int* in, int* out) {
    __shared__ int values[64];
    const unsigned t = threadIdx.x;
    values[t] = in[t];
    __syncthreads();
    for (unsigned s = 1; s < 64; s *= 2)
        if (t % (2 * s) == 0) values[t] = values[t] + values[t + s];  // @all_levels
    if (t == 0) out[0] = values[0];
}

// Lanes store in different rounds of a loop: not in one instruction.
extern "C" __global__ void in_different_rounds(int* out) {
    for (unsigned round = 0; round < 2; ++round)
        if (threadIdx.x % 2 == round) out[0] = 10 + round;  // @in_rounds
}

// Lanes leave the loop in different rounds, some in its middle, and meet again behind it.
extern "C" __global__ void behind_a_loop(const int* in, int* out) {
    int sum = 0;
    for (unsigned i = 0; i < threadIdx.x; ++i) {
        if (in[i] > 20) break;
        sum += in[i] % 2 ? in[i] : -in[i];
    }
    out[0] = sum;  // @behind_loop
}

// Lanes take different ways to a barrier, and stay together after it.
extern "C" __global__ void between_barriers(int* out) {
    __shared__ int values[32];
    values[threadIdx.x] = threadIdx.x;
    __syncthreads();
    for (unsigned s = 16; s > 0; s /= 2) {
        if (threadIdx.x < s) values[threadIdx.x] += values[threadIdx.x + s];
        __syncthreads();
        if (threadIdx.x < s) out[0] = s;  // @by_half
        __syncthreads();
    }
}

// Atomic operations that change nothing read a flag.
extern "C" __global__ void polled(int* out, int how) {
    __shared__ int value, flag;
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (threadIdx.x == 32) {
        value = 42;
        __threadfence_block();
        atomicExch(&flag, 1);
    }
    if (threadIdx.x == 0) {
        while (how == 0   ? atomicAdd(&flag, 0) == 0
               : how == 1 ? atomicSub(&flag, 0) == 0
               : how == 2 ? atomicOr(&flag, 0) == 0
               : how == 3 ? atomicXor(&flag, 0) == 0
                          : atomicMax(&flag, 0) == 0) {
        }
        __threadfence_block();
        out[0] = value;
    }
}

// The same beside plain loads: no race.
extern "C" __global__ void read_by_atomics(int* words) {
    if (threadIdx.x == 0)
        for (int i = 0; i < 5; ++i) words[8 + i] = words[i];
    if (threadIdx.x == 32) {
        atomicAdd(words, 0), atomicSub(words + 1, 0), atomicAnd(words + 2, -1);
        atomicOr(words + 3, 0), atomicXor(words + 4, 0);
    }
}

// Objects of 2, 8 and 16 bytes, which functions take and return in registers.
struct Small {
    unsigned short value;
};
struct Middle {
    float x, y;
};
__device__ Small small(int i) {
    Small made;
    made.value = i;
    return made;
}
__device__ Middle middle(int i) {
    Middle made;
    made.x = i, made.y = i;
    return made;
}
__device__ float sum(Small s, Middle m, float4 v) {
    return s.value + m.x + m.y + v.z;
}
extern "C" __global__ void objects(int* out, Small* s, Middle* m, float4* v, int is_written) {
    const int i = threadIdx.x;
    if (is_written) {
        s[i] = small(i);
        m[i] = middle(i);
        v[i] = make_float4(i, i, i, i);
    }
    __syncthreads();
    out[i] = (int)sum(s[63 - i], m[63 - i], v[63 - i]);  // @objects
}

// Objects with padding between and behind their members, which are written one by one.
struct Padded {
    int key;
    double value;
    unsigned char digits[3];
};
__device__ double total(Padded p) {
    return p.key + p.value + p.digits[2];
}
extern "C" __global__ void padded(double* out, Padded* p, int is_written) {
    const int i = threadIdx.x;
    if (is_written) p[i].key = i, p[i].value = i;
    p[i].digits[0] = p[i].digits[1] = p[i].digits[2] = i;
    p[64 + i] = p[i];  // @padded
    out[i] = total(p[i]);
}

// Objects that lie at no multiple of their size, within others.
struct Pair {
    int a, b;
};
struct WithPair {
    int number;
    Pair pair;
};
struct Wide {
    double a, b;
};
struct WithWide {
    double number;
    Wide wide;
};
__device__ double total(Pair p, Wide w) {
    return p.a + p.b + w.a + w.b;
}
extern "C" __global__ void inner_objects(WithPair* p, WithWide* w) {
    const int i = threadIdx.x;
    Pair pair;
    Wide wide;
    pair.a = pair.b = i, wide.a = wide.b = i;
    p[i].pair = pair, w[i].wide = wide;
    p[64 + i].pair = p[i].pair, w[64 + i].wide = w[i].wide;
    memcpy(&p[128 + i].pair, &p[i].pair, sizeof pair);
    memcpy(&w[128 + i].wide, &w[i].wide, sizeof wide);
    w[i].number = total(p[i].pair, w[i].wide) + total(p[128 + i].pair, w[64 + i].wide);
}

// Variables that no section can hold: all blocks have the same.
template <class U>
__device__ U of_template[4];
extern "C" __global__ void variables_apart(int at) {
    static int of_function;
    of_function += 1;            // @of_function
    of_template<int>[0] += 1;    // @of_template
    of_template<short>[at] = 1;  // @past_template
}

// Members that a compiler loads and stores byte by byte, at any address.
struct __attribute__((packed)) Packed {
    char first;
    float value;
};
extern "C" __global__ void packed(Packed* in, Packed* out) {
    const int i = threadIdx.x;
    out[i].value = in[i].value + 1;
    ((volatile Packed*)out)[i].first = ((volatile Packed*)in)[i].first;
}

extern "C" __global__ void two_barriers_of_a_line(int* out) {
    // clang-format off
    if (threadIdx.x < 40) { __syncthreads(); } else { __syncthreads(); }  // @two_of_a_line
    // clang-format on
    out[threadIdx.x] = 1;
}
