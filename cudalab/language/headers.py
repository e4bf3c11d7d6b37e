"""CUDA's headers that the CPU device has, too: includes of them are left to the compilers.

A test compares the names with the files of the device's runtime.
"""

_NAMES = """
    builtin_types.h channel_descriptor.h cooperative_groups.h cooperative_groups/memcpy_async.h
    cooperative_groups/reduce.h cooperative_groups/scan.h crt/common_functions.h
    crt/device_double_functions.h crt/device_double_functions.hpp crt/device_functions.h
    crt/device_functions.hpp crt/host_config.h crt/host_defines.h crt/math_functions.h
    crt/math_functions.hpp cublas_api.h cublas_v2.h cublasLt.h cuComplex.h cuda.h cuda_bf16.h
    cuda_device_runtime_api.h cuda_fp16.h cuda_pipeline.h cuda_pipeline_primitives.h
    cuda_profiler_api.h cuda_runtime.h cuda_runtime_api.h cuda_surface_types.h cuda_texture_types.h
    curand.h curand_globals.h curand_kernel.h curand_normal.h curand_philox4x32_x.h curand_uniform.h
    device_atomic_functions.h device_functions.h device_launch_parameters.h driver_functions.h
    driver_types.h host_defines.h library_types.h math_constants.h math_functions.h mma.h
    nvToolsExt.h nvToolsExtCuda.h nvToolsExtCudaRt.h nvtx3/nvToolsExt.h nvtx3/nvToolsExtCuda.h
    nvtx3/nvToolsExtCudaRt.h nvtx3/nvtx3.hpp sm_20_atomic_functions.h sm_20_intrinsics.h
    sm_30_intrinsics.h sm_32_atomic_functions.h sm_32_intrinsics.h sm_35_atomic_functions.h
    sm_35_intrinsics.h sm_60_atomic_functions.h sm_61_intrinsics.h surface_functions.h
    surface_indirect_functions.h surface_types.h texture_fetch_functions.h
    texture_indirect_functions.h texture_types.h vector_functions.h vector_types.h
"""
HEADERS = frozenset(_NAMES.split())
