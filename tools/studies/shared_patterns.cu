// One access to shared memory in a pattern that the host chooses: in row `row` of `items`, lane t
// finds the item that it uses, of type T (4, 8 or 16 bytes), and takes no part where that is
// negative. One warp; patterns.py counts what the access costs.

extern "C" __global__ void load_pattern(const int* items, int row, const T* in, T* out) {
    __shared__ T values[ITEMS];
    for (int i = threadIdx.x; i < ITEMS; i += 32) values[i] = in[i];
    __syncwarp();  // lanes load what others have stored

    const int item = items[row * 32 + threadIdx.x];
    if (item >= 0) out[threadIdx.x] = values[item];
}

extern "C" __global__ void store_pattern(const int* items, int row, const T* in, T* out) {
    __shared__ T values[ITEMS];
    const int item = items[row * 32 + threadIdx.x];
    const T value = in[threadIdx.x];
    if (item >= 0) values[item] = value;

    __syncwarp();  // lanes load what others have stored; without a load there were no store
    for (int i = threadIdx.x; i < ITEMS; i += 32) out[i] = values[i];
}
