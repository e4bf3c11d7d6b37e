// The scan of pairs, which are items like any others: scan_blocks, scan_block_sums and
// add_block_sums of the scan lab.
#pragma once
#include "segscan/parts/segmented_sum.cuh"
#define T Pair
#define OP SegmentedSum
#define INCLUSIVE 1
#include "scan/warp_shuffle.cu"
