"""The launch plan of flip."""

from __future__ import annotations

import numpy as np

from cudalab.labs.base import Job, Step, blocks_for


def dispatch_elements(job: Job) -> Step:
    """One launch, a thread for each number.

    flip(const T *in, T *out, unsigned n)
        out[i] = in[n - 1 - i].
    """
    (x,) = job.buffers.values()
    n = job.params["n"]
    threads = job.define("THREADS_PER_BLOCK")
    out = job.device.empty(x.shape, x.dtype)
    flip = job.kernels["flip"]

    def run() -> None:
        job.device.launch(flip, blocks_for(n, threads), threads, x, out, np.uint32(n))

    return Step(run, out)
