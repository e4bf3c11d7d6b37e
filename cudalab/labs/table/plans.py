"""The launch plans of table: which kernels run, in what order, on which memory."""

import numpy as np

from cudalab.labs.base import Job, Step, blocks_for


def dispatch_one_per_item(job: Job) -> Step:
    """One launch, a thread per element, in blocks of THREADS_PER_BLOCK threads.

    __constant__ float step
        set before the launch
    tabulate(float *y, unsigned n)
        y[i] = sin(sqrt(i * step))
    """
    device, n = job.device, job.params["n"]
    threads = job.define("THREADS_PER_BLOCK")
    y, blocks = device.empty(n, np.float32), blocks_for(n, threads)
    step, constant = job.buffers["step"], device.constant(job.kernels, "step")

    def run() -> None:
        # Every time, because another table with the same module may have another step.
        device.copy(step, constant)
        device.launch(job.kernels["tabulate"], blocks, threads, y, np.uint32(n))

    return Step(run, y)
