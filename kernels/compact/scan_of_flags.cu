// /// cudalab
// summary  = "Flags of 0 and 1 are scanned: the sum before an item is its place"
// order    = 1
// dispatch = "flags"
// defines  = { THREADS_PER_BLOCK = 256, ITEMS_PER_THREAD = 4 }
// ///
//
// An item's place in the answer is the number of kept items before it. So each item gets a flag, 1
// if it is kept, and the exclusive scan of the flags is the places: that of the scan lab,
// unchanged, with all its launches. What is not kept goes to the end: if p of the i items before it
// are kept, i - p are not, and it becomes the zero i - p places before the last one.
//
// Limits: flags and places are read and written as if they were data: with the two passes of the
// scan, an item of 4 bytes costs nine accesses of 4 bytes, where two are enough.
//
// Macros from outside: ITEM (element type), THREADS_PER_BLOCK, ITEMS_PER_THREAD.
#include "compact/parts/scan_counts.cuh"

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) mark_kept(const ITEM* in,
                                                                          unsigned* flags,
                                                                          unsigned n) {
    const unsigned i = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    if (i < n) flags[i] = in[i] != (ITEM)0;
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) move_items(
    const ITEM* in, const unsigned* kept_before, ITEM* out, unsigned n) {
    const unsigned i = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    if (i >= n) return;
    const ITEM item = in[i];
    const unsigned before = kept_before[i];
    if (item != (ITEM)0)
        out[before] = item;
    else
        out[n - 1 - (i - before)] = (ITEM)0;
}

// Source: Horn, Stream Reduction Operations for GPGPU Applications. GPU Gems 2, chapter 36, 2005;
// Harris, Sengupta and Owens, Parallel Prefix Sum (Scan) with CUDA. GPU Gems 3, chapter 39, 2007.
