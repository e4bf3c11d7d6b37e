// The rows of U in a panel, one column per thread.
#pragma once
#include "solve/parts/four.cuh"

// Turns a column of the panel's rows into one of U, or goes `steps` steps of that, from `first` on.
// factors: the panel's triangles, column by column; those of later steps need not be there.
template <unsigned WIDTH>
__device__ __forceinline__ void solve_upper(const T (&factors)[PANEL][WIDTH], T (&u)[PANEL],
                                            unsigned first = 0, unsigned steps = PANEL) {
#pragma unroll
    for (unsigned k = first; k < first + steps; ++k)
#pragma unroll
        for (unsigned i = (k + 1) / 4; i < PANEL / 4; ++i) {
            const Four l = reinterpret_cast<const Four*>(factors[k])[i];
#pragma unroll
            for (unsigned j = 0; j < 4; ++j)
                if (4 * i + j > k) u[4 * i + j] -= l.v[j] * u[k];
        }
}
