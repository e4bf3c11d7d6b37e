// The runtime API for files in C, where its functions have their plain names as symbols.

#include "cudalab/c_calls.h"

#include "internal.h"

namespace {
// Where C calls the next function; a file without cuda_runtime.h does not say it.
thread_local const char* caller_file = "a file in C";
thread_local int caller_line = 0;
}  // namespace

#pragma GCC visibility push(default)
extern "C" void cudalab_called_at(const char* file, int line) {
    caller_file = file;
    caller_line = line;
}
extern "C" void cudalab_c_thrown_away() {
    cudalab::cudalab_thrown_away();
}

#define CUDALAB_C_CALL(name, parameters, ...)                          \
    extern "C" cudaError_t cudalab_c_##name parameters __asm__(#name); \
    extern "C" cudaError_t cudalab_c_##name parameters {               \
        return name(__VA_ARGS__, caller_file, caller_line);            \
    }
CUDALAB_C_CALLS(CUDALAB_C_CALL)

#define CUDALAB_C_CALL_OF_NOTHING(name)                       \
    extern "C" cudaError_t cudalab_c_##name() __asm__(#name); \
    extern "C" cudaError_t cudalab_c_##name() {               \
        return name(caller_file, caller_line);                \
    }
CUDALAB_C_CALLS_OF_NOTHING(CUDALAB_C_CALL_OF_NOTHING)

#define CUDALAB_C_PLAIN(result, name, parameters, ...)            \
    extern "C" result cudalab_c_##name parameters __asm__(#name); \
    extern "C" result cudalab_c_##name parameters {               \
        return name(__VA_ARGS__);                                 \
    }
CUDALAB_C_PLAIN(cudaError_t, cudaGetLastError, ())
CUDALAB_C_PLAIN(cudaError_t, cudaPeekAtLastError, ())
CUDALAB_C_PLAIN(cudaError_t, cudaProfilerStart, ())
CUDALAB_C_PLAIN(cudaError_t, cudaProfilerStop, ())
CUDALAB_C_PLAIN(cudaError_t, cudaFuncSetCacheConfig,
                (const void* kernel, enum cudaFuncCache config), kernel, config)
CUDALAB_C_PLAIN(const char*, cudaGetErrorString, (cudaError_t error), error)
CUDALAB_C_PLAIN(const char*, cudaGetErrorName, (cudaError_t error), error)
#pragma GCC visibility pop
