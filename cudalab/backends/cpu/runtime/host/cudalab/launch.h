// kernel<<<grid, block, shared, stream>>>(arguments), in the rewriter's form:
// cudalab::launch(kernel, call, "kernel", cudalab::Config(grid, block, shared, stream))(arguments)
#pragma once

#include <stdlib.h>

#include <new>
#include <type_traits>

#include "builtins.h"
#include "types.h"

namespace cudalab {

struct Config {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
    const char* file;
    int line;
    bool cooperative = false;
    Config(dim3 grid_, dim3 block_, size_t shared_ = 0, cudaStream_t stream_ = nullptr,
           CUDALAB_HERE)
        : grid(grid_), block(block_), shared(shared_), stream(stream_), file(file), line(line) {}
};

// A kernel whose address the host can name: what cudaLaunchKernel and cudaFuncSetAttribute need.
struct Function {
    const void* address;
    Kernel kernel;                 // its closure, the last argument, is the address
    unsigned max_threads;          // __launch_bounds__, or 0
    size_t dynamic_shared = NONE;  // the limit that cudaFuncSetAttribute has set
    size_t static_shared = NONE;   // bytes of its variables, once they are known
    const Function* next = nullptr;
    static const size_t NONE = ~(size_t)0;
};
void enlist(Function* function);  // calling it again has no effect
Function* find_function(const void* address);

// Runs the grid to its end. `args` are the parameters' addresses and, after them, the closure's.
void run(const Config& config, const Kernel& kernel, const void* address, void* const* args);

// One kernel with parameters P, called through a closure F so that its body can be inlined.
template <class F, class... P>
struct Entry {
    static constexpr unsigned char sizes[sizeof...(P) + 1] = {
        (unsigned char)((sizeof(P) < 127 ? sizeof(P) : 127) |
                        (std::is_pointer<P>::value ? 128 : 0))...,
        0};
    typedef typename MakeIndices<sizeof...(P)>::type All;

    // Each thread has copies, as on a GPU: the kernel does not read the host's memory.
    static inline __attribute__((always_inline)) void call_with(F kernel, P... arguments) {
        kernel(arguments...);
    }
    template <size_t... I>
    static inline __attribute__((always_inline)) void call(void* const* args, Indices<I...>) {
        call_with(*(F*)args[sizeof...(P)], *(P*)args[I]...);
    }
    static void thread(void* const* args) { call(args, All()); }
    static void block(void* const* args, unsigned threads, const uint3* indices,
                      const bool* fibers) {
        for (unsigned t = 0; t < threads; ++t) {
            ::threadIdx = indices[t];
            current.thread = t;
            call(args, All());
            if (__builtin_expect(*(volatile const bool*)fibers, 0)) return;
        }
    }
    static constexpr Kernel kernel(const char* name) {
        return {name, thread, block, sizeof...(P), sizes};
    }
};

// The parameters are known: arguments convert to them, as in a call.
template <class F, class... P>
struct TypedCall {
    void (*address)(P...);
    F call;
    const char* name;
    Config config;
    void operator()(P... arguments) {
        void* args[] = {(void*)&arguments..., (void*)&call};
        run(config, Entry<F, P...>::kernel(name), (const void*)address, args);
    }
};
// A template or an overloaded kernel: the arguments decide which one.
template <class F>
struct AnyCall {
    F call;
    const char* name;
    Config config;
    template <class... A>
    void operator()(A... arguments) {
        void* args[] = {(void*)&arguments..., (void*)&call};
        run(config, Entry<F, A...>::kernel(name), nullptr, args);
    }
};
template <class F, class... P>
inline TypedCall<F, P...> launch(void (*address)(P...), F call, const char* name, Config config) {
    return {address, call, name, config};
}
template <class... P>
inline TypedCall<void (*)(P...), P...> launch(void (*pointer)(P...), const char* name,
                                              Config config) {
    return {pointer, pointer, name, config};
}
template <class F>
inline AnyCall<F> launch(F call, const char* name, Config config) {
    return {call, name, config};
}

// The object that the rewriter adds after a kernel's definition.
template <class... P>
struct Enlisted : Function {
    Enlisted(void (*kernel_)(P...), const char* name, unsigned max_threads_ = 0) {
        address = (const void*)kernel_;
        kernel = Entry<void (*)(P...), P...>::kernel(name);
        max_threads = max_threads_;
        enlist(this);
    }
};
// An instance of a kernel template whose address is taken.
template <class... P>
inline auto enlisted(void (*kernel)(P...), const char* name) -> void (*)(P...) {
    if (!find_function((const void*)kernel))
        new (malloc(sizeof(Enlisted<P...>))) Enlisted<P...>(kernel, name);
    return kernel;
}

}  // namespace cudalab
