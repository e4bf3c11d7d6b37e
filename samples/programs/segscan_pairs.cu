// Sums that begin again wherever the key changes.
//
// Each item becomes a pair: its value, and whether a segment begins at or before it. Pairs are
// joined by an associative operator, so the sums come from a scan as if there were no segments:
// log2(n) passes over all pairs, from one buffer to the other.
//
// stdin: int32 n, n int32 keys, n int32 items. stdout: n int32.

#include <cuda_runtime.h>

#include <cstdint>
#include <iostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

struct Pair {
    std::uint32_t sum;  // wraps, as the sums of the lab do
    bool begins;

    __host__ __device__ Pair operator+(const Pair& later) const {
        return later.begins ? later : Pair{sum + later.sum, begins};
    }
};

static void check(cudaError_t status) {
    if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

template <class T>
class DeviceVector {
  public:
    explicit DeviceVector(std::size_t size) : size_(size) {
        if (size) check(cudaMalloc(&data_, size * sizeof(T)));
    }
    explicit DeviceVector(const std::vector<T>& values) : DeviceVector(values.size()) {
        if (size_) check(cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyDefault));
    }
    DeviceVector(const DeviceVector&) = delete;
    DeviceVector& operator=(const DeviceVector&) = delete;
    ~DeviceVector() { cudaFree(data_); }

    T* data() const { return data_; }
    void copy_to(std::vector<T>& values) const {
        if (size_) check(cudaMemcpy(values.data(), data_, size_ * sizeof(T), cudaMemcpyDefault));
    }

  private:
    std::size_t size_;
    T* data_ = nullptr;
};

__global__ void make_pairs(const std::uint32_t* keys, const std::uint32_t* items, Pair* pairs,
                           unsigned n) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    pairs[i] = {items[i], i == 0 || keys[i] != keys[i - 1]};
}

__global__ void add_from(const Pair* from, Pair* to, unsigned distance, unsigned n) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    to[i] = i < distance ? from[i] : from[i - distance] + from[i];
}

__global__ void take_sums(const Pair* pairs, std::uint32_t* sums, unsigned n) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) sums[i] = pairs[i].sum;
}

static std::vector<std::uint32_t> read(std::istream& stream, std::size_t n, const char* what) {
    std::vector<std::uint32_t> values(n);
    stream.read(reinterpret_cast<char*>(values.data()), (std::streamsize)(n * sizeof values[0]));
    if (!stream) throw std::runtime_error(std::string("too few ") + what);
    return values;
}

int main() try {
    std::int32_t n = 0;
    if (!std::cin.read(reinterpret_cast<char*>(&n), sizeof n) || n < 0)
        throw std::runtime_error("no number of items");
    const DeviceVector<std::uint32_t> keys(read(std::cin, n, "keys"));
    std::vector<std::uint32_t> items = read(std::cin, n, "items");
    const DeviceVector<std::uint32_t> values(items);
    if (n > 0) {
        DeviceVector<Pair> one(n), two(n);
        Pair *from = one.data(), *to = two.data();
        const unsigned threads = 128, blocks = (n - 1) / threads + 1;
        make_pairs<<<blocks, threads>>>(keys.data(), values.data(), from, n);
        for (unsigned distance = 1; distance < (unsigned)n; distance *= 2) {
            add_from<<<blocks, threads>>>(from, to, distance, n);
            std::swap(from, to);
        }
        take_sums<<<blocks, threads>>>(from, values.data(), n);
        check(cudaGetLastError());
        values.copy_to(items);
    }
    std::cout.write(reinterpret_cast<const char*>(items.data()),
                    (std::streamsize)(items.size() * sizeof items[0]));
    return std::cout.flush() ? 0 : 1;
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
}
