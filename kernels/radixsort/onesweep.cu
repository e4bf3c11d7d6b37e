// /// cudalab
// summary  = "One sweep a digit: tiles look back for their offsets instead of reading keys twice"
// order    = 4
// adds     = "tiles look back for their offsets: keys are read once a pass"
// dispatch = "onesweep"
// default  = ["cuda"]
// requires = ["shared_96kb"]
//
// [defines]
// THREADS_PER_BLOCK = 512
// BLOCKS_PER_SM     = 2      # leaves a thread 64 registers: keys and ranks fit
// KEYS_PER_THREAD   = 32     # in registers, for keys of 4 bytes
// PAIRS_PER_THREAD  = 16     # with their values
// RADIX_BITS        = 8
// TILES_AHEAD       = 100    # of the tile that is prefetched
// COUNT_BLOCKS      = "3 * MULTIPROCESSORS"
// ///
//
// `digit_8bit` reads the keys twice a pass, because a tile must know how many keys with each digit
// lie in the tiles before it. How often a digit occurs in the whole array does not depend on the
// order of the keys, so a single read counts the digits of all passes. For the rest a tile looks
// back: it publishes its own counts, adds up the counts of the tiles before it until it reaches one
// that knows its prefix, and then publishes a prefix itself. Each pass reads and writes every key
// once.
//
// Thread d looks back for digit d while other warps are still putting their keys in order. Tiles
// are taken by ticket, so a tile only waits for tiles that running blocks have taken. A status word
// holds the number of the launch, a flag and a count in 64 bits. It is written and read as a whole,
// so no fence is needed, and its number makes it stale for the next launch, so nothing has to be
// cleared. A tile is KEYS_PER_THREAD keys of 4 bytes for each thread, or half as many of 8 bytes.
//
// Limits: a tile's look-back is a chain of dependent reads. Tiles of 64 KB keep the chain short,
// but a short array has too few of them to keep the device busy.
//
// Macros from outside: T (element type), PAIRS (1: a value follows each key), THREADS_PER_BLOCK,
// BLOCKS_PER_SM, KEYS_PER_THREAD, PAIRS_PER_THREAD, RADIX_BITS, TILES_AHEAD.
#include "radixsort/parts/sweep_digit.cuh"

// Source: Adinets and Merrill, Onesweep: A Faster Least Significant Digit Radix Sort for GPUs.
// arXiv:2206.01784, 2022.
