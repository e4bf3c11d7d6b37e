// What is declared, but defined in no file; or in two.
#include "linked.h"

__global__ void scale(float* values, float by);
template <typename T>
__global__ void shift(T* values);
__device__ float weight(int i);
void report(const float* values);
extern "C" int count_of(const float* values);

__global__ void weigh(float* values) { values[threadIdx.x] *= weight(threadIdx.x); }  //~ weight(int) is declared, but no file defines it

int main() {
    float* values = nullptr;
    scale<<<1, 32>>>(values, 2.0f);    //~ the kernel scale(float*, float) is declared, but no file defines it
    shift<<<1, 32>>>(values);          //~ the kernel void shift<float>(float*) is declared, but no file defines it
    weigh<<<1, 32>>>(values);
    report(values);                    //~ report(float const*) is declared, but no file defines it
    return count_of(values);           //~ count_of is declared, but no file defines it
}
