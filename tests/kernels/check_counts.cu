// Kernels whose costs are known by hand. `// @name` marks the lines that tests look at.

// Neighbours, every second, every 32nd word.
extern "C" __global__ void global_strides(const float* in, float* out) {
    const unsigned t = threadIdx.x;
    float sum = in[t];   // @stride1
    sum += in[2 * t];    // @stride2
    sum += in[32 * t];   // @stride32
    sum += in[t + 1];    // @shifted
    sum += in[7];        // @broadcast
    out[t] = sum * 2;    // @out
}

extern "C" __global__ void wide_loads(const float4* vectors, const double* doubles, float* out) {
    const float4 vector = vectors[threadIdx.x];            // @float4
    const double value = doubles[threadIdx.x];             // @double
    out[threadIdx.x] = vector.x + vector.w + (float)value;
}

extern "C" __global__ void shared_strides(float* out) {
    __shared__ float words[1024];
    const unsigned t = threadIdx.x;
    for (unsigned i = t; i < 1024; i += 32) words[i] = i;  // @fill
    __syncthreads();                                       // @barrier
    float sum = words[t];                                  // @words1
    sum += words[2 * t];                                   // @words2
    sum += words[32 * t];                                  // @words32
    sum += words[t / 2];                                   // @pairs
    sum += words[5];                                       // @one_word
    out[t] = sum;
}

extern "C" __global__ void shared_doubles(double* out) {
    __shared__ double words[64];
    const unsigned t = threadIdx.x;
    words[t] = words[t + 32] = t;  // @doubles
    __syncthreads();
    out[t] = words[2 * t] + words[t / 2];  // @doubles_read
}

extern "C" __global__ void shared_float4(float4* out) {
    __shared__ float4 words[32];
    words[threadIdx.x] = make_float4(threadIdx.x, 1, 2, 3);  // @float4_store
    __syncthreads();
    out[threadIdx.x] = words[31 - threadIdx.x];  // @float4_load
}

// Four neighbours share a word: a conflict by the rule of 16 banks only.
extern "C" __global__ void shared_bytes(unsigned char* out) {
    __shared__ unsigned char bytes[128];
    bytes[threadIdx.x] = threadIdx.x;  // @bytes
    __syncthreads();
    out[threadIdx.x] = bytes[threadIdx.x];
}

extern "C" __global__ void half_warps(float* out) {
    __shared__ float words[512];
    for (unsigned i = threadIdx.x; i < 512; i += 32) words[i] = i;
    __syncthreads();
    out[threadIdx.x] = words[16 * threadIdx.x % 512];  // @stride16
}

extern "C" __global__ void same_address(int* counts, const int* in) {
    __shared__ int table[32];
    table[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&table[threadIdx.x / 8], 1);  // @eight
    atomicAdd(&counts[0], in[threadIdx.x]);  // @all
}

// What an H100 has counted for such operations in shared memory.
extern "C" __global__ void turns(const int* in, int* out) {
    __shared__ int words[1024];
    __shared__ float floats[1024];
    __shared__ unsigned long long longs[32];
    const unsigned t = threadIdx.x;
    for (int i = t; i < 1024; i += 32) words[i] = 0;
    for (int i = t; i < 1024; i += 32) floats[i] = 0;
    longs[t] = 0;
    __syncthreads();
    atomicAdd(&words[0], 1);             // @increments
    atomicAdd_block(&words[t / 2], 1);   // @increments_of_halves
    atomicAdd(&words[32 * t], 1);        // @increments_of_one_bank
    out[t] = atomicAdd(&words[0], 1);    // @increments_with_results
    atomicAdd(&words[0], in[t]);         // @variables
    atomicAdd(&words[t % 8], 3);         // @threes
    atomicMax(&words[32 * (t % 8)], 3);  // @maxima_of_one_bank
    atomicAdd(&floats[t % 8], 1.5f);     // @floats
    atomicAdd(&floats[32 * t], 1.5f);    // @floats_of_one_bank
    atomicAdd(&longs[0], 1ull);          // @longs
    atomicExch(&longs[t], 1ull);         // @exchanges_of_longs
    atomicCAS(&words[t % 8], 0, 3);      // @swaps
}

// Lanes skip the second access in different iterations: they must stay together all the same.
extern "C" __global__ void continues(const int* in, int* out) {
    const unsigned t = threadIdx.x;
    int sum = 0;
    for (unsigned i = 0; i < 8; ++i) {
        sum += in[i * 32 + t];  // @every_iteration
        if (i == t % 8) continue;  // @continue
        sum += in[256 + i * 32 + t];  // @most_iterations
    }
    out[t] = sum;  // @after_loop
}

extern "C" __global__ void branches(const int* in, int* out) {
    const unsigned t = threadIdx.x;
    if (t % 4 == 0) out[t] = in[t];  // @quarter
    if (t < 32) out[t] = in[t];      // @first_warp
    else out[t] = -in[t];
    for (unsigned i = 0; i < t % 3; ++i) out[t] += 1;  // @uneven
    const int least = in[t] < 5 ? in[t] : 5;
    out[t] += least > 3 ? 1 : 0;
}

__device__ float root_sum(const float* values, unsigned n) {
    float sum = 0;
    for (unsigned i = 0; i < n; ++i) sum += values[i] * values[i];  // @in_function
    return sqrtf(sum);
}
extern "C" __global__ void operations(const float* in, float* out) {
    out[threadIdx.x] = root_sum(in + threadIdx.x, 4);
}

extern "C" __global__ void warp_operations(int* out) {
    int value = threadIdx.x;
    for (int distance = 16; distance > 0; distance /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, distance);  // @shuffle
    if (__any_sync(0xffffffffu, value > 3)) out[threadIdx.x] = value;  // @vote
}

__constant__ int offset;
__device__ int calls;

// Each block waits for the number that the one before hands on.
extern "C" __global__ void chain(int* handed_on) {
    if (threadIdx.x == 0) {
        int before = offset;
        if (blockIdx.x > 0)
            while ((before = atomicAdd(&handed_on[blockIdx.x - 1], 0)) == 0) {
            }
        atomicExch(&handed_on[blockIdx.x], before + 1);
        atomicAdd(&calls, 1);
    }
}

// Lanes part at one operand or the other, and meet again behind the condition.
extern "C" __global__ void conditions(const int* in, int* out) {
    const int t = threadIdx.x, lane = t % 32, warp = t / 32;
    if (warp < 2 && lane < 8) out[t] = in[t];                  // @second_part
    if (lane < 8 && lane > 3) out[t] = in[t];                  // @both_parts
    if (lane < 8 || warp == 0) out[t] = in[t];                 // @either
    if (warp == 1 && (lane < 4 || lane > 27)) out[t] = in[t];  // @nested
    for (int i = 0; i < 4 && i < lane; ++i) out[t] += i;       // @loop
}

// Loads and stores with a hint for the caches are one access each, of vectors too.
extern "C" __global__ void hinted(const float4* in, const float* words, float4* out, float* word) {
    const unsigned t = threadIdx.x;
    const float4 four = __ldg(&in[t]);  // @hinted_load
    __stcs(&out[t], four);              // @hinted_store
    const float one = __ldcs(&words[t]);  // @hinted_word
    __stcg(&word[t], one);                // @hinted_word_out
}

// Local arrays: each thread has its own at index in[t]; 8 neighbours' words share a sector.
extern "C" __global__ void local_arrays(const int* in, int* out) {
    int own[64];
    for (int k = 0; k < 64; ++k) own[k] = k;  // @local_same
    own[threadIdx.x] = 5;                     // @local_own
    own[threadIdx.x % 2] += 1;                // @local_turns
    double wide[16];
    for (int k = 0; k < 16; ++k) wide[k] = 0;                                  // @local_wide
    if (threadIdx.x < 5) wide[3] = 1;                                          // @local_some
    out[threadIdx.x] = own[in[threadIdx.x]] + (int)wide[in[threadIdx.x] & 7];  // @local_loads
}

// An index that is read: once, though g++ checks it and a change both reads and writes.
extern "C" __global__ void read_indices(const int* in, int* out) {
    __shared__ int shared[64];
    shared[threadIdx.x] = shared[threadIdx.x + 32] = 0;
    __syncthreads();
    shared[in[threadIdx.x]] += 1;  // @index_shared
    out[in[threadIdx.x]] += 3;     // @index_global
    for (int k = 0; k < 4; ++k)
        out[threadIdx.x] += in[threadIdx.x] + in[threadIdx.x];  // @index_loop
    int sum = 0;
    for (int k = 0; k < 4; ++k) sum += in[k] * in[k + 1];  // @neighbours
    out[threadIdx.x] = sum;
}
