"""Tabulates y = sin(sqrt(x)) at equal steps of x"""

from collections.abc import Iterator
from math import isfinite
from typing import ClassVar

import numpy as np

from cudalab.errors import InputError, UsageError
from cudalab.formats import InputStream
from cudalab.labs.compare import Mismatches, Piece, compare_pieces
from cudalab.labs.inputs import Array, Case, HostInputs, Inputs, Size
from cudalab.labs.kinds import PiecewiseLab

PIECE_ITEMS = 1 << 15  # items compared at a time: as many as a cache holds
DEFAULT_STEP = 0.01
UNIT = 2.0**-24  # half the distance from 1 to the next float32
FLOAT32_MAX = float(np.finfo(np.float32).max)


class Table(PiecewiseLab):
    """Stream: int32 n, float32 step. Answer: n x float32, element i = sin(sqrt(i * step))."""

    name = "table"
    answer = "table"
    axes: ClassVar = {"dtype": ("float32",), "accuracy": ("accurate", "fast")}
    flags: ClassVar = {"accuracy": {"fast": "Use intrinsics: faster, with fewer correct digits."}}
    has_arrays = False
    distributions = ("step", "random")

    def read(self, stream: InputStream, case: Case) -> Inputs:
        """Read the header: int32 n ≥ 0, float32 step ≥ 0; n * step is finite in float32."""
        del case
        n, step = stream.scalars("<if", ("n", "step"))
        if n < 0:
            raise InputError(
                f"{stream.name}: n = {n} at byte 0: must not be negative",
                hint="the stream is n as a little-endian int32, then step as a float32",
            )
        if not (isfinite(step) and step >= 0 and n * step <= FLOAT32_MAX):
            raise InputError(
                f"{stream.name}: step = {step:g} at byte 4: "
                "no element may be the sine of an infinite or undefined number",
                hint="step is a float32, 0 or more, and n * step below 3.4e38",
            )
        return HostInputs({"step": np.array([step], np.float32)}, {"n": n})

    def generate(self, case: Case, n: Size, dist: str, seed: int) -> Iterator[memoryview | bytes]:
        """Generate the header, which is all; `step:0.01` is a step, random draws it from (0, 1]."""
        del case
        name, _, parameter = dist.partition(":")
        if not isinstance(n, int) or name not in self.distributions:
            raise UsageError(
                f"{self.name} has no data of size {n} with distribution {dist}",
                hint="one number, and step:0.01 or random",
            )
        if name == "random":
            step = (int(np.random.PCG64(seed).random_raw()) % 2**20 + 1) * 2.0**-20
        else:
            step = _step(parameter)
        yield np.array([n], "<i4").tobytes() + np.array([step], "<f4").tobytes()

    def pieces(self, inputs: HostInputs, case: Case) -> Iterator[Piece]:
        """The sines in float64, and `tolerance`."""
        step, n = float(inputs.arrays["step"][0]), inputs.params["n"]
        for start in range(0, n, PIECE_ITEMS):
            piece = slice(start, min(start + PIECE_ITEMS, n))
            # Exact before the root: a float32 times an int32.
            roots = np.sqrt(np.arange(piece.start, piece.stop, dtype=np.float64) * step)
            yield piece, np.sin(roots), tolerance(roots, case)

    def compare(self, got: Array, inputs: HostInputs, case: Case) -> Mismatches | None:
        """Compare within `tolerance` of the value in float64; values must be sines."""
        return compare_pieces(
            got,
            self.pieces(inputs, case),
            _are_sines,
            lambda expected, bound: f"{expected:.9g} within {bound:.2g}",
        )


LAB = Table()


def _are_sines(ours: Array, expected: Array, bound: Array) -> Array:
    ours = ours.astype(np.float64)
    with np.errstate(invalid="ignore"):
        near: Array = (np.abs(ours - expected) <= bound) & (np.abs(ours) <= 1 + 2.0**-20.5)
    return near


def tolerance(roots: Array, case: Case) -> Array:
    """The error bound of an element sin(a), where a = sqrt(i * step); u = 2^-24.

    Both kinds: i, i * step and the root are each rounded to float32, which moves the argument by at
    most a * (u/2 + u/2 + u) = 2ua, and the sine by no more.
    accurate: sinf adds at most 2 units in the last place (CUDA C++ Programming Guide, appendix on
    mathematical functions; host libraries add less), each at most 2u|sin a| <= 2u * min(1, a).
    fast: sin.approx is off by at most 2^-20.5 up to 2 pi (PTX ISA). Before that, __sinf multiplies
    by 1 / 2 pi: a constant with a relative error of 0.7u, and a truncated product, 2u. Their sum
    times a is less than 3ua. PTX's bound up to 100 pi, 2^-14.7, lies below this line; beyond 100 pi
    PTX gives no bound, and we assume that the same two roundings explain the error.
    """
    if case["accuracy"] == "fast":
        return np.asarray(2.0**-20.5 + 5 * UNIT * roots)
    # 1 + 2^-10 covers the products of rounding errors.
    return np.asarray((1 + 2.0**-10) * UNIT * (2 * roots + 4 * np.minimum(roots, 1)))


def _step(parameter: str) -> float:
    try:
        step = float(parameter or DEFAULT_STEP)
    except ValueError:
        step = -1.0
    if not (0 <= step <= FLOAT32_MAX):
        raise UsageError(
            f"the step of a table is a number, 0 or more, got '{parameter}'",
            hint="such as `cudalab gen table --n 1000 --dist step:0.01`",
        )
    return step
