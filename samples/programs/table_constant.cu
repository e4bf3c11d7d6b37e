// A table of y = sin(sqrt(x)) at equal steps of x. The step is in constant memory, the function is
// a device lambda, and a grid-stride loop lets any grid fill any table.
//
//     nvcc --extended-lambda table_constant.cu
//
// stdin: int32 n, float32 step. stdout: n float32.

#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <vector>

struct Header {
    int n;
    float step;
};

__constant__ Header header;

template <typename Function>
__global__ void tabulate(float* y, Function function) {
    const int n = header.n, stride = gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        y[i] = function(i * header.step);
}

int main() {
    Header read = {};
    if (std::fread(&read, sizeof read, 1, stdin) != 1 || read.n < 0 || !(read.step >= 0) ||
        std::isinf(read.step)) {
        std::fputs("no number of values and no step\n", stderr);
        return 1;
    }
    if (read.n == 0) return 0;
    std::vector<float> y(read.n);
    float* on_device = nullptr;

    int grid = 0, threads = 0;
    auto function = [] __device__(float x) { return sinf(sqrtf(x)); };
    auto kernel = tabulate<decltype(function)>;
    cudaError_t status = cudaFree(0);  // wakes the device up
    if (!status) status = cudaOccupancyMaxPotentialBlockSize(&grid, &threads, kernel);
    if (!status) status = cudaMalloc(&on_device, y.size() * sizeof(float));
    if (!status) status = cudaMemcpyToSymbol(header, &read, sizeof read);
    if (!status) {
        kernel<<<grid, threads>>>(on_device, function);
        status = cudaGetLastError();
    }
    if (!status)
        status = cudaMemcpy(y.data(), on_device, y.size() * sizeof(float), cudaMemcpyDeviceToHost);
    if (status) {
        std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
        return 1;
    }
    cudaFree(on_device);
    return std::fwrite(y.data(), sizeof(float), y.size(), stdout) != y.size();
}
