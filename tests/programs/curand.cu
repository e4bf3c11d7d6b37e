// cuRAND's host generators: the numbers of a GPU. Integers and uniform numbers are the same to the
// last bit, in a hash; normal numbers are printed with three digits.
#include <cuda_runtime.h>
#include <curand.h>

#include <cstdio>
#include <vector>

#define SHOW(call) printf("%s: %d\n", #call, (int)(call))

static const size_t FIRST = 30000, SECOND = 10000;
static void* memory;

template <class T>
static void print_hash(const char* what, size_t n) {
    std::vector<T> numbers(n);
    cudaMemcpy(numbers.data(), memory, n * sizeof(T), cudaMemcpyDeviceToHost);
    unsigned long long hash = 14695981039346656037ull;
    for (size_t i = 0; i < n * sizeof(T); ++i)
        hash = (hash ^ ((const unsigned char*)numbers.data())[i]) * 1099511628211ull;
    printf(" %s %016llx", what, hash);
}

static curandGenerator_t start(curandRngType_t type, bool moved, int order, int dimensions) {
    curandGenerator_t g;
    curandCreateGenerator(&g, type);
    if (moved) {
        if (type < CURAND_RNG_QUASI_DEFAULT)
            curandSetPseudoRandomGeneratorSeed(g, 0x123456789abcdefull);
        curandSetGeneratorOffset(g, 5001);
    }
    if (order) curandSetGeneratorOrdering(g, (curandOrdering_t)order);
    if (dimensions) curandSetQuasiRandomGeneratorDimensions(g, dimensions);
    return g;
}

static void sequences(const char* name, curandRngType_t type, bool moved = false, int order = 0,
                      int dimensions = 0) {
    printf("%s:", name);
    curandGenerator_t g = start(type, moved, order, dimensions);
    if (type == CURAND_RNG_QUASI_SOBOL64) {
        auto* to = (unsigned long long*)memory;
        curandGenerateLongLong(g, to, FIRST);
        curandGenerateLongLong(g, to + FIRST, SECOND);
        print_hash<unsigned long long>("integers", FIRST + SECOND);
    } else {
        auto* to = (unsigned*)memory;
        curandGenerate(g, to, FIRST);
        curandGenerate(g, to + FIRST, SECOND);
        print_hash<unsigned>("integers", FIRST + SECOND);
    }
    curandDestroyGenerator(g);
    g = start(type, moved, order, dimensions);
    curandGenerateUniform(g, (float*)memory, FIRST);
    curandGenerateUniform(g, (float*)memory + FIRST, SECOND);
    print_hash<float>("floats", FIRST + SECOND);
    curandDestroyGenerator(g);
    g = start(type, moved, order, dimensions);
    curandGenerateUniformDouble(g, (double*)memory, FIRST);
    curandGenerateUniformDouble(g, (double*)memory + FIRST, SECOND);
    print_hash<double>("doubles", FIRST + SECOND);
    curandDestroyGenerator(g);
    puts("");
}

// Calls of several kinds take turns, with lengths that are not round.
static void mixture(const char* name, curandRngType_t type) {
    curandGenerator_t g = start(type, false, 0, 0);
    for (size_t n : {1, 3, 7, 1000, 4095, 4097, 5}) {
        printf("%s %zu:", name, n);
        curandGenerate(g, (unsigned*)memory, n);
        print_hash<unsigned>("integers", n);
        curandGenerateUniform(g, (float*)memory, n);
        print_hash<float>("floats", n);
        if (n % 2 == 0) curandGenerateNormal(g, (float*)memory, n, 0, 1);
        curandGenerateUniformDouble(g, (double*)memory, n);
        print_hash<double>("doubles", n);
        puts("");
    }
    curandDestroyGenerator(g);
}

template <class T>
static void print_numbers(const char* what) {
    T numbers[4];
    cudaMemcpy(numbers, memory, sizeof numbers, cudaMemcpyDeviceToHost);
    printf(" %s %.3f %.3f %.3f %.3f", what, (double)numbers[0], (double)numbers[1],
           (double)numbers[2], (double)numbers[3]);
}
static void normals(const char* name, curandRngType_t type) {
    printf("%s:", name);
    curandGenerator_t g = start(type, false, 0, 0);
    curandGenerateNormal(g, (float*)memory, 4, 2, 3);
    print_numbers<float>("normal");
    curandDestroyGenerator(g);
    g = start(type, false, 0, 0);
    curandGenerateNormalDouble(g, (double*)memory, 4, 2, 3);
    print_numbers<double>("doubles");
    curandDestroyGenerator(g);
    g = start(type, false, 0, 0);
    curandGenerateLogNormal(g, (float*)memory, 4, 0.5f, 0.25f);
    print_numbers<float>("log-normal");
    curandDestroyGenerator(g);
    g = start(type, false, 0, 0);
    curandGenerateLogNormalDouble(g, (double*)memory, 4, 0.5, 0.25);
    print_numbers<double>("doubles");
    curandDestroyGenerator(g);
    puts("");
}

static void print_next(const char* what, curandGenerator_t g) {
    unsigned next[3];
    curandGenerate(g, (unsigned*)memory, 3);
    cudaMemcpy(next, memory, sizeof next, cudaMemcpyDeviceToHost);
    printf("%s: %u %u %u\n", what, next[0], next[1], next[2]);
}

int main() {
    cudaMalloc(&memory, (FIRST + SECOND) * sizeof(double));
    sequences("XORWOW", CURAND_RNG_PSEUDO_XORWOW);
    sequences("XORWOW, moved", CURAND_RNG_PSEUDO_XORWOW, true);
    sequences("MRG32k3a", CURAND_RNG_PSEUDO_MRG32K3A);
    sequences("MRG32k3a, moved", CURAND_RNG_PSEUDO_MRG32K3A, true);
    sequences("MRG32k3a, legacy", CURAND_RNG_PSEUDO_MRG32K3A, false, CURAND_ORDERING_PSEUDO_LEGACY);
    sequences("Philox", CURAND_RNG_PSEUDO_PHILOX4_32_10);
    sequences("Philox, moved", CURAND_RNG_PSEUDO_PHILOX4_32_10, true);
    sequences("Sobol32", CURAND_RNG_QUASI_SOBOL32);
    sequences("Sobol32, 10 dimensions", CURAND_RNG_QUASI_SOBOL32, false, 0, 10);
    sequences("Sobol64, moved", CURAND_RNG_QUASI_SOBOL64, true);
    sequences("Sobol64, 2 dimensions", CURAND_RNG_QUASI_SOBOL64, false, 0, 2);
    mixture("XORWOW", CURAND_RNG_PSEUDO_XORWOW);
    mixture("MRG32k3a", CURAND_RNG_PSEUDO_MRG32K3A);
    mixture("Philox", CURAND_RNG_PSEUDO_PHILOX4_32_10);
    mixture("Sobol32", CURAND_RNG_QUASI_SOBOL32);
    normals("XORWOW", CURAND_RNG_PSEUDO_XORWOW);
    normals("MRG32k3a", CURAND_RNG_PSEUDO_MRG32K3A);
    normals("Philox", CURAND_RNG_PSEUDO_PHILOX4_32_10);
    normals("Sobol32", CURAND_RNG_QUASI_SOBOL32);

    curandGenerator_t g, none = nullptr;
    curandCreateGenerator(&g, CURAND_RNG_PSEUDO_DEFAULT);
    print_next("first", g);
    print_next("second", g);
    curandSetPseudoRandomGeneratorSeed(g, 0);
    print_next("the seed again", g);
    curandSetGeneratorOffset(g, 0);
    print_next("an offset of 0", g);
    curandSetGeneratorOffset(g, 3);
    print_next("an offset of 3", g);
    curandSetGeneratorOrdering(g, CURAND_ORDERING_PSEUDO_BEST);
    print_next("the ordering again", g);
    curandSetStream(g, 0);
    print_next("the stream again", g);
    curandSetPseudoRandomGeneratorSeed(g, 7);
    print_next("another seed", g);

    auto* u = (unsigned*)memory;
    auto* f = (float*)memory;
    SHOW(curandCreateGenerator(&g, (curandRngType_t)7));
    SHOW(curandGenerate(none, u, 4));
    SHOW(curandGenerate(g, u, 0));
    SHOW(curandGenerateLongLong(g, (unsigned long long*)memory, 4));
    SHOW(curandGenerateNormal(g, f, 3, 0, 1));
    SHOW(curandSetQuasiRandomGeneratorDimensions(g, 2));
    SHOW(curandSetGeneratorOrdering(g, CURAND_ORDERING_QUASI_DEFAULT));
    SHOW(curandSetPseudoRandomGeneratorSeed(none, 1));
    SHOW(curandDestroyGenerator(none));
    SHOW(curandDestroyGenerator(g));
    SHOW(curandCreateGenerator(&g, CURAND_RNG_QUASI_SOBOL32));
    SHOW(curandSetPseudoRandomGeneratorSeed(g, 1));
    SHOW(curandSetQuasiRandomGeneratorDimensions(g, 20001));
    SHOW(curandSetQuasiRandomGeneratorDimensions(g, 3));
    SHOW(curandGenerate(g, u, 4));
    SHOW(curandGenerateNormal(g, f, 3, 0, 1));
    SHOW(curandDestroyGenerator(g));
    unsigned on_host[2];
    SHOW(curandCreateGeneratorHost(&g, CURAND_RNG_PSEUDO_DEFAULT));
    SHOW(curandGenerate(g, on_host, 2));
    printf("%u %u\n", on_host[0], on_host[1]);
    SHOW(curandDestroyGenerator(g));
    cudaFree(memory);
}
