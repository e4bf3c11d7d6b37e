// A panel's 32 pivots in one launch: an election in two rounds, and their rows brought to the top.
#pragma once
#include "solve/parts/elect_rows.cuh"
#include "solve/parts/exchange_rows.cuh"
#include "solve/parts/solve_upper.cuh"

// Brings the chosen rows to the top, in the columns start to strip_end, and turns their part right
// of the panel into rows of U. One thread per column: no thread reads what another writes.
__device__ inline void raise_rows(const Election& elected, const unsigned (&places)[PANEL], T* lu,
                                  unsigned ld, unsigned start, unsigned strip_end) {
    for (unsigned c = threadIdx.x; c < strip_end - start; c += blockDim.x) {
        T* column = lu + start + c;
        __syncwarp();  // or the compiler reads all of L before the loop, into 500 registers
        // A read waits for the writes before it, which might be to the same place. So the rows at
        // the top are read eight at a time before any of them is written elsewhere.
        T u[PANEL];
#pragma unroll
        for (unsigned k = 0; k < PANEL; ++k) u[k] = column[(size_t)elected.chosen[k] * ld];
#pragma unroll 1
        for (unsigned first = 0; first < PANEL; first += 8) {
            T top[8];
#pragma unroll
            for (unsigned k = 0; k < 8; ++k) top[k] = column[(size_t)(start + first + k) * ld];
#pragma unroll
            for (unsigned k = 0; k < 8; ++k) {
                const unsigned place = places[first + k];
                if (place != NONE) column[(size_t)place * ld] = top[k];
            }
        }
        if (c < PANEL) {
#pragma unroll
            for (unsigned k = 0; k < PANEL; ++k) u[k] = elected.factors[c][k];
        } else {
            solve_upper(elected.factors, u);
        }
#pragma unroll
        for (unsigned k = 0; k < PANEL; ++k) column[(size_t)(start + k) * ld] = u[k];
    }
}

// candidates: PANEL for each block. arrived: 0 before and after. status[0]: 0, or the number (from
// 1) of the first column whose pivot is not above `threshold`, negative if the pivot is not finite;
// status[1]: that pivot's size. Blocks of whole warps share the rows from start to end.
extern "C" __global__ void __launch_bounds__(MAX_ELECTION_THREADS) choose_pivots(
    T* lu, const T* relative, unsigned* row_of, unsigned* candidates, unsigned* arrived,
    unsigned* pivots, double* status, double threshold, unsigned end, unsigned ld, unsigned start,
    unsigned strip_end) {
    __shared__ Election elected;
    __shared__ unsigned places[PANEL];
    __shared__ bool is_last;
    const unsigned lane = threadIdx.x;  // in the first warp
    // The first round elects among the block's own rows. The last block goes on: each further round
    // elects among as many candidates as there is room for, including the best of the rounds
    // before.
    const unsigned num_candidates = gridDim.x > 1 ? gridDim.x * PANEL : 0;
    unsigned done = 0, row = start + blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= end) row = NONE;
    while (true) {
        elect_rows(elected, lu, relative, row_of, row, ld, start);
        if (done == 0 && num_candidates > 0) {
            if (threadIdx.x < PANEL) {
                candidates[blockIdx.x * PANEL + lane] = elected.chosen[lane];
                __syncwarp();  // all candidates are written
                if (lane == 0) {
                    __threadfence();  // a block that sees the arrival must see the candidates
                    is_last = atomicInc(arrived, gridDim.x - 1) == gridDim.x - 1;  // ends as 0
                    __threadfence();  // candidates are read after the arrivals
                }
            }
            __syncthreads();  // every thread knows whether this block is the last
            if (!is_last) return;
        }
        if (done >= num_candidates) break;
        const unsigned kept = done ? PANEL : 0;
        const unsigned next = done + threadIdx.x - kept;
        row = NONE;
        if (threadIdx.x < kept) {
            row = elected.chosen[threadIdx.x];
        } else if (next < num_candidates) {
            row = __ldcg(candidates + next);  // written by blocks that may run elsewhere
        }
        done += blockDim.x - kept;
        __syncthreads();  // all have read the rows elected before
    }

    if (threadIdx.x < 32) {
        const unsigned pivot = elected.chosen[lane];
        const T size = elected.sizes[lane];
        const bool finite = size - size == 0;
        const unsigned bad = __ballot_sync(FULL, !(finite && size > threshold));
        if (bad && lane == __ffs(bad) - 1 && status[0] == 0) {
            const double number = (double)start + lane + 1;
            status[0] = finite ? number : -number;
            status[1] = size;
        }
        const unsigned place = new_place(pivot, start);
        const unsigned chosen_number = row_of[pivot], top_number = row_of[start + lane];
        __syncwarp();  // all numbers have been read
        row_of[start + lane] = chosen_number;
        if (place != NONE) row_of[place] = top_number;
        places[lane] = place;
        pivots[start + lane] = pivot;
    }
    __syncthreads();  // the moves are known
    raise_rows(elected, places, lu, ld, start, strip_end);
}
