"""The accuracy of an answer of solve: its residual, measured on the device, and the bound."""

import math
from dataclasses import dataclass

import numpy as np

from cudalab.backends.base import Buffer
from cudalab.errors import InputError
from cudalab.labs.base import Job
from cudalab.labs.inputs import Case
from cudalab.labs.solve.launches import THREADS, launch, warp_blocks
from cudalab.labs.solve.spectrum import RefusalError

PROMISE = {"float32": 1e-6, "float64": 1e-14}  # maximum backward error over the square root of n
NORM_THREADS = 1024  # of find_norms, which is one block


def promise(dtype: str, n: int) -> float:
    """The maximum backward error of an answer."""
    return PROMISE[dtype] * math.sqrt(n)


def backward_error(residual: float, x_norm: float, f_norm: float, *, a_norm: float) -> float:
    """The relative size of the smallest change of A and f for which x is exact.

    Infinite where a kernel has found norms of 0 beside a residual.
    """
    size = a_norm * x_norm + f_norm
    if not size:
        return math.inf if residual else 0.0
    return residual / size


def target_of(case: Case, n: int, margin: float = 1.0) -> float:
    """The backward error to stop at: --tol, or the promise times a margin for rounding."""
    tol = case.get("tol")
    return float(tol) if tol is not None else margin * promise(case["dtype"], n)


@dataclass(frozen=True)
class Measurement:
    """The accuracy of an x, in maximum norms."""

    residual: float
    a_norm: float
    x_norm: float
    f_norm: float

    @property
    def error(self) -> float:
        """The backward error; NaN counts as infinite."""
        error = backward_error(self.residual, self.x_norm, self.f_norm, a_norm=self.a_norm)
        return math.inf if math.isnan(error) else error

    def check_finite(self) -> None:
        """Raise an InputError for an input that no method can solve."""
        for name, norm in (("A", self.a_norm), ("f", self.f_norm)):
            if not math.isfinite(norm):
                raise InputError(
                    f"{name} holds NaNs or infinities, or numbers too large to be added",
                    hint="all elements must be finite",
                )

    def __str__(self) -> str:
        """The text of the run's report."""
        return f"residual {self.residual:.3g}, backward error {self.error:.3g}"


class NotSolvedError(RefusalError):
    """A method ended with an answer that is not accurate enough."""

    def __init__(self, what: str, now: Measurement, job: Job) -> None:
        tol, dtype, n = job.case.get("tol"), job.case["dtype"], job.params["n"]
        message, hint = f"{what}, {now}", "lu_partial_pivot solves any non-singular system"
        if tol is not None and now.error <= promise(dtype, n):
            message += f": --tol asks for {tol:g}"
            hint = f"below {promise(dtype, n):.3g} the rounding of {dtype} decides: no method "
            hint += "promises less"
        super().__init__(message, hint)


class Meter:
    """Measures answers on the device, in double; only these numbers are read back while solving."""

    def __init__(self, job: Job, others: int = 0) -> None:
        """`others` is the number of places after the norms for numbers that are read with them."""
        self.job = job
        self.n = job.params["n"]
        self.r = job.device.empty(self.n, np.float64)  # f - A x of the last measurement
        self.row_sums = job.device.empty(self.n, np.float64)
        self.norms = job.device.empty(4 + others, np.float64)
        self.last = Measurement(0, 0, 0, 0)
        self.others: list[float] = []

    def find_residual(self, x: Buffer) -> None:
        """Launch the computation of x's residual, in `r`."""
        launch(
            self.job, "residual", warp_blocks(self.n), THREADS,
            a=self.job.buffers["a"], x=x, f=self.job.buffers["f"], r=self.r,
            row_sums=self.row_sums, n=self.n,
        )  # fmt: skip

    def launch(self, x: Buffer) -> None:
        """Launch the computation of x's residual, in `r`, and of the norms, in `norms`."""
        self.find_residual(x)
        launch(
            self.job, "find_norms", 1, NORM_THREADS,
            r=self.r, row_sums=self.row_sums, x=x, f=self.job.buffers["f"], norms=self.norms,
            n=self.n,
        )  # fmt: skip

    def read(self) -> Measurement:
        """Read the measurement launched last; numbers after the norms go to `others`."""
        residual, a_norm, x_norm, f_norm, *self.others = self.job.device.to_host(
            self.norms
        ).tolist()
        self.last = Measurement(residual, a_norm, x_norm, f_norm)
        return self.last

    def measure(self, x: Buffer) -> Measurement:
        """Measure x; its residual stays in `r`."""
        self.launch(x)
        return self.read()
