// CUB: the primitives of a block and of a warp, and the algorithms of a whole device, which ask for
// temporary memory in a first call.
#include <cstdio>
#include <cub/cub.cuh>
#include <cuda/std/functional>
#include <vector>

const int THREADS = 128, ITEMS = 4, TILE = THREADS * ITEMS;

struct Larger {
    __device__ int operator()(int a, int b) const { return a > b ? a : b; }
};
struct IsEven {
    __host__ __device__ bool operator()(int v) const { return v % 2 == 0; }
};

__global__ void reduce_and_scan(const int* in, int* out) {
    typedef cub::BlockReduce<int, THREADS> Reduce;
    typedef cub::BlockScan<int, THREADS> Scan;
    typedef cub::WarpReduce<int> WarpReduce;
    typedef cub::WarpScan<int> WarpScan;
    __shared__ typename Reduce::TempStorage reduce;
    __shared__ typename Scan::TempStorage scan;
    __shared__ typename WarpReduce::TempStorage warp_reduce[THREADS / 32];
    __shared__ typename WarpScan::TempStorage warp_scan[THREADS / 32];
    const int v = in[threadIdx.x], warp = threadIdx.x / 32;
    int sum = Reduce(reduce).Sum(v);
    __syncthreads();
    int top = Reduce(reduce).Reduce(v, Larger(), 100);  // of the first 100 threads
    if (threadIdx.x == 0) out[0] = sum, out[1] = top;
    int before, total;
    Scan(scan).ExclusiveSum(v, before, total);
    int of_warp = WarpReduce(warp_reduce[warp]).Sum(v), last = 0;
    WarpScan(warp_scan[warp]).InclusiveScan(v, last, Larger());
    if (threadIdx.x == 32) out[2] = of_warp;
    __syncthreads();
    int inclusive;
    Scan(scan).InclusiveScan(v, inclusive, Larger());
    if (threadIdx.x == THREADS - 1)
        out[3] = before, out[4] = total, out[5] = last, out[6] = inclusive;
}

__global__ void other_algorithms(const int* in, int* out) {
    typedef cub::BlockReduce<int, THREADS, cub::BLOCK_REDUCE_RAKING> Raking;
    typedef cub::BlockScan<int, THREADS, cub::BLOCK_SCAN_WARP_SCANS> WarpScans;
    typedef cub::WarpReduce<int, 8> Eighths;
    __shared__ typename Raking::TempStorage raking;
    __shared__ typename WarpScans::TempStorage scans;
    __shared__ typename Eighths::TempStorage eighths[THREADS / 8];
    const int v = in[threadIdx.x];
    int sum = Raking(raking).Sum(v), before;
    WarpScans(scans).ExclusiveSum(v, before);
    int of_eight = Eighths(eighths[threadIdx.x / 8]).Sum(v);
    if (threadIdx.x == 0) out[0] = sum;
    if (threadIdx.x == THREADS - 1) out[1] = before;
    if (threadIdx.x == 8) out[2] = of_eight;
}

__global__ void sort_tile(const int* in, int* out, int valid) {
    typedef cub::BlockLoad<int, THREADS, ITEMS, cub::BLOCK_LOAD_TRANSPOSE> Load;
    typedef cub::BlockStore<int, THREADS, ITEMS, cub::BLOCK_STORE_WARP_TRANSPOSE> Store;
    typedef cub::BlockRadixSort<int, THREADS, ITEMS> Sort;
    __shared__ union {
        typename Load::TempStorage load;
        typename Sort::TempStorage sort;
        typename Store::TempStorage store;
    } shared;
    int keys[ITEMS];
    Load(shared.load).Load(in, keys, valid, 1 << 30);
    __syncthreads();
    Sort(shared.sort).Sort(keys);
    __syncthreads();
    Store(shared.store).Store(out, keys, valid);
}

__global__ void exchange(const int* in, int* out) {
    typedef cub::BlockExchange<int, THREADS, ITEMS> Exchange;
    typedef cub::BlockDiscontinuity<int, THREADS> Heads;
    typedef cub::BlockHistogram<unsigned char, THREADS, ITEMS, 16> Histogram;
    typedef cub::BlockRadixSort<unsigned, THREADS, ITEMS, float> Pairs;
    __shared__ typename Exchange::TempStorage exchange;
    __shared__ typename Heads::TempStorage heads;
    __shared__ typename Histogram::TempStorage histogram;
    __shared__ typename Pairs::TempStorage pairs;
    __shared__ unsigned counts[16];
    int items[ITEMS], flags[ITEMS];
    unsigned char digits[ITEMS];
    unsigned keys[ITEMS];
    float values[ITEMS];
    cub::LoadDirectStriped<THREADS>(threadIdx.x, in, items);
    Exchange(exchange).StripedToBlocked(items, items);
    Heads(heads).FlagHeads(flags, items, cuda::std::not_equal_to<>());
    for (int i = 0; i < ITEMS; ++i) {
        digits[i] = items[i] & 15;
        keys[i] = (unsigned)items[i] >> 3;
        values[i] = items[i];
    }
    Histogram(histogram).Histogram(digits, counts);
    __syncthreads();
    Pairs(pairs).SortDescending(keys, values);
    const int at = threadIdx.x * ITEMS;
    for (int i = 0; i < ITEMS; ++i) {
        out[at + i] = items[i];
        out[TILE + at + i] = flags[i];
        out[2 * TILE + at + i] = (int)values[i];
    }
    if (threadIdx.x < 16) out[3 * TILE + threadIdx.x] = (int)counts[threadIdx.x];
}

unsigned hash_of(const int* values, int n) {  // differs for another order, too
    unsigned h = 2166136261u;
    for (int i = 0; i < n; ++i) h = (h ^ (unsigned)values[i]) * 16777619u;
    return h;
}

// Calls `algorithm` twice, as CUB wants it.
template <class F>
void twice(F algorithm) {
    void* temp = nullptr;
    size_t bytes = 0;
    algorithm(temp, bytes);
    cudaMalloc(&temp, bytes);
    algorithm(temp, bytes);
    cudaFree(temp);
}

void whole_device() {
    const int n = 1000;
    int *in, *out, *values, *sorted_values, *count;
    cudaMallocManaged(&in, n * sizeof(int));
    cudaMalloc(&out, n * sizeof(int));
    cudaMalloc(&values, n * sizeof(int));
    cudaMalloc(&sorted_values, n * sizeof(int));
    cudaMalloc(&count, 2 * sizeof(int));
    std::vector<int> host(n), others(n);
    for (int i = 0; i < n; ++i) in[i] = i * 7919 % 1009 - 300, host[i] = i;
    cudaMemcpy(values, host.data(), n * sizeof(int), cudaMemcpyHostToDevice);
    auto show = [&](const char* what, const int* from, int length) {
        cudaMemcpy(host.data(), from, length * sizeof(int), cudaMemcpyDeviceToHost);
        printf("%s: %d … %d, %08x\n", what, host[0], host[length - 1],
               hash_of(host.data(), length));
    };
    twice([&](void* t, size_t& b) { cub::DeviceReduce::Sum(t, b, in, out, n); });
    show("sum", out, 1);
    twice([&](void* t, size_t& b) { cub::DeviceReduce::Max(t, b, in, out, n); });
    show("max", out, 1);
    twice([&](void* t, size_t& b) { cub::DeviceReduce::Reduce(t, b, in, out, n, Larger(), 5000); });
    show("reduce", out, 1);
    cub::KeyValuePair<int, int>*place, lowest;
    cudaMalloc(&place, sizeof *place);
    twice([&](void* t, size_t& b) { cub::DeviceReduce::ArgMin(t, b, in, place, n); });
    cudaMemcpy(&lowest, place, sizeof lowest, cudaMemcpyDeviceToHost);
    printf("lowest: %d at %d\n", lowest.value, lowest.key);
    twice([&](void* t, size_t& b) { cub::DeviceScan::ExclusiveSum(t, b, in, out, n); });
    show("exclusive sum", out, n);
    twice([&](void* t, size_t& b) { cub::DeviceScan::InclusiveSum(t, b, in, out, n); });
    show("inclusive sum", out, n);
    twice([&](void* t, size_t& b) {
        cub::DeviceScan::ExclusiveScan(t, b, in, out, Larger(), -7, n);
    });
    show("exclusive scan", out, n);
    twice([&](void* t, size_t& b) { cub::DeviceRadixSort::SortKeys(t, b, in, out, n); });
    show("keys", out, n);
    twice([&](void* t, size_t& b) {
        cub::DeviceRadixSort::SortPairsDescending(t, b, in, out, values, sorted_values, n);
    });
    show("descending", out, n);
    show("their values", sorted_values, n);
    twice([&](void* t, size_t& b) {  // by four bits only: stable
        cub::DeviceRadixSort::SortPairs(t, b, in, out, values, sorted_values, n, 2, 6);
    });
    show("by some bits", sorted_values, n);
    cub::DoubleBuffer<int> keys(out, sorted_values);
    twice([&](void* t, size_t& b) { cub::DeviceRadixSort::SortKeys(t, b, keys, n); });
    show("double buffer", keys.Current(), n);
    cudaMemset(out, 0, n * sizeof(int));
    twice([&](void* t, size_t& b) {
        cub::DeviceHistogram::HistogramEven(t, b, in, out, 11, -300, 700, n);
    });
    show("histogram", out, 10);
    twice([&](void* t, size_t& b) { cub::DeviceSelect::If(t, b, in, out, count, n, IsEven()); });
    show("selected", count, 1);
    show("even", out, host[0]);
    for (int i = 0; i < n; ++i) in[i] = i * i / 5000;
    twice([&](void* t, size_t& b) {
        cub::DeviceRunLengthEncode::Encode(t, b, in, out, values, count, n);
    });
    show("runs", count, 1);
    const int runs = host[0];
    show("lengths", values, runs);
    show("unique", out, runs);
    twice([&](void* t, size_t& b) { cub::DeviceSelect::Unique(t, b, in, out, count, n); });
    show("unique", count, 1);
    for (int* each : {in, out, values, sorted_values, count}) cudaFree(each);
    cudaFree(place);
}

int main() {
    int *in, *out;
    cudaMallocManaged(&in, TILE * sizeof(int));
    cudaMallocManaged(&out, (3 * TILE + 16) * sizeof(int));
    for (int i = 0; i < TILE; ++i) in[i] = i;
    reduce_and_scan<<<1, THREADS>>>(in, out);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    for (int i = 0; i < 7; ++i) printf("%d ", out[i]);
    puts("");
    other_algorithms<<<1, THREADS>>>(in, out);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    printf("%d %d %d\n", out[0], out[1], out[2]);
    for (int i = 0; i < TILE; ++i) in[i] = i * 7919 % 1009 - 500;
    sort_tile<<<1, THREADS>>>(in, out, TILE - 3);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    printf("sorted %d … %d, %08x\n", out[0], out[TILE - 4], hash_of(out, TILE - 3));
    for (int i = 0; i < TILE; ++i) in[i] = i / 3 * 5 % 64;
    exchange<<<1, THREADS>>>(in, out);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    for (int i = 0; i < 4; ++i) printf("%08x ", hash_of(out + i * TILE, i < 3 ? TILE : 16));
    puts("");
    cudaFree(in);
    cudaFree(out);
    whole_device();
}
