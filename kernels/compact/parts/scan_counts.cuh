// The scan of the blocks' counts: how many items all blocks before one keep. A scan of its own lab,
// since the counts are numbers like any others: scan_blocks, scan_block_sums and add_block_sums.
#pragma once
#define T unsigned
#define OP Sum
#define INCLUSIVE 0
#include "scan/warp_shuffle.cu"
