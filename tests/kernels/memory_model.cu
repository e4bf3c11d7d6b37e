// Kernels whose threads meet in memory by flags, locks, fences and volatile: each is right, or
// wrong in one respect, as the tests say. `// @name` marks the lines that findings must name.

// ------------------------------------------------------------------ a store and an atomic
// operation

extern "C" __global__ void cleared_without_barrier(int* out) {
    __shared__ int count;
    if (threadIdx.x == 0) count = 0;  // @cleared
    atomicAdd(&count, 1);             // @added
    __syncthreads();
    out[threadIdx.x] = count;
}

extern "C" __global__ void cleared_by_one_block(int* count) {
    if (blockIdx.x == 0 && threadIdx.x == 0) count[0] = 0;
    atomicAdd(count, 1);
}

// ------------------------------------------------------------------ volatile

extern "C" __global__ void volatile_sum(volatile int* data) {
    for (int s = blockDim.x / 2; s > 0; s /= 2)
        if (threadIdx.x < s) data[threadIdx.x] += data[threadIdx.x + s];
}

extern "C" __global__ void volatile_stores(volatile int* data) {
    data[0] = blockIdx.x;
}

extern "C" __global__ void volatile_store_among_atomics(int* data) {
    if (blockIdx.x == 0) *(volatile int*)data = 5;
    if (blockIdx.x == 1) atomicAdd(data, 1);
}

// Each block waits for the one before, in all the ways in which programs do.
__device__ int look(const int* word) {
    return *(const volatile int*)word;
}
extern "C" __global__ void chain(int* flags, int* sums, int way) {
    const int b = blockIdx.x;
    if (b > 0) {
        volatile int* flag = flags + b - 1;
        if (way == 0)
            while (*flag == 0) {
            }
        if (way == 1)
            while (true) {
                const int seen = look(flags + b - 1);
                if (seen != 0) break;
                __nanosleep(20);
            }
        if (way == 2) {
            int seen = *flag;
            while (seen == 0) seen = *flag;
        }
        if (way == 3)
            while (atomicAdd(flags + b - 1, 0) == 0) {
            }
        if (way == 4)
            while (__ldcv(flags + b - 1) == 0) {
            }
        __threadfence();
    }
    sums[b] = (b > 0 ? sums[b - 1] : 0) + 1;
    __threadfence();
    if (way == 3)
        atomicExch(flags + b, 1);
    else
        *(volatile int*)(flags + b) = 1;
}

// Flag and value are one word, which needs no fence.
extern "C" __global__ void packed_chain(volatile unsigned long long* words, int* out) {
    const int b = blockIdx.x;
    unsigned long long before = 0;
    if (b > 0) do
            before = words[b - 1];
        while (before >> 32 == 0);
    words[b] = 1ull << 32 | ((unsigned)before + 1);
    out[b] = (unsigned)before;
}

extern "C" __global__ void chain_without_fence(int* flags, int* sums) {
    const int b = blockIdx.x;
    if (b > 0)
        while (*(volatile int*)(flags + b - 1) == 0) {
        }
    sums[b] = (b > 0 ? sums[b - 1] : 0) + 1;  // @unfenced
    *(volatile int*)(flags + b) = 1;
}

// ------------------------------------------------------------------ scopes and locks

extern "C" __global__ void counts_in_block_scope(int* count) {
    atomicAdd_block(count, 1);
}

extern "C" __global__ void handed_over_in_block_scope(int* flag, int* data) {
    if (blockIdx.x == 0) {
        data[0] = 1;  // @narrowly_fenced
        __threadfence_block();
        atomicExch(flag, 1);
    } else {
        while (atomicAdd(flag, 0) == 0) {
        }
        data[1] = data[0];  // @read_too_early
    }
}

// Which parts of a lock are there: 1 and 4 a fence behind it and before its end, 2 and 8 whether
// they are for the grid, 16 the scope of the lock itself.
extern "C" __global__ void locked(int* lock, int* data, int parts) {
    const bool wide = parts & 16;
    while ((wide ? atomicCAS(lock, 0, 1) : atomicCAS_block(lock, 0, 1)) != 0) {
    }
    if (parts & 1) parts & 2 ? __threadfence() : __threadfence_block();
    data[0] = blockIdx.x + threadIdx.x;  // @locked
    if (parts & 4) parts & 8 ? __threadfence() : __threadfence_block();
    wide ? atomicExch(lock, 0) : atomicExch_block(lock, 0);
}

// The last block adds up what all threads have stored. Their fence comes before the barrier, after
// it, or not at all.
extern "C" __global__ void last_block(int* ticket, int* parts, int* out, int fence) {
    __shared__ bool last;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    parts[i] = i;  // @part
    if (fence == 1) __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        if (fence == 2) __threadfence();
        last = atomicAdd(ticket, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    for (int k = threadIdx.x; k < gridDim.x * blockDim.x; k += blockDim.x)
        atomicAdd(out, parts[k]);  // @collected
}

// ------------------------------------------------------------------ values

extern "C" __global__ void any_of(const int* in, int* out) {
    if (in[threadIdx.x]) out[0] = 1;
}

extern "C" __global__ void exchanged(int* fresh, int* out, int used) {
    if (used)
        out[0] = atomicExch(fresh, 1);  // @fresh
    else
        atomicExch(fresh, 1);
}

extern "C" __global__ void local_overrun(int* out, int n) {
    int values[4] = {};
    for (int i = 0; i <= n; ++i) values[i] = i;  // @local
    out[threadIdx.x] = values[1];
}

struct Pair {
    int values[4], next;
};
extern "C" __global__ void member_overrun(int* out, int n) {
    __shared__ Pair pair;
    for (int i = 0; i <= n; ++i) pair.values[i] = i;  // @member
    out[0] = pair.next;
}

// Each block waits for the next one.
extern "C" __global__ void reverse_chain(int* flags, int* sums, int fenced) {
    const int b = blockIdx.x;
    __shared__ int after;
    if (threadIdx.x == 0) {
        after = 0;
        if (b + 1 < gridDim.x) {
            while (atomicAdd(flags + b + 1, 0) == 0) {
            }
            __threadfence();
            after = sums[b + 1];  // @taken_over
        }
    }
    __syncthreads();
    if (threadIdx.x == 40) sums[b] = after + 1;  // @left_over
    __syncthreads();
    if (threadIdx.x == 0) {
        if (fenced) __threadfence();
        atomicExch(flags + b, 1);
    }
}

// Whatever is read first, the swap checks it.
extern "C" __global__ void adds_by_swap(double* sum) {
    unsigned long long* const bits = (unsigned long long*)sum;
    unsigned long long old = *bits, expected;
    do {
        expected = old;
        const double next = __longlong_as_double((long long)expected) + 1;
        old = atomicCAS(bits, expected, (unsigned long long)__double_as_longlong(next));
    } while (expected != old);
}
extern "C" __global__ void swaps_another_word(int* sum, int* other) {
    const int old = *sum;  // @unchecked
    atomicCAS(other, 0, old);
    atomicAdd(sum, 1);
}

// Who finds a place taken does not try; what is read there elsewhere may be of either.
extern "C" __global__ void visits(int* visited, int* order, int* count) {
    const int place = threadIdx.x % 8;
    if (visited[place] == 0 && atomicCAS(visited + place, 0, 1) == 0)
        order[atomicAdd(count, 1)] = place;
}
extern "C" __global__ void visits_and_reads(int* visited, int* order, int* count) {
    const int place = threadIdx.x % 8;
    if (visited[place] == 0 && atomicCAS(visited + place, 0, 1) == 0)
        order[atomicAdd(count, 1)] = place;
    order[8 + threadIdx.x] = visited[(place + 1) % 8];  // @elsewhere
}
