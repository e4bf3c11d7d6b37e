// /// cudalab
// summary  = "16-byte loads and stores where alignment allows"
// order    = 11
// adds     = "loads and stores of 16 bytes"
// dispatch = "tiles"
// defines  = { BM = 128, BN = 128, BK = 8, TM = 8, TN = 8, THREADS_PER_BLOCK = 256 }
// ///
//
// As `register_tiled_2d`, with one change: loads and stores move 16 bytes, from and to global
// memory and from shared memory. That is a quarter of the instructions for the same numbers: 4
// reads from shared memory instead of 16 for 64 products.
//
// For that a thread's 8 x 8 elements, which were 16 apart, become four 4 x 4 pieces, 64 apart: it
// reads 4 neighbours of As or Bs in one access. As is kept transposed, As[p][row], in rows of 132
// words: a store of 16 rows at p and p + 4 goes to banks 4p + row, all different. Limits: a row of
// A starts at a multiple of 16 bytes only if k % 4 == 0, a row of B and C only if n % 4 == 0: other
// matrices are loaded 4 bytes at a time. While the tiles are loaded nothing is multiplied:
// `double_buffered`.
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

// A tile of a matrix whose lines run along k, stored as [p][line]: thread t takes line t / 2, four
// of its eight numbers.
__device__ inline void load_transposed(float tile[BK][LD], const float* source, unsigned line0,
                                       unsigned lines, unsigned p0, unsigned k) {
    const unsigned line = threadIdx.x / 2, p = threadIdx.x % 2 * 4;
    const int room = line0 + line < lines ? (int)(k - p0 - p) : 0;
    const float4 v = load_four(source + (size_t)(line0 + line) * k + p0 + p, room, k % 4 == 0);
    tile[p][line] = v.x;
    tile[p + 1][line] = v.y;
    tile[p + 2][line] = v.z;
    tile[p + 3][line] = v.w;
}

// A tile of B itself: thread t takes four of the 128 numbers of row t / 32.
__device__ inline void load_rows(float tile[BK][LD], const float* b, unsigned col0, unsigned n,
                                 unsigned p0, unsigned k) {
    const unsigned p = threadIdx.x / 32, col = threadIdx.x % 32 * 4;
    const int room = p0 + p < k ? (int)(n - col0 - col) : 0;
    const float4 v = load_four(b + (size_t)(p0 + p) * n + col0 + col, room, n % 4 == 0);
    *reinterpret_cast<float4*>(&tile[p][col]) = v;
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, 2) multiply(
    const float* a, const float* b, float* c, unsigned m, unsigned k, unsigned n) {
    __shared__ __align__(16) float As[BK][LD], Bs[BK][LD];
    const unsigned tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const unsigned tiles_across = (n + BN - 1) / BN;
    const unsigned row0 = blockIdx.x / tiles_across * BM, col0 = blockIdx.x % tiles_across * BN;

    float acc[TM][TN] = {};
    for (unsigned p0 = 0; p0 < k; p0 += BK) {
        load_transposed(As, a, row0, m, p0, k);
        if (B_TRANSPOSED) {
            load_transposed(Bs, b, col0, n, p0, k);
        } else {
            load_rows(Bs, b, col0, n, p0, k);
        }
        __syncthreads();  // the tiles are complete

#pragma unroll
        for (unsigned p = 0; p < BK; ++p) {
            __align__(16) float left[TM], right[TN];
#pragma unroll
            for (unsigned half = 0; half < 2; ++half) {
                *reinterpret_cast<float4*>(left + 4 * half) =
                    *reinterpret_cast<const float4*>(&As[p][half * 64 + ty * 4]);
                *reinterpret_cast<float4*>(right + 4 * half) =
                    *reinterpret_cast<const float4*>(&Bs[p][half * 64 + tx * 4]);
            }
#pragma unroll
            for (unsigned i = 0; i < TM; ++i)
#pragma unroll
                for (unsigned j = 0; j < TN; ++j) acc[i][j] += left[i] * right[j];
        }
        __syncthreads();  // the tiles may be overwritten
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

// Source: Luitjens, Increase Performance with Vectorized Memory Access. NVIDIA Developer Blog,
// 2013.
