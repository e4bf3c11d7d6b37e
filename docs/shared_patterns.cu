// One access to shared memory in a pattern that the host chooses: lane t uses the item items[t] of
// type T (4, 8 or 16 bytes), and takes no part where that is negative. One warp; patterns.py counts
// what the access costs.

extern "C" __global__ void load_pattern(const int* items, T* out) {
    extern __shared__ T values[];
    const int item = items[threadIdx.x];
    if (item >= 0) out[threadIdx.x] = values[item];
}

extern "C" __global__ void store_pattern(const int* items, T* out) {
    extern __shared__ T values[];
    const int item = items[threadIdx.x];
    if (item >= 0) values[item] = out[threadIdx.x];
    __syncwarp();                              // lanes read what others have stored
    out[threadIdx.x] = values[threadIdx.x];  // so that the compiler keeps the store
}
