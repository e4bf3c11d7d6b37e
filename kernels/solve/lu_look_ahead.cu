// /// cudalab
// summary  = "LU factors: the next strip's pivots are found while tensor cores update the rest"
// order    = 8.7
// ladder   = "direct methods"
// adds     = "the next strip eliminated beside the update"
// dispatch = "lu_graph"
// requires = ["sm_90a", "tensor_cores", "bulk_copy", "inline_ptx"]
// applies  = { dtype = ["float32"] }
//
// [defines]
// PANEL                 = 32      # columns whose pivots one launch finds
// BLOCK                 = 256     # columns after which the rest is updated
// MAX_THREADS_PER_BLOCK = 640     # of choose_pivots
// TILE                  = 128     # rows and columns of a tile of subtract_products
// BK                    = 64      # numbers along k that tensor cores sum
// STAGES                = 6       # of 32 of them
// SPLIT_THREADS         = 256
// UPDATE_THREADS        = 384     # of subtract_products
// SHARED_BYTES          = 196704  # STAGES * 2 * TILE * 2 * 64 + 2 * STAGES * 8
// PANEL_SHARE           = 5       # a fifth of the multiprocessors eliminates, the rest updates
// ///
//
// In `lu_tensor_cores` the GPU is nearly idle while a panel's pivots are found, step after step,
// which takes longer than the updates themselves. But the next strip can be eliminated as soon as
// its own columns are updated. So the update comes in two launches: first the columns of the next
// strip, then all others, and while those are under way in one stream, the strip is eliminated in
// another:
//   exchange_strip   the exchanges of a whole strip, in all columns but its own; they have to wait,
//                    since these columns are being updated while pivots are found
// The second update leaves multiprocessors free for the other stream. Its blocks stay until all
// tiles are done; blocks that end earlier and are replaced would take them all.
//
// The default for the largest systems, it is built of more than the rungs before it for the reason
// that `lu_tensor_cores` names.
//
// Limits: once the rest of the matrix is small, the elimination takes longer than the update beside
// it; after that its chain of steps is what counts. Small systems are slower for the further
// launches: see the times at 1,024.
//
// Macros from outside: T (float), PANEL, BLOCK, MAX_THREADS_PER_BLOCK, TILE, BK, STAGES,
// SPLIT_THREADS, UPDATE_THREADS, SHARED_BYTES.
#include "solve/lu_tensor_cores.cu"

static_assert(BLOCK % TILE == 0, "the next strip is whole tile columns");

// Exchanges rows in 32 columns per block as choose_pivots has done in each panel of the strip, in
// its panel and in the columns right of that up to the end of the strip.
extern "C" __global__ void __launch_bounds__(256) exchange_strip(T* lu, const unsigned* pivots,
                                                                 unsigned ld, unsigned first,
                                                                 unsigned strip_end) {
    const unsigned column = blockIdx.x * PANEL;
    const bool inside = first <= column && column < strip_end;
    for (unsigned start = inside ? column + PANEL : first; start < strip_end; start += PANEL) {
        exchange_rows(lu, pivots, ld, start, column);
        __syncthreads();  // the rows are in their places before they move again
    }
}

// Source: Dongarra, Luszczek and Petitet, The LINPACK Benchmark: Past, Present and Future.
// Concurrency and Computation: Practice and Experience 15(9), 2003.
