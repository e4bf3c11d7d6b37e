// Kernels that are called as functions, through pointers: they do not run, and an error stays.
#include <cstdio>

__global__ void set(int* data, int value) {
    data[threadIdx.x] = value;
}
template <class T>
__global__ void set_any(T* data, T value) {
    data[threadIdx.x] = value;
}
__global__ void say() {
    printf("thread %d runs\n", threadIdx.x);
}

// As benchmarks call what they time, with or without a launch.
template <class F, class... A>
static void call(F function, A... arguments) {
    function(arguments...);
}
static const char* last() {
    return cudaGetErrorName(cudaGetLastError());
}

int main() {
    int *data, first = 7;
    cudaMalloc(&data, 128);
    cudaMemset(data, 0, 128);
    call(set, data, 5);
    std::printf("set: %s\n", last());
    call(set_any<int>, data, 6);
    std::printf("set_any: %s", cudaGetErrorName(cudaPeekAtLastError()));
    std::printf(", %s\n", last());
    void (*const pointer)() = say;
    pointer();
    std::printf("say: %s\n", last());
    cudaMemcpy(&first, data, 4, cudaMemcpyDeviceToHost);
    std::printf("first: %d\n", first);

    set<<<1, 32>>>(data, 3);  // after a launch it is as before
    say<<<1, 2>>>();
    pointer();
    cudaDeviceSynchronize();
    cudaMemcpy(&first, data, 4, cudaMemcpyDeviceToHost);
    std::printf("first: %d, %s\n", first, last());
    call(set, data, 5);
    cudaMemcpy(&first, data, 4, cudaMemcpyDeviceToHost);
    std::printf("first: %d, %s\n", first, last());
    return 0;
}
