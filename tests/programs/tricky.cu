// Kernels that are easy to get wrong, each beside what it means in plain C++ with one thread after
// another, or by the PTX ISA. Prints the kernels whose results differ, and how many there are.
#include <cstdio>
#include <cstring>

static const int N = 1024;
static int in_h[N], out_h[N], want[N], kernels, wrong, *in_d, *out_d;

static void begin(int seed) {
    unsigned r = seed * 2654435761u + 1;
    for (int i = 0; i < N; ++i) {
        r = r * 1664525u + 1013904223u;
        in_h[i] = (int)(r >> 8) % 1000 - 500;
        want[i] = 0;
    }
    cudaMemcpy(in_d, in_h, sizeof in_h, cudaMemcpyHostToDevice);
    cudaMemset(out_d, 0, sizeof out_h);
}
static void end(const char* name) {
    const int error = cudaDeviceSynchronize();
    cudaMemcpy(out_h, out_d, sizeof out_h, cudaMemcpyDeviceToHost);
    ++kernels;
    for (int i = 0; i < N; ++i) {
        if (out_h[i] == want[i] && !error) continue;
        printf("%s: [%d] %d, want %d, error %d\n", name, i, out_h[i], want[i], error);
        ++wrong;
        return;
    }
}

// A scan within groups of eight lanes.
__global__ void scan_of_eights(const int* in, int* out) {
    int v = in[threadIdx.x];
    for (int d = 1; d < 8; d *= 2) {
        const int below = __shfl_up_sync(~0u, v, d, 8);
        if (threadIdx.x % 8 >= d) v += below;
    }
    out[threadIdx.x] = v;
}
static void check_scan_of_eights() {
    scan_of_eights<<<1, 96>>>(in_d, out_d);
    for (int i = 0; i < 96; ++i) want[i] = in_h[i] + (i % 8 ? want[i - 1] : 0);
}

// Lanes with equal keys elect the highest of them.
__global__ void elected(const int* in, int* out) {
    const int key = in[threadIdx.x] & 3;
    const unsigned equal = __match_any_sync(~0u, key);
    out[threadIdx.x] = (31 - __clz(equal)) * 100 + __popc(equal);
}
static void check_elected() {
    elected<<<1, 64>>>(in_d, out_d);
    for (int i = 0; i < 64; ++i) {
        int last = 0, count = 0;
        for (int j = i / 32 * 32; j < i / 32 * 32 + 32; ++j)
            if ((in_h[j] & 3) == (in_h[i] & 3)) last = j % 32, ++count;
        want[i] = last * 100 + count;
    }
}

// Both halves of a branch vote, each with a mask of its own lanes.
__global__ void two_votes(const int* in, int* out) {
    unsigned votes;
    if (threadIdx.x & 1)
        votes = __ballot_sync(0xaaaaaaaau, in[threadIdx.x] > 0);
    else
        votes = __ballot_sync(0x55555555u, in[threadIdx.x] < 0) * 3;
    out[threadIdx.x] = votes;
}
static void check_two_votes() {
    two_votes<<<1, 64>>>(in_d, out_d);
    for (int i = 0; i < 64; ++i) {
        unsigned votes = 0;
        for (int j = 0; j < 32; ++j) {
            const int v = in_h[i / 32 * 32 + j];
            if ((j ^ i) & 1) continue;
            votes |= (unsigned)(i & 1 ? v > 0 : v < 0) << j;
        }
        want[i] = i & 1 ? votes : votes * 3;
    }
}

// Those that a vote lets in sum up; the others have left before.
__global__ void some_sum(const int* in, int* out, int n) {
    const unsigned mask = __ballot_sync(~0u, threadIdx.x < n);
    if (threadIdx.x >= n) return;
    int v = in[threadIdx.x];
    for (int d = 16; d; d /= 2) {
        const int above = __shfl_down_sync(mask, v, d);
        if (threadIdx.x % 32 + d < 32 && threadIdx.x + d < n) v += above;
    }
    if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = v;
}
static void check_some_sum() {
    some_sum<<<1, 96>>>(in_d, out_d, 75);
    for (int i = 0; i < 75; ++i) want[i / 32] += in_h[i];
}

// A loop by goto, with a barrier in each round and a way around a part of it.
__global__ void by_goto(const int* in, int* out, int rounds) {
    __shared__ int s[64];
    int r = 0, sum = 0;
again:
    s[threadIdx.x] = in[threadIdx.x] + r;
    __syncthreads();
    if (r == 1) goto behind;
    sum = sum * 5 + s[(threadIdx.x * 7 + r) % 64];
behind:
    __syncthreads();
    if (++r < rounds) goto again;
    out[threadIdx.x] = sum;
}
static void check_by_goto() {
    by_goto<<<1, 64>>>(in_d, out_d, 4);
    for (int i = 0; i < 64; ++i)
        for (int r = 0; r < 4; ++r)
            if (r != 1) want[i] = want[i] * 5 + in_h[(i * 7 + r) % 64] + r;
}

// Cases that fall through, with barriers, chosen by the block.
__global__ void falls_through(const int* in, int* out) {
    __shared__ int s[32];
    int v = in[threadIdx.x];
    switch (blockIdx.x) {
        case 0:
            v += 3;
        case 1:
            s[threadIdx.x] = v;
            __syncthreads();
            v = s[31 - threadIdx.x] * 2;
            __syncthreads();
        case 2:
            v ^= 1;
            break;
        default:
            s[threadIdx.x] = -v;
            __syncthreads();
            v = s[(threadIdx.x + 1) % 32];
    }
    out[blockIdx.x * 32 + threadIdx.x] = v;
}
static void check_falls_through() {
    falls_through<<<5, 32>>>(in_d, out_d);
    for (int b = 0; b < 5; ++b)
        for (int i = 0; i < 32; ++i)
            want[b * 32 + i] = b == 0   ? ((in_h[31 - i] + 3) * 2) ^ 1
                               : b == 1 ? (in_h[31 - i] * 2) ^ 1
                               : b == 2 ? in_h[i] ^ 1
                                        : -in_h[(i + 1) % 32];
}

// Minima spread over a ring until nothing changes any more.
__global__ void until_still(const int* in, int* out, int* rounds) {
    __shared__ int s[100];
    s[threadIdx.x] = in[threadIdx.x];
    int count = 0, changed;
    do {
        __syncthreads();
        const int left = s[(threadIdx.x + 99) % 100], own = s[threadIdx.x];
        changed = left < own;
        __syncthreads();
        if (changed) s[threadIdx.x] = left;
        ++count;
    } while (__syncthreads_or(changed));
    out[threadIdx.x] = s[threadIdx.x];
    if (threadIdx.x == 0) *rounds = count;
}
static void check_until_still() {
    until_still<<<1, 100>>>(in_d, out_d, out_d + 200);
    int s[100], t[100];
    memcpy(s, in_h, sizeof s);
    for (int changed = 1; changed; ++want[200]) {
        changed = 0;
        for (int i = 0; i < 100; ++i) {
            t[i] = s[(i + 99) % 100] < s[i] ? s[(i + 99) % 100] : s[i];
            changed |= t[i] < s[i];
        }
        memcpy(s, t, sizeof s);
    }
    memcpy(want, s, sizeof s);
}

// Two buffers that pointers take in turns.
__global__ void buffers(const int* in, int* out, int rounds) {
    __shared__ int one[48], other[48];
    int *from = one, *to = other;
    from[threadIdx.x] = in[threadIdx.x];
    for (int r = 0; r < rounds; ++r) {
        __syncthreads();
        to[threadIdx.x] = from[(threadIdx.x + r) % 48] - from[threadIdx.x];
        int* const next = from;
        from = to, to = next;
    }
    __syncthreads();
    out[threadIdx.x] = from[47 - threadIdx.x];
}
static void check_buffers() {
    buffers<<<1, 48>>>(in_d, out_d, 5);
    int from[48], to[48];
    memcpy(from, in_h, sizeof from);
    for (int r = 0; r < 5; ++r) {
        for (int i = 0; i < 48; ++i) to[i] = from[(i + r) % 48] - from[i];
        memcpy(from, to, sizeof from);
    }
    for (int i = 0; i < 48; ++i) want[i] = from[47 - i];
}

// Blocks and grids of three dimensions, none a power of two.
__global__ void places(int* out) {
    const int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    const int b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    out[b * 30 + t] = (threadIdx.z * 10 + threadIdx.y) * 10 + threadIdx.x + (t % 32) * 1000 +
                      (blockIdx.z * 4 + blockIdx.y * 2 + blockIdx.x) * 100000;
}
static void check_places() {
    places<<<dim3(2, 1, 3), dim3(5, 3, 2)>>>(out_d);
    for (int b = 0; b < 6; ++b)
        for (int t = 0; t < 30; ++t)
            want[b * 30 + t] =
                (t / 15 * 10 + t / 5 % 3) * 10 + t % 5 + t * 1000 + (b / 2 * 4 + b % 2) * 100000;
}

// A tail without __syncwarp: each of its statements is one for all lanes.
__global__ void tail(const int* in, int* out) {
    __shared__ volatile int s[64];
    s[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
    __syncthreads();
    if (threadIdx.x < 32) {
        s[threadIdx.x] = s[threadIdx.x] + s[threadIdx.x + 32];
        s[threadIdx.x] = s[threadIdx.x] + s[(threadIdx.x + 16) % 32];
        s[threadIdx.x] = s[threadIdx.x] + s[threadIdx.x ^ 8];
    }
    __syncthreads();
    out[blockIdx.x * 64 + threadIdx.x] = s[threadIdx.x];
}
static void check_tail() {
    tail<<<2, 64>>>(in_d, out_d);
    for (int b = 0; b < 2; ++b) {
        int *w = want + b * 64, t[32];
        memcpy(w, in_h + b * 64, 256);
        for (int i = 0; i < 32; ++i) w[i] += w[i + 32];
        for (int i = 0; i < 32; ++i) t[i] = w[i] + w[(i + 16) % 32];
        for (int i = 0; i < 32; ++i) w[i] = t[i] + t[i ^ 8];
    }
}

// A maximum of floats by exchanging their bits.
__device__ void raise(int* target, float value) {
    int seen = *target;
    while (__int_as_float(seen) < value) {
        const int now = atomicCAS(target, seen, __float_as_int(value));
        if (now == seen) break;
        seen = now;
    }
}
__global__ void greatest(const int* in, int* out) {
    raise(out + blockIdx.x, in[blockIdx.x * 128 + threadIdx.x] * 0.25f);
}
static void check_greatest() {
    greatest<<<3, 128>>>(in_d, out_d);
    for (int b = 0; b < 3; ++b) {
        float most = 0;
        for (int i = 0; i < 128; ++i)
            if (in_h[b * 128 + i] * 0.25f > most) most = in_h[b * 128 + i] * 0.25f;
        memcpy(want + b, &most, 4);
    }
}

// Tickets are drawn once each, whoever draws them.
__global__ void tickets(int* out) {
    __shared__ unsigned next;
    if (threadIdx.x == 0) next = 5;
    __syncthreads();
    for (int i = 0; i <= threadIdx.x % 3; ++i) out[atomicAdd(&next, 1)] += 1;
    __syncthreads();
    if (threadIdx.x == 99) out[0] = next;
}
static void check_tickets() {
    tickets<<<1, 100>>>(out_d);
    int drawn = 0;
    for (int i = 0; i < 100; ++i) drawn += 1 + i % 3;
    for (int i = 0; i < drawn; ++i) want[5 + i] = 1;
    want[0] = 5 + drawn;
}

// Bytes of words, by pointers of other types.
__global__ void bytes(const int* in, int* out) {
    __shared__ unsigned words[32];
    words[threadIdx.x] = in[threadIdx.x] * 65599u;
    __syncthreads();
    const unsigned char* const all = (const unsigned char*)words;
    uchar4 four = ((uchar4*)words)[31 - threadIdx.x];
    four.y ^= all[threadIdx.x * 3 + 1];
    out[threadIdx.x] = (four.x << 24 | four.y << 16 | four.z << 8 | four.w) ^
                       (int)__funnelshift_r(words[threadIdx.x], words[threadIdx.x ^ 1], 13);
}
static void check_bytes() {
    bytes<<<1, 32>>>(in_d, out_d);
    unsigned words[32];
    for (int i = 0; i < 32; ++i) words[i] = in_h[i] * 65599u;
    for (int i = 0; i < 32; ++i) {
        unsigned char f[4], all[128];
        memcpy(f, words + 31 - i, 4), memcpy(all, words, 128);
        f[1] ^= all[i * 3 + 1];
        want[i] = (int)((unsigned)f[0] << 24 | f[1] << 16 | f[2] << 8 | f[3]) ^
                  (int)(words[i] >> 13 | words[i ^ 1] << 19);
    }
}

// A template whose shared array and whose loop have the size of its argument.
template <int SIZE>
__global__ void of_size(const int* in, int* out) {
    __shared__ int s[SIZE][SIZE + 1];
    if constexpr (SIZE % 2 == 0)
        s[threadIdx.y][threadIdx.x] = in[threadIdx.y * SIZE + threadIdx.x];
    else
        s[threadIdx.x][threadIdx.y] = in[threadIdx.y * SIZE + threadIdx.x];
    __syncthreads();
    int sum = 0;
    for (int i = 0; i < SIZE; ++i) sum = sum * 3 + s[threadIdx.y][i];
    out[(SIZE * threadIdx.y + threadIdx.x)] = sum + s[threadIdx.x][threadIdx.y];
}
template <int SIZE>
static void check_of_size() {
    of_size<SIZE><<<1, dim3(SIZE, SIZE)>>>(in_d, out_d);
    for (int y = 0; y < SIZE; ++y)
        for (int x = 0; x < SIZE; ++x) {
            int sum = 0;
            for (int i = 0; i < SIZE; ++i)
                sum = sum * 3 + (SIZE % 2 ? in_h[i * SIZE + y] : in_h[y * SIZE + i]);
            want[SIZE * y + x] = sum + (SIZE % 2 ? in_h[y * SIZE + x] : in_h[x * SIZE + y]);
        }
}

// A lambda expression with a state of its own lives across barriers.
__global__ void state(const int* in, int* out) {
    __shared__ int s[40];
    int seen = 1;
    auto count = [seen, n = 0](int v) mutable { return seen = seen * 3 + v + n++; };
    for (int r = 0; r < 3; ++r) {
        s[threadIdx.x] = count(in[threadIdx.x + r]);
        __syncthreads();
        seen += s[(threadIdx.x + 1) % 40];
        __syncthreads();
    }
    out[threadIdx.x] = seen;
}
static void check_state() {
    state<<<1, 40>>>(in_d, out_d);
    int own[40];
    for (int i = 0; i < 40; ++i) own[i] = want[i] = 1;
    for (int r = 0; r < 3; ++r) {
        for (int i = 0; i < 40; ++i) own[i] = own[i] * 3 + in_h[i + r] + r;
        for (int i = 0; i < 40; ++i) want[i] += own[(i + 1) % 40];
    }
}

// An index that counts down to below zero, and one without a sign that goes around.
__global__ void around(const int* in, int* out, int n) {
    const int stride = blockDim.x * gridDim.x;
    int sum = 0;
    for (int i = n - 1 - (blockIdx.x * blockDim.x + threadIdx.x); i >= 0; i -= stride)
        sum = sum * 2 + in[i];
    for (unsigned i = 2u - threadIdx.x % 4; i < 4; ++i) sum += i * 1000;
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
static void check_around() {
    around<<<3, 50>>>(in_d, out_d, 777);
    for (int t = 0; t < 150; ++t) {
        for (int i = 776 - t; i >= 0; i -= 150) want[t] = (int)((unsigned)want[t] * 2) + in_h[i];
        for (unsigned i = 2u - t % 50 % 4; i < 4; ++i) want[t] += i * 1000;
    }
}

// Dynamic shared memory for arrays of two types.
__global__ void two_arrays(const int* in, int* out, int n) {
    extern __shared__ double sums[];
    int* const counts = (int*)(sums + n);
    sums[threadIdx.x] = in[threadIdx.x] * 0.5;
    counts[threadIdx.x] = 0;
    __syncthreads();
    for (int d = 1; d < n; d *= 2) {
        const double v = threadIdx.x >= d ? sums[threadIdx.x - d] : 0.0;
        __syncthreads();
        sums[threadIdx.x] += v, counts[threadIdx.x] += v > 0;
        __syncthreads();
    }
    out[threadIdx.x] = (int)(sums[threadIdx.x] * 2) * 8 + counts[threadIdx.x];
}
static void check_two_arrays() {
    two_arrays<<<1, 60, 60 * 12>>>(in_d, out_d, 60);
    double s[60], t[60];
    int counts[60] = {};
    for (int i = 0; i < 60; ++i) s[i] = in_h[i] * 0.5;
    for (int d = 1; d < 60; d *= 2) {
        for (int i = 0; i < 60; ++i) t[i] = i >= d ? s[i - d] : 0.0;
        for (int i = 0; i < 60; ++i) s[i] += t[i], counts[i] += t[i] > 0;
    }
    for (int i = 0; i < 60; ++i) want[i] = (int)(s[i] * 2) * 8 + counts[i];
}

// Narrow types overflow, and shifts go beyond their width: by the PTX ISA they clamp.
__global__ void narrow(const int* in, int* out) {
    unsigned char byte = in[threadIdx.x];
    short small = in[threadIdx.x] * 77;
    signed char tiny = in[threadIdx.x];
    const int n = threadIdx.x;
    byte += 200, small -= 30000, tiny <<= 1, byte >>= 1;
    const unsigned word = in[threadIdx.x];
    out[threadIdx.x] = byte ^ small << 8 ^ tiny ^ (int)(word << n) ^ (in[threadIdx.x] >> n) ^
                       (int)(0x123456789abcdefull >> n);
}
static void check_narrow() {
    narrow<<<1, 80>>>(in_d, out_d);
    for (int n = 0; n < 80; ++n) {
        unsigned char byte = (unsigned char)in_h[n];
        short small = (short)(in_h[n] * 77);
        signed char tiny = (signed char)in_h[n];
        byte = (unsigned char)(byte + 200), small = (short)(small - 30000);
        tiny = (signed char)(tiny * 2), byte = (unsigned char)(byte / 2);
        want[n] = byte ^ (int)((unsigned)small << 8) ^ tiny ^
                  (n > 31 ? 0 : (int)((unsigned)in_h[n] << n)) ^ (in_h[n] >> (n > 31 ? 31 : n)) ^
                  (n > 63 ? 0 : (int)(0x123456789abcdefull >> n));
    }
}

// A function that meets the others changes what it is lent, also elements of a thread's own array.
__device__ void rotate(int& a, int (&own)[5], int by) {
    __shared__ int s[70];
    s[threadIdx.x] = a;
    __syncthreads();
    a = s[(threadIdx.x + by) % 70];
    own[(a & 0xff) % 5] += a;
    __syncthreads();
}
__global__ void lent(const int* in, int* out) {
    int a = in[threadIdx.x], own[5] = {1, 2, 3, 4, 5};
    for (int by = 1; by < 4; ++by) rotate(own[by], own, by), rotate(a, own, by + 3);
    out[threadIdx.x] = a ^ own[0] ^ own[1] * 3 ^ own[2] * 5 ^ own[3] * 7 ^ own[4] * 9;
}
static void check_lent() {
    lent<<<1, 70>>>(in_d, out_d);
    static int a[70], own[70][5], s[70];
    for (int i = 0; i < 70; ++i)
        for (int k = 0; k < 5; ++k) a[i] = in_h[i], own[i][k] = k + 1;
    for (int by = 1; by < 4; ++by)
        for (int second = 0; second < 2; ++second) {
            for (int i = 0; i < 70; ++i) s[i] = second ? a[i] : own[i][by];
            for (int i = 0; i < 70; ++i) {
                int& target = second ? a[i] : own[i][by];
                target = s[(i + by + 3 * second) % 70];
                const int moved = target;
                own[i][(moved & 0xff) % 5] += second ? moved : target;
            }
        }
    for (int i = 0; i < 70; ++i)
        want[i] = a[i] ^ own[i][0] ^ own[i][1] * 3 ^ own[i][2] * 5 ^ own[i][3] * 7 ^ own[i][4] * 9;
}

// A variable of the device counts over launches; threads leave a loop at different times.
__device__ int launches;
__global__ void leave(const int* in, int* out) {
    __shared__ int left[90];
    int steps = 0, v = in[threadIdx.x] & 0xfff;
    while (true) {
        if (v <= 1) break;
        v = v % 2 ? v * 3 + 1 : v / 2;
        if (++steps == 30) break;
    }
    left[threadIdx.x] = steps;
    __syncthreads();
    out[threadIdx.x] = left[89 - threadIdx.x] * 10 + launches;
    __syncthreads();
    if (threadIdx.x == 0) ++launches;
}
static void check_leave() {
    leave<<<1, 90>>>(in_d, out_d);
    leave<<<1, 90>>>(in_d, out_d);
    for (int i = 0; i < 90; ++i) {
        int steps = 0;
        for (int v = in_h[89 - i] & 0xfff; v > 1 && steps < 30; ++steps)
            v = v % 2 ? v * 3 + 1 : v / 2;
        want[i] = steps * 10 + 1;
    }
}

// What a thread steps up or down is stepped before the lanes or the block meet.
__global__ void stepped(const int* in, int* out) {
    __shared__ int s[64];
    const int t = threadIdx.x;
    int up = in[t], down = in[t], found;
    up++;
    up = __shfl_xor_sync(~0u, up, 1);
    down--;
    found = __syncthreads_count(down > 0);
    s[t] = found;
    s[t]++;
    found = __syncthreads_or(s[t] == 1);
    out[t] = up * 1000 + s[63 - t] * 2 + found;
}
static void check_stepped() {
    stepped<<<1, 64>>>(in_d, out_d);
    int found = 0;
    for (int i = 0; i < 64; ++i) found += in_h[i] - 1 > 0;
    for (int i = 0; i < 64; ++i)
        want[i] = (in_h[i ^ 1] + 1) * 1000 + (found + 1) * 2 + (found == 0);
}

#define CHECK(name) begin(kernels + 1), check_##name(), end(#name)
int main() {
    cudaMalloc(&in_d, sizeof in_h);
    cudaMalloc(&out_d, sizeof out_h);
    CHECK(scan_of_eights), CHECK(elected), CHECK(two_votes), CHECK(some_sum), CHECK(by_goto);
    CHECK(falls_through), CHECK(until_still), CHECK(buffers), CHECK(places), CHECK(tail);
    CHECK(greatest), CHECK(tickets), CHECK(bytes), CHECK(state), CHECK(around);
    CHECK(two_arrays), CHECK(narrow), CHECK(lent), CHECK(leave), CHECK(stepped);
    begin(30), check_of_size<7>(), end("of_size<7>");
    begin(31), check_of_size<16>(), end("of_size<16>");
    printf("%d kernels, %d wrong\n", kernels, wrong);
}
