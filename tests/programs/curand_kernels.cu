// cuRAND in kernels: calls of several kinds take turns. Integers, uniform and Poisson numbers are a
// GPU's to the last bit, in a hash; normal numbers are printed with three digits.
#include <curand_kernel.h>

#include <cstdio>
#include <vector>

static const int THREADS = 32;

struct Numbers {
    float normal[4], log_normal[4], uniform[4], pairs[4];
    double normal_doubles[4], log_normal_doubles[4], uniform_doubles[4], pairs_of_doubles[4];
    unsigned integers[4], poisson[8];
};

template <class State>
__global__ void draw(Numbers* all, unsigned long long seed) {
    State state;
    curand_init(seed, threadIdx.x, 5, &state);
    Numbers& to = all[threadIdx.x];
    for (int i = 0; i < 4; ++i) {
        to.normal[i] = curand_normal(&state);
        to.log_normal[i] = curand_log_normal(&state, 0.5f, 0.25f);
        to.uniform[i] = curand_uniform(&state);
        to.normal_doubles[i] = curand_normal_double(&state);
        to.log_normal_doubles[i] = curand_log_normal_double(&state, 0.5, 0.25);
        to.uniform_doubles[i] = curand_uniform_double(&state);
    }
    const float2 pair = curand_normal2(&state), second = curand_log_normal2(&state, 1, 2);
    to.pairs[0] = pair.x, to.pairs[1] = pair.y, to.pairs[2] = second.x, to.pairs[3] = second.y;
    const double2 precise = curand_normal2_double(&state);
    const double2 last = curand_log_normal2_double(&state, 1, 2);
    to.pairs_of_doubles[0] = precise.x, to.pairs_of_doubles[1] = precise.y;
    to.pairs_of_doubles[2] = last.x, to.pairs_of_doubles[3] = last.y;
    const double means[4] = {0.5, 3, 20, 63};
    for (int i = 0; i < 4; ++i) {
        to.poisson[i] = curand_poisson(&state, means[i]);
        to.integers[i] = curand(&state);
        to.poisson[i + 4] = curand_poisson(&state, means[i]);
    }
}

static unsigned long long hash;
template <class T, size_t N>
static void add(const T (&numbers)[N]) {
    for (size_t i = 0; i < sizeof numbers; ++i)
        hash = (hash ^ ((const unsigned char*)numbers)[i]) * 1099511628211ull;
}
template <class T>
static void print(const char* what, const T (&numbers)[4]) {
    printf("  %s %.3f %.3f %.3f %.3f\n", what, (double)numbers[0], (double)numbers[1],
           (double)numbers[2], (double)numbers[3]);
}

template <class State>
static void print_numbers(const char* name, unsigned long long seed) {
    Numbers* on_device;
    cudaMalloc(&on_device, THREADS * sizeof(Numbers));
    draw<State><<<1, THREADS>>>(on_device, seed);
    std::vector<Numbers> all(THREADS);
    cudaMemcpy(all.data(), on_device, THREADS * sizeof(Numbers), cudaMemcpyDeviceToHost);
    cudaFree(on_device);
    hash = 14695981039346656037ull;
    for (const Numbers& each : all) {
        add(each.uniform);
        add(each.uniform_doubles);
        add(each.integers);
        add(each.poisson);
    }
    printf("%s: %016llx\n", name, hash);
    const Numbers& one = all[7];
    print("normal", one.normal);
    print("log-normal", one.log_normal);
    print("normal, double", one.normal_doubles);
    print("log-normal, double", one.log_normal_doubles);
    print("pairs", one.pairs);
    print("pairs of doubles", one.pairs_of_doubles);
}

// Four numbers at a time.
__global__ void draw_fours(float4* uniform, float4* normal, uint4* integers) {
    curandStatePhilox4_32_10_t state;
    curand_init(7, threadIdx.x, 3, &state);
    uniform[threadIdx.x] = curand_uniform4(&state);
    normal[threadIdx.x] = curand_normal4(&state);
    integers[threadIdx.x] = curand4(&state);
}

int main() {
    print_numbers<curandStateXORWOW_t>("XORWOW", 1234);
    print_numbers<curandStatePhilox4_32_10_t>("Philox", 1234);
    print_numbers<curandStateMRG32k3a_t>("MRG32k3a", 1234);
    print_numbers<curandStateMRG32k3a_t>("MRG32k3a without a seed", 0);
    float4* fours;
    cudaMallocManaged(&fours, 2 * sizeof(float4));
    uint4* integers;
    cudaMallocManaged(&integers, sizeof(uint4));
    draw_fours<<<1, 1>>>(fours, fours + 1, integers);
    cudaDeviceSynchronize();
    printf("%a %a %a %a\n", fours[0].x, fours[0].y, fours[0].z, fours[0].w);
    printf("%.3f %.3f %.3f %.3f\n", fours[1].x, fours[1].y, fours[1].z, fours[1].w);
    printf("%u %u %u %u\n", integers->x, integers->y, integers->z, integers->w);
    cudaFree(fours);
    cudaFree(integers);
}
