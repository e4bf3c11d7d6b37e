// /// cudalab
// summary  = "256 classes, a table per warp: a lane tags a counter and retries until its tag stays"
// order    = 1.5
// adds     = "a table per warp, tags instead of atomics"
// dispatch = "partials"
// applies  = { dtype = ["uint8"], classes = ["256"] }
// defines  = { THREADS_PER_BLOCK = 192, WORDS_PER_THREAD = 64, MERGE_THREADS = 256 }
// ///
//
// 256 classes leave no room for counters per thread, so a warp shares a table, and before there
// were atomics in shared memory it had to build its own. The five top bits of a counter name the
// lane that wrote it last. A lane reads the counter, writes it back one higher with its own tag,
// and reads again: if its tag is there, its addition stands; if not, another lane of the warp wrote
// the same counter, and it tries again. One lane succeeds for each counter in each round, so the
// number of rounds is the maximum number of lanes that share one counter: the collision degree of
// the data.
//
// Six warps per block, each with a table; the block sums the tables, merge_partials the blocks.
// Limits: equal data take 32 rounds, and any data three barriers of the warp for each element;
// today's hardware has atomics in shared memory: shared_atomic. A counter has 27 bits, so a table
// may see fewer than 2^27 bytes: here it sees 32 lanes * WORDS_PER_THREAD words * 4.
//
// Macros from outside: T (element type), NUM_BINS (classes), THREADS_PER_BLOCK, WORDS_PER_THREAD,
// MERGE_THREADS.
#include "histogram/parts/histogram_classes.cuh"
#include "histogram/parts/merge_partials.cuh"

constexpr unsigned WARPS = THREADS_PER_BLOCK / 32;
constexpr unsigned TAG_SHIFT = 27;
constexpr unsigned COUNT_MASK = 0x07ffffff;

static_assert(THREADS_PER_BLOCK % 32 == 0, "whole warps");
static_assert(sizeof(T) == 1 && NUM_BINS == 256, "a class for each byte");
static_assert(32ull * WORDS_PER_THREAD * 4 <= COUNT_MASK, "a 27-bit counter would overflow");

// Count `bin` for every lane with `pending`. All 32 lanes call it and stay until the last is done,
// even those without a byte: the barriers are for whole warps.
__device__ inline void add_tagged(unsigned* table, unsigned bin, bool pending, unsigned tag) {
    do {
        unsigned tagged = 0;
        if (pending) tagged = ((table[bin] & COUNT_MASK) + 1) | tag;
        __syncwarp();  // all have read before anyone writes
        if (pending) table[bin] = tagged;
        __syncwarp();  // all have written before anyone looks for the winner
        if (pending && table[bin] == tagged) pending = false;
        __syncwarp();  // all have looked before the next round writes
    } while (__any_sync(FULL_WARP, pending));
}

extern "C" __global__ void __launch_bounds__(THREADS_PER_BLOCK) count_partials(const T* data,
                                                                               unsigned n,
                                                                               unsigned* partials) {
    __shared__ unsigned tables[WARPS][NUM_BINS];
    unsigned* table = tables[threadIdx.x / 32];
    const unsigned lane = threadIdx.x % 32, tag = lane << TAG_SHIFT;

    for (unsigned bin = lane; bin < NUM_BINS; bin += 32) table[bin] = 0;
    __syncwarp();  // a warp uses only its own table

    const unsigned first_word = blockIdx.x * THREADS_PER_BLOCK * WORDS_PER_THREAD + threadIdx.x;
    const unsigned* words = reinterpret_cast<const unsigned*>(data);
    for (unsigned k = 0; k < WORDS_PER_THREAD; ++k) {
        const unsigned w = first_word + k * THREADS_PER_BLOCK;
        // The array's last word may be incomplete: its bytes are read one by one.
        unsigned word = 0, bytes = 0;
        if (w < n / 4) {
            word = words[w];
            bytes = 4;
        } else if (w == n / 4) {
            for (unsigned i = 4 * w; i < n; ++i) word |= (unsigned)data[i] << 8 * bytes++;
        }
        if (!__any_sync(FULL_WARP, bytes > 0)) break;  // nothing is left for this warp
        for (unsigned byte = 0; byte < 4; ++byte)
            add_tagged(table, word >> 8 * byte & 0xff, byte < bytes, tag);
    }
    __syncthreads();  // all tables are complete

    for (unsigned bin = threadIdx.x; bin < NUM_BINS; bin += THREADS_PER_BLOCK) {
        unsigned sum = 0;
        for (unsigned warp = 0; warp < WARPS; ++warp) sum += tables[warp][bin] & COUNT_MASK;
        partials[bin * gridDim.x + blockIdx.x] = sum;
    }
}

// Source: Podlozhnyuk, Histogram Calculation in CUDA. NVIDIA, 2007.
