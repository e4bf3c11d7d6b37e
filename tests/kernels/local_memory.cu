// A store to a local array and a load, at indices that the host chooses; below 0 a lane is idle.
template <typename Item>
__device__ void touch(const int *at, Item *out) {
    Item own[64];
    const int lane = threadIdx.x, index = at[lane];
    if (index < 0) return;
    own[index] = out[lane];  // @local_store
    out[lane] = own[index];  // @local_load
}

extern "C" __global__ void local_1(const int *at, char *out) { touch(at, out); }
extern "C" __global__ void local_2(const int *at, short *out) { touch(at, out); }
extern "C" __global__ void local_4(const int *at, int *out) { touch(at, out); }
extern "C" __global__ void local_8(const int *at, double *out) { touch(at, out); }
extern "C" __global__ void local_16(const int *at, int4 *out) { touch(at, out); }
