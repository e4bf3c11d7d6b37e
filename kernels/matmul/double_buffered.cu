// /// cudalab
// summary  = "Two pairs of tiles: one is loaded while the other is multiplied"
// order    = 11.3
// adds     = "a second pair of tiles, loaded while the first is multiplied"
// dispatch = "tiles"
// defines  = { BM = 128, BN = 128, BK = 8, TM = 8, TN = 8, THREADS_PER_BLOCK = 256 }
// ///
//
// As `vectorized`, with one change: there are two pairs of tiles in shared memory. While a step
// multiplies one pair, the next numbers are on their way from global memory to registers, and the
// step after it stores them into the other pair. So no step waits for memory, and one barrier per
// step is enough: a thread that has passed it knows that all have multiplied the pair to be
// overwritten next.
//
// Besides, a thread's addresses step on from tile to tile (Tiles) instead of being computed anew,
// and a tile of C is a function, since `split_k` computes parts of one. Who computes and loads what
// is as before.
// Limits: the numbers on their way take 8 registers per thread and are stored by instructions that
// multiply nothing: `async_copy_tiles`. A tile of C is as large as a block's registers allow; small
// matrices have few tiles and leave multiprocessors idle: `split_k`.
//
// Macros from outside: B_TRANSPOSED (1: B is stored n x k), BM, BN, BK, TM, TN, THREADS_PER_BLOCK.

static_assert(TM == 8 && TN == 8 && BK == 8, "two pieces of 4 x 4 in each direction");
static_assert(BM == 128 && BN == 128 && THREADS_PER_BLOCK == 256, "16 bytes of each tile a thread");

constexpr unsigned LD = BM + 4;  // words per row of a tile; a multiple of 4 keeps rows aligned

// Four neighbours; `room` of them are inside the matrix, zeros stand for the rest.
__device__ inline float4 load_four(const float* source, int room, bool aligned) {
    if (aligned && room > 0) return *reinterpret_cast<const float4*>(source);
    float4 v = make_float4(0, 0, 0, 0);
    if (room > 0) v.x = source[0];
    if (room > 1) v.y = source[1];
    if (room > 2) v.z = source[2];
    if (room > 3) v.w = source[3];
    return v;
}

// This thread's part of one tile after the other along k: 16 bytes of each.
struct Tiles {
    const float* at;
    size_t step;   // elements from tile to tile
    int room;      // elements that are inside the matrix from `at` on, along its row
    int rest;      // steps along k left from `at` on
    bool along_k;  // the rows of the matrix run along k
    bool aligned;  // every row starts at a multiple of 16 bytes

    __device__ inline float4 fetch() {
        const float4 v = load_four(at, along_k ? rest : rest > 0 ? room : 0, aligned);
        at += step;
        rest -= BK;
        return v;
    }

    // To shared memory as [p][line].
    __device__ inline void store(float tile[BK][LD], float4 v) const {
        if (along_k) {
            const unsigned line = threadIdx.x / 2, p = threadIdx.x % 2 * 4;
            tile[p][line] = v.x;
            tile[p + 1][line] = v.y;
            tile[p + 2][line] = v.z;
            tile[p + 3][line] = v.w;
        } else {
            *reinterpret_cast<float4*>(&tile[threadIdx.x / 32][threadIdx.x % 32 * 4]) = v;
        }
    }
};

// A matrix whose rows run along k: thread t takes row t / 2, four of a tile's eight elements.
__device__ inline Tiles tiles_along_k(const float* source, unsigned row0, unsigned rows, unsigned k,
                                      unsigned k_begin, unsigned k_end) {
    const unsigned row = row0 + threadIdx.x / 2, p = k_begin + threadIdx.x % 2 * 4;
    const int rest = row < rows ? (int)(k_end - p) : 0;
    return {source + (size_t)row * k + p, BK, 0, rest, true, k % 4 == 0};
}
// B itself: thread t takes row t / 32 of a tile, four of its 128 elements.
__device__ inline Tiles tiles_across(const float* b, unsigned col0, unsigned n, unsigned k_begin,
                                     unsigned k_end) {
    const unsigned p = k_begin + threadIdx.x / 32, col = col0 + threadIdx.x % 32 * 4;
    const int room = (int)(n - col), rest = (int)(k_end - p);
    return {b + (size_t)p * n + col, (size_t)BK * n, room, rest, false, n % 4 == 0};
}

// One tile of C, row0 and col0 its first element, from the part k_begin to k_end of the sums;
// k_begin is a multiple of BK.
__device__ inline void multiply_tile(const float* a, const float* b, float* c, unsigned m,
                                     unsigned k, unsigned n, unsigned k_begin, unsigned k_end) {
    __shared__ __align__(16) float As[2][BK][LD];
    __shared__ __align__(16) float Bs[2][BK][LD];
    const unsigned tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const unsigned tiles_in_row = (n + BN - 1) / BN;
    const unsigned row0 = blockIdx.x / tiles_in_row * BM, col0 = blockIdx.x % tiles_in_row * BN;
    Tiles tiles_a = tiles_along_k(a, row0, m, k, k_begin, k_end);
    Tiles tiles_b = B_TRANSPOSED ? tiles_along_k(b, col0, n, k, k_begin, k_end)
                                 : tiles_across(b, col0, n, k_begin, k_end);

    float acc[TM][TN] = {};
    float4 next_a = tiles_a.fetch(), next_b = tiles_b.fetch();
    for (unsigned steps = (k_end - k_begin + BK - 1) / BK; steps > 0; --steps) {
        const unsigned stage = steps % 2;
        tiles_a.store(As[stage], next_a);
        tiles_b.store(Bs[stage], next_b);
        // The tiles are complete. Those of the step before may still be read: the step after this
        // one overwrites them, behind the next barrier.
        __syncthreads();
        next_a = tiles_a.fetch();
        next_b = tiles_b.fetch();

#pragma unroll
        for (unsigned p = 0; p < BK; ++p) {
            __align__(16) float left[TM], right[TN];
#pragma unroll
            for (unsigned half = 0; half < 2; ++half) {
                *reinterpret_cast<float4*>(left + 4 * half) =
                    *reinterpret_cast<const float4*>(&As[stage][p][half * 64 + ty * 4]);
                *reinterpret_cast<float4*>(right + 4 * half) =
                    *reinterpret_cast<const float4*>(&Bs[stage][p][half * 64 + tx * 4]);
            }
#pragma unroll
            for (unsigned i = 0; i < TM; ++i)
#pragma unroll
                for (unsigned j = 0; j < TN; ++j) acc[i][j] += left[i] * right[j];
        }
    }

#pragma unroll
    for (unsigned i = 0; i < TM; ++i) {
        const unsigned row = row0 + i / 4 * 64 + ty * 4 + i % 4;
        if (row >= m) continue;
#pragma unroll
        for (unsigned half = 0; half < 2; ++half) {
            const unsigned col = col0 + half * 64 + tx * 4;
            float* place = c + (size_t)row * n + col;
            const float* v = acc[i] + 4 * half;
            if (n % 4 == 0) {
                if (col < n)
                    *reinterpret_cast<float4*>(place) = make_float4(v[0], v[1], v[2], v[3]);
            } else {
#pragma unroll
                for (unsigned j = 0; j < 4; ++j)
                    if (col + j < n) place[j] = v[j];
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, 2) multiply(
    const float* a, const float* b, float* c, unsigned m, unsigned k, unsigned n) {
    multiply_tile(a, b, c, m, k, n, 0, k);
}

// Source: Nath, Tomov and Dongarra, An Improved MAGMA GEMM for Fermi Graphics Processing Units.
// International Journal of High Performance Computing Applications 24(4), 2010.
