// Brings the 32 pivot rows of a panel to its top.
#pragma once

// For lane i: where row start + i goes when pivot k moves to start + k, for all k; NONE if the row
// is a pivot itself. `pivot` is the lane's own. The displaced rows go, in order, to the places
// below the top that pivots leave; there are equally many of both.
__device__ inline unsigned new_place(unsigned pivot, unsigned start) {
    const unsigned lane = threadIdx.x % 32;
    const bool below = pivot - start >= 32;
    unsigned stays = below ? 0 : 1u << (pivot - start);  // bit i: row start + i is a pivot
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        stays |= __shfl_xor_sync(0xffffffffu, stays, distance);
    unsigned places = __ballot_sync(0xffffffffu, below);
    for (unsigned before = __popc(~stays & ((1u << lane) - 1)); before > 0; --before)
        places &= places - 1;
    const unsigned place = __shfl_sync(0xffffffffu, pivot, places ? __ffs(places) - 1 : 0);
    return stays >> lane & 1 ? 0xffffffffu : place;
}
