// /// cudalab
// summary  = "LU factors: a panel's 32 pivots are elected in one launch"
// order    = 7.8
// ladder   = "direct methods"
// adds     = "a panel's pivots in one launch: an election among blocks"
// dispatch = "lu"
//
// [defines]
// PANEL                 = 32    # columns whose pivots one launch finds
// MAX_THREADS_PER_BLOCK = 640   # of choose_pivots, in float; half in double
// TILE                  = 128   # of update_trailing, in float; half in double
// ///
//
// `lu_substitution_chain` launches a kernel for each column, and most of its time is the cost of
// the launches. Here a panel of 32 columns takes two launches, and its pivots are found before
// anything is eliminated:
//   choose_pivots    an election: each block finds the 32 best rows among its own, by eliminating
//                    them in registers, one per thread; the last block to finish finds the 32 best
//                    among those, brings them to the top of the panel and computes their triangles
//   eliminate_rows   all rows below: their part of L by substitution with the panel's triangle;
//                    other blocks exchange the rows in all other columns
//
// Up to MAX_THREADS_PER_BLOCK rows fit into one block, whose pivots are as good as those of
// `lu_partial_pivot`. Beyond that it is tournament pivoting (Grigori, Demmel, Xiang: CALU): a pivot
// is the greatest among the rows that their blocks have elected, not in the whole column, so
// multipliers may exceed 2. In practice they stay small; if they do not, the residual shows it and
// `lu_partial_pivot` takes over. No block waits for another in the election: the last one to arrive
// goes on alone.
//
// Limits: the rest of the matrix is still read and written once per panel, for 32 numbers along k:
// `lu_blocked_panel`.
//
// Macros from outside: T (element type), PANEL, MAX_THREADS_PER_BLOCK, TILE.
#include "solve/parts/choose_pivots.cuh"
#include "solve/parts/eliminate_rows.cuh"
#include "solve/parts/residual.cuh"
#include "solve/parts/right_hand_side.cuh"
#include "solve/parts/scaled_rows.cuh"
#include "solve/parts/substitute_chain.cuh"
#include "solve/parts/update_by_panel.cuh"

// Source: Grigori, Demmel and Xiang, CALU: A Communication Optimal LU Factorization Algorithm. SIAM
// Journal on Matrix Analysis and Applications 32(4), 2011.
