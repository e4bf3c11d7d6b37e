// The scan of flags or counts, which are numbers like any others: scan_blocks, scan_block_sums and
// add_block_sums of the scan lab.
#pragma once
#define T unsigned
#define OP Sum
#define INCLUSIVE 0
#include "scan/warp_shuffle.cu"
