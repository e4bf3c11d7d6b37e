// Mistakes in host code, and a barrier. A part of the message about a line follows its tilde.
#include <cuda_runtime.h>

__global__ void fill(int* values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] = i;
}

void allocation(int* d) {
    cudaMaloc(&d, 100);                //~ unknown: cudaMaloc; did you mean cudaMalloc?
    cudaMallocManged(&d, 100);         //~ unknown: cudaMallocManged; did you mean cudaMallocManaged?
    cudaFre(d);                        //~ unknown: cudaFre; did you mean cudaFree?
    cudaMalloc(&d);                    //~ no matching function for call to ‘cudaMalloc(int**)’
    cudaMalloc(d, 4);                  //~ ‘cudaMalloc(int*, int)’
}

void copies(int* d, int* h) {
    cudaMemcpy(d, h, 4, cudaMemcpyHostToDevic);  //~ unknown: cudaMemcpyHostToDevic; did you mean cudaMemcpyHostToDevice?
    cudaMemCpy(d, h, 4, cudaMemcpyHostToDevice); //~ unknown: cudaMemCpy; did you mean cudaMemcpy?
    cudaMemcpy(d, h, cudaMemcpyHostToDevice);    //~ too few arguments to function ‘cudaError_t cudaMemcpy(void*, const void*, size_t, cudaMemcpyKind)’
    cudaMemcpy(d, *h, 4, cudaMemcpyHostToDevice);  //~ invalid conversion from ‘int’ to ‘const void*’: argument 2 of cudaMemcpy(
}

void synchronization() {
    cudaDeviceSynchronise();           //~ unknown: cudaDeviceSynchronise; did you mean cudaDeviceSynchronize?
    cudaEror_t status;                 //~ unknown: cudaEror_t; did you mean cudaError_t?
    cudaStream stream;                 //~ unknown: cudaStream; did you mean cudaStream_t?
}

__global__ void barrier() {
    __syncthreads;                     //~ __syncthreads is not called, so nobody waits
}

int main() {}
