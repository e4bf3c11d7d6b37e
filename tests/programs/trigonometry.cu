// Sines and cosines of all magnitudes: the bits are those of a GPU, in kernels. (In host code they
// are the host's, which a program may compare them with.)
#include <cmath>
#include <cstdio>

const int COUNT = 1 << 16;

__device__ float from_bits(unsigned bits) {
    return __int_as_float((int)bits);
}

// Numbers whose exponents begin at `exponent`, of both signs, and what the functions make of them.
__global__ void compute(unsigned exponent, unsigned step, unsigned* sines, unsigned* cosines,
                        unsigned* both) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const float x = from_bits(((exponent << 23) + (i >> 1) * step) | i << 31);
    float sine, cosine;
    sines[i] = __float_as_int(sinf(x));
    cosines[i] = __float_as_int(cosf(x));
    sincosf(x, &sine, &cosine);
    both[i] = __float_as_int(sine) ^ 3u * __float_as_int(cosine);
}

unsigned hash(const unsigned* words) {
    unsigned found = 2166136261u;
    for (int i = 0; i < COUNT; ++i) found = (found ^ words[i]) * 16777619u;
    return found;
}

int main() {
    unsigned* results;
    cudaMallocManaged(&results, 3 * COUNT * sizeof *results);
    const unsigned begins[] = {0, 64, 120, 127, 130, 135, 140, 143, 150, 200, 240};
    for (int i = 0; i + 1 < (int)(sizeof begins / sizeof *begins); ++i) {
        const unsigned step = ((begins[i + 1] - begins[i]) << 23) / (COUNT / 2);
        compute<<<COUNT / 256, 256>>>(begins[i], step, results, results + COUNT,
                                      results + 2 * COUNT);
        cudaDeviceSynchronize();
        printf("from 2^%d: %08x %08x %08x\n", (int)begins[i] - 127, hash(results),
               hash(results + COUNT), hash(results + 2 * COUNT));
    }
    cudaFree(results);
    float largest = 0;
    for (float x = -10; x < 10; x += 0.001f)
        largest = fmaxf(largest, fabsf(sinf(x) - (float)std::sin((double)x)));
    printf("the host's is right: %d\n", largest < 1e-6f);
    return 0;
}
