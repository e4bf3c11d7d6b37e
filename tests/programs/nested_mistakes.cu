// Mistakes in kernels that a graph, and another kernel, launch.
#include <cuda_runtime.h>

__global__ void past_end(int *data) {
    data[threadIdx.x + 1] = 1;
}
__global__ void lost_update(int *sum) {
    *sum += 1;
}
__global__ void parent(int *sum) {
    lost_update<<<1, 32>>>(sum);
}

int main() {
    int *data;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaMalloc(&data, 32 * sizeof(int));
    cudaMemset(data, 0, 32 * sizeof(int));
    cudaStreamCreate(&stream);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    past_end<<<1, 32, 0, stream>>>(data);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&exec, graph, 0);
    cudaGraphLaunch(exec, stream);
    parent<<<1, 1>>>(data);
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
    cudaFree(data);
    return cudaDeviceSynchronize() != cudaSuccess;
}
