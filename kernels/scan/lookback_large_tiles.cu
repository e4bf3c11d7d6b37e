// /// cudalab
// summary  = "The same with large tiles: a shorter chain of blocks that wait for each other"
// order    = 6.5
// adds     = "larger tiles"
// dispatch = "look_back"
// defines  = { THREADS_PER_BLOCK = 128, WORDS_PER_THREAD = 72 }
// ///
//
// `decoupled_lookback` with tiles of 9,216 words instead of 4,096. Each tile waits for the sums of
// those before it, so fewer tiles make a shorter chain, and each of them moves more bytes for the
// same words of communication.
//
// Limits: a tile is in registers while its block waits, so fewer blocks run at once, and meanwhile
// the memory is idle. A short array has fewer tiles than the device has multiprocessors.
//
// Macros from outside: T (element type), OP (operator), INCLUSIVE (0 or 1), THREADS_PER_BLOCK,
// WORDS_PER_THREAD.
#include "scan/decoupled_lookback.cu"

// Source: Merrill and Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back.
// NVIDIA NVR-2016-002, 2016.
