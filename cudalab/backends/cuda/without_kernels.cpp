// Linked into the programs that the checker judges on a GPU, with --wrap for each function here: a
// course's judge runs a program without its kernels, too, since an answer that is right then was
// computed elsewhere.

#include <cuda_runtime_api.h>
#include <stdio.h>

#include "../cpu/runtime/include/cudalab/judged_run.h"

namespace {

bool leave_out;
unsigned long long left_out;

__attribute__((constructor(101))) void look() {
    leave_out = cudalab::judged_run() == cudalab::JudgedRun::WITHOUT_KERNELS;
}

__attribute__((destructor)) void tell() {
    if (leave_out) fprintf(stderr, "cudalab: %llu launches left out\n", left_out);
}

}  // namespace

#define WRAPPED(name, parameters, ...)                     \
    extern "C" cudaError_t __real_##name parameters;       \
    extern "C" cudaError_t __wrap_##name parameters {      \
        if (!leave_out) return __real_##name(__VA_ARGS__); \
        ++left_out;                                        \
        return cudaSuccess;                                \
    }

#define LAUNCH                                                                   \
    (const void* kernel, dim3 grid, dim3 block, void** arguments, size_t shared, \
     cudaStream_t stream)
#define LAUNCHED kernel, grid, block, arguments, shared, stream

WRAPPED(cudaLaunchKernel, LAUNCH, LAUNCHED)
WRAPPED(cudaLaunchKernel_ptsz, LAUNCH, LAUNCHED)
WRAPPED(__cudaLaunchKernel, LAUNCH, LAUNCHED)
WRAPPED(__cudaLaunchKernel_ptsz, LAUNCH, LAUNCHED)
WRAPPED(cudaLaunchCooperativeKernel, LAUNCH, LAUNCHED)
WRAPPED(cudaLaunchCooperativeKernel_ptsz, LAUNCH, LAUNCHED)
WRAPPED(cudaLaunchKernelExC, (const void* config, const void* kernel, void** arguments), config,
        kernel, arguments)
WRAPPED(cudaLaunchKernelExC_ptsz, (const void* config, const void* kernel, void** arguments),
        config, kernel, arguments)
WRAPPED(cudaGraphLaunch, (cudaGraphExec_t graph, cudaStream_t stream), graph, stream)
WRAPPED(cudaGraphLaunch_ptsz, (cudaGraphExec_t graph, cudaStream_t stream), graph, stream)
