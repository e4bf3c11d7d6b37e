// Thrust: vectors, iterators, raw memory behind device_ptr, streams, algorithms within kernels, and
// the exception after a kernel that failed. With the argument "touch" the host dereferences a
// device pointer, which Thrust's headers must not change.
#include <thrust/binary_search.h>
#include <thrust/copy.h>
#include <thrust/count.h>
#include <thrust/device_free.h>
#include <thrust/device_malloc.h>
#include <thrust/device_ptr.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/extrema.h>
#include <thrust/fill.h>
#include <thrust/for_each.h>
#include <thrust/functional.h>
#include <thrust/gather.h>
#include <thrust/generate.h>
#include <thrust/host_vector.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/constant_iterator.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/permutation_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/partition.h>
#include <thrust/random.h>
#include <thrust/reduce.h>
#include <thrust/remove.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/set_operations.h>
#include <thrust/sort.h>
#include <thrust/swap.h>
#include <thrust/system_error.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>
#include <thrust/unique.h>
#include <thrust/universal_vector.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

struct Saxpy {
    float a;
    __host__ __device__ float operator()(float x, float y) const { return a * x + y; }
};
struct LargerSize {
    __host__ __device__ bool operator()(double a, double b) const { return fabs(a) < fabs(b); }
};

template <class Vector>
void print(const char* name, const Vector& values) {
    printf("%s:", name);
    for (size_t i = 0; i < values.size(); ++i) printf(" %g", (double)values[i]);
    puts("");
}

void vectors() {
    thrust::host_vector<int> keys(1000);
    unsigned state = 1;
    for (int& key : keys) key = (int)((state = state * 1664525u + 1013904223u) >> 16) - 30000;
    thrust::device_vector<int> sorted = keys;
    thrust::sort(sorted.begin(), sorted.end());
    auto top = thrust::max_element(sorted.begin(), sorted.end());
    long long sum = thrust::reduce(sorted.begin(), sorted.end(), 0LL, thrust::plus<long long>());
    printf("from %d to %d, the last of which is at %d; sum %lld\n", (int)sorted[0],
           (int)sorted.back(), (int)(top - sorted.begin()), sum);
    auto place = thrust::lower_bound(sorted.begin(), sorted.end(), 0);
    printf("%d are negative\n", (int)(place - sorted.begin()));
    sorted[3] = -99999;  // a write through a reference
    thrust::stable_sort(sorted.begin(), sorted.end(), thrust::greater<int>());
    printf("%d %d\n", (int)sorted.front(), (int)sorted.back());

    thrust::device_vector<float> x(8), y(8, 1.0f);
    thrust::sequence(x.begin(), x.end());
    thrust::transform(x.begin(), x.end(), y.begin(), y.begin(), Saxpy{2});
    thrust::inclusive_scan(y.begin(), y.end(), y.begin());
    std::vector<float> squares(8);
    thrust::copy(y.begin(), y.end(), squares.begin());
    print("squares", squares);
    x.resize(10, 0.5f);
    x.push_back(7.25f);
    x.insert(x.begin(), 2, -1.0f);
    x.erase(x.begin() + 2);
    print("changed", x);
}

void raw_memory() {
    const int n = 1000;
    double* raw;
    cudaMalloc(&raw, n * sizeof(double));
    thrust::device_ptr<double> p = thrust::device_pointer_cast(raw);
    thrust::transform(thrust::counting_iterator<int>(0), thrust::counting_iterator<int>(n), p,
                      [] __host__ __device__(int i) { return i % 2 ? -i : i / 2.0; });
    auto pivot = thrust::max_element(p, p + n, LargerSize());  // as in a Gauss elimination
    printf("pivot %d %g\n", (int)(pivot - p), (double)*pivot);
    printf("sum %g\n", thrust::reduce(thrust::device, raw, raw + n));
    thrust::device_vector<double> copy(p, p + n);
    thrust::sort(copy.begin(), copy.end());
    thrust::fill(p, p + n, 3.0);
    double back[2];
    cudaMemcpy(back, raw + n - 2, sizeof back, cudaMemcpyDeviceToHost);
    printf("%g %g %g %g\n", (double)copy[0], (double)copy[n - 1], back[0], back[1]);
    cudaFree(raw);
    thrust::device_ptr<int> own = thrust::device_malloc<int>(3);
    thrust::sequence(own, own + 3, 5);
    printf("%d %d\n", (int)own[0], (int)own[2]);
    thrust::device_free(own);
}

void iterators() {
    thrust::counting_iterator<int> one(1);
    auto square = [] __host__ __device__(int i) { return i * i; };
    printf("squares %d\n", thrust::transform_reduce(one, one + 10, square, 0, thrust::plus<int>()));

    const int n = 12;
    thrust::device_vector<int> keys(n), values(n);
    for (int i = 0; i < n; ++i) keys[i] = i * 5 % 4, values[i] = i;
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    thrust::sort_by_key(thrust::cuda::par.on(stream), keys.begin(), keys.end(), values.begin());
    thrust::device_vector<int> found(n), sums(n);
    auto ends = thrust::reduce_by_key(thrust::cuda::par_nosync.on(stream), keys.begin(), keys.end(),
                                      values.begin(), found.begin(), sums.begin());
    cudaStreamSynchronize(stream);
    found.resize(ends.first - found.begin());
    sums.resize(ends.second - sums.begin());
    print("keys", found);
    print("sums", sums);

    auto zip = thrust::make_zip_iterator(thrust::make_tuple(keys.begin(), values.begin()));
    thrust::for_each(thrust::device, zip, zip + n,
                     [] __device__(auto t) { thrust::get<1>(t) += 100 * thrust::get<0>(t); });
    auto is_even = [] __device__(int v) { return v % 2 == 0; };
    printf("dot %d, %d even\n", thrust::inner_product(keys.begin(), keys.end(), values.begin(), 0),
           (int)thrust::count_if(values.begin(), values.end(), is_even));
    thrust::device_vector<int> map(3), picked(3);
    map[0] = 11, map[1] = 0, map[2] = 5;
    thrust::copy(thrust::make_permutation_iterator(values.begin(), map.begin()),
                 thrust::make_permutation_iterator(values.begin(), map.end()), picked.begin());
    print("picked", picked);
    thrust::gather(map.begin(), map.end(), keys.begin(), picked.begin());
    print("gathered", picked);
    auto split = thrust::stable_partition(values.begin(), values.end(), is_even);
    print("even first", values);
    auto last = thrust::unique(keys.begin(), keys.end());
    auto small =
        thrust::remove_if(values.begin(), values.end(), [] __device__(int v) { return v > 200; });
    printf("%d %d %d\n", (int)(split - values.begin()), (int)(last - keys.begin()),
           (int)(small - values.begin()));
    thrust::device_vector<int> both(n);
    auto end = thrust::set_intersection(one, one + 9, one + 4, one + 20, both.begin());
    both.resize(end - both.begin());
    print("both", both);
    cudaStreamDestroy(stream);
}

__global__ void sort_rows(int* rows, int* sums, int n) {
    __shared__ int tile[4][16];
    int* row = tile[threadIdx.x];
    for (int i = 0; i < n; ++i) row[i] = rows[threadIdx.x * n + i];
    thrust::sort(thrust::seq, row, row + n);
    sums[threadIdx.x] = thrust::reduce(thrust::seq, row, row + n);
    __syncthreads();
    thrust::pair<int, int> ends(row[0], row[n - 1]);
    thrust::swap(ends.first, ends.second);
    rows[threadIdx.x * n] = ends.first;
    rows[threadIdx.x * n + 1] = ends.second;
}

void kernels() {
    const int n = 16;
    thrust::device_vector<int> rows(4 * n), sums(4);
    for (int i = 0; i < 4 * n; ++i) rows[i] = i * 37 % 101;
    sort_rows<<<1, 4>>>(thrust::raw_pointer_cast(rows.data()),
                        thrust::raw_pointer_cast(sums.data()), n);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    print("sums", sums);
    for (int r = 0; r < 4; ++r) printf("%d %d\n", (int)rows[r * n], (int)rows[r * n + 1]);

    thrust::universal_vector<int> shared(4 * n, 1);  // the host and kernels use the same memory
    int* p = thrust::raw_pointer_cast(shared.data());
    for (int i = 0; i < n; ++i) p[i] = n - i;
    sort_rows<<<1, 1>>>(p, p + n, n);
    cudaDeviceSynchronize();
    printf("%d %d %d %d\n", p[0], p[1], p[n], (int)thrust::reduce(shared.begin(), shared.end()));
}

// A generator that counts on the number of its thread; and names that Thrust's headers include.
struct Generator {
    unsigned made;
    __host__ __device__ thrust::tuple<int, float> operator()() {
        const unsigned seed = threadIdx.x + blockIdx.x * blockDim.x + made;
        made += blockDim.x * gridDim.x;
        thrust::default_random_engine engine(seed + 1);
        thrust::uniform_int_distribution<int> distribution(0, 1 << 30);
        return thrust::make_tuple(distribution(engine), 1.0f);
    }
};
void generators() {
    thrust::device_vector<int> numbers(1000);
    thrust::device_vector<float> ones(1000);
    auto begin = thrust::make_zip_iterator(thrust::make_tuple(numbers.begin(), ones.begin()));
    thrust::generate(begin, begin + 1000, Generator{0});
    thrust::sort(numbers.begin(), numbers.end());
    auto end = thrust::unique(numbers.begin(), numbers.end());
    std::cout << end - numbers.begin() << " different numbers" << std::endl;
}

__global__ void fail() {
    *(volatile int*)16 = 1;
}

void failure() {
    int* raw;
    cudaMalloc(&raw, 40);
    try {
        thrust::device_vector<char> all(1ull << 50);
    } catch (const std::bad_alloc&) {
        puts("bad_alloc");
    }
    fail<<<1, 1>>>();
    cudaDeviceSynchronize();
    try {
        thrust::sort(thrust::device, raw, raw + 10);
        puts("no exception");
    } catch (const thrust::system_error& error) {
        printf("system_error of CUDA: %d\n", error.code().category() == thrust::cuda_category());
    }
}

void touch() {
    thrust::device_vector<int> values(10, 1);
    int* p = thrust::raw_pointer_cast(values.data());
    printf("%d\n", p[3]);
}

int main(int count, char** arguments) {
    vectors();
    raw_memory();
    iterators();
    kernels();
    generators();
    fflush(stdout);
    if (count > 1 && !strcmp(arguments[1], "touch")) touch();
    failure();
}
