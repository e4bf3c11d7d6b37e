// How a thread reads numbers along k, the dimension that a matrix product sums over.
#pragma once

// Reads 8 numbers along k from a matrix that is stored along k, in rows of `ld` numbers; zeros
// outside of it. INSIDE: all are known to be inside, at a multiple of 16 bytes.
template <bool INSIDE = false>
__device__ inline void read_along(float (&x)[8], const float* source, unsigned ld, unsigned line,
                                  unsigned p, unsigned lines, unsigned k) {
    const float* from = source + (size_t)line * ld + p;
    if (INSIDE || (line < lines && p + 8 <= k && ld % 4 == 0)) {
        const float4 low = reinterpret_cast<const float4*>(from)[0];
        const float4 high = reinterpret_cast<const float4*>(from)[1];
        x[0] = low.x, x[1] = low.y, x[2] = low.z, x[3] = low.w;
        x[4] = high.x, x[5] = high.y, x[6] = high.z, x[7] = high.w;
    } else {
#pragma unroll
        for (unsigned i = 0; i < 8; ++i) x[i] = line < lines && p + i < k ? from[i] : 0;
    }
}
