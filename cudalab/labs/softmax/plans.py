"""The launch plan of softmax: which kernel runs, on which memory.

`x` is the input; rows and cols < 2^31.
"""

from cudalab.labs.base import Job, Step, blocks_for


def dispatch_rows(job: Job) -> Step:
    """One launch, a block per ROWS_PER_BLOCK rows.

    softmax_rows(const float *x, float *out, unsigned rows, unsigned cols)
        out[r * cols + c] = exp(x[r * cols + c]) / sum of exp(x[r * cols + i]) over i < cols
    Blocks of THREADS_PER_BLOCK threads.
    """
    x, rows, cols = job.buffers["x"], job.params["rows"], job.params["cols"]
    grid, threads = blocks_for(rows, job.define("ROWS_PER_BLOCK")), job.define("THREADS_PER_BLOCK")
    out = job.device.empty((rows, cols), x.dtype)
    return Step(job.launch("softmax_rows", grid, threads, x, out, rows, cols), out)
