// /// cudalab
// summary  = "Groups sorted alternately up and down: two neighbours form a bitonic sequence"
// order    = 1
// dispatch = "alternating"
// defines  = { THREADS_PER_BLOCK = 256 }
// ///
//
// The network of the lecture. A sequence that goes up and then down, or down and then up, is
// bitonic, and half-cleaners sort it: B_size compares keys size / 2 apart, B_size/2 does the same
// in each half, and so on to B_2. To make bitonic sequences out of any keys, sort groups of 2, then
// of 4, of 8, ..., alternately up and down; the last group is the whole array, sorted up. For eight
// keys:
//
//     key         0    1    2    3    4    5    6    7
//     groups of 2 ---up---  --down--  ---up---  --down--   B_2
//     groups of 4 --------up--------  -------down-------   B_4 B_2
//     groups of 8 ------------------up------------------   B_8 B_4 B_2
//
// A bit of the index gives the direction: key i is in group i / size, which is odd if bit `size` of
// i is set. A thread has one comparator, and a step is a launch, since it needs the whole step
// before.
//
// Any n: the array is treated as if it were padded with maximal keys to a power of two. If a group
// has both keys and padding, the padding must stay at its end, so that group goes up; the others
// alternate from there. It is the group of index n, hence the comparison with bit `size` of n. A
// comparator that reaches past n then has nothing to exchange and is left out.
//
// Limits: every comparator must compute its direction. `global` does without directions.
//
// Macros from outside: T (element type), THREADS_PER_BLOCK.
#include "bitonic/parts/bitonic_network.cuh"

// The step of B_(2 * stride) in the merge of groups of `size` keys.
extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) clean_alternating(T* keys,
                                                                                  unsigned n,
                                                                                  unsigned size,
                                                                                  unsigned stride) {
    const unsigned t = blockIdx.x * THREADS_PER_BLOCK + threadIdx.x;
    const Comparator c = half_cleaner(t, stride);
    if (c.high >= n) return;
    const bool up = size >= n || ((c.low ^ n) & size) == 0;
    const T low = keys[c.low], high = keys[c.high];
    if (up ? ordered_bits(low) > ordered_bits(high) : ordered_bits(low) < ordered_bits(high)) {
        keys[c.low] = high;
        keys[c.high] = low;
    }
}

// Source: Batcher, Sorting Networks and Their Applications. AFIPS Spring Joint Computer Conference,
// 1968.
