// /// cudalab
// summary  = "LU factors: the matrix updated on tensor cores, in emulated fp32"
// order    = 8.5
// ladder   = "direct methods"
// adds     = "the updates on tensor cores, a float as two fp16 parts"
// dispatch = "lu_graph"
// requires = ["sm_90a", "tensor_cores", "bulk_copy", "inline_ptx"]
// applies  = { dtype = ["float32"] }
//
// [defines]
// PANEL                 = 32      # columns whose pivots one launch finds
// BLOCK                 = 128     # columns after which the rest is updated
// MAX_THREADS_PER_BLOCK = 640     # of choose_pivots
// TILE                  = 128     # rows and columns of a tile of subtract_products
// BK                    = 64      # numbers along k that tensor cores sum
// STAGES                = 6       # of 32 of them
// SPLIT_THREADS         = 256
// UPDATE_THREADS        = 384     # of subtract_products
// SHARED_BYTES          = 196704  # STAGES * 2 * TILE * 2 * 64 + 2 * STAGES * 8
// ///
//
// `lu_graph` spends most of its time in the updates of the trailing matrix if n is large.
// They are products of matrices, and here tensor cores compute them as in `tensor_cores_fp16x3` of
// the lab matmul, with no less accuracy than floats have:
//   split_strip         the strip's columns of L and its rows of U as two scaled fp16 parts each
//   subtract_products   the rest of the matrix minus their product
// The elements of a scaled matrix are near 1. Those too small for two parts are nothing beside the
// rounding errors of others; infinite ones make the residual infinite, and `lu_partial_pivot` takes
// over. So no range is examined.
//
// The default for large systems, it is built of more than the rungs before it: besides the panels
// of `lu_blocked_panel` it has all that tensor cores need. The ladders of the lab matmul take that
// in steps: bulk copies, wgmma, a float as two fp16 parts.
//
// Limits: while a panel is eliminated, most of the GPU is idle. Small systems are slower than with
// `lu_graph`, since they have more launches and little to update: see the times at 1,024.
//
// Macros from outside: T (float), PANEL, BLOCK, MAX_THREADS_PER_BLOCK, TILE, BK, STAGES,
// SPLIT_THREADS, UPDATE_THREADS, SHARED_BYTES.
#include "solve/parts/choose_pivots.cuh"
#include "solve/parts/eliminate_rows.cuh"
#include "solve/parts/residual.cuh"
#include "solve/parts/right_hand_side.cuh"
#include "solve/parts/scaled_rows.cuh"
#include "solve/parts/solve_rows.cuh"
#include "solve/parts/substitute_chain.cuh"
#include "solve/parts/subtract_products.cuh"

// Source: Haidar et al., Harnessing GPU Tensor Cores for Fast FP16 Arithmetic to Speed up
// Mixed-Precision Iterative Refinement Solvers. SC18, 2018.
