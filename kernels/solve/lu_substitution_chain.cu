// /// cudalab
// summary  = "LU factors by panels; a substitution is one launch, a chain of blocks"
// order    = 7.5
// ladder   = "direct methods"
// adds     = "each substitution in one launch: blocks wait for each other's unknowns"
// dispatch = "lu"
//
// [defines]
// PANEL          = 32    # columns of a panel: one for each lane of a warp
// PANEL_THREADS  = 256   # of eliminate_column
// ROWS_PER_WARP  = 8     # of eliminate_column
// TILE           = 128   # of update_trailing, in float; 64 in double
// ///
//
// Like `lu_partial_pivot`, with one change: a substitution is one launch instead of n / 32. A block
// solves for 32 unknowns. Unknowns necessarily come one after the other, but between its launches
// `lu_partial_pivot` waits until all blocks have subtracted the last 32 everywhere; here a block
// goes on as soon as the unknowns that it needs are in memory. substitute_chain.cuh explains how it
// waits for them without a fence, and never for a block that cannot run.
//
// A solution and a refinement are four substitutions, n / 8 launches that become 4.
// Limits: the factorization still launches a kernel for each column: `lu_elected_panel`.
//
// Macros from outside: T (element type), PANEL, PANEL_THREADS, ROWS_PER_WARP, TILE.
#include "solve/lu_partial_pivot.cu"
#include "solve/parts/substitute_chain.cuh"

// Source: Hogg, A Fast Dense Triangular Solve in CUDA. doi:10.1137/12088358X.
