// What a kernel prints.

#include <cstdio>

extern "C" __global__ void print_place(double value) {
    printf("block %u thread %u: %s %.3f %d%%\n", blockIdx.x, threadIdx.x, "value", value, 50);
}
