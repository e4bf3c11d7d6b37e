"""Solves systems of linear equations A x = f"""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from cudalab.backends.base import Device
from cudalab.errors import CudalabError, InputError, UsageError
from cudalab.formats import InputStream, as_bytes
from cudalab.labs import registry
from cudalab.labs.base import Lab, Option
from cudalab.labs.compare import SHOWN, Accuracy, Mismatches, show
from cudalab.labs.inputs import Array, Case, HostInputs, Inputs, Size, StreamInputs
from cudalab.labs.solve import systems
from cudalab.labs.solve.factors import SingularError
from cudalab.labs.solve.iterations import contraction
from cudalab.labs.solve.plans import MAX_ITER
from cudalab.labs.solve.residual import Measurement, backward_error, promise, target_of

TEXT_ROUNDING = 1e-10  # error of an answer written with eleven digits
COMPARED = "A x against f, row by row"
SMALL_N = 64  # up to this order it is not worth looking for an iteration
TENSOR_CORES_N = 1024  # from this order on LU factors are faster if tensor cores update the matrix
LOOK_AHEAD_N = 4096  # and from here on, if the next strip is eliminated beside the update
CHOLESKY_N = 512  # from this order on Cholesky factors are faster than LU factors
WIDE_STRIPS_N = 7168  # and from here on, if their strips are wide


class Solve(Lab):
    """Stream: int32 n, then A, n x n, row by row, then f. Answer: x, n elements, no header.

    Without --variant the matrix decides: an iteration if one provably converges quickly, Cholesky
    factors if A may be definite and the GPU has the tensor cores for them, else LU factors with
    pivoting, which solve any non-singular system; stderr says what was chosen. The
    answer's backward error is at most 1e-6 sqrt(n) in float32, 1e-14 sqrt(n) in float64, or the
    exit status is 1.
    """

    name = "solve"
    answer = "x"
    axes: ClassVar = {"dtype": ("float32", "float64")}
    options = (
        Option("--alpha", float, "The step of Richardson's iteration.", runs_only=True),
        Option("--tol", float, "Stop at this backward error. Default: the promised one."),
        Option(
            "--max-iter", int, "Maximum number of iterations.", default=MAX_ITER, runs_only=True
        ),
        Option("--text", bool, "Text in and out: n, the rows of A, f; answers as %.10e, float64."),
    )
    distributions = systems.DISTRIBUTIONS

    example_size = "500"

    def encode(self, answer: Callable[[], Array], case: Case) -> bytes | None:
        """Encode --text: a line for each unknown."""
        if not case.get("text"):
            return None
        return "".join(f"{value:.10e}\n" for value in answer().tolist()).encode()

    def complete(self, options: Case) -> Case:
        """Make --text float64. UsageError for meaningless numbers."""
        if options.get("text"):
            if options.get("dtype") == "float32":
                raise UsageError("--text is float64", hint="leave out --dtype float32")
            options = {**options, "dtype": "float64"}
        case: Case = {"alpha": None, "tol": None, "max_iter": MAX_ITER, "text": False}
        case |= super().complete(options)
        alpha, tol = case["alpha"], case["tol"]
        if alpha is not None and not (math.isfinite(alpha) and alpha != 0):
            raise UsageError(f"--alpha {alpha}: must be a number other than 0")
        if tol is not None and not (math.isfinite(tol) and tol > 0):
            raise UsageError(f"--tol {tol}: must be a positive number")
        if case["max_iter"] < 1:
            raise UsageError(f"--max-iter {case['max_iter']}: must be 1 or more")
        return case

    def header_of(self, arrays: Sequence[Array], case: Case) -> tuple[int, ...]:
        """The order of A."""
        return super().header_of(arrays, case)[:1]

    def read(self, stream: InputStream, case: Case) -> Inputs:
        """Read the header n, then A and f; or all of the text."""
        if case.get("text"):
            return _read_text(stream)
        (n,) = stream.header("n")
        a = stream.payload("A", case["dtype"], n, n)
        return StreamInputs({"a": a, "f": stream.payload("f", case["dtype"], n)}, {"n": n})

    def read_answer(self, stream: InputStream, inputs: Inputs, case: Case) -> Array:
        """Read x, which has as many elements as A has columns."""
        if not case.get("text"):
            return super().read_answer(stream, inputs, case)
        words, n = _all_bytes(stream).split(), inputs.params["n"]
        if len(words) != n:
            raise InputError(f"{stream.name}: {len(words)} numbers, expected {n}")
        return _numbers(words, stream.name, 0)

    def generate(self, case: Case, n: Size, dist: str, seed: int) -> Iterator[memoryview | bytes]:
        """Generate a system of order n: see systems.py."""
        if not isinstance(n, int):
            raise UsageError("solve: the size of a system is one number", hint="--n ORDER")
        a, f = systems.draw(n, dist, seed, np.dtype(case["dtype"]))
        if case.get("text"):
            yield f"{n}\n".encode()
            for line in (*a, f):
                yield (" ".join(map(repr, line.tolist())) + "\n").encode()
        else:
            yield np.array([n], "<i4").tobytes()
            yield as_bytes(a)
            yield as_bytes(f)

    def reference(self, inputs: HostInputs, case: Case) -> Array:
        """Solve with NumPy in float64. CudalabError if A is singular or a number is not finite."""
        a, f = (inputs.arrays[name].astype(np.float64) for name in ("a", "f"))
        Measurement(0, _norm(a), 0, _norm(f)).check_finite()
        try:
            x: Array = np.linalg.solve(a, f)
        except np.linalg.LinAlgError:
            raise SingularError("A is singular: there is no solution to compare with") from None
        return x.astype(case["dtype"])

    def compare(self, got: Array, inputs: HostInputs, case: Case) -> Mismatches | None:
        """Judge by the backward error in float64, |A x - f| / (|A| |x| + |f|), in the maximum norm.

        It is the relative size of the smallest change of A and f for which x is exact, which a
        stable method bounds for any condition of A.
        """
        n = inputs.params["n"]
        limit = allowed(case, n)
        x = got.reshape(-1)
        bad = np.flatnonzero(~np.isfinite(x))
        if len(bad):
            first = [(int(i), "a finite number", show(x[i])) for i in bad[:SHOWN]]
            return Mismatches(len(bad), n, first, compared=COMPARED)
        error, residual = _error_and_residual(inputs, x)
        if error <= limit:
            return None
        f = inputs.arrays["f"].astype(np.float64)
        worst = np.argsort(-np.abs(residual))[:SHOWN]
        rows = [(int(i), f"{f[i]:.9g}", f"{f[i] + residual[i]:.9g} as row i of A x") for i in worst]
        mismatches = Mismatches(n, n, rows, compared=COMPARED)
        mismatches.findings.append(f"the backward error is {error:.3g}, allowed are {limit:.3g}")
        return mismatches

    def accuracy(self, got: Array, inputs: HostInputs, case: Case) -> Accuracy | None:
        """The backward error of a finite answer, and the bound."""
        x = got.reshape(-1)
        if not np.isfinite(x).all():
            return None
        error, _ = _error_and_residual(inputs, x)
        return Accuracy(error, allowed(case, inputs.params["n"]), None, "backward error")

    taken: ClassVar = {
        "jacobi": "dominant diagonals",
        "conjugate_gradient_scaled": "dominant and symmetric",
        "richardson_coalesced": "--alpha",
        "cholesky_narrow_strips": "maybe definite, from 512",
        "cholesky_tensor_cores": "maybe definite, from 7168",
        "lu_tensor_cores": "others from 1024 on",
        "lu_look_ahead": "others from 4096 on",
    }

    def choose(self, inputs: Inputs, case: Case, device: Device) -> str | None:
        """The policy `auto`: an iteration that provably converges quickly, else the default.

        The reason goes to the inputs' parameter `policy`, which tells the launch plans that they
        may turn to another method.
        """
        direct = registry.default(self, case, device.name).name
        if case["alpha"] is not None:
            inputs.params["policy"] = None  # the user chose this iteration: no other
            return "richardson_coalesced"
        n = inputs.params["n"]
        if n <= SMALL_N:
            inputs.params["policy"] = f"auto: {direct}: {n} unknowns are few"
            return None
        a = _held(inputs, "a")
        variant, reason = quick_iteration(a, target_of(case, n))
        inputs.params["policy"] = f"auto: {variant or direct}: {reason}"
        if variant is None and case["dtype"] == "float32" and device.facts.many_threads:
            # The default takes the place of a variant that the GPU cannot run.
            if n >= CHOLESKY_N and may_be_definite(a):
                inputs.params["policy"] = f"auto: Cholesky factors, else LU: {reason}"
                return large_cholesky_factors(n)
            if n >= TENSOR_CORES_N:
                inputs.params["policy"] = f"auto: LU factors: {reason}"
                return large_factors(n)
        return variant


LAB = Solve()


def large_factors(n: int) -> str:
    """The variant for LU factors of a large matrix, of TENSOR_CORES_N rows or more."""
    return "lu_tensor_cores" if n < LOOK_AHEAD_N else "lu_look_ahead"


def large_cholesky_factors(n: int) -> str:
    """The variant for Cholesky factors of a large matrix, of CHOLESKY_N rows or more."""
    return "cholesky_narrow_strips" if n < WIDE_STRIPS_N else "cholesky_tensor_cores"


def quick_iteration(a: Array, target: float) -> tuple[str | None, str]:
    """Return (variant or None, reason) for A on the host.

    Strict diagonal dominance is a proof: let q be the greatest quotient of the sum of magnitudes
    beside the diagonal and the magnitude on it; then each of Jacobi's iterations shrinks the error
    at least by q. If A is also symmetric with a diagonal of one sign, Gershgorin's circles put the
    eigenvalues of A, scaled to a diagonal of 1, between 1 - q and 1 + q, and conjugate gradients
    need about sqrt(condition) / 2 iterations for each factor of e. Quick means below n / 8
    iterations, which saves more work over LU factors than the launches cost.
    """
    n = len(a)
    diagonal = np.diagonal(a).astype(np.float64)
    beside = np.empty(n)
    for start in range(0, n, 256):
        rows = slice(start, min(start + 256, n))
        beside[rows] = np.abs(a[rows]).sum(axis=1, dtype=np.float64) - np.abs(diagonal[rows])
        if not bool((beside[rows] < np.abs(diagonal[rows])).all()):
            return None, "A is not strictly diagonally dominant"
    digits = math.log(4 / target)
    factor = contraction(diagonal, beside)
    needed = {"jacobi": digits / -math.log(factor) if factor > 0 else 1.0}
    one_sign = bool((diagonal > 0).all() or (diagonal < 0).all())
    if one_sign and _is_symmetric(a):
        condition = (1 + factor) / (1 - factor)
        needed["conjugate_gradient_scaled"] = math.sqrt(condition) / 2 * digits
    variant = min(needed, key=lambda name: needed[name])
    iterations = math.ceil(needed[variant])
    about = f"A is diagonally dominant by a factor of {1 / max(factor, 1e-300):.3g}"
    if iterations > n // 8:
        return None, f"{about}, which is not much: {variant} would take {iterations} iterations"
    return variant, f"{about}: at most about {iterations} iterations"


def may_be_definite(a: Array) -> bool:
    """Whether the diagonal has one sign and the first rows are the first columns.

    That is quickly seen, and no proof. Cholesky factors are: they have pivots of one sign if A is
    definite, and the residual of the solution is small if A is symmetric. Else LU factors follow.
    """
    diagonal = np.diagonal(a)
    one_sign = bool((diagonal > 0).all() or (diagonal < 0).all())
    return one_sign and np.array_equal(a[:256], a[:, :256].T)


def allowed(case: Case, n: int) -> float:
    """The maximum backward error of a right answer."""
    rounding = TEXT_ROUNDING if case.get("text") else 0.0
    return max(target_of(case, n), promise(case["dtype"], n)) + rounding


def _error_and_residual(inputs: HostInputs, x: Array) -> tuple[float, Array]:
    """The backward error of x, and A x - f, in float64."""
    a, f = (inputs.arrays[name].astype(np.float64) for name in ("a", "f"))
    x = x.astype(np.float64)
    residual = a @ x - f
    return backward_error(_norm(residual), _norm(x), _norm(f), a_norm=_norm(a)), residual


def _norm(of: Array) -> float:
    """The maximum norm of a vector; of a matrix, the greatest sum of a row's magnitudes."""
    sizes = np.abs(of) if of.ndim == 1 else np.abs(of).sum(axis=1)
    return float(sizes.max(initial=0))


def _is_symmetric(a: Array) -> bool:
    """Compare in blocks, which fit into the cache both by rows and by columns."""
    for start in range(0, len(a), 256):
        block = slice(start, start + 256)
        if not np.array_equal(a[block, : start + 256], a[: start + 256, block].T):
            return False
    return True


def _held(inputs: Inputs, name: str) -> Array:
    try:
        return inputs.hold(name)
    except CudalabError as error:
        error.hint = error.hint or "the stream starts with n as a binary int32, not text"
        raise


# The course's text form -------------------------------------------------------------------------


def _read_text(stream: InputStream) -> HostInputs:
    """Read n, the rows of A, and f: numbers separated by white space, with a decimal point."""
    words = _all_bytes(stream).split()
    try:
        n = int(words[0]) if words else -1
    except ValueError:
        n = -1
    if n < 0:
        first_word = repr(words[0].decode(errors="replace")) if words else "nothing"
        raise InputError(
            f"{stream.name}: expected the number of equations, found {first_word}",
            hint="--text is n, then n rows of n numbers, then n numbers for f",
        )
    needed = n * n + n
    if len(words) - 1 < needed:
        raise InputError(
            f"{stream.name}: truncated: {len(words) - 1} numbers after n = {n}, "
            f"expected {n} x {n} for A and {n} for f",
            hint="--text is n, then n rows of n numbers, then n numbers for f",
        )
    numbers = _numbers(words[1 : needed + 1], stream.name, 1)
    params: dict[str, Any] = {"n": n, "extra_numbers": len(words) - 1 - needed}
    return HostInputs({"a": numbers[: n * n].reshape(n, n), "f": numbers[n * n :]}, params)


def _numbers(words: list[bytes], name: str, first: int) -> Array:
    try:
        return np.array([float(word) for word in words])
    except ValueError:
        pass
    for place, word in enumerate(words, first):
        try:
            float(word)
        except ValueError:
            shown = word.decode(errors="replace")
            raise InputError(
                f"{name}: number {place} is {shown!r}", hint="a number is 12, -0.5 or 1e-3"
            ) from None
    raise AssertionError


def _all_bytes(stream: InputStream) -> bytes:
    """Read the rest of the stream."""
    pieces = []
    try:
        while piece := os.read(stream.fd, 1 << 20):
            pieces.append(piece)
            stream.offset += len(piece)
    except OSError as error:
        raise InputError(f"{stream.name}: cannot be read: {error.strerror}") from None
    return b"".join(pieces)
