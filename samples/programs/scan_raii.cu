// Exclusive scan of float32 numbers, as C++: device memory belongs to objects, errors are
// exceptions, and the scan of any number of levels is one recursive function.
//
// stdin: int32 n, n float32. stdout: n float32: 0, a0, a0 + a1, ...

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

namespace device {

class Error : public std::runtime_error {
  public:
    Error(const std::string& what, cudaError_t status)
        : std::runtime_error(what + ": " + cudaGetErrorString(status)) {}
};

inline void check(cudaError_t status, const char* what) {
    if (status != cudaSuccess) throw Error(what, status);
}

// An array in device memory; it is freed when it goes out of scope.
template <typename T>
class Array {
  public:
    explicit Array(size_t size) : size_(size) {
        check(cudaMalloc(&data_, size * sizeof(T)), "cudaMalloc");
    }
    explicit Array(const std::vector<T>& host) : Array(host.size()) {
        check(cudaMemcpy(data_, host.data(), size_ * sizeof(T), cudaMemcpyHostToDevice),
              "copy to the device");
    }
    ~Array() { cudaFree(data_); }
    Array(const Array&) = delete;
    Array& operator=(const Array&) = delete;

    T* data() { return data_; }
    size_t size() const { return size_; }
    std::vector<T> to_host() const {
        std::vector<T> host(size_);
        check(cudaMemcpy(host.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost),
              "copy to the host");
        return host;
    }

  private:
    T* data_ = nullptr;
    size_t size_;
};

}  // namespace device

namespace kernels {

constexpr int WARP = 32, THREADS = 512;

// Inclusive scan over the lanes of a warp.
template <typename T>
__device__ T scan_warp(T value) {
    const int lane = threadIdx.x % WARP;
    for (int offset = 1; offset < WARP; offset *= 2) {
        const T left = __shfl_up_sync(0xffffffff, value, offset);
        if (lane >= offset) value += left;
    }
    return value;
}

// Exclusive scan of one item a thread; the block's sum goes to sums[block].
template <typename T>
__global__ void scan_blocks(T* items, T* sums, size_t n) {
    __shared__ T warps[WARP];
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    const T inclusive = scan_warp(i < n ? items[i] : T(0));
    if (lane == WARP - 1) warps[warp] = inclusive;
    __syncthreads();
    if (warp == 0) {
        const T sum = lane < THREADS / WARP ? warps[lane] : T(0);
        const T scanned = scan_warp(sum);
        const T before = __shfl_up_sync(0xffffffff, scanned, 1);
        warps[lane] = lane ? before : T(0);
        if (lane == WARP - 1) sums[blockIdx.x] = scanned;
    }
    __syncthreads();
    // The item to the left, and not the own one subtracted: infinities stay what they are.
    const T left = __shfl_up_sync(0xffffffff, inclusive, 1);
    if (i < n) items[i] = warps[warp] + (lane ? left : T(0));
}

template <typename T>
__global__ void add_offsets(T* items, const T* offsets, size_t n) {
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) items[i] += offsets[blockIdx.x];
}

}  // namespace kernels

template <typename T>
void exclusive_scan(device::Array<T>& items) {
    const size_t n = items.size();
    const unsigned blocks = (unsigned)((n + kernels::THREADS - 1) / kernels::THREADS);
    device::Array<T> sums(blocks);
    kernels::scan_blocks<T><<<blocks, kernels::THREADS>>>(items.data(), sums.data(), n);
    device::check(cudaGetLastError(), "scan_blocks");
    if (blocks == 1) return;
    exclusive_scan(sums);
    kernels::add_offsets<T><<<dim3{blocks}, dim3{kernels::THREADS}>>>(items.data(), sums.data(), n);
    device::check(cudaGetLastError(), "add_offsets");
}

std::vector<float> read_items() {
    std::int32_t n;
    if (std::fread(&n, sizeof n, 1, stdin) != 1) throw std::runtime_error("no header");
    if (n < 0) throw std::runtime_error("n is " + std::to_string(n));
    std::vector<float> items;
    float item;
    while (items.size() < (size_t)n && std::fread(&item, sizeof item, 1, stdin) == 1)
        items.push_back(item);
    if (items.size() < (size_t)n)
        throw std::runtime_error(std::to_string(items.size()) + " of " + std::to_string(n) +
                                 " numbers are there");
    return items;
}

int main() try {
    const std::vector<float> items = read_items();
    if (items.empty()) return 0;
    device::Array<float> on_device(items);
    exclusive_scan(on_device);
    const std::vector<float> answer = on_device.to_host();
    return std::fwrite(answer.data(), sizeof(float), answer.size(), stdout) != answer.size();
} catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
}
