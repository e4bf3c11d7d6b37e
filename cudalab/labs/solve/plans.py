"""The launch plans of solve: which kernels run, in what order, on which memory.

Every file includes parts/residual.cuh, whose kernels measure the answer; all plans end with that
measurement and report an answer beyond the bound as an error.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from cudalab import labs
from cudalab.backends.base import Buffer, graph
from cudalab.errors import UsageError
from cudalab.labs import registry
from cudalab.labs.base import Job, Step
from cudalab.labs.solve import factors, iterations, spectrum, tensor_factors
from cudalab.labs.solve.residual import Meter, NotSolvedError, target_of
from cudalab.language import source
from cudalab.output.prose import counted

REFINEMENTS = 10
MAX_ITER = 10_000
GROWTH = 1e4  # an iteration whose residual exceeds the first, f, by this factor diverges
FIRST_BATCH = 8  # iterations enqueued before anything is known about the matrix
# The reasons to stop, for kernels that decide on the device.
SMALL_ENOUGH = 1
REFUSALS = {
    2: "symmetric A, and this is none",
    3: "definite A: its diagonal has numbers of both signs or 0",
    4: "definite A, and this is none",
}


def dispatch_richardson(job: Job) -> Step:
    """x1 = x0 + alpha (A x0 - f) until the backward error is small enough.

    iterate(const T *a, const T *f, const T *x0, T *x1, T alpha, unsigned n)
        blocks of THREADS_PER_BLOCK threads, one block per ROWS_PER_BLOCK rows
    Without --alpha the kernels of parts/spectrum.cuh help to choose it: find_circles,
    count_unsymmetric, multiply, multiply_transposed. Also: those of parts/residual.cuh.
    """
    return _iterate(job, "richardson", iterations.Richardson(job))


def dispatch_jacobi(job: Job) -> Step:
    """x1_i = x0_i + (f_i - (A x0)_i) / a_ii until the backward error is small enough.

    iterate(const T *a, const T *f, const T *x0, T *x1, unsigned n)
        blocks of THREADS_PER_BLOCK threads, one block per ROWS_PER_BLOCK rows
    Also: find_circles of parts/spectrum.cuh and the kernels of parts/residual.cuh.
    """
    _no_alpha(job)
    return _iterate(job, "jacobi", iterations.Jacobi(job))


def dispatch_chebyshev(job: Job) -> Step:
    """d1 = c1 d0 + c2 (f - A x0), x1 = x0 + d1 until the backward error is small enough.

    iterate(const T *a, const T *f, const T *x0, T *x1, T *d, T c1, T c2, unsigned n)
        the same thread reads d0 from d and writes d1 there; c1 is 0 in the first iteration;
        blocks of THREADS_PER_BLOCK threads, one block per ROWS_PER_BLOCK rows
    Also: the kernels of parts/spectrum.cuh and parts/residual.cuh.
    """
    _no_alpha(job)
    return _iterate(job, "chebyshev", iterations.Chebyshev(job))


def dispatch_conjugate_gradient(job: Job) -> Step:
    """Take steps along conjugate directions; the step sizes stay on the device.

    start_direction(const double *residual, T *r, T *p, double *partials, unsigned n)
        r = p = residual, and the parts of r.r, as below
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
    return _iterate(job, "conjugate_gradient", iterations.ConjugateGradient(job))


def dispatch_descent(job: Job) -> Step:
    """Conjugate gradients that stop by themselves; the host reads only the outcome.

    start_descent(const T *a, const double *residual, const double *row_sums, const T *f,
                  T *inverse, T *r, T *p, unsigned *unsymmetric, double *state, unsigned n)
        one block of START_THREADS threads: r = residual, p = inverse r; the norms and r.p into
        `state`. inverse = 1 / diagonal if the file defines SCALED as 1, else the diagonal's sign
    descend(const T *a, const T *inverse, T *x, T *r, T *p, T *q, double *partials,
            unsigned *arrived, double *state, double wanted, unsigned n)
        an iteration, or nothing if `state` says that it has stopped; blocks of
        THREADS_PER_BLOCK threads, one block per ROWS_PER_BLOCK rows
    state: the four norms of find_norms, 0 or the reason to stop, the iterations, r.(inverse r).
    Also: count_unsymmetric of parts/spectrum.cuh, the kernels of parts/residual.cuh.
    """
    _no_alpha(job)
    scaled = job.define("SCALED", 1, at_least=0)
    name = f"conjugate_gradient_{'scaled' if scaled else 'one_launch'}"
    return _descend(job, name)


def dispatch_lu(job: Job) -> Step:
    """Compute LU factors, 32 columns at a time; then substitute and refine.

    find_candidates, eliminate_column, permute_rows, solve_rows, update_trailing,
    substitute_lower, substitute_upper
        as lu_partial_pivot.cu describes them, with its defines
    or, if the file defines substitute_lower_chain,
    substitute_lower_chain, substitute_upper_chain in place of the last two
        as parts/substitute_chain.cuh describes them
    or, if the file also defines choose_pivots,
    choose_pivots, eliminate_rows, solve_rows, update_trailing, substitute_lower_chain,
    substitute_upper_chain
        as lu_blocked_panel.cu describes them, with its defines; or, if BLOCK is not among these,
        as lu_elected_panel.cu does
    Also: the kernels of parts/scaled_rows.cuh, parts/right_hand_side.cuh and
    parts/residual.cuh.
    """
    _no_alpha(job)
    kernels = job.kernels.source.kernels
    if "choose_pivots" in kernels and not job.define("BLOCK", 0, at_least=0):
        return _refine(job, "lu_elected_panel", factors.ElectedFactors(job))
    if "choose_pivots" in kernels:
        return _refine(job, "lu_blocked_panel", factors.BlockedFactors(job))
    if "substitute_lower_chain" in kernels:
        return _refine(job, "lu_substitution_chain", factors.ChainedFactors(job))
    return _refine(job, "lu_partial_pivot", factors.Factors(job))


def dispatch_lu_graph(job: Job) -> Step:
    """Compute LU factors; all launches up to the first answer are one graph, where there are any.

    choose_pivots, eliminate_rows, solve_rows, update_trailing, substitute_lower_chain,
    substitute_upper_chain
        as lu_blocked_panel.cu describes them, with its defines
    or, if the file also defines subtract_products,
    split_strip, subtract_products in place of update_trailing
        as lu_tensor_cores.cu describes them, with its defines
    or, if the file also defines exchange_strip,
    exchange_strip in addition, as lu_look_ahead.cu describes it, with its defines
    Also: the kernels of parts/scaled_rows.cuh, parts/right_hand_side.cuh and
    parts/residual.cuh.
    """
    _no_alpha(job)
    kernels = job.kernels.source.kernels
    if "exchange_strip" in kernels:
        return _refine(job, "lu_look_ahead", tensor_factors.LookAheadFactors(job), as_graph=True)
    if "subtract_products" in kernels:
        return _refine(job, "lu_tensor_cores", tensor_factors.TensorFactors(job), as_graph=True)
    return _refine(job, "lu_graph", factors.BlockedFactors(job), as_graph=True)


def dispatch_cholesky(job: Job) -> Step:
    """Compute L and D L^T of a definite matrix, strip by strip; then substitute and refine.

    find_diagonal_scales, load_symmetric, factor_diagonal, eliminate_below, subtract_below
        as cholesky_tensor_cores.cu describes them, with its defines
    Also: split_strip, subtract_products, substitute_lower_chain and substitute_upper_chain, as for
    LU factors, and the kernels of parts/right_hand_side.cuh and parts/residual.cuh.
    """
    _no_alpha(job)
    return _refine(job, job.variant.name, tensor_factors.CholeskyFactors(job), as_graph=True)


def dispatch_gauss_jordan(job: Job) -> Step:
    """Compute the inverse, one launch of eliminate per step; then refine.

    choose_pivot(const T *work, const T *relative, unsigned char *taken, T *pivot_row,
                 T *multipliers, unsigned *pivot, unsigned *row_of_column, double *status,
                 double threshold, unsigned n, unsigned ld, unsigned step)
        one block of SEARCH_THREADS threads: finds the pivot of column `step`, its divided row
        and the multipliers
    or, with pivots from the whole matrix, if the file defines find_row_candidates,
    find_row_candidates(const T *work, const T *relative, const unsigned char *taken,
                        T *sizes, unsigned *columns, unsigned n, unsigned ld)
    choose_pivot(const T *work, const T *sizes, const unsigned *columns, unsigned char *taken,
                 … as above)
    Also: the kernels of parts/gauss_jordan.cuh, parts/scaled_rows.cuh,
    parts/right_hand_side.cuh and parts/residual.cuh.
    """
    _no_alpha(job)
    complete = "find_row_candidates" in job.kernels.source.kernels
    name = "complete_pivot" if complete else "gauss_jordan"
    return _refine(job, name, factors.Inverse(job, complete=complete))


def _iterate(job: Job, name: str, method: iterations.Iteration) -> Step:
    """Iterate from x = 0; measure on the device now and then, and decide on the host."""
    n, dtype = job.params["n"], job.case["dtype"]
    out, meter = job.device.empty(n, dtype), Meter(job)
    zero = job.device.to_device(np.zeros(n, dtype))
    target, max_iterations = target_of(job.case, n, margin=0.5), job.case.get("max_iter", MAX_ITER)
    notes: list[str] = []

    def converge() -> None:
        job.device.copy(zero, method.x)
        now = meter.measure(method.x)
        now.check_finite()
        if now.error > 0:  # f = 0 needs no iteration, and so no proof of convergence
            notes.append(f"{name}: {method.begin(meter)}")
        count = 0
        while now.error > target:
            if count >= max_iterations:
                raise NotSolvedError(f"{name} has not converged after {count} iterations", now, job)
            batch = min(max(4, count // 8), 32, max_iterations - count)
            method.advance(batch, meter)
            count += batch
            now = meter.measure(method.x)
            if not now.residual < GROWTH * now.f_norm:
                raise NotSolvedError(f"{name} diverges: after {count} iterations", now, job)
        job.device.copy(method.x, out)
        notes.append(f"{name}: {count} iterations, {now}")

    return Step(_or_factors(job, converge, notes, out), out, reads_back=True, notes=notes)


def _descend(job: Job, name: str) -> Step:
    """Let the device iterate from x = 0 until it stops; measure, and continue if necessary."""
    out = job.device.empty(job.params["n"], job.case["dtype"])
    method = iterations.Descent(job, out)
    target, max_iterations = (
        target_of(job.case, job.params["n"]),
        job.case.get("max_iter", MAX_ITER),
    )
    notes: list[str] = []

    def converge() -> None:
        method.begin(target=0.8 * target)  # a margin: its residual is in the element type
        count, before = 0, math.inf
        while True:
            method.advance(min(max(FIRST_BATCH, count // 2), max_iterations - count))
            now, reason, count = method.measure()
            now.check_finite()
            if reason in REFUSALS:
                raise spectrum.NoStepError(f"{name} needs a {REFUSALS[reason]}")
            if now.error <= target:
                break
            if count >= max_iterations:
                raise NotSolvedError(f"{name} has not converged after {count} iterations", now, job)
            if reason == SMALL_ENOUGH:  # rounding has made r differ from the residual
                if not now.error < before / 2:
                    raise NotSolvedError(f"{name} stays where it is: {count} iterations", now, job)
                before = now.error
                method.restart()
        notes.append(f"{name}: A is symmetric, its diagonal has one sign")
        notes.append(f"{name}: {count} iterations, {now}")

    return Step(_or_factors(job, converge, notes, out), out, reads_back=True, notes=notes)


def _or_factors(
    job: Job, converge: Callable[[], None], notes: list[str], out: Buffer
) -> Callable[[], None]:
    """Try an iteration, then LU factors if it fails and the policy has chosen it."""

    def run() -> None:
        notes[:] = _opening(job)
        try:
            converge()
        except (NotSolvedError, spectrum.NoStepError) as error:
            if not job.params.get("policy"):
                raise
            notes.append(f"{error.message}: turning to lu_partial_pivot")
            _other_method(job, "lu_partial_pivot", notes, out)

    return run


def _refine(job: Job, name: str, method: factors.Direct, *, as_graph: bool = False) -> Step:
    """Factorize, solve, and refine by solving for the residual, as long as that helps."""
    n, dtype = job.params["n"], job.case["dtype"]
    out = job.device.empty(n, dtype)
    meter, zero = Meter(job), job.device.to_device(np.zeros(n, dtype))
    target, goal = target_of(job.case, n), target_of(job.case, n, margin=0.5)
    notes: list[str] = []

    def solve_and_refine() -> None:
        # Nothing is read back before there is an answer, so that the device need not wait. There
        # is always one refinement: it costs little and gives x almost all digits that the type
        # can hold.
        job.device.copy(zero, out)
        meter.launch(out)
        method.factorize()
        for _ in range(2):
            method.correct(meter.r, meter.norms, out)
            meter.launch(out)

    begin = graph(job.device, solve_and_refine) if as_graph else solve_and_refine

    def solve() -> None:
        begin()
        now = meter.read()
        now.check_finite()
        method.check()
        solutions, before = 2, math.inf
        while now.error > goal and now.error < before / 2 and solutions <= REFINEMENTS:
            before = now.error
            method.correct(meter.r, meter.norms, out)
            solutions += 1
            now = meter.measure(out)
        if not now.error <= target:
            raise NotSolvedError(f"{name} with {_refinements(solutions)}", now, job)
        notes.append(f"{name}: {_refinements(solutions)}, {now}")

    def run() -> None:
        notes[:] = _opening(job)
        if job.case.get("max_iter", MAX_ITER) != MAX_ITER:
            notes.append(f"warning: ignored --max-iter: {name} does not iterate")
        try:
            solve()
        except (NotSolvedError, factors.SingularError) as error:
            certain = isinstance(error, factors.SingularError) and method.finds_greatest
            # A student's file is judged by its own result.
            if certain or method.next_method is None or not _is_ours(job):
                raise
            notes.append(f"{error.message}: turning to {method.next_method}")
            _other_method(job, method.next_method, notes, out)

    return Step(run, out, reads_back=True, notes=notes)


def _no_alpha(job: Job) -> None:
    if job.case.get("alpha") is not None:
        raise UsageError(
            "--alpha is the step of Richardson's iteration",
            hint="--variant richardson, or leave out --alpha",
        )


def _is_ours(job: Job) -> bool:
    return job.kernels.source.path.resolve().parent == (source.kernels_dir() / "solve").resolve()


def _refinements(solutions: int) -> str:
    """Count the refinements in words; the first solution is none."""
    return counted(max(solutions - 1, 0), "refinement")


def _opening(job: Job) -> list[str]:
    """The notes before a method begins."""
    policy, extra = job.params.get("policy"), job.params.get("extra_numbers")
    notes = [policy] if policy else []
    if extra:
        notes.append(f"warning: ignored {extra} numbers after f")
    return notes


def _other_method(job: Job, name: str, notes: list[str], out: Buffer) -> None:
    """Solve the same system, which is already on the device, by the variant `name`."""
    lab = labs.get(job.variant.lab)
    variant = registry.find(lab, name)
    case = {**job.case, "text": False, "max_iter": MAX_ITER}
    params = {key: value for key, value in job.params.items() if key != "policy"}
    kernels = lab.compiled(variant, job.device, case)
    other = replace(job, kernels=kernels, variant=variant, params=params, case=case)
    step = lab.plan(variant.dispatch)(other)
    step()
    notes += step.notes
    job.device.copy(step.out, out)
