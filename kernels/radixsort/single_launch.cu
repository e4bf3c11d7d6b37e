// /// cudalab
// summary  = "All in one launch: the blocks stay and take the tiles of every sweep by ticket"
// order    = 5
// ladder   = "short arrays"
// adds     = "`onesweep` in one launch: tiles of all sweeps by ticket"
// dispatch = "single_launch"
// requires = ["shared_96kb"]
//
// [defines]
// THREADS_PER_BLOCK = 512
// BLOCKS_PER_SM     = 2      # leaves a thread 64 registers
// MAX_BLOCKS        = "2 * MULTIPROCESSORS"
// KEYS_PER_THREAD   = 8      # in registers, for keys of 4 bytes: small tiles
// PAIRS_PER_THREAD  = 8      # with their values
// RADIX_BITS        = 8
// TILES_AHEAD       = 100    # of the tile that is prefetched
// ///
//
// `onesweep` needs a launch to count, one to place the digits and one for each pass. For a short
// array the launches are most of its time: each kernel by itself takes a few microseconds. Here one
// launch does everything, and counters in memory take over the role of a launch's end: a sweep
// begins when all tiles of the one before are done. Tiles are small, so that there are enough of
// them for all multiprocessors.
//
// Limits: a waiting block still occupies its multiprocessor. A long array gains nothing and has too
// many small tiles: 2^24 keys take 0.621 ms on an H100, and 0.390 ms with `onesweep`.
//
// Macros from outside: T (element type), PAIRS (1: a value follows each key), THREADS_PER_BLOCK,
// BLOCKS_PER_SM, KEYS_PER_THREAD, PAIRS_PER_THREAD, RADIX_BITS, TILES_AHEAD.
#include "radixsort/parts/sweep_all_passes.cuh"

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK, RESIDENT_SWEEPS) sweep_all(
    const T* in, T* spare, T* out, Progress* progress, Word* statuses, unsigned n) {
    sweep_all_passes<CHUNK_ROWS>(in, spare, out, progress, statuses, n);
}

// Source: Gupta, Stuart and Owens, A Study of Persistent Threads Style GPU Programming for GPGPU
// Workloads. InPar, 2012.
