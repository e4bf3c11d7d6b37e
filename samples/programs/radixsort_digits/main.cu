// Radix sort by digits, in two translation units: this one reads, calls and writes.
//
//     cudalab run main.cu sort.cu < in.bin > out.bin
//
// stdin: int32 n, n uint32 keys. stdout: the sorted keys.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "sort.cuh"

static void check(cudaError_t error, const char* what) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    std::exit(EXIT_FAILURE);
}

int main() {
    std::int32_t n;
    if (std::fread(&n, sizeof n, 1, stdin) != 1 || n < 0) {
        std::fprintf(stderr, "stdin begins with no number of keys\n");
        return EXIT_FAILURE;
    }
    if (n == 0) return EXIT_SUCCESS;
    std::vector<std::uint32_t> keys;
    std::uint32_t piece[4096];
    while (keys.size() < static_cast<std::size_t>(n)) {  // n may be nonsense: read what is there
        const std::size_t wanted = std::min<std::size_t>(4096, n - keys.size());
        const std::size_t got = std::fread(piece, sizeof *piece, wanted, stdin);
        keys.insert(keys.end(), piece, piece + got);
        if (got < wanted) {
            std::fprintf(stderr, "%d keys are announced, %zu are there\n", n, keys.size());
            return EXIT_FAILURE;
        }
    }

    const std::size_t bytes = keys.size() * sizeof(std::uint32_t);
    std::uint32_t* d_keys;
    Workspace workspace;
    check(cudaMalloc(&d_keys, bytes), "memory for the keys");
    check(cudaMalloc(&workspace.other, bytes), "memory for a copy");
    check(cudaMalloc(&workspace.counts, num_counts(n) * sizeof(std::uint32_t)), "memory to count");
    check(cudaMemcpy(d_keys, keys.data(), bytes, cudaMemcpyHostToDevice), "copying the keys");
    check(sort(d_keys, n, workspace), "sorting");
    check(cudaMemcpy(keys.data(), d_keys, bytes, cudaMemcpyDeviceToHost), "copying the answer");
    check(cudaFree(workspace.counts), "cudaFree");
    check(cudaFree(workspace.other), "cudaFree");
    check(cudaFree(d_keys), "cudaFree");
    return std::fwrite(keys.data(), sizeof(std::uint32_t), keys.size(), stdout) == keys.size()
               ? EXIT_SUCCESS
               : EXIT_FAILURE;
}
