// /// cudalab
// summary  = "Each thread sums, then scans, its own chunk: no cooperation, no coalescing"
// order    = 5.5
// ladder   = "a core's loop"
// adds     = "a chunk of consecutive items per thread"
// dispatch = "chunks"
// default  = ["cpu"]
// defines  = { THREADS_PER_BLOCK = 1, ITEMS_PER_THREAD = 1024, MAX_CHUNKS = 1024 }
// ///
//
// reduce_then_scan with one thread per block: n - 1 additions for the sums, n for the scan, and no
// barrier. Within a chunk the sums restart at every tile, and the prefix of the tile is added on
// output: a chain of additions is then never longer than a tile, a chunk's tiles and the number of
// chunks, for any n, which bounds the rounding error of floats.
//
// On a CPU a thread is a loop on one core that reads and writes along cache lines.
// On a GPU it is slow: the 32 lanes of a warp would read 32 distant places, here each warp has only
// one thread, and MAX_CHUNKS threads are too few to hide any latency.
//
// Macros from outside: T (element type), OP (operator), INCLUSIVE (0 or 1), THREADS_PER_BLOCK,
// ITEMS_PER_THREAD.
#include "common/thread/operators.cuh"

constexpr unsigned TILE_ITEMS = ITEMS_PER_THREAD;

static_assert(THREADS_PER_BLOCK == 1, "a thread has a chunk of its own");

using Op = OP<T>;

__device__ inline unsigned end_of_tile(unsigned start, unsigned n) {
    return n - start < TILE_ITEMS ? n : start + TILE_ITEMS;
}

// chunk_sums[chunk] = sum of its tiles_per_chunk tiles
extern "C" __global__ void reduce_chunks(const T* in, T* chunk_sums, unsigned n,
                                         unsigned tiles_per_chunk) {
    const unsigned first_tile = blockIdx.x * tiles_per_chunk;
    T chunk_sum = Op::identity();
    for (unsigned k = 0; k < tiles_per_chunk; ++k) {
        const unsigned start = (first_tile + k) * TILE_ITEMS;
        if (start >= n) break;
        const unsigned end = end_of_tile(start, n);
        T sum = Op::identity();
        for (unsigned i = start; i < end; ++i) sum = Op()(sum, in[i]);
        chunk_sum = Op()(chunk_sum, sum);
    }
    chunk_sums[blockIdx.x] = chunk_sum;
}

// One thread replaces the chunks' sums by their exclusive scan.
extern "C" __global__ void scan_sums(T* chunk_sums, unsigned num_chunks) {
    T sum = Op::identity();
    for (unsigned chunk = 0; chunk < num_chunks; ++chunk) {
        const T chunk_sum = chunk_sums[chunk];
        chunk_sums[chunk] = sum;
        sum = Op()(sum, chunk_sum);
    }
}

extern "C" __global__ void scan_chunks(const T* in, const T* chunk_sums, T* out, unsigned n,
                                       unsigned tiles_per_chunk) {
    const unsigned first_tile = blockIdx.x * tiles_per_chunk;
    T prefix = chunk_sums[blockIdx.x];
    for (unsigned k = 0; k < tiles_per_chunk; ++k) {
        const unsigned start = (first_tile + k) * TILE_ITEMS;
        if (start >= n) break;
        const unsigned end = end_of_tile(start, n);
        T sum = Op::identity();
        for (unsigned i = start; i < end; ++i) {
            const T through = Op()(sum, in[i]);
            out[i] = Op()(prefix, INCLUSIVE ? through : sum);
            sum = through;
        }
        prefix = Op()(prefix, sum);
    }
}

// Source: Blelloch, Prefix Sums and Their Applications. CMU-CS-90-190, 1990.
