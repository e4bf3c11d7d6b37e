// The rows of U in a panel, one column per thread.
#pragma once
#include "solve/parts/four.cuh"

// Turns a column of the panel's rows into one of U. factors: the panel's triangles, column by
// column.
__device__ inline void solve_upper(const T (&factors)[PANEL][PANEL + 4], T (&u)[PANEL]) {
#pragma unroll
    for (unsigned k = 0; k < PANEL - 1; ++k)
#pragma unroll
        for (unsigned i = (k + 1) / 4; i < PANEL / 4; ++i) {
            const Four l = reinterpret_cast<const Four*>(factors[k])[i];
#pragma unroll
            for (unsigned j = 0; j < 4; ++j)
                if (4 * i + j > k) u[4 * i + j] -= l.v[j] * u[k];
        }
}
