// The interface between the program (main.cu) and the sort (sort.cu).
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

constexpr int RADIX_BITS = 4;
constexpr int RADIX = 1 << RADIX_BITS;

// Device memory that a sort of n keys needs beside them.
struct Workspace {
    std::uint32_t* other;   // n keys
    std::uint32_t* counts;  // RADIX counts for each block, digit by digit
};

std::size_t num_counts(int n);

// Sorts n keys in place. The first error of a launch is returned.
cudaError_t sort(std::uint32_t* keys, int n, const Workspace& workspace);
