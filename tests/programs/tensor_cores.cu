// Products on tensor cores, over tiles of every type and of several shapes: a checksum each, which
// must be that of a GPU, since the order and the rounding of the sums are part of the result.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <cstdio>
#include <cstring>

using namespace nvcuda;
const int TRIALS = 6;

__host__ __device__ unsigned hash(unsigned i) {
    i = (i ^ i >> 16) * 0x7feb352du;
    i = (i ^ i >> 15) * 0x846ca68bu;
    return i ^ i >> 16;
}
enum Style { EQUAL_EXPONENTS, MANY_EXPONENTS, FEW_BITS, POSITIVE, FAR_APART };
__device__ float number(unsigned i, int style) {
    const unsigned h = hash(i);
    float x = 1 + (h & 1023) / 1024.0f;
    if (style != POSITIVE && (h & 0x10000)) x = -x;
    const int exponent = (int)((h >> 20) % 13) - 6;
    if (style == EQUAL_EXPONENTS) return x;
    if (style == FEW_BITS) return (float)((int)(h % 7) - 3);
    return ldexpf(x, style == FAR_APART ? 2 * exponent : exponent);
}
__device__ double wide_number(unsigned i) {
    const unsigned h = hash(i), low = hash(i + 77777777);
    const double x = 1 + (h & 0xfffff) / 1048576.0 + low / 4294967296.0 / 1048576.0;
    return ldexp(h & 0x1000000 ? -x : x, (int)(h >> 26) % 9 - 4);
}

template <class Number, class T, class Sum, int M, int N, int K>
__device__ void multiply(const T* a, const T* b, Sum* c) {
    wmma::fragment<wmma::matrix_a, M, N, K, Number, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, M, N, K, Number, wmma::row_major> right;
    wmma::fragment<wmma::accumulator, M, N, K, Sum> sum;
    __syncwarp();
    wmma::load_matrix_sync(left, a, K);
    wmma::load_matrix_sync(right, b, N);
    wmma::load_matrix_sync(sum, c, N, wmma::mem_row_major);
    wmma::mma_sync(sum, left, right, sum);
    wmma::store_matrix_sync(c, sum, N, wmma::mem_row_major);
    __syncwarp();
}
template <class Number, class T, class Sum, int M, int N, int K>
__global__ void tiles(float* out, int style) {
    __shared__ alignas(32) T a[M * K], b[K * N];
    __shared__ alignas(32) Sum c[M * N];
    for (int t = 0; t < TRIALS; ++t) {
        const unsigned seed = 100000 * style + t * 4096;
        for (int i = threadIdx.x; i < M * K; i += 32) a[i] = T(number(seed + i, style));
        for (int i = threadIdx.x; i < K * N; i += 32) b[i] = T(number(seed + 1024 + i, style));
        for (int i = threadIdx.x; i < M * N; i += 32)
            c[i] = Sum(t % 2 ? number(seed + 2048 + i, style) : 0.0f);
        multiply<Number, T, Sum, M, N, K>(a, b, c);
        for (int i = threadIdx.x; i < M * N; i += 32) out[t * M * N + i] = (float)c[i];
        __syncwarp();
    }
}
// Numbers so large and so small that sums overflow, are subnormal, or hardly overlap.
__device__ float far_number(unsigned i, int reach, int sparse) {
    const unsigned h = hash(i);
    if (sparse && hash(i + 5555555) % 4) return 0;
    const float x = 1 + (h & 1023) / 1024.0f;
    const int exponent = (int)(hash(i + 999999) % (2 * reach + 1)) - reach;
    return ldexpf(h & 0x10000 ? -x : x, exponent);
}
template <class Number, class T, int K>
__global__ void far_apart(float* out, int sparse) {
    __shared__ alignas(32) T a[16 * K], b[K * 16];
    __shared__ alignas(32) float c[256];
    for (int t = 0; t < 4; ++t) {
        const unsigned seed = 1200000 + 2000 * t + sparse * 7;
        for (int i = threadIdx.x; i < 16 * K; i += 32) {
            a[i] = T(far_number(seed + i, 120, sparse));
            b[i] = T(far_number(seed + 500 + i, 120, sparse));
        }
        for (int i = threadIdx.x; i < 256; i += 32)
            c[i] = t % 2 ? far_number(seed + 1000 + i, 126, 0) : 0;
        multiply<Number, T, float, 16, 16, K>(a, b, c);
        for (int i = threadIdx.x; i < 256; i += 32) out[t * 256 + i] = c[i];
        __syncwarp();
    }
}
// Subnormal factors in the first rounds, any bits at the end.
__global__ void special(float* out) {
    __shared__ alignas(32) __half a[256], b[256];
    __shared__ alignas(32) float c[256];
    for (int t = 0; t < TRIALS; ++t) {
        for (int i = threadIdx.x; i < 256; i += 32) {
            const unsigned h = hash(t * 3000 + i), g = hash(t * 3000 + 1000 + i);
            unsigned x = h & (t < 2 ? 0x83ff : t < 4 ? 0x87ff : 0xffff);
            unsigned y = t % 2 ? g & 0x8fff : (g & 0x9fff) + 0x2000;
            if (t == 5) x = h & 0xfbff, y = g & 0xfbff;
            a[i] = __ushort_as_half((unsigned short)x);
            b[i] = __ushort_as_half((unsigned short)y);
            c[i] = t % 3 == 1 ? (float)(int)h * 1e-12f : 0.0f;
        }
        multiply<__half, __half, float, 16, 16, 16>(a, b, c);
        for (int i = threadIdx.x; i < 256; i += 32) out[t * 256 + i] = c[i] == c[i] ? c[i] : 1e9f;
        __syncwarp();
    }
}
// Halves so small that many sums round to zero, which has no sign.
__global__ void small(float* out) {
    __shared__ alignas(32) __half a[256], b[256], c[256];
    for (int t = 0; t < 3; ++t) {
        const unsigned seed = 300000 + 2000 * t;
        const auto draw = [](unsigned i) {
            return __ushort_as_half((unsigned short)(hash(i) & ~0x7000));
        };
        for (int i = threadIdx.x; i < 256; i += 32) {
            a[i] = draw(seed + i), b[i] = draw(seed + 500 + i);
            c[i] = t % 2 ? draw(seed + 1000 + i) : __half(0.0f);
        }
        multiply<__half, __half, __half, 16, 16, 16>(a, b, c);
        for (int i = threadIdx.x; i < 256; i += 32) out[t * 256 + i] = (float)c[i];
        __syncwarp();
    }
}
__global__ void doubles(double* out) {
    __shared__ double a[32], b[32], c[64];
    for (int t = 0; t < 8; ++t) {
        a[threadIdx.x] = wide_number(t * 1000 + threadIdx.x);
        b[threadIdx.x] = wide_number(t * 1000 + 100 + threadIdx.x);
        for (int i = threadIdx.x; i < 64; i += 32)
            c[i] = t % 2 ? wide_number(t * 1000 + 200 + i) : 0.0;
        multiply<double, double, double, 8, 8, 4>(a, b, c);
        for (int i = threadIdx.x; i < 64; i += 32) out[t * 64 + i] = c[i];
        __syncwarp();
    }
}
// Several tiles a warp, from shared memory, along many steps: what one lane may run for its warp.
template <class Number, class T, class Sum, int K, bool rounds>
__global__ void sums(float* out, int style) {
    const int STEPS = 4, WIDTH = STEPS * K;
    __shared__ alignas(32) T a[64][WIDTH + 16], b[32][WIDTH + 16];
    __shared__ alignas(32) Sum c[64][32];
    const int warp = threadIdx.x / 32;
    wmma::fragment<wmma::accumulator, 16, 16, K, Sum> sum[2][2];
    for (auto& row : sum)
        for (auto& each : row) wmma::fill_fragment(each, Sum(0.25f));
    for (int t = 0; t < TRIALS; ++t) {
        for (int i = threadIdx.x; i < 64 * WIDTH; i += blockDim.x) {
            a[i / WIDTH][i % WIDTH] = T(number(700000 * t + i, style));
            if (i < 32 * WIDTH) b[i / WIDTH][i % WIDTH] = T(number(700000 * t + 300000 + i, style));
        }
        __syncthreads();
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            wmma::fragment<wmma::matrix_a, 16, 16, K, Number, wmma::row_major> left[2];
            wmma::fragment<wmma::matrix_b, 16, 16, K, Number, wmma::col_major> right[2];
            for (int i = 0; i < 2; ++i) {
                const T* row = &a[32 * warp + 16 * i][step * K];
                wmma::load_matrix_sync(left[i], row, WIDTH + 16);
                wmma::load_matrix_sync(right[i], &b[16 * i][step * K], WIDTH + 16);
                if constexpr (rounds) {
#pragma unroll
                    for (int e = 0; e < left[i].num_elements; e++)
                        left[i].x[e] = wmma::__float_to_tf32(left[i].x[e]);
                    for (int e = 0; e < right[i].num_elements; ++e) {
                        right[i].x[e] = wmma::__float_to_tf32(right[i].x[e]);
                    }
                }
            }
            for (int i = 0; i < 2; ++i)
                for (int j = 0; j < 2; ++j) wmma::mma_sync(sum[i][j], left[i], right[j], sum[i][j]);
        }
        __syncthreads();
    }
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j)
            wmma::store_matrix_sync(&c[32 * warp + 16 * i][16 * j], sum[i][j], 32,
                                    wmma::mem_row_major);
    __syncthreads();
    for (int i = threadIdx.x; i < 64 * 32; i += blockDim.x) out[i] = (float)c[i / 32][i % 32];
}
// Integers are exact, by columns too, and fragments may be changed element by element.
template <class T>
__global__ void integers(int* wrong) {
    __shared__ alignas(32) T a[256], b[256];
    __shared__ alignas(32) int c[256];
    for (int i = threadIdx.x; i < 256; i += 32) a[i] = (T)hash(i), b[i] = (T)hash(i + 999);
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::col_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> sum;
    wmma::fill_fragment(sum, 5);
    wmma::load_matrix_sync(left, a, 16);
    wmma::load_matrix_sync(right, b, 16);
    for (int i = 0; i < left.num_elements; ++i) left.x[i] /= 2;
    wmma::mma_sync(sum, left, right, sum);
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_col_major);
    __syncwarp();
    for (int i = threadIdx.x; i < 256; i += 32) {
        int expected = 5;
        for (int k = 0; k < 16; ++k) expected += (T)(a[i % 16 + 16 * k] / 2) * b[k + 16 * (i / 16)];
        if (c[i] != expected) atomicAdd(wrong, 1);
    }
}

template <class T>
unsigned checksum(const T* values, int count) {
    unsigned sum = 0x811c9dc5u;
    for (int i = 0; i < count * (int)sizeof(T) / 4; ++i) {
        unsigned word;
        memcpy(&word, (const char*)values + 4 * i, 4);
        sum = ((sum ^ word) * 0x01000193u) ^ sum >> 15;
    }
    return sum;
}

int main() {
    float* out;
    double* wide;
    int* wrong;
    cudaMallocManaged(&out, 64 * 32 * sizeof *out);
    cudaMallocManaged(&wide, 512 * sizeof *wide);
    cudaMallocManaged(&wrong, sizeof *wrong);
    const auto print = [&](const char* name, int count = TRIALS * 256) {
        const cudaError_t error = cudaDeviceSynchronize();
        if (error != cudaSuccess) printf("%s\n", cudaGetErrorString(error));
        printf("%08x %s\n", checksum(out, count), name);
    };
    for (int style = 0; style < 5; ++style) {
        tiles<__half, __half, float, 16, 16, 16><<<1, 32>>>(out, style), print("half");
        tiles<__half, __half, __half, 16, 16, 16><<<1, 32>>>(out, style), print("half to half");
        tiles<__nv_bfloat16, __nv_bfloat16, float, 16, 16, 16><<<1, 32>>>(out, style);
        print("bfloat16");
        tiles<wmma::precision::tf32, float, float, 16, 16, 8><<<1, 32>>>(out, style), print("tf32");
        tiles<__half, __half, float, 32, 8, 16><<<1, 32>>>(out, style), print("half, 32 x 8");
        sums<__half, __half, float, 16, false><<<1, 64>>>(out, style), print("sums of half", 2048);
        sums<__half, __half, __half, 16, false><<<1, 64>>>(out, style);
        print("sums of half to half", 2048);
        sums<__nv_bfloat16, __nv_bfloat16, float, 16, false><<<1, 64>>>(out, style);
        print("sums of bfloat16", 2048);
        sums<wmma::precision::tf32, float, float, 8, true><<<1, 64>>>(out, style);
        print("sums of tf32", 2048);
    }
    special<<<1, 32>>>(out), print("special");
    small<<<1, 32>>>(out), print("small, half to half", 768);
    for (int sparse = 0; sparse < 2; ++sparse) {
        far_apart<__nv_bfloat16, __nv_bfloat16, 16><<<1, 32>>>(out, sparse);
        print("far apart, bfloat16", 1024);
        far_apart<wmma::precision::tf32, float, 8><<<1, 32>>>(out, sparse);
        print("far apart, tf32", 1024);
    }
    doubles<<<1, 32>>>(wide);
    integers<signed char><<<1, 32>>>(wrong);
    integers<unsigned char><<<1, 32>>>(wrong);
    cudaDeviceSynchronize();
    printf("%08x double\n%d wrong integers\n", checksum(wide, 512), *wrong);
    cudaFree(out), cudaFree(wide), cudaFree(wrong);
    return 0;
}
