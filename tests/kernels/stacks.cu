// Local variables of 16 bytes lie at multiples of 16, before and after a barrier.
extern "C" __global__ void local_address(unsigned long long* out) {
    float4 local = make_float4(1, 2, 3, 4);
    float4* volatile address = &local;
    out[2 * threadIdx.x] = (unsigned long long)address;
    __syncthreads();
    float4 other = *address;
    address = &other;
    out[2 * threadIdx.x + 1] = (unsigned long long)address;
    address->x = 2;
}
