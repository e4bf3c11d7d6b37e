"""The launch plans of solve: which kernels run, in what order, on which memory.

Every file includes parts/residual.cuh, whose kernels measure the answer; all plans end with that
measurement and turn an answer over the bound into an error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cudalab import labs
from cudalab.errors import InputError, UsageError
from cudalab.labs import registry
from cudalab.labs.base import Job, Step, blocks_for
from cudalab.labs.solve import spectrum
from cudalab.labs.solve.factors import (
    THREADS,
    BlockedFactors,
    Direct,
    Factors,
    Inverse,
    SingularError,
    warp_blocks,
)
from cudalab.language import source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cudalab.backends.base import Buffer
    from cudalab.labs.inputs import Array, Case

PROMISE = {"float32": 1e-6, "float64": 1e-14}  # the backward error, over the square root of n
REFINEMENTS = 10
MAX_ITER = 10_000
GROWTH = 1e4  # of the residual, over f, the first one: the iteration diverges
NORM_THREADS = 1024  # of find_norms, which is one block
FIRST_BATCH = 8  # iterations that are enqueued before anything is known of the matrix
# The reasons to stop of kernels that decide on the device.
SMALL_ENOUGH = 1
REFUSALS = {
    2: "symmetric A, and this is none",
    3: "definite A: its diagonal has numbers of both signs or 0",
    4: "definite A, and this is none",
}


def dispatch_richardson(job: Job) -> Step:
    """x1 = x0 + alpha (A x0 - f) until the backward error is small enough.

    iterate(const T *a, const T *f, const T *x0, T *x1, T alpha, unsigned n)
        blocks of THREADS_PER_BLOCK threads, one for each ROWS_PER_BLOCK rows
    Without --alpha it is chosen by the kernels of parts/spectrum.cuh: find_circles,
    count_unsymmetric, multiply, multiply_transposed. Also: those of parts/residual.cuh.
    """
    return _iterate(job, "richardson", _Richardson(job))


def dispatch_jacobi(job: Job) -> Step:
    """x1_i = x0_i + (f_i - (A x0)_i) / a_ii until the backward error is small enough.

    iterate(const T *a, const T *f, const T *x0, T *x1, unsigned n)
        blocks of THREADS_PER_BLOCK threads, one for each ROWS_PER_BLOCK rows
    Also: find_circles of parts/spectrum.cuh and the kernels of parts/residual.cuh.
    """
    _no_alpha(job)
    return _iterate(job, "jacobi", _Jacobi(job))


def dispatch_chebyshev(job: Job) -> Step:
    """d1 = c1 d0 + c2 (f - A x0), x1 = x0 + d1 until the backward error is small enough.

    iterate(const T *a, const T *f, const T *x0, T *x1, T *d, T c1, T c2, unsigned n)
        d0 is read from d, d1 written there, by the same thread; c1 is 0 in the first iteration;
        blocks of THREADS_PER_BLOCK threads, one for each ROWS_PER_BLOCK rows
    Also: the kernels of parts/spectrum.cuh and parts/residual.cuh.
    """
    _no_alpha(job)
    return _iterate(job, "chebyshev", _Chebyshev(job))


def dispatch_conjugate_gradient(job: Job) -> Step:
    """Steps along conjugate directions; the step sizes stay on the device.

    start_direction(const double *residual, T *r, T *p, double *partials, unsigned n)
        r = p = residual and, as below, the parts of r.r
    multiply_direction(const T *a, const T *p, T *q, double *partials, unsigned n)
        q = A p; partials[block] = the block's part of p.q; blocks of ROWS_PER_BLOCK rows
    take_step(T *x, T *r, const T *p, const T *q, const double *pq_parts, unsigned num_pq,
              const double *rr_parts, double *new_rr_parts, unsigned *not_definite,
              double sign, unsigned n)
        x += s p, r -= s q, s = r.r / p.q; not_definite[0] = 1 if sign * p.q is not positive
    turn_direction(T *p, const T *r, const double *rr_parts, const double *new_rr_parts,
                   unsigned n)
        p = r + p (new r.r / old r.r)
    All but multiply_direction run in up to BLOCKS blocks, which leave as many parts of r.r;
    blocks have THREADS_PER_BLOCK threads. Also: find_circles and count_unsymmetric of
    parts/spectrum.cuh, the kernels of parts/residual.cuh.
    """
    _no_alpha(job)
    return _iterate(job, "conjugate_gradient", _ConjugateGradient(job))


def dispatch_scaled_gradient(job: Job) -> Step:
    """Conjugate gradients that stop by themselves; the host reads only how they ended.

    start_descent(const T *a, const double *residual, const double *row_sums, const T *f,
                  T *inverse, T *r, T *p, unsigned *unsymmetric, double *state, unsigned n)
        one block of START_THREADS threads: r = residual, inverse = 1 / diagonal,
        p = inverse r; the norms and r.p into `state`
    descend(const T *a, const T *inverse, T *x, T *r, T *p, T *q, double *partials,
            unsigned *arrived, double *state, double wanted, unsigned n)
        an iteration, or nothing if `state` says that all is done; blocks of
        THREADS_PER_BLOCK threads, one for each ROWS_PER_BLOCK rows
    state: the four norms of find_norms, 0 or the reason to stop, the iterations, r.(inverse r).
    Also: count_unsymmetric of parts/spectrum.cuh, the kernels of parts/residual.cuh.
    """
    _no_alpha(job)
    name = "conjugate_gradient_scaled"
    out = job.device.empty(job.params["n"], job.case["dtype"])
    method = _Descent(job, out)
    target, most = _target(job.case, job.params["n"]), job.case.get("max_iter", MAX_ITER)
    notes: list[str] = []

    def converge() -> None:
        method.begin(wanted=0.8 * target)  # by a residual in the element type: rounding
        count, before = 0, math.inf
        while True:
            method.advance(min(max(FIRST_BATCH, count // 2), most - count))
            now, reason, count = method.measure()
            now.check_finite()
            if reason in REFUSALS:
                raise spectrum.NoStepError(f"{name} needs a {REFUSALS[reason]}")
            if now.error <= target:
                break
            if count >= most:
                raise _NotSolvedError(
                    f"{name} has not converged after {count} iterations", now, job
                )
            if reason == SMALL_ENOUGH:  # rounding has led r away from the residual
                if not now.error < before / 2:
                    raise _NotSolvedError(f"{name} stays where it is: {count} iterations", now, job)
                before = now.error
                method.restart()
        notes.append(f"{name}: A is symmetric, its diagonal has one sign")
        notes.append(f"{name}: {count} iterations, {now}")

    return Step(_or_factors(job, converge, notes, out), out, reads_back=True, notes=notes)


def dispatch_lu(job: Job) -> Step:
    """LU factors, 32 columns at a time; then substitution and refinement.

    find_candidates, eliminate_column, permute_rows, solve_rows, update_trailing,
    substitute_lower, substitute_upper
        as lu_partial_pivot.cu describes them, with its defines
    or, where the file defines choose_pivots
    choose_pivots, eliminate_rows, solve_rows, update_trailing, substitute_lower,
    substitute_upper
        as lu_blocked_panel.cu describes them, with its defines
    Also: the kernels of parts/scaled_rows.cuh and parts/residual.cuh.
    """
    _no_alpha(job)
    if "choose_pivots" in job.kernels.source.kernels:
        return _refine(job, "lu_blocked_panel", BlockedFactors(job))
    return _refine(job, "lu_partial_pivot", Factors(job))


def dispatch_gauss_jordan(job: Job) -> Step:
    """The inverse, one launch of eliminate a step; then refinement.

    choose_pivot(const T *work, const T *relative, unsigned char *taken, T *pivot_row,
                 T *multipliers, unsigned *pivot, unsigned *row_of_column, double *status,
                 double threshold, unsigned n, unsigned ld, unsigned step)
        one block of SEARCH_THREADS threads: the pivot of column `step`, its divided row, the
        multipliers
    or, where the file defines it, with pivots of the whole matrix
    find_row_candidates(const T *work, const T *relative, const unsigned char *taken,
                        T *sizes, unsigned *columns, unsigned n, unsigned ld)
    choose_pivot(const T *work, const T *sizes, const unsigned *columns, unsigned char *taken,
                 … as above)
    Also: the kernels of parts/gauss_jordan.cuh, parts/scaled_rows.cuh, parts/residual.cuh.
    """
    _no_alpha(job)
    complete = "find_row_candidates" in job.kernels.source.kernels
    name = "complete_pivot" if complete else "gauss_jordan"
    return _refine(job, name, Inverse(job, complete=complete))


def _iterate(job: Job, name: str, method: _Iteration) -> Step:
    """Iterate from x = 0; measure from time to time, on the device, and decide on the host."""
    n, dtype = job.params["n"], job.case["dtype"]
    out, meter = job.device.empty(n, dtype), _Meter(job)
    zero = job.device.to_device(np.zeros(n, dtype))
    target, most = _target(job.case, n, margin=0.5), job.case.get("max_iter", MAX_ITER)
    notes: list[str] = []

    def converge() -> None:
        job.device.copy(zero, method.x)
        now = meter.measure(method.x)
        now.check_finite()
        if now.error > 0:  # f = 0 needs no iteration, and no reason why it would converge
            notes.append(f"{name}: {method.begin(meter)}")
        count = 0
        while now.error > target:
            if count >= most:
                raise _NotSolvedError(
                    f"{name} has not converged after {count} iterations", now, job
                )
            batch = min(max(4, count // 8), 32, most - count)
            method.advance(batch, meter)
            count += batch
            now = meter.measure(method.x)
            if not now.residual < GROWTH * now.f_norm:
                raise _NotSolvedError(f"{name} diverges: after {count} iterations", now, job)
        job.device.copy(method.x, out)
        notes.append(f"{name}: {count} iterations, {now}")

    return Step(_or_factors(job, converge, notes, out), out, reads_back=True, notes=notes)


def _or_factors(
    job: Job, converge: Callable[[], None], notes: list[str], out: Buffer
) -> Callable[[], None]:
    """An iteration, and LU factors where it fails and it was the policy that chose it."""

    def run() -> None:
        notes[:] = _opening(job)
        try:
            converge()
        except (_NotSolvedError, spectrum.NoStepError) as error:
            if not job.params.get("policy"):
                raise
            notes.append(f"{error.message}: turning to lu_partial_pivot")
            _other_method(job, "lu_partial_pivot", notes, out)

    return run


def _refine(job: Job, name: str, method: Direct) -> Step:
    """Factorize, solve, and solve again for what is left, as long as that helps."""
    n, dtype = job.params["n"], job.case["dtype"]
    out = job.device.empty(n, dtype)
    meter, zero = _Meter(job), job.device.to_device(np.zeros(n, dtype))
    target, wanted = _target(job.case, n), _target(job.case, n, margin=0.5)
    notes: list[str] = []

    def solve() -> None:
        # Nothing is read back before there is an answer, so that the device need not wait. One
        # refinement in any case: it costs little and gives almost all digits of x that the
        # type can hold.
        job.device.copy(zero, out)
        meter.launch(out)
        method.factorize()
        for _ in range(2):
            method.correct(meter.r, meter.norms, out)
            meter.launch(out)
        now = meter.read()
        now.check_finite()
        method.check()
        solutions, before = 2, math.inf
        while now.error > wanted and now.error < before / 2 and solutions <= REFINEMENTS:
            before = now.error
            method.correct(meter.r, meter.norms, out)
            solutions += 1
            now = meter.measure(out)
        if not now.error <= target:
            raise _NotSolvedError(f"{name} with {_refinements(solutions)}", now, job)
        notes.append(f"{name}: {_refinements(solutions)}, {now}")

    def run() -> None:
        notes[:] = _opening(job)
        if job.case.get("max_iter", MAX_ITER) != MAX_ITER:
            notes.append(f"warning: ignored --max-iter: {name} does not iterate")
        try:
            solve()
        except (_NotSolvedError, SingularError) as error:
            certain = isinstance(error, SingularError) and method.finds_greatest
            # A file of one's own is judged by what it computes itself.
            if certain or method.next_method is None or not _is_ours(job):
                raise
            notes.append(f"{error.message}: turning to {method.next_method}")
            _other_method(job, method.next_method, notes, out)

    return Step(run, out, reads_back=True, notes=notes)


class _NotSolvedError(spectrum.RefusalError):
    """A method ended with an answer that is not good enough."""

    def __init__(self, what: str, now: Measurement, job: Job) -> None:
        tol, dtype, n = job.case.get("tol"), job.case["dtype"], job.params["n"]
        message, hint = f"{what}, {now}", "lu_partial_pivot solves any non-singular system"
        if tol is not None and now.error <= promise(dtype, n):
            message += f": --tol asks for {tol:g}"
            hint = f"below {promise(dtype, n):.3g} the rounding of {dtype} decides: no method "
            hint += "promises less"
        super().__init__(message, hint)


@dataclass(frozen=True)
class Measurement:
    """How good an x is; maximum norms."""

    residual: float
    a_norm: float
    x_norm: float
    f_norm: float

    @property
    def error(self) -> float:
        """The backward error; NaN counts as infinite."""
        found = backward_error(self.residual, self.x_norm, self.f_norm, a_norm=self.a_norm)
        return math.inf if math.isnan(found) else found

    def check_finite(self) -> None:
        """InputError for an input that no method can solve."""
        for name, norm in (("A", self.a_norm), ("f", self.f_norm)):
            if not math.isfinite(norm):
                raise InputError(
                    f"{name} holds NaNs or infinities, or numbers too large to be added",
                    hint="all elements must be finite",
                )

    def __str__(self) -> str:
        """What the run reports."""
        return f"residual {self.residual:.3g}, backward error {self.error:.3g}"


class _Meter:
    """Measures answers on the device, in double: the only numbers read back while solving."""

    def __init__(self, job: Job, others: int = 0) -> None:
        """`others`: places behind the norms for numbers that are read with them."""
        self.job = job
        self.n = job.params["n"]
        self.r = job.device.empty(self.n, np.float64)  # f - A x of the last measurement
        self.row_sums = job.device.empty(self.n, np.float64)
        self.norms = job.device.empty(4 + others, np.float64)
        self.last = Measurement(0, 0, 0, 0)
        self.others: list[float] = []

    def find_residual(self, x: Buffer) -> None:
        """Launch what leaves the residual of x in `r`."""
        a, f, n = self.job.buffers["a"], self.job.buffers["f"], np.uint32(self.n)
        launch, kernel = self.job.device.launch, self.job.kernels["residual"]
        launch(kernel, warp_blocks(self.n), THREADS, a, x, f, self.r, self.row_sums, n)

    def launch(self, x: Buffer) -> None:
        """Launch what leaves the residual of x in `r`, and the norms in `norms`."""
        self.find_residual(x)
        launch, kernel = self.job.device.launch, self.job.kernels["find_norms"]
        f, n = self.job.buffers["f"], np.uint32(self.n)
        launch(kernel, 1, NORM_THREADS, self.r, self.row_sums, x, f, self.norms, n)

    def read(self) -> Measurement:
        """What was launched last; what stands behind the norms goes to `others`."""
        residual, a_norm, x_norm, f_norm, *self.others = self.job.device.to_host(
            self.norms
        ).tolist()
        self.last = Measurement(residual, a_norm, x_norm, f_norm)
        return self.last

    def measure(self, x: Buffer) -> Measurement:
        """The residual of x, which stays in `r`, and the norms."""
        self.launch(x)
        return self.read()


class _Iteration:
    """An iteration for x; subclasses know when it converges and how to launch it."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.n = job.params["n"]
        self.element = np.dtype(job.case["dtype"]).type
        rows = job.define("ROWS_PER_BLOCK")
        self.rows_grid, self.threads = blocks_for(self.n, rows), job.define("THREADS_PER_BLOCK")
        self.x, self._other = (job.device.empty(self.n, self.element) for _ in range(2))
        self._centers, self._radii = (job.device.empty(self.n, np.float64) for _ in range(2))

    def begin(self, meter: _Meter) -> str:
        """Say why it converges; NoStepError tells why not. The residual of x is in the meter."""
        raise NotImplementedError

    def advance(self, count: int, meter: _Meter) -> None:
        """Launch `count` iterations, from one array for x to the other and back."""
        del meter
        a, f, n = self.job.buffers["a"], self.job.buffers["f"], np.uint32(self.n)
        kernel, grid = self.job.kernels["iterate"], self.rows_grid
        for _ in range(count):
            own = self.arguments()
            self.job.device.launch(kernel, grid, self.threads, a, f, self.x, self._other, *own, n)
            self.x, self._other = self._other, self.x

    def arguments(self) -> tuple[Buffer | np.generic, ...]:
        """What the next iteration's kernel gets besides A, f, the two x and n."""
        return ()

    def circles(self) -> tuple[Array, Array]:
        """The diagonal of A, and the sums of the magnitudes beside it."""
        device, kernel, n = self.job.device, self.job.kernels["find_circles"], np.uint32(self.n)
        circles, a = (self._centers, self._radii), self.job.buffers["a"]
        device.launch(kernel, warp_blocks(self.n), THREADS, a, *circles, n)
        centers, radii = map(device.to_host, circles)
        return centers, radii

    def symmetric(self) -> bool:
        """Whether A equals its transpose, exactly."""
        device = self.job.device
        count = device.to_device(np.zeros(1, np.uint32))
        tiles = blocks_for(self.n, 32)
        kernel, a = self.job.kernels["count_unsymmetric"], self.job.buffers["a"]
        device.launch(kernel, (tiles, tiles), (32, 8), a, count, np.uint32(self.n))
        return int(device.to_host(count)[0]) == 0

    def product(self, vector: Array) -> Array:
        """A times a vector of the host."""
        return self._product("multiply", warp_blocks(self.n), vector)

    def transposed(self, vector: Array) -> Array:
        """The transpose of A times a vector of the host."""
        return self._product("multiply_transposed", blocks_for(self.n, THREADS), vector)

    def _product(self, name: str, grid: int, vector: Array) -> Array:
        device, kernel = self.job.device, self.job.kernels[name]
        x, y = device.to_device(vector), device.empty(self.n, np.float64)
        device.launch(kernel, grid, THREADS, self.job.buffers["a"], x, y, np.uint32(self.n))
        return device.to_host(y)


class _Richardson(_Iteration):
    """One step for all; chosen from the spectrum where it is not given."""

    alpha: float | None = None
    why = "given"

    def begin(self, meter: _Meter) -> str:
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


class _Jacobi(_Iteration):
    """A step for each row, the inverse of its diagonal element."""

    def begin(self, meter: _Meter) -> str:
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


class _Chebyshev(_Iteration):
    """Steps from an interval that holds all eigenvalues of a symmetric matrix."""

    coefficients: Iterator[tuple[float, float]]

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.step = job.device.empty(self.n, self.element)  # of the iteration before

    def begin(self, meter: _Meter) -> str:
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


class _ConjugateGradient(_Iteration):
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

    def begin(self, meter: _Meter) -> str:
        centers, _ = self.circles()
        if not self.symmetric():
            raise spectrum.NoStepError("conjugate_gradient needs a symmetric A, and this is none")
        if not (centers.min() > 0 or centers.max() < 0):
            raise spectrum.NoStepError(
                "conjugate_gradient needs a definite A: its diagonal has numbers of both signs or 0"
            )
        self.sign = np.float64(np.sign(centers[0]))
        self.job.device.copy(np.zeros(1, np.uint32), self.not_definite)
        self._launch("start_direction", meter.r, self.r, self.p, self.rr)
        return "A is symmetric, its diagonal has one sign"

    def advance(self, count: int, meter: _Meter) -> None:
        """Begin again where rounding has led r away from the residual, then iterate."""
        recursive = math.sqrt(float(self.job.device.to_host(self.rr).sum()))
        if recursive < meter.last.residual / 10:
            self._launch("start_direction", meter.r, self.r, self.p, self.rr)
        a, num_pq = self.job.buffers["a"], np.uint32(self.rows_grid)
        multiply = self.job.kernels["multiply_direction"]
        for _ in range(count):
            self.job.device.launch(
                multiply, self.rows_grid, self.threads, a, self.p, self.q, self.pq,
                np.uint32(self.n),
            )  # fmt: skip
            self._launch(
                "take_step", self.x, self.r, self.p, self.q, self.pq, num_pq,
                self.rr, self.new_rr, self.not_definite, self.sign,
            )  # fmt: skip
            self._launch("turn_direction", self.p, self.r, self.rr, self.new_rr)
            self.rr, self.new_rr = self.new_rr, self.rr
        if self.job.device.to_host(self.not_definite)[0]:
            raise spectrum.NoStepError("conjugate_gradient needs a definite A, and this is none")

    def _launch(self, name: str, *args: Buffer | np.generic) -> None:
        kernel, n = self.job.kernels[name], np.uint32(self.n)
        self.job.device.launch(kernel, self.blocks, self.threads, *args, n)


class _Descent:
    """Conjugate gradients that run on the device alone, until they stop by themselves."""

    def __init__(self, job: Job, x: Buffer) -> None:
        """`x`: where the answer is built up."""
        self.job, self.x, n = job, x, job.params["n"]
        device, dtype = job.device, np.dtype(job.case["dtype"])
        self.n, self.wanted = np.uint32(n), np.float64(0)
        self.blocks = blocks_for(n, job.define("ROWS_PER_BLOCK"))
        self.threads = job.define("THREADS_PER_BLOCK")
        self.meter = _Meter(job, others=3)
        self.inverse, self.r, self.p, self.q = (device.empty(n, dtype) for _ in range(4))
        self.partials = device.empty(self.blocks, np.float64)
        self.arrived, self.unsymmetric = (
            device.to_device(np.zeros(1, np.uint32)) for _ in range(2)
        )
        self.nothing = device.to_device(np.zeros(n, dtype))
        self.start = device.to_device(np.zeros(self.meter.norms.shape))

    def begin(self, wanted: float) -> None:
        """From x = 0; stop at the backward error `wanted`. Nothing is known of A."""
        device, kernels, a = self.job.device, self.job.kernels, self.job.buffers["a"]
        self.wanted = np.float64(wanted)
        device.copy(self.nothing, self.x)
        device.copy(self.start, self.meter.norms)
        tiles = blocks_for(int(self.n), 32)
        device.launch(
            kernels["count_unsymmetric"], (tiles, tiles), (32, 8), a, self.unsymmetric, self.n
        )
        self.meter.find_residual(self.x)
        self.restart()

    def restart(self) -> None:
        """Go on from the residual in the meter."""
        buffers, meter = self.job.buffers, self.meter
        self.job.device.launch(
            self.job.kernels["start_descent"], 1, self.job.define("START_THREADS"), buffers["a"],
            meter.r, meter.row_sums, buffers["f"], self.inverse, self.r, self.p, self.unsymmetric,
            meter.norms, self.n,
        )  # fmt: skip

    def advance(self, count: int) -> None:
        """Enqueue `count` iterations; those after the last one needed do nothing."""
        kernel, a = self.job.kernels["descend"], self.job.buffers["a"]
        for _ in range(count):
            self.job.device.launch(
                kernel, self.blocks, self.threads, a, self.inverse, self.x, self.r, self.p, self.q,
                self.partials, self.arrived, self.meter.norms, self.wanted, self.n,
            )  # fmt: skip

    def measure(self) -> tuple[Measurement, int, int]:
        """How good x is, the number of the reason to stop, and the iterations so far."""
        now = self.meter.measure(self.x)
        reason, count, _ = self.meter.others
        return now, int(reason), int(count)


def contraction(centers: Array, radii: Array) -> float:
    """The greatest quotient of a radius and its center; infinite where the center is zero."""
    sizes = np.abs(centers)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.max(np.where(sizes > 0, radii / sizes, np.inf)))


def chebyshev_coefficients(low: float, high: float) -> Iterator[tuple[float, float]]:
    """(c1, c2) for each iteration, with the eigenvalues in [low, high], on one side of zero.

    With the interval's center t and half its width w, and p_k the quotient of the values at zero
    of the Chebyshev polynomials of degree k - 1 and k: p_1 = w / t, 1 / p_k = 2 t / w - p_(k-1),
    c1 = p_k p_(k-1), c2 = 2 p_k / w.
    """
    center = (low + high) / 2
    half = math.copysign(max((high - low) / 2, 1e-6 * abs(center)), center)
    yield 0.0, 1 / center
    quotient = half / center
    while True:
        before, quotient = quotient, 1 / (2 * center / half - quotient)
        yield quotient * before, 2 * quotient / half


def promise(dtype: str, n: int) -> float:
    """The backward error that an answer may have."""
    return PROMISE[dtype] * math.sqrt(n)


def backward_error(residual: float, x_norm: float, f_norm: float, *, a_norm: float) -> float:
    """The relative size of the smallest change of A and f that makes x exact."""
    return residual / (a_norm * x_norm + f_norm) if residual else 0.0


def _target(case: Case, n: int, margin: float = 1.0) -> float:
    """The backward error to stop at: --tol, or what is promised (times a margin for rounding)."""
    tol = case.get("tol")
    return float(tol) if tol is not None else margin * promise(case["dtype"], n)


def _no_alpha(job: Job) -> None:
    if job.case.get("alpha") is not None:
        raise UsageError(
            "--alpha is the step of Richardson's iteration",
            hint="--variant richardson, or leave out --alpha",
        )


def _is_ours(job: Job) -> bool:
    from cudalab.language.source import kernels_dir  # noqa: PLC0415 - only where a method failed

    return job.kernels.source.path.resolve().parent == (kernels_dir() / "solve").resolve()


def _refinements(solutions: int) -> str:
    """The solution itself does not count."""
    count = max(solutions - 1, 0)
    return f"{count} refinement" + ("" if count == 1 else "s")


def _opening(job: Job) -> list[str]:
    """What there is to say before a method begins."""
    policy, extra = job.params.get("policy"), job.params.get("extra_numbers")
    notes = [policy] if policy else []
    if extra:
        notes.append(f"warning: ignored {extra} numbers after f")
    return notes


def _other_method(job: Job, name: str, notes: list[str], out: Buffer) -> None:
    """Solve the same system, which is on the device already, by the variant `name`."""
    lab = labs.get(job.variant.lab)
    variant = registry.find(lab, name)
    kernels = job.device.compile(
        source.load(variant.path, variant.label),
        {**lab.kernel_defines(job.case), **variant.defines},
    )
    params = {key: value for key, value in job.params.items() if key != "policy"}
    case = {**job.case, "text": False, "max_iter": MAX_ITER}
    other = Job(job.device, kernels, variant, job.buffers, params, case)
    step = lab.plan(variant.dispatch)(other)
    step()
    notes += step.notes
    job.device.copy(step.out, out)
