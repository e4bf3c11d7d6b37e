"""The iterations of solve: when each converges, and the launches of its steps."""

import math
from collections.abc import Iterator

import numpy as np

from cudalab.backends.base import Buffer, Kernel
from cudalab.labs.base import Job, blocks_for
from cudalab.labs.inputs import Array
from cudalab.labs.solve import spectrum
from cudalab.labs.solve.launches import THREADS, arguments, launch, warp_blocks
from cudalab.labs.solve.residual import Measurement, Meter

Launch = tuple[Kernel, int, tuple[Buffer | np.generic, ...]]


class Iteration:
    """An iteration for x. Subclasses know when it converges and how to launch it."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.n = job.params["n"]
        self.element = np.dtype(job.case["dtype"]).type
        rows = job.define("ROWS_PER_BLOCK")
        self.rows_grid, self.threads = blocks_for(self.n, rows), job.define("THREADS_PER_BLOCK")
        self.x, self._other = (job.device.empty(self.n, self.element) for _ in range(2))
        self._centers, self._radii = (job.device.empty(self.n, np.float64) for _ in range(2))

    def begin(self, meter: Meter) -> str:
        """Return the reason why it converges. NoStepError if it does not; meter.r is f - A x."""
        raise NotImplementedError

    def advance(self, count: int, meter: Meter) -> None:
        """Launch `count` iterations, alternating between two arrays for x."""
        del meter
        a, f, n = self.job.buffers["a"], self.job.buffers["f"], np.uint32(self.n)
        kernel, grid = self.job.kernels["iterate"], self.rows_grid
        for _ in range(count):
            own = self.arguments()
            self.job.device.launch(kernel, grid, self.threads, a, f, self.x, self._other, *own, n)
            self.x, self._other = self._other, self.x

    def arguments(self) -> tuple[Buffer | np.generic, ...]:
        """Further arguments of the next iteration's kernel, between both x and n."""
        return ()

    def circles(self) -> tuple[Array, Array]:
        """Gershgorin's circles: the diagonal of A, and the sums of magnitudes beside it."""
        launch(
            self.job, "find_circles", warp_blocks(self.n), THREADS,
            a=self.job.buffers["a"], centers=self._centers, radii=self._radii, n=self.n,
        )  # fmt: skip
        to_host = self.job.device.to_host
        return to_host(self._centers), to_host(self._radii)

    def symmetric(self) -> bool:
        """Whether A equals its transpose, exactly."""
        device = self.job.device
        count = device.to_device(np.zeros(1, np.uint32))
        count_unsymmetric(self.job, count)
        return int(device.to_host(count)[0]) == 0

    def product(self, vector: Array) -> Array:
        """A times a vector in host memory."""
        return self._product("multiply", warp_blocks(self.n), vector)

    def transposed(self, vector: Array) -> Array:
        """The transpose of A times a vector in host memory."""
        return self._product("multiply_transposed", blocks_for(self.n, THREADS), vector)

    def _product(self, name: str, grid: int, vector: Array) -> Array:
        device = self.job.device
        x, y = device.to_device(vector), device.empty(self.n, np.float64)
        launch(self.job, name, grid, THREADS, a=self.job.buffers["a"], x=x, y=y, n=self.n)
        return device.to_host(y)


class Richardson(Iteration):
    """One step size for all rows, chosen from the spectrum unless --alpha sets it."""

    alpha: float | None = None
    why = "given"

    def begin(self, meter: Meter) -> str:
        del meter
        self.alpha = self.job.case.get("alpha")
        if self.alpha is None:
            self.alpha, self.why = spectrum.richardson_step(
                *self.circles(),
                symmetric=self.symmetric(),
                product=self.product,
                transposed=self.transposed,
                matrix=lambda: self.job.device.to_host(self.job.buffers["a"]),
            )
        return f"alpha = {self.alpha:.6g}: {self.why}"

    def arguments(self) -> tuple[Buffer | np.generic, ...]:
        return (self.element(self.alpha),)


class Jacobi(Iteration):
    """A step size for each row, the inverse of its diagonal element."""

    def begin(self, meter: Meter) -> str:
        del meter
        centers, radii = self.circles()
        factor = contraction(centers, radii)
        if factor < 1:
            return (
                f"A is diagonally dominant, an iteration leaves {factor:.4g} of the error or less"
            )
        if factor == 1 and bool((radii < np.abs(centers)).any()):
            return "A is weakly diagonally dominant: slow"
        worst = int(np.argmax(radii - np.abs(centers)))
        raise spectrum.NoStepError(
            f"jacobi needs a diagonally dominant A: row {worst} has {centers[worst]:.4g} on the "
            f"diagonal and {radii[worst]:.4g} beside it"
        )


class Chebyshev(Iteration):
    """Step sizes from an interval that contains all eigenvalues of a symmetric matrix."""

    coefficients: Iterator[tuple[float, float]]

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.step = job.device.empty(self.n, self.element)  # of the iteration before

    def begin(self, meter: Meter) -> str:
        del meter
        if not self.symmetric():
            raise spectrum.NoStepError("chebyshev needs a symmetric A, and this is none")
        bounds = spectrum.symmetric_interval(*self.circles(), self.product)
        if not bounds.definite:
            raise spectrum.NoStepError(
                "chebyshev needs eigenvalues on one side of zero: those of A are in "
                f"{bounds}, with both signs or zero"
            )
        self.coefficients = chebyshev_coefficients(bounds.low, bounds.high)
        return f"A is symmetric with eigenvalues in {bounds}"

    def arguments(self) -> tuple[Buffer | np.generic, ...]:
        c1, c2 = next(self.coefficients)
        return self.step, self.element(c1), self.element(c2)


class ConjugateGradient(Iteration):
    """The vectors of conjugate gradients; x is changed in place."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.blocks = min(job.define("BLOCKS"), blocks_for(self.n, self.threads))
        empty = job.device.empty
        self.r, self.p, self.q = (empty(self.n, self.element) for _ in range(3))
        self.pq = empty(self.rows_grid, np.float64)
        self.rr, self.new_rr = (empty(self.blocks, np.float64) for _ in range(2))
        self.not_definite = empty(1, np.uint32)
        self.sign = np.float64(1)

    def begin(self, meter: Meter) -> str:
        centers, _ = self.circles()
        if not self.symmetric():
            raise spectrum.NoStepError("conjugate_gradient needs a symmetric A, and this is none")
        if not (centers.min() > 0 or centers.max() < 0):
            raise spectrum.NoStepError(
                "conjugate_gradient needs a definite A: its diagonal has numbers of both signs or 0"
            )
        self.sign = np.float64(np.sign(centers[0]))
        self.job.device.copy(np.zeros(1, np.uint32), self.not_definite)
        self._start(meter)
        return "A is symmetric, its diagonal has one sign"

    def advance(self, count: int, meter: Meter) -> None:
        """Restart if rounding has moved r away from the residual, then iterate."""
        recursive = math.sqrt(float(self.job.device.to_host(self.rr).sum()))
        if recursive < meter.last.residual / 10:
            self._start(meter)
        launches_by_turn = [
            self._iteration(rr, new_rr)
            for rr, new_rr in ((self.rr, self.new_rr), (self.new_rr, self.rr))
        ]
        for number in range(count):
            for kernel, grid, values in launches_by_turn[number % 2]:
                self.job.device.launch(kernel, grid, self.threads, *values)
        if count % 2:
            self.rr, self.new_rr = self.new_rr, self.rr
        if self.job.device.to_host(self.not_definite)[0]:
            raise spectrum.NoStepError("conjugate_gradient needs a definite A, and this is none")

    def _start(self, meter: Meter) -> None:
        """Continue from the residual in the meter."""
        launch(
            self.job, "start_direction", self.blocks, self.threads,
            residual=meter.r, r=self.r, p=self.p, partials=self.rr, n=self.n,
        )  # fmt: skip

    def _iteration(self, rr: Buffer, new_rr: Buffer) -> list[Launch]:
        """The three launches of an iteration, from one buffer of parts of r.r to the other."""
        kernels = self.job.kernels
        product = arguments(a=self.job.buffers["a"], p=self.p, q=self.q, partials=self.pq, n=self.n)
        step = arguments(
            x=self.x, r=self.r, p=self.p, q=self.q, pq_parts=self.pq, num_pq=self.rows_grid,
            rr_parts=rr, new_rr_parts=new_rr, not_definite=self.not_definite, sign=self.sign,
            n=self.n,
        )  # fmt: skip
        turn = arguments(p=self.p, r=self.r, rr_parts=rr, new_rr_parts=new_rr, n=self.n)
        return [
            (kernels["multiply_direction"], self.rows_grid, product),
            (kernels["take_step"], self.blocks, step),
            (kernels["turn_direction"], self.blocks, turn),
        ]


class Descent:
    """Conjugate gradients that run on the device without the host, until they stop."""

    def __init__(self, job: Job, x: Buffer) -> None:
        """`x` is the buffer of the answer."""
        self.job, self.x, n = job, x, job.params["n"]
        device, dtype = job.device, np.dtype(job.case["dtype"])
        self.n, self.target = n, np.float64(0)
        self.blocks = blocks_for(n, job.define("ROWS_PER_BLOCK"))
        self.threads = job.define("THREADS_PER_BLOCK")
        self.meter = Meter(job, others=3)
        self.inverse, self.r, self.p, self.q = (device.empty(n, dtype) for _ in range(4))
        self.partials = device.empty(self.blocks, np.float64)
        self.arrived, self.unsymmetric = (
            device.to_device(np.zeros(1, np.uint32)) for _ in range(2)
        )
        self.nothing = device.to_device(np.zeros(n, dtype))
        self.start = device.to_device(np.zeros(self.meter.norms.shape))

    def begin(self, target: float) -> None:
        """Start from x = 0, to stop at the backward error `target`. A need not be checked yet."""
        self.target = np.float64(target)
        self.job.device.copy(self.nothing, self.x)
        self.job.device.copy(self.start, self.meter.norms)
        count_unsymmetric(self.job, self.unsymmetric)
        self.meter.find_residual(self.x)
        self.restart()

    def restart(self) -> None:
        """Continue from the residual in the meter."""
        buffers, meter = self.job.buffers, self.meter
        launch(
            self.job, "start_descent", 1, self.job.define("START_THREADS"),
            a=buffers["a"], residual=meter.r, row_sums=meter.row_sums, f=buffers["f"],
            inverse=self.inverse, r=self.r, p=self.p, unsymmetric=self.unsymmetric,
            state=meter.norms, n=self.n,
        )  # fmt: skip

    def advance(self, count: int) -> None:
        """Enqueue `count` iterations; those after the last one needed do nothing."""
        kernel = self.job.kernels["descend"]
        values = arguments(
            a=self.job.buffers["a"], inverse=self.inverse, x=self.x, r=self.r, p=self.p, q=self.q,
            partials=self.partials, arrived=self.arrived, state=self.meter.norms,
            wanted=self.target, n=self.n,
        )  # fmt: skip
        for _ in range(count):
            self.job.device.launch(kernel, self.blocks, self.threads, *values)

    def measure(self) -> tuple[Measurement, int, int]:
        """Measure x; return that, the number of the reason to stop, and the iterations."""
        now = self.meter.measure(self.x)
        reason, count, _ = self.meter.others
        return now, int(reason), int(count)


def count_unsymmetric(job: Job, count: Buffer) -> None:
    """Add to `count` the number of pairs a_ij != a_ji."""
    tiles, n = blocks_for(job.params["n"], 32), job.params["n"]
    launch(job, "count_unsymmetric", (tiles, tiles), (32, 8), a=job.buffers["a"], count=count, n=n)


def contraction(centers: Array, radii: Array) -> float:
    """The greatest quotient of a radius and its center; infinite if a center is zero."""
    sizes = np.abs(centers)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.max(np.where(sizes > 0, radii / sizes, np.inf)))


def chebyshev_coefficients(low: float, high: float) -> Iterator[tuple[float, float]]:
    """Yield (c1, c2) for each iteration; the eigenvalues are in [low, high], on one side of zero.

    Let t be the interval's center, w half its width, and p_k the quotient of the values at zero of
    the Chebyshev polynomials of degree k - 1 and k: p_1 = w / t, 1 / p_k = 2 t / w - p_(k-1),
    c1 = p_k p_(k-1), c2 = 2 p_k / w.
    """
    center = (low + high) / 2
    half = math.copysign(max((high - low) / 2, 1e-6 * abs(center)), center)
    yield 0.0, 1 / center
    quotient = half / center
    while True:
        before, quotient = quotient, 1 / (2 * center / half - quotient)
        yield quotient * before, 2 * quotient / half
