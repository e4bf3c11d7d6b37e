// Mistakes in device code. A part of the message about a line follows its tilde.
#include <cuda_runtime.h>

__global__ void names(int* a) {
    a[threadId.x] = 1;                 //~ ‘threadId’ was not declared in this scope; did you mean ‘threadIdx’?
    a[threadIdx.w] = 1;                //~ has no member named ‘w’
    a[blockidx.x] = 1;                 //~ ‘blockidx’ was not declared in this scope; did you mean ‘blockIdx’?
    a[threadIdx] = 1;                  //~ (operand types are ‘int*’ and ‘uint3’)
    a[blockDim] = 1;                   //~ (operand types are ‘int*’ and ‘dim3’)
    __syncthread();                    //~ unknown: __syncthread; did you mean __syncthreads?
    __synctreads();                    //~ unknown: __synctreads; did you mean __syncthreads?
    atomicAd(a, 1);                    //~ unknown: atomicAd; did you mean atomicAdd?
    atomicAdd(*a, 1);                  //~ invalid conversion from ‘int’ to ‘int*’
    atomicAdd(a);                      //~ no matching function for call to ‘atomicAdd(int*)’
    a[0] = __shfl_down_synk(~0u, 1, 1);  //~ unknown: __shfl_down_synk; did you mean __shfl_down_sync?
    a[0] = __shfl_down_sync(1, 1);     //~ no matching function for call to ‘__shfl_down_sync(int, int)’
}

__global__ void arrays(float* a, int n) {
    __shared__ float tile[n];          //~ storage size of ‘tile’ isn’t constant
    __share__ float other[32];         //~ unknown: __share__; did you mean __shared__?
    a[0] = tile[0] + undefined;        //~ ‘undefined’ was not declared in this scope
}

__global__ int returns(int* a) { return 1; }  //~ a kernel returns void, not int

__global__ void constants(const int* a) {
    a[threadIdx.x] = 1;                //~ read-only location ‘a[...]’
}

__global__ void unfinished(int* a) {
    for (int i = 0; i < 4; i++ { a[i] = 0; }  //~ expected ‘)’
}

int main() {
    int count = 5  //~ expected ‘;’ at the end of the line
    cudaSetDevice(count);
}
