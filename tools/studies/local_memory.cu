// One warp writes an element of a local array and reads another one, at indices that the host
// chooses for each lane; with a name for each launch on stdout. local_memory.py counts under ncu
// what both cost.
#include <cstdio>

template <typename T>
__global__ void local_array(const int* writes, const int* reads, const T* values, T* out) {
    T own[64];
    const int lane = threadIdx.x;
    if (writes[lane] < 0) return;
    own[writes[lane]] = values[lane];
    out[lane] = own[reads[lane]];
}

struct Pattern {
    const char* name;
    int (*index)(int lane);  // negative: the lane is idle
};
static const Pattern PATTERNS[] = {
    {"all at one", [](int) { return 5; }},
    {"each its own", [](int lane) { return lane; }},
    {"two by turns", [](int lane) { return lane % 2; }},
    {"two halves", [](int lane) { return lane / 16; }},
    {"quarters", [](int lane) { return lane / 8; }},
    {"eight by turns", [](int lane) { return lane % 8; }},
    {"pairs", [](int lane) { return lane / 2; }},
    {"scattered", [](int lane) { return lane * 7 % 64; }},
    {"one lane", [](int lane) { return lane == 3 ? 9 : -1; }},
    {"16 lanes at one", [](int lane) { return lane < 16 ? 9 : -1; }},
    {"every other lane at one", [](int lane) { return lane % 2 ? 9 : -1; }},
    {"5 lanes, each its own", [](int lane) { return lane < 5 ? lane : -1; }},
};

template <typename T>
static void run(const char* type) {
    int *writes, *reads;
    T *values, *out;
    cudaMallocManaged(&writes, 32 * sizeof *writes);
    cudaMallocManaged(&reads, 32 * sizeof *reads);
    cudaMallocManaged(&values, 32 * sizeof *values);
    cudaMallocManaged(&out, 32 * sizeof *out);
    for (const Pattern& each : PATTERNS) {
        for (int lane = 0; lane < 32; ++lane) writes[lane] = reads[lane] = each.index(lane);
        local_array<T><<<1, 32>>>(writes, reads, values, out);
        cudaDeviceSynchronize();
        printf("%s: %s\n", type, each.name);
    }
}

int main() {
    run<char>("1 byte");
    run<short>("2 bytes");
    run<int>("4 bytes");
    run<double>("8 bytes");
    run<int4>("16 bytes");
    return cudaGetLastError() != cudaSuccess;
}
