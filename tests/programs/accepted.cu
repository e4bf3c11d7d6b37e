// What nvcc accepts besides: NVIDIA's include guards. Prints nothing if all is well.
#include <cooperative_groups.h>
#include <cuComplex.h>
#include <cuda.h>
#include <cuda_fp16.h>
#include <math_constants.h>

#include <cstdio>

#if !defined(__CUDA_RUNTIME_H__) || !defined(__CUDA_RUNTIME_API_H__) || \
    !defined(__DRIVER_TYPES_H__) || !defined(__VECTOR_TYPES_H__) ||     \
    !defined(__VECTOR_FUNCTIONS_H__) || !defined(__CHANNEL_DESCRIPTOR_H__)
#error "not defined: the guards of cuda_runtime.h and what it reads"
#endif
#if !defined(CU_COMPLEX_H_) || !defined(__CUDA_FP16_H__) || !defined(__MATH_CONSTANTS_H__) || \
    !defined(__cuda_cuda_h__) || !defined(_COOPERATIVE_GROUPS_H_)
#error "not defined: the guards of the headers included"
#endif

int main() {}
