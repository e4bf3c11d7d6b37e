"""The launch plan of softmax: which kernel runs, on which memory.

`x` is the input; rows and cols < 2^31.
"""

import numpy as np

from cudalab.labs.base import Job, Step, blocks_for


def dispatch_rows(job: Job) -> Step:
    """One launch, a block per ROWS_PER_BLOCK rows.

    softmax_rows(const float *x, float *out, unsigned rows, unsigned cols)
        out[r * cols + c] = exp(x[r * cols + c]) / sum of exp(x[r * cols + i]) over i < cols
    Blocks of THREADS_PER_BLOCK threads.
    """
    device, x = job.device, job.buffers["x"]
    rows, cols = job.params["rows"], job.params["cols"]
    grid, threads = blocks_for(rows, job.define("ROWS_PER_BLOCK")), job.define("THREADS_PER_BLOCK")
    out = device.empty((rows, cols), x.dtype)
    args = (x, out, np.uint32(rows), np.uint32(cols))

    def run() -> None:
        device.launch(job.kernels["softmax_rows"], grid, threads, *args)

    return Step(run, out)
