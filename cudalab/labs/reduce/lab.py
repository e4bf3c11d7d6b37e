"""Reduces an array, or each row or column of a matrix, to one value"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from cudalab.backends.base import C_TYPES
from cudalab.errors import InputError, UsageError
from cudalab.formats import InputStream, as_bytes
from cudalab.labs.base import Lab
from cudalab.labs.compare import SHOWN, Mismatches, compare_exact, show
from cudalab.labs.inputs import (
    Array,
    Case,
    HostInputs,
    Inputs,
    Size,
    StreamInputs,
    ends,
    patterns,
    with_nans,
)
from cudalab.labs.reduce.reference import expected_and_bound, operands


def draw(case: Case, count: int, dist: str, seed: int) -> list[Array]:
    """Draw x, and y for a dot product, from PCG64's raw output: the same bytes on every platform.

    Floats are derived from the raw integers by conversions, additions and powers of two, which
    IEEE 754 defines to the bit. uniform: all integers, floats in [-1, 1). cancelling: the second
    half cancels the first except for small remainders. wide-range: magnitudes of all orders. nan:
    uniform, but about one float in 512 is a NaN. sorted, reversed: uniform, and the extremes are
    the first and the last item. ends: those of the type, or the floats nearest to 0. For products,
    integers are odd (a few even ones would make them 0 modulo 2^32), and floats so close to ±1 that
    no order of multiplication leaves the range.
    """
    raw, dtype, op = np.random.PCG64(seed), np.dtype(case["dtype"]), case["op"]
    if dist == "all-ones":
        return [np.ones(count, dtype)] * (2 if op == "dot" else 1)
    if op == "prod":
        if dtype.kind == "f":
            return [_float_factors(raw, dtype, count, dist)]
        return [_draw_one(raw, dtype, count, dist) | dtype.type(1)]  # odd
    x = _draw_one(raw, dtype, count, dist)
    if op != "dot":
        return [x]
    if dist != "cancelling":
        return [x, _draw_one(raw, dtype, count, dist)]
    y = _uniform(raw, dtype, count)
    half = count // 2
    y[half : 2 * half] = y[:half][::-1]  # the factors of cancelling items are equal
    return [x, y]


def _uniform(raw: np.random.PCG64, dtype: np.dtype[Any], count: int) -> Array:
    """Draw integers of all bits, or floats k / 2^23 (2^52) in [-1, 1)."""
    bits = patterns(raw, count, dtype.itemsize)
    if dtype.kind != "f":
        return bits.view(dtype)
    digits = np.finfo(dtype).nmant
    signed = bits.view(f"i{dtype.itemsize}") >> (8 * dtype.itemsize - digits - 1)
    fractions: Array = np.ldexp(signed.astype(dtype), -digits)
    return fractions


def _draw_one(raw: np.random.PCG64, dtype: np.dtype[Any], count: int, dist: str) -> Array:
    values = _uniform(raw, dtype, count)
    if dist == "cancelling":
        half = count // 2
        first, second = values[:half], values[half : 2 * half]
        if dtype.kind == "f":
            first[:] = np.ldexp(first, 20)
            second[:] = second - first[::-1]
        else:
            words = values.view(f"u{dtype.itemsize}")
            small = words[half : 2 * half] & words.dtype.type(0xFF)
            words[half : 2 * half] = small - words[:half][::-1]
    elif dist == "wide-range":
        spread = patterns(raw, count, dtype.itemsize)
        if dtype.kind == "f":
            reach = 30 if dtype == np.float32 else 200  # the sum of 2^31 squares is in range
            exponents = (spread % spread.dtype.type(2 * reach + 1)).astype(np.int32) - reach
            values = np.ldexp(values + np.copysign(dtype.type(1), values), exponents)
        else:
            values = values >> (spread % spread.dtype.type(8 * dtype.itemsize)).astype(dtype)
    elif dist == "nan" and dtype.kind == "f":
        values = with_nans(values, raw.random_raw(count))
    elif dist in ("sorted", "reversed"):
        values = np.sort(values)[:: 1 if dist == "sorted" else -1].copy()
    elif dist == "ends":
        values = ends(raw.random_raw(count), dtype)
    return values


def _float_factors(raw: np.random.PCG64, dtype: np.dtype[Any], count: int, dist: str) -> Array:
    """Draw ±(1 + r / 2^k) with |r| <= 1, and 2^k > count if the mantissa allows it.

    cancelling also has up to 48 pairs of factors 2 and 1/2, wide-range up to 8 factors of up to
    2^±12: at most 2^96 in any order of multiplication.
    """
    closeness = min(count.bit_length(), np.finfo(dtype).nmant - 1)
    values: Array = np.ldexp(_uniform(raw, dtype, count), -closeness) + dtype.type(1)
    values[patterns(raw, count, dtype.itemsize) & 1 == 1] *= -1
    if dist == "cancelling":
        factors = np.tile(np.array([2, 0.5], dtype), min(count // 2, 48))
    elif dist == "wide-range":
        exponents = patterns(raw, min(count, 8), 4) % np.uint32(25)
        factors = np.ldexp(np.ones(len(exponents), dtype), exponents.astype(np.int32) - 12)
    else:
        return values
    if len(factors):
        values[np.arange(len(factors)) * count // len(factors)] *= factors
    return values


FLOATS = ("float32", "float64")
# These have no value for an empty input; the others give their identity.
UNDEFINED_WHEN_EMPTY = {"min": "minimum", "max": "maximum", "mean": "mean"}


class Reduce(Lab):
    """Stream: int32 n, then n items; with --rows or --cols: int32 rows, int32 cols, then a matrix.

    Answer: one value, or one for each row (column), of the items' type and without a header.
    Integers wrap modulo 2^32 (2^64). The dot product reads two arrays of n items. A mean, a dot
    product and a reduction of rows or columns are float32 unless --dtype says otherwise. An empty
    sum is 0, an empty product 1; the minimum, maximum and mean of nothing are errors.
    """

    name = "reduce"
    answer = "result"
    axes: ClassVar = {
        "dtype": ("int32", "uint32", "int64", "float32", "float64"),
        "op": ("sum", "prod", "min", "max", "sumsq", "mean", "dot"),
        "along": ("all", "rows", "cols"),
    }
    flags: ClassVar = {
        "along": {"rows": "Reduce each row of a matrix.", "cols": "Reduce each column of a matrix."}
    }
    distributions = (
        "uniform",
        "cancelling",
        "all-ones",
        "wide-range",
        "nan",
        "sorted",
        "reversed",
        "ends",
    )

    def complete(self, options: Case) -> Case:
        """Default to float32 for a mean, a dot product, rows and columns; to int32 for the rest."""
        present = {name: value for name, value in options.items() if value is not None}
        op, along = present.get("op", "sum"), present.get("along", "all")
        usual = "float32" if op in ("mean", "dot") or along != "all" else "int32"
        case = super().complete({"dtype": usual} | present)
        if op == "mean" and case["dtype"] not in FLOATS:
            raise UsageError(
                f"the mean of {case['dtype']} items is no {case['dtype']}",
                hint=f"--dtype {' or '.join(FLOATS)}, or --op sum",
            )
        if op == "dot" and along != "all":
            raise UsageError(
                f"a dot product is of two vectors: it has no --{along}",
                hint=f"--op sumsq gives each {along[:-1]}'s product with itself",
            )
        return case

    def kernel_defines(self, case: Case) -> dict[str, str | int]:
        """T, the element type in C, and the operation: OP_SUM, OP_PROD, … = 1."""
        return {"T": C_TYPES[case["dtype"]], f"OP_{case['op'].upper()}": 1}

    def read(self, stream: InputStream, case: Case) -> Inputs:
        """Read the header n, or rows and cols; then x, and y for a dot product."""
        params: dict[str, Any]
        if case["along"] == "all":
            (n,) = stream.header("n")
            names = ("x", "y") if case["op"] == "dot" else ("x",)
            arrays = {name: stream.payload(name, case["dtype"], n) for name in names}
            params = {"n": n}
        else:
            rows, cols = stream.header("rows", "cols")
            arrays = {"x": stream.payload("x", case["dtype"], rows, cols)}
            params = {"rows": rows, "cols": cols}
        results, items = _counts(params, case)
        if results and not items and case["op"] in UNDEFINED_WHEN_EMPTY:
            counts = ", ".join(f"{name} = {value}" for name, value in params.items())
            raise InputError(
                f"{stream.name}: {counts}: nothing has no {UNDEFINED_WHEN_EMPTY[case['op']]}",
                hint="the sum of nothing is 0, its product 1 (--op)",
            )
        return StreamInputs(arrays, params)

    def answer_form(self, inputs: Inputs, case: Case) -> tuple[tuple[int, ...], str]:
        """One value, or one for each row or column."""
        results, _ = _counts(inputs.params, case)
        return (results,), case["dtype"]

    def empty_answer(self, inputs: Inputs, case: Case) -> Array | None:
        """The identity if nothing is combined; no values if there are no rows (columns)."""
        results, items = _counts(inputs.params, case)
        if results and items:
            return None
        return np.full(results, 1 if case["op"] == "prod" else 0, case["dtype"])

    def generate(self, case: Case, n: Size, dist: str, seed: int) -> Iterator[memoryview | bytes]:
        """Generate n items; for rows and columns a matrix, rows x cols or of order n."""
        shaped = case["along"] != "all"
        shape = (n,) if isinstance(n, int) else n
        shape = shape * 2 if shaped and len(shape) == 1 else shape
        if len(shape) != 1 + shaped or dist not in self.distributions:
            size = "one size, or rows x cols" if shaped else "one size"
            raise UsageError(
                f"reduce has no data of size {n} and distribution {dist} for this case",
                hint=f"{size}; a distribution of {', '.join(self.distributions)}",
            )
        yield np.array(shape, "<i4").tobytes()
        for data in draw(case, int(np.prod(shape, dtype=np.int64)), dist, seed):
            yield as_bytes(data)

    def reference(self, inputs: HostInputs, case: Case) -> Array:
        """Integers are exact, in their type; floats are the float64 nearest to the exact result."""
        x, y, axis = operands(inputs, case)
        return expected_and_bound(x, y, axis, case)[0]

    def compare(self, got: Array, inputs: HostInputs, case: Case) -> Mismatches | None:
        """Compare integers exactly, minima and maxima by value, other floats within the bound."""
        x, y, axis = operands(inputs, case)
        expected, bound = expected_and_bound(x, y, axis, case)
        if bound is None:
            mismatches = compare_exact(got, expected)
        else:
            mismatches = _compare_within(got, expected, bound)
        if mismatches is not None and axis is None:
            mismatches.findings.extend(_likely_mistakes(got, x, y, case))
        return mismatches

    def bounds(self, inputs: HostInputs, case: Case) -> tuple[Array, Array] | None:
        """For floats, the float64 nearest to the exact result, and the error bound."""
        expected, bound = expected_and_bound(*operands(inputs, case), case)
        return None if bound is None else (expected, bound)


LAB = Reduce()


def _counts(params: dict[str, Any], case: Case) -> tuple[int, int]:
    """The number of values in the answer, and of the items combined into each."""
    match case["along"]:
        case "rows":
            return params["rows"], params["cols"]
        case "cols":
            return params["cols"], params["rows"]
        case _:
            return 1, params["n"]


def _compare_within(got: Array, expected: Array, bound: Array) -> Mismatches | None:
    """Compare floats by value: NaN agrees only with NaN, an infinity only with itself."""
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(got.astype(np.float64) - expected)
        right = (got == expected) | (error <= bound) | np.isinf(bound)
        right |= np.isnan(got) & np.isnan(expected)
    wrong = np.flatnonzero(~right)
    if len(wrong) == 0:
        return None
    first = [
        (int(i), f"{expected[i]:.17g} within {bound[i]:.3g}", show(got[i])) for i in wrong[:SHOWN]
    ]
    return Mismatches(len(wrong), len(expected), first)


def _likely_mistakes(got: Array, x: Array, y: Array | None, case: Case) -> Iterator[str]:
    """Recognise the answers that result if items are left out."""
    n = x.size
    for block in (32, 64, 128, 256, 512, 1024, 2048):
        for size in (n - n % block, block):
            if 0 < size < n:
                part = expected_and_bound(x[:size], None if y is None else y[:size], None, case)[0]
                if got.tobytes() == part.astype(got.dtype).tobytes():
                    yield (
                        f"the answer for the first {size:,} of {n:,} items: "
                        "is the tail left out, or are the blocks' results not combined?"
                    )
                    return
