// Kernels as the runtime launches them, and the built-in variables that they read.
#pragma once

#include <type_traits>

#include "runtime.h"

namespace cudalab {

// The dynamic shared memory of the block.
inline char* cudalab_dynamic() {
    return current.dynamic_shared;
}
// `extern __shared__ T name[];` outside a function: its address differs by OS thread.
template <class T>
struct cudalab_dynamic_array {
    operator T*() const { return (T*)current.dynamic_shared; }
    template <class U>
    explicit operator U*() const {
        return (U*)current.dynamic_shared;
    }
    template <class I>
    T& operator[](I i) const {
        return ((T*)current.dynamic_shared)[i];
    }
};

// Objects whose copies call functions are copied on the host, at the launch; threads get the bytes.
// A function takes such an object by its address, whatever its text says.
template <class P>
constexpr bool has_copies =
    std::is_class<P>::value &&
    !(std::is_trivially_copy_constructible<P>::value &&
      std::is_trivially_move_constructible<P>::value && std::is_trivially_destructible<P>::value);
template <class P>
using Taken = typename std::conditional<has_copies<P>, P&, P>::type;

template <size_t... I>
struct Indices {};
template <size_t N, size_t... I>
struct MakeIndices : MakeIndices<N - 1, N - 1, I...> {};
template <size_t... I>
struct MakeIndices<0, I...> {
    typedef Indices<I...> type;
};

#if __cplusplus >= 201703L  // else there are no kernels in the file
template <auto kernel>
struct Launcher;
template <class... Params, void (*kernel)(Params...)>
struct Launcher<kernel> {
    static constexpr unsigned num_params = sizeof...(Params);
    static constexpr unsigned char sizes[sizeof...(Params) + 1] = {
        (unsigned char)(sizeof(Params) | (std::is_pointer<Params>::value ? 128 : 0))..., 0};
    template <size_t... I>
    static inline __attribute__((always_inline)) void call(void* const* args, Indices<I...>) {
        (void)args;
        kernel(*(typename std::remove_const<Params>::type*)args[I]...);
    }
    static void thread(void* const* args) {
        call(args, typename MakeIndices<sizeof...(Params)>::type());
    }
    static void block(void* const* args, unsigned threads, const uint3* indices,
                      const bool* fibers) {
        for (unsigned t = 0; t < threads; ++t) {
            set_thread(indices[t], t);
            call(args, typename MakeIndices<sizeof...(Params)>::type());
            if (__builtin_expect(*(volatile const bool*)fibers, 0)) return;
        }
    }
};
#endif

}  // namespace cudalab

#define CUDALAB_KERNEL(kernel)                                                            \
    extern "C" __attribute__((visibility("default")))                                     \
    const ::cudalab::Kernel cudalab_kernel_##kernel = {                                   \
        #kernel, ::cudalab::Launcher<kernel>::thread, ::cudalab::Launcher<kernel>::block, \
        ::cudalab::Launcher<kernel>::num_params, ::cudalab::Launcher<kernel>::sizes};
#define CUDALAB_SYMBOL(symbol)                        \
    extern "C" __attribute__((visibility("default"))) \
    const ::cudalab::Symbol cudalab_symbol_##symbol = {(void*)&symbol, sizeof(symbol)};

#ifndef CUDALAB_BUILTIN_VARIABLES
#define threadIdx (::cudalab::current.thread_idx)
#define blockIdx (::cudalab::current.block_idx)
#define blockDim (::cudalab::current.block_dim)
#define gridDim (::cudalab::current.grid_dim)
#define warpSize 32
#endif
