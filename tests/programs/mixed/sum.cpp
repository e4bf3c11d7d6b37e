#include "parts.h"

// Names of CUDA mean nothing here.
static int threadIdx, blockDim = 1;
struct dim3 {
    int min;
};

int sum_in_cpp(const int *a, int n) {
    dim3 sum = {0};
    for (threadIdx = 0; threadIdx < n; threadIdx += blockDim) sum.min += a[threadIdx];
    return sum.min;
}
