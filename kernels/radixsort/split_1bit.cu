// /// cudalab
// summary  = "One bit a pass: a scan of the bits splits zeros from ones"
// order    = 1
// dispatch = "split"
// defines  = { THREADS_PER_BLOCK = 256, SCAN_THREADS = 512, ITEMS_PER_BLOCK = 1024 }
// ///
//
// Radix sort with digits of one bit, bit 0 first. If s[i] ones lie before key i, a zero moves to
// i - s[i], the number of zeros before it, and a one to Nz + s[i], behind all Nz zeros. Keys with
// equal bits keep their order, so each pass preserves the work of the passes before it.
//
// s is the exclusive scan of the bits. Each block scans ITEMS_PER_BLOCK keys with Blelloch's tree
// in shared memory; the block sums are scanned in the same way, level by level, and added back.
// Limits: there is a pass for every bit, 32 of them for 32-bit keys, and each reads and writes all
// keys and s. Writes are coalesced only where neighbours have equal bits.
//
// Macros from outside: T (element type), PAIRS (1: a value follows each key), THREADS_PER_BLOCK,
// SCAN_THREADS, ITEMS_PER_BLOCK.
#include "common/block/blelloch.cuh"
#include "common/thread/radix_keys.cuh"

// Writes s[i] counted within each block of keys, and the number of ones in each block to
// block_sums.
extern "C" __global__ void __launch_bounds__(SCAN_THREADS) scan_bits(const T* keys, unsigned* s,
                                                                     unsigned* block_sums,
                                                                     unsigned n, int bit) {
    __shared__ unsigned tree[PADDED_ITEMS];

    // A thread takes items half a block apart, so that neighbours in a warp are neighbours in
    // memory. Past the end there are no ones.
    const unsigned first = threadIdx.x, second = threadIdx.x + SCAN_THREADS;
    const unsigned block_start = blockIdx.x * ITEMS_PER_BLOCK;
    const unsigned i = block_start + first, j = block_start + second;
    tree[padded(first)] = i < n ? digit_at(ordered_bits(keys[i]), bit, 1) : 0;
    tree[padded(second)] = j < n ? digit_at(ordered_bits(keys[j]), bit, 1) : 0;
    const unsigned ones = blelloch_scan(tree);
    if (i < n) s[i] = tree[padded(first)];
    if (j < n) s[j] = tree[padded(second)];
    if (threadIdx.x == 0) block_sums[blockIdx.x] = ones;
}

// Scans numbers in the same way, in place: the block sums of the level below.
extern "C" __global__ void __launch_bounds__(SCAN_THREADS) scan_blocks(unsigned* data,
                                                                       unsigned* block_sums,
                                                                       unsigned n) {
    __shared__ unsigned tree[PADDED_ITEMS];

    const unsigned first = threadIdx.x, second = threadIdx.x + SCAN_THREADS;
    const unsigned block_start = blockIdx.x * ITEMS_PER_BLOCK;
    const unsigned i = block_start + first, j = block_start + second;
    tree[padded(first)] = i < n ? data[i] : 0;
    tree[padded(second)] = j < n ? data[j] : 0;
    const unsigned sum = blelloch_scan(tree);
    if (i < n) data[i] = tree[padded(first)];
    if (j < n) data[j] = tree[padded(second)];
    if (threadIdx.x == 0) block_sums[blockIdx.x] = sum;
}

// data[i] += block_sums[i / ITEMS_PER_BLOCK]
extern "C" __global__ void __launch_bounds__(SCAN_THREADS) add_block_sums(
    unsigned* data, const unsigned* block_sums, unsigned n) {
    const unsigned i = blockIdx.x * ITEMS_PER_BLOCK + threadIdx.x, j = i + SCAN_THREADS;
    if (i < n) data[i] += block_sums[blockIdx.x];
    if (j < n) data[j] += block_sums[blockIdx.x];
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) split(const T* in, T* out,
                                                                      const unsigned* s, unsigned n,
                                                                      int bit) {
    const unsigned i = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    if (i >= n) return;

    // All keys are zeros except the ones before the last key, and the last key itself if it is a
    // one. All threads read the same two words, and a warp gets each of them in one broadcast.
    const unsigned num_zeros = n - s[n - 1] - digit_at(ordered_bits(in[n - 1]), bit, 1);
    const T key = in[i];
    const bool one = digit_at(ordered_bits(key), bit, 1);
    const unsigned ones_before = s[i];
    const unsigned place = one ? num_zeros + ones_before : i - ones_before;
    out[place] = key;
    if constexpr (PAIRS) out[n + place] = in[n + i];  // its value
}

// Source: Blelloch, Prefix Sums and Their Applications. CMU-CS-90-190, 1990.
