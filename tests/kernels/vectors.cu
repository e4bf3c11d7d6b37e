// Vector types: loads and stores of 4 to 16 bytes at once, make_ functions, members.

extern "C" __global__ void swap_members(const float4* floats, const uint4* words,
                                        const uchar4* bytes, const int2* pairs,
                                        const double2* doubles, float4* floats_out,
                                        uint4* words_out, uchar4* bytes_out, int2* pairs_out,
                                        double2* doubles_out) {
    const int i = threadIdx.x;
    const float4 f = floats[i];
    const uint4 w = words[i];
    const uchar4 b = bytes[i];
    const int2 p = pairs[i];
    double2 d = doubles[i];
    d.x += d.y;
    floats_out[i] = make_float4(f.w, f.z, f.y, f.x);
    words_out[i] = make_uint4(w.y, w.x, w.w, w.z);
    bytes_out[i] = make_uchar4(b.w, b.x, b.y, b.z);
    pairs_out[i] = make_int2(p.y, p.x);
    doubles_out[i] = d;
}

extern "C" __global__ void store_sizes(int* out) {
    const dim3 shape(3, 2);
    const float3 origin = make_float3(1.0f, 2.0f, 3.0f);
    out[0] = sizeof(char2);
    out[1] = sizeof(short4);
    out[2] = sizeof(float3);
    out[3] = alignof(float3);
    out[4] = sizeof(float4);
    out[5] = alignof(float4);
    out[6] = alignof(double2);
    out[7] = alignof(uchar4);
    out[8] = shape.x + 10 * shape.y + 100 * shape.z;
    out[9] = (int)(origin.x + 10 * origin.y + 100 * origin.z);
}

extern "C" __global__ void load_through_cache(const int* __restrict__ in, int* out) {
    out[threadIdx.x] = __ldg(in + threadIdx.x);
}
