// kernel<<<grid, block, shared, stream>>>(arguments), in the rewriter's form:
// Names in what is put into a program's text begin so that none of its macros has them.
// cudalab::cudalab_typed_call(kernel, call, "kernel", cudalab::cudalab_config(grid, block, shared,
// stream))(arguments) or, where the arguments may decide which kernel it is,
// cudalab::cudalab_any_call(typed, call, "kernel", cudalab::cudalab_config(grid, block, shared,
// stream))(arguments)
#pragma once

#include <stdlib.h>

#include <new>
#include <type_traits>

#include "builtins.h"
#include "types.h"

// The closure that calls a kernel stands in the line of the launch. Check mode does not follow
// where threads go in it, which is not a part of the kernel.
#if !defined(CUDALAB_CHECK)
#define CUDALAB_CLOSURE
#elif defined(__clang__)
#define CUDALAB_CLOSURE __attribute__((no_sanitize("coverage")))
#else
#define CUDALAB_CLOSURE __attribute__((no_sanitize_coverage))
#endif

namespace cudalab {

struct Config {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
    const char* file;
    int line;
    bool cooperative = false;
    Config(dim3 grid_, dim3 block_ = 1, size_t shared_ = 0, cudaStream_t stream_ = nullptr,
           CUDALAB_HERE)
        : grid(grid_), block(block_), shared(shared_), stream(stream_), file(file), line(line) {}
    template <class Fifth, class... More>
    Config(dim3, dim3, size_t, cudaStream_t, Fifth, More...) = delete;
};
typedef Config cudalab_config;

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
void enlist(Function* function);                               // calling it again has no effect
void add_loops(const void* kernel, BlockFn loops, bool flat);  // to an enlisted one
Function* find_function(const void* address);

// Runs the grid to its end. `args` are the parameters' addresses and, after them, the closure's.
void run(const Config& config, const Kernel& kernel, const void* address, void* const* args);

// Keeps the device's memory accessible through a loop of launches, until a call fails.
struct cudalab_Held {
    cudalab_Held();
    ~cudalab_Held();
    cudalab_Held(const cudalab_Held&) = delete;
};

// How a launch hands over a parameter: a value as it is, a reference as a pointer.
template <class P>
struct Parameter {
    typedef P Stored;
    static P& store(P& argument) { return argument; }
    static P& load(void* stored) { return *(P*)stored; }
};
template <class P>
struct Parameter<P&> {
    typedef P* Stored;
    static P* store(P& argument) { return &argument; }
    static P& load(void* stored) { return **(P**)stored; }
};

// What a thread has of an argument: its bytes, where copies call functions.
template <class P, bool copies = has_copies<P>>
struct OfThread {
    P& value;
    OfThread(P& argument) : value(argument) {}
};
template <class P>
struct OfThread<P, true> {
    alignas(P) unsigned char bytes[sizeof(P)];
    P& value = *(P*)bytes;
    OfThread(P& argument) { __builtin_memcpy(bytes, (const void*)&argument, sizeof(P)); }
};

// A call of a kernel template, and one of what it is for a whole block (regions.h).
template <bool flat, class F, class L>
struct TwoWays {
    F fibers;
    L loops;
    static constexpr bool is_flat = flat;
    template <class... A>
    inline __attribute__((always_inline)) void operator()(A&... arguments) const {
        fibers(arguments...);
    }
};
template <bool flat, class F, class L>
inline TwoWays<flat, F, L> cudalab_two_ways(F fibers, L loops) {
    return {fibers, loops};
}
template <class F>
struct IsTwoWays : std::false_type {};
template <bool flat, class F, class L>
struct IsTwoWays<TwoWays<flat, F, L>> : std::true_type {};
struct Block;  // regions.h, which is read behind the kernels
typedef Block cudalab_block;
template <class F>
struct BlockOf {
    typedef Block type;
};

// One kernel with parameters P, called through a closure F so that its body can be inlined.
template <class F, class... P>
struct Entry {
    template <class S>
    static constexpr unsigned char size =
        (sizeof(S) < 127 ? sizeof(S) : 127) | (std::is_pointer<S>::value ? 128 : 0);
    static constexpr unsigned char sizes[sizeof...(P) + 1] = {
        size<typename Parameter<P>::Stored>..., 0};
    static constexpr unsigned bytes[sizeof...(P) + 1] = {sizeof(typename Parameter<P>::Stored)...,
                                                         sizeof(F)};
    typedef typename MakeIndices<sizeof...(P)>::type All;

    // Each thread has copies, as on a GPU: the kernel does not read the host's memory.
    static inline __attribute__((always_inline)) void call_with(F kernel, P... arguments) {
        kernel(arguments...);
    }
    template <size_t... I>
    static inline __attribute__((always_inline)) void call(void* const* args, Indices<I...>) {
        if constexpr ((has_copies<P> || ...) && std::is_pointer<F>::value)
            ((void (*)(Taken<P>...)) *
             (F*)args[sizeof...(P)])(OfThread<P>(Parameter<P>::load(args[I])).value...);
        else
            call_with(*(F*)args[sizeof...(P)], Parameter<P>::load(args[I])...);
    }
    static void thread(void* const* args) { call(args, All()); }
    static void block(void* const* args, unsigned threads, const uint3* indices,
                      const bool* fibers) {
        for (unsigned t = 0; t < threads; ++t) {
            set_thread(indices[t], t);
            call(args, All());
            if (__builtin_expect(*(volatile const bool*)fibers, 0)) return;
        }
    }
    template <size_t... I>
    static inline void call_loops(void* const* args, Indices<I...>) {
        auto here = BlockOf<F>::type::here();
        ((F*)args[sizeof...(P)])->loops(here, *(P*)args[I]...);
    }
    static void loops(void* const* args, unsigned, const uint3*, const bool*) {
        call_loops(args, All());
    }
    static constexpr Kernel kernel(const char* name) {
        if constexpr (IsTwoWays<F>::value)
            return {name, thread, block, sizeof...(P), sizes, bytes, F::is_flat, loops};
        else
            return {name, thread, block, sizeof...(P), sizes, bytes};
    }
};

template <class F, class... P>
inline void run_with(const Config& config, const char* name, const void* address, F& call,
                     const typename Parameter<P>::Stored&... stored) {
    void* args[] = {(void*)&stored..., (void*)&call};
    run(config, Entry<F, P...>::kernel(name), address, args);
}

// The parameters are known: arguments convert to them, as in a call.
template <class F, class... P>
struct TypedCall {
    void (*address)(P...);
    F call;
    const char* name;
    Config config;
    void operator()(P... arguments) {
        run_with<F, P...>(config, name, (const void*)address, call,
                          Parameter<P>::store(arguments)...);
    }
};

#if __cplusplus >= 201703L  // else there are no launches in the file
// An overloaded kernel, or a template that the arguments complete. Bit i of `references` is set if
// parameter i is a reference.
template <class... P>
struct TypedAs {  // takes the address of the kernel with these parameters
    auto operator()(void (*kernel)(P...)) const { return kernel; }
};
struct Untyped {};
template <unsigned references, class F, class T = Untyped>
struct AnyCall {
    F call;
    const char* name;
    Config config;
    T typed;
    template <class... A>
    void operator()(A&&... arguments) {
        with(typename MakeIndices<sizeof...(A)>::type(), arguments...);
    }
    template <size_t... I, class... A>
    void with(Indices<I...>, A&... arguments) {
        run_copies<Passed<I, A>...>(arguments...);
    }
    template <class... P>
    void run_copies(P... arguments) {
        if constexpr ((has_copies<P> || ...) && std::is_invocable<T, TypedAs<P...>>::value) {
            void (*kernel)(P...) = typed(TypedAs<P...>());
            run_with<void (*)(P...), P...>(config, name, nullptr, kernel,
                                           Parameter<P>::store(arguments)...);
        } else
            run_with<F, P...>(config, name, nullptr, call, Parameter<P>::store(arguments)...);
    }
    template <size_t i, class A>
    using Passed = typename std::conditional<(references >> i & 1) != 0, A&,
                                             typename std::decay<A>::type>::type;
};
template <class F, class... P>
inline auto cudalab_typed_call(void (*address)(P...), F call, const char* name, Config config) {
    if constexpr ((has_copies<P> || ...))
        return TypedCall<void (*)(P...), P...>{address, address, name, config};
    else
        return TypedCall<F, P...>{address, call, name, config};
}
template <class... P>
inline TypedCall<void (*)(P...), P...> cudalab_typed_call(void (*pointer)(P...), const char* name,
                                                          Config config) {
    return {pointer, pointer, name, config};
}

template <unsigned references = 0, class F>
inline AnyCall<references, F> cudalab_any_call(F call, const char* name, Config config) {
    return {call, name, config, Untyped()};
}

// Takes the address of a kernel that its name, or its template arguments, say completely.
struct Typed {
    template <class... P>
    auto operator()(void (*kernel)(P...)) const {
        return kernel;
    }
};
template <unsigned references = 0, class T, class F>
inline auto cudalab_any_call(T typed, F call, const char* name, Config config) {
    if constexpr (std::is_invocable<T, Typed>::value)
        return cudalab_typed_call(typed(Typed()), call, name, config);
    else
        return AnyCall<references, F, T>{call, name, config, typed};
}

#endif

// The object that the rewriter adds to a file whose text has a kernel's loops.
struct AddLoops {
    template <class... P>
    AddLoops(void (*kernel)(P...), BlockFn loops, bool flat) {
        add_loops((const void*)kernel, loops, flat);
    }
};

// The same for a kernel that does not tell the rows of a block apart.
struct OneRow {
    template <class... P>
    OneRow(void (*kernel)(P...)) {
        if (Function* function = find_function((const void*)kernel)) function->kernel.alike = true;
    }
};

// The object that the rewriter adds after a kernel's definition.
template <class... P>
struct cudalab_kernel : Function {
    cudalab_kernel(void (*kernel_)(P...), const char* name, unsigned max_threads_ = 0) {
        address = (const void*)kernel_;
        kernel = Entry<void (*)(P...), P...>::kernel(name);
        max_threads = max_threads_;
        enlist(this);
    }
};
// An instance of a kernel template whose address is taken.
template <class... P>
inline auto cudalab_enlisted(void (*kernel)(P...), const char* name) -> void (*)(P...) {
    if (!find_function((const void*)kernel))
        new (malloc(sizeof(cudalab_kernel<P...>))) cudalab_kernel<P...>(kernel, name);
    return kernel;
}
// The same for one that has loops: a closure without data that runs a whole block.
template <bool flat, class L>
struct InstanceLoops {};
template <bool flat, class L>
inline InstanceLoops<flat, L> cudalab_loops(L) {
    return {};
}
template <class L, class... P>
struct InstanceEntry {
    template <size_t... I>
    static inline void call(void* const* args, Indices<I...>) {
        auto here = BlockOf<L>::type::here();
        (*(const L*)args)(here, Parameter<P>::load(args[I])...);
    }
    static void run(void* const* args, unsigned, const uint3*, const bool*) {
        call(args, typename MakeIndices<sizeof...(P)>::type());
    }
};
template <bool flat, class L, class... P>
inline auto cudalab_enlisted(void (*kernel)(P...), const char* name, InstanceLoops<flat, L>)
    -> void (*)(P...) {
    cudalab_enlisted(kernel, name);
    add_loops((const void*)kernel, InstanceEntry<L, P...>::run, flat);
    return kernel;
}

void not_launched(const char* launch, const char* file, int line);
bool without_launch(bool is_one, const char* launch, const char* file, int line) noexcept;

}  // namespace cudalab

// What a kernel's body begins with: without a launch there are no threads that could run it.
#define CUDALAB_ONLY_LAUNCHED(name)                                           \
    if (__builtin_expect(!CUDALAB_POSITION_OF(blockDim, block_dim).x, false)) \
        return ::cudalab::not_launched("launch of " name, __FILE__, __LINE__);
// The same where branches are counted: of this one nothing is, as it has such a call before it.
#define CUDALAB_ONLY_LAUNCHED_OBSERVED(name)                                                      \
    if (::cudalab::without_launch(!CUDALAB_POSITION_OF(blockDim, block_dim).x, "launch of " name, \
                                  __FILE__, __LINE__))                                            \
        return;
