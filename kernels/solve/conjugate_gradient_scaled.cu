// /// cudalab
// summary  = "Conjugate gradients, scaled by the diagonal, one launch per iteration"
// order    = 5.5
// adds     = "scaled by the diagonal: fewer iterations"
// dispatch = "descent"
// defines  = { THREADS_PER_BLOCK = 512, ROWS_PER_BLOCK = 16, START_THREADS = 1024, SCALED = 1 }
// ///
//
// `conjugate_gradient_one_launch` with fewer iterations: steps are taken in the variables
// x_i sqrt(|a_ii|), in which the diagonal is 1 (Jacobi's preconditioner). Rows and columns of
// different size, which alone make a matrix ill-conditioned, then cost nothing. All that it needs
// is z = r / diagonal, and r.z in place of r.r: `inverse` holds 1 / diagonal.
// Limits: refuses matrices that are not symmetric and definite. A matrix with a constant diagonal
// takes as many iterations as without scaling.
//
// Macros from outside: T (element type), THREADS_PER_BLOCK, ROWS_PER_BLOCK, START_THREADS, SCALED.
#include "solve/conjugate_gradient_one_launch.cu"

// Source: Saad, Iterative Methods for Sparse Linear Systems. SIAM, 2003.
