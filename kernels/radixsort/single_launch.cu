// /// cudalab
// summary  = "All in one launch: blocks that stay take the tiles of every sweep by ticket"
// order    = 5
// ladder   = "short arrays"
// adds     = "`onesweep` in one launch: tiles of all sweeps by ticket"
// dispatch = "single_launch"
// requires = ["shared_96kb"]
//
// [defines]
// THREADS_PER_BLOCK = 512
// BLOCKS_PER_SM     = 2      # leaves a thread 64 registers
// MAX_BLOCKS        = 264    # two for each of 132 multiprocessors
// KEYS_PER_THREAD   = 8      # in registers, for keys of 4 bytes: small tiles
// PAIRS_PER_THREAD  = 8      # with their values
// RADIX_BITS        = 8
// TILES_AHEAD       = 100    # of the tile that is prefetched
// ///
//
// `onesweep` takes a launch to count, one to place the digits and one for each pass. For a short
// array that is most of its time: the kernels themselves take a few microseconds each. Here one
// launch does all, and what a launch's end was good for is left to counters in memory: a sweep
// begins when all tiles of the one before are done. Tiles are small, so that there are enough of
// them for all multiprocessors.
//
// Limits: a block that waits keeps its place on a multiprocessor. A long array gains nothing and
// has too many small tiles: 0.621 ms for 2^24 keys on an H100, `onesweep` 0.390.
//
// Macros from outside: T (element type), PAIRS (1: a value follows each key), THREADS_PER_BLOCK,
// BLOCKS_PER_SM, KEYS_PER_THREAD, PAIRS_PER_THREAD, RADIX_BITS, TILES_AHEAD.
#include "radixsort/parts/sweep_all_passes.cuh"

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, RESIDENT_SWEEPS) sweep_all(
    const T* in, T* spare, T* out, Progress* progress, Word* statuses, unsigned n) {
    sweep_all_passes<CHUNK_ROWS>(in, spare, out, progress, statuses, n);
}
