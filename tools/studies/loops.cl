// The kernels of loops.cu in OpenCL. OpenCL C has no shuffles without an extension.

#pragma OPENCL FP_CONTRACT OFF  // the same bytes

__kernel void add(__global const float* a, __global const float* b, __global float* out, int n) {
    const int i = get_global_id(0);
    if (i < n) out[i] = a[i] + b[i];
}

__kernel void meet(__global const float* a, __global const float* b, __global float* out,
                   int rounds) {
    __local float values[2][256];
    const int t = get_local_id(0), i = get_global_id(0);
    float sum = a[i];
    for (int round = 0; round < rounds; ++round) {
        values[round % 2][t] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        sum += values[round % 2][255 - t];
    }
    out[i] = sum;
}

__kernel void reduce(__global const float* a, __global const float* b, __global float* out, int n) {
    __local float values[256];
    const int t = get_local_id(0), i = get_global_id(0);
    values[t] = i < n ? a[i] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int s = get_local_size(0) / 2; s > 0; s /= 2) {
        if (t < s) values[t] += values[t + s];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (t == 0) out[get_group_id(0)] = values[0];
}

__kernel void multiply_tiles(__global const float* a, __global const float* b, __global float* out,
                             int n) {
    __local float as[16][16], bs[16][16];
    const int x = get_local_id(0), y = get_local_id(1);
    const int col = get_global_id(0), row = get_global_id(1);
    float sum = 0;
    for (int first = 0; first < n; first += 16) {
        as[y][x] = a[row * n + first + x];
        bs[y][x] = b[(first + y) * n + col];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < 16; ++k) sum += as[y][k] * bs[k][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    out[row * n + col] = sum;
}

__kernel void multiply(__global const float* a, __global const float* b, __global float* out,
                       int n) {
    const int col = get_global_id(0), row = get_global_id(1);
    if (row >= n || col >= n) return;
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + col];
    out[row * n + col] = sum;
}
