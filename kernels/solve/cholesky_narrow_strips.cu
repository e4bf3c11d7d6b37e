// /// cudalab
// summary  = "The same with strips of 128 columns: triangles of an eighth of the work"
// order    = 8.95
// ladder   = "direct methods"
// adds     = "strips of 128 columns"
// dispatch = "cholesky"
// requires = ["sm_90a", "tensor_cores", "bulk_copy", "inline_ptx"]
// applies  = { dtype = ["float32"] }
//
// [defines]
// PANEL                 = 32      # columns that a strip is factored by
// BLOCK                 = 128     # columns after which the rest is updated
// TILE                  = 128     # rows and columns of a tile of subtract_below
// BK                    = 64      # numbers along k that tensor cores sum
// STAGES                = 6       # of 32 of them
// SPLIT_THREADS         = 256
// UPDATE_THREADS        = 384     # of subtract_below
// SHARED_BYTES          = 196704  # STAGES * 2 * TILE * 2 * 64 + 2 * STAGES * 8
// DIAGONAL_THREADS      = 512     # of factor_diagonal
// BELOW_THREADS         = 128     # of eliminate_below
// BELOW_ROWS            = 32      # of a block of it
// ///
//
// `cholesky_tensor_cores` with narrower strips: a triangle of 128 columns, which one block factors
// beside the update, is an eighth of the work of one of 256, and there are twice as many.
//
// Like that rung, it is built of more than the rungs before it.
//
// Limits: the rest of the matrix is read and written twice as often, which takes longer for 8,192
// equations and more.
//
// Macros from outside: T (float), PANEL, BLOCK, TILE, BK, STAGES, SPLIT_THREADS, UPDATE_THREADS,
// SHARED_BYTES, DIAGONAL_THREADS, BELOW_THREADS, BELOW_ROWS.
#include "solve/cholesky_tensor_cores.cu"
