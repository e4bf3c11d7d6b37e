// Thrust's device system, on the host: its sequential algorithms, with access to device memory.
//
// Outside of a CUDA compiler Thrust's own headers in this folder declare the policies and no
// algorithm. Each algorithm that the sequential system has is found here for a policy of the
// device, runs with the sequential policy, and opens device memory meanwhile; Thrust makes all
// others of these.
#pragma once

#include <thrust/system/cpp/detail/execution_policy.h>
#include_next <thrust/system/cuda/detail/execution_policy.h>
#include <thrust/system/detail/sequential/execution_policy.h>

#include "cudalab/library_access.h"

THRUST_NAMESPACE_BEGIN
namespace cuda_cub {

// Access for one algorithm; a kernel that has failed before is an exception, as on a GPU.
struct Opened : ::cudalab::LibraryAccess {
    explicit Opened(const char* algorithm) {
        if (error != cudaSuccess) throw_on_error(error, algorithm);
    }
};

// decltype lets an algorithm exist for the same arguments as the sequential one, which is looked
// up where the algorithm is used.
#define CUDALAB_ALGORITHM(name)                                                           \
    template <class Derived, class... Arguments>                                          \
    auto name(execution_policy<Derived>&, Arguments... arguments)                         \
        -> decltype(name(::cuda::std::declval<thrust::detail::seq_t&>(), arguments...)) { \
        Opened access(#name);                                                             \
        thrust::detail::seq_t sequential;                                                 \
        return name(sequential, arguments...);                                            \
    }
CUDALAB_ALGORITHM(adjacent_difference)
CUDALAB_ALGORITHM(assign_value)
CUDALAB_ALGORITHM(binary_search)
CUDALAB_ALGORITHM(copy)
CUDALAB_ALGORITHM(copy_if)
CUDALAB_ALGORITHM(copy_n)
CUDALAB_ALGORITHM(exclusive_scan)
CUDALAB_ALGORITHM(exclusive_scan_by_key)
CUDALAB_ALGORITHM(find_if)
CUDALAB_ALGORITHM(for_each)
CUDALAB_ALGORITHM(for_each_n)
CUDALAB_ALGORITHM(get_value)
CUDALAB_ALGORITHM(inclusive_scan)
CUDALAB_ALGORITHM(inclusive_scan_by_key)
CUDALAB_ALGORITHM(iter_swap)
CUDALAB_ALGORITHM(lower_bound)
CUDALAB_ALGORITHM(max_element)
CUDALAB_ALGORITHM(merge)
CUDALAB_ALGORITHM(merge_by_key)
CUDALAB_ALGORITHM(min_element)
CUDALAB_ALGORITHM(minmax_element)
CUDALAB_ALGORITHM(partition)
CUDALAB_ALGORITHM(reduce_by_key)
CUDALAB_ALGORITHM(remove_copy_if)
CUDALAB_ALGORITHM(remove_if)
CUDALAB_ALGORITHM(set_difference)
CUDALAB_ALGORITHM(set_intersection)
CUDALAB_ALGORITHM(set_symmetric_difference)
CUDALAB_ALGORITHM(set_union)
CUDALAB_ALGORITHM(stable_partition)
CUDALAB_ALGORITHM(stable_partition_copy)
CUDALAB_ALGORITHM(stable_sort)
CUDALAB_ALGORITHM(stable_sort_by_key)
CUDALAB_ALGORITHM(unique)
CUDALAB_ALGORITHM(unique_by_key)
CUDALAB_ALGORITHM(unique_by_key_copy)
CUDALAB_ALGORITHM(unique_copy)
CUDALAB_ALGORITHM(unique_count)
CUDALAB_ALGORITHM(upper_bound)
#undef CUDALAB_ALGORITHM

// In halves, as rounding errors and overflows of a sum of floats are those of a tree on a GPU, too.
template <class Iterator, class T, class Function>
T reduce_halves(Iterator first, size_t n, T, Function function) {
    if (n > 32) {
        T left = reduce_halves(first, n / 2, T(), function);
        return function(left, reduce_halves(first + n / 2, n - n / 2, T(), function));
    }
    T sum = *first;
    for (size_t i = 1; i < n; ++i) sum = function(sum, first[i]);
    return sum;
}
template <class Derived, class Iterator, class T, class Function>
T reduce(execution_policy<Derived>&, Iterator first, Iterator last, T init, Function function) {
    Opened access("reduce");
    const size_t n = (size_t)(last - first);
    return n ? (T)function(init, reduce_halves(first, n, init, function)) : init;
}

// Copies between the host's system and this one are made by this one.
template <class Device, class Host>
Device& select_system(execution_policy<Device>& device, cpp::execution_policy<Host>&) {
    return thrust::detail::derived_cast(device);
}
template <class Host, class Device>
Device& select_system(cpp::execution_policy<Host>&, execution_policy<Device>& device) {
    return thrust::detail::derived_cast(device);
}

}  // namespace cuda_cub
THRUST_NAMESPACE_END
