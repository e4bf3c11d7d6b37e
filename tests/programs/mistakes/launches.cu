// Mistakes in launches. A part of the message about a line follows its tilde.
#include <cuda_runtime.h>

__global__ void fill(int* values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] = i;
}

void launches(int* d) {
    fill<<<>>>(d, 4);                  //~ a launch needs a grid and a block
    fill<<<1, 32, 0, 0, 0>>>(d, 4);    //~ a launch has at most four values: kernel<<<grid, block, shared memory, stream>>>
    fil<<<1, 32>>>(d, 4);              //~ ‘fil’ was not declared in this scope; did you mean ‘fill’?
    fill<<<1, 32>>>(d);                //~ the arguments (int*) do not match the kernel's parameters (int*, int)
    fill<<<1, 32>>>(4, d);             //~ do not match the kernel's parameters (int*, int)
    fill<<<"one", 32>>>(d, 4);         //~ a launch takes a grid, a block, bytes of shared memory and a stream, not (const char [4], int)
}

int main() {}
