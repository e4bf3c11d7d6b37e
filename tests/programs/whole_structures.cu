// Structures that are copied whole, at addresses that are multiples of their alignment, and not.
#include <cstdio>

struct Three {
    float x, y, z;
};

__global__ void copies(char *bytes, Three *out) {
    out[0] = *(Three *)(bytes + 12);
    out[1] = *(Three *)(bytes + 2);  // a GPU ends the kernel here
}

int main() {
    char *bytes;
    Three *out;
    cudaMalloc(&bytes, 64);
    cudaMemset(bytes, 0, 64);
    cudaMalloc(&out, 2 * sizeof(Three));
    copies<<<1, 1>>>(bytes, out);
    cudaDeviceSynchronize();
    cudaFree(bytes);
    cudaFree(out);
}
