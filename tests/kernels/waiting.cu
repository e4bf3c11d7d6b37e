// Threads that wait for others without a barrier: legal where the others can make progress.

// Thread 0 polls a flag that the last warp sets.
extern "C" __global__ void wait_in_block(int* out) {
    __shared__ int flag;
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        while (atomicAdd(&flag, 0) == 0) {
        }
        out[blockIdx.x] = 1;
    }
    if (threadIdx.x == blockDim.x - 1) atomicExch(&flag, 1);
}

// All threads of a block take a lock in turn; the holder lets others run inside.
extern "C" __global__ void lock(int* counter, int* mutex) {
    bool done = false;
    while (!done) {
        if (atomicCAS(mutex, 0, 1) == 0) {
            int seen = *(volatile int*)counter;
            __nanosleep(10);
            *(volatile int*)counter = seen + 1;
            __threadfence();
            atomicExch(mutex, 0);
            done = true;
        }
    }
}

// Each block adds its index to what the block before it handed on.
extern "C" __global__ void chain(volatile unsigned* handed_on, unsigned* ticket) {
    __shared__ unsigned tile;
    if (threadIdx.x == 0) tile = atomicAdd(ticket, 1u);
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned before = 0;
        if (tile > 0) {
            while ((before = handed_on[tile - 1]) == 0) {
            }
        }
        __threadfence();
        handed_on[tile] = before + 1;
    }
}
