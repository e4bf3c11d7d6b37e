// Global objects whose constructors use the GPU before main begins, and whose destructors do so
// after it has ended.
#include <cstdio>

__device__ int added = 7;
__constant__ int factor[2] = {3, 5};

__global__ void fill(int *values, int n, int first) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] = first + i * factor[0] + added;
}
__global__ void sum(const int *values, int n, int *total) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(total, values[i]);
}

class Buffer {
  public:
    explicit Buffer(int first) {
        cudaMalloc(&values, N * sizeof(int));
        cudaMallocManaged(&total, sizeof(int));
        fill<<<(N + 255) / 256, 256>>>(values, N, first);
    }
    ~Buffer() {
        *total = 0;
        sum<<<(N + 255) / 256, 256>>>(values, N, total);
        cudaDeviceSynchronize();
        printf("at the end %d\n", *total);
        cudaFree(values);
        cudaFree(total);
    }
    int last() const {
        int value;
        cudaMemcpy(&value, values + N - 1, sizeof value, cudaMemcpyDeviceToHost);
        return value;
    }

  private:
    static const int N = 1000;
    int *values, *total;
};

static Buffer early(100);

int main() {
    const int more = 8;
    cudaMemcpyToSymbol(added, &more, sizeof more);
    static Buffer late(200);
    printf("%d %d\n", early.last(), late.last());
}
